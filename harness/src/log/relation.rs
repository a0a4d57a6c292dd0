//! The one state machine over a log's events: what may follow what.
//!
//! Live appends and loading both go through [`Relation::admit`], which decodes an event, checks everything about it
//! and only then takes note of it: a refusal changes nothing. It also says what is still open, so that the end of a
//! step, a dropped turn and repair close it in one and the same way.

use std::collections::HashSet;

use super::event::{
    ApprovalAsked, ApprovalDecided, AssistantMessage, ContextAdded, EventKind, PromptBlocked, PromptReceived,
    RequestHeader, RequestRetry, RequestSent, RewriteDispatch, StepEnd, StepStart, ToolCall, ToolGate, ToolResult,
    TurnEnded, TurnStart, UserMessage,
};
use crate::content::{Block, Role};
use crate::ids::{CallId, Seq, StepNumber, TurnNumber};
use crate::json::Json;

/// The code of a result for a call that was never recorded.
pub(super) const NOT_STARTED: &str = "TOOL_NOT_STARTED";

/// Where a session's events stand.
#[derive(Debug, Default)]
pub(super) struct Relation {
    last_turn: u32,
    turn: Option<OpenTurn>,
    /// Every id of a call, nested ones included.
    ids: HashSet<CallId>,
    /// Every id of a question.
    asked: HashSet<String>,
    requests_sent: u64,
}

#[derive(Debug)]
struct OpenTurn {
    number: TurnNumber,
    last_step: u32,
    step: Option<OpenStep>,
    undecided: Vec<String>,
}

#[derive(Debug)]
struct OpenStep {
    number: StepNumber,
    /// In the order in which the model asked for them.
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    id: CallId,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Requested,
    Recorded(Seq),
    Answered,
}

/// A call that still has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unanswered {
    /// The turn.
    pub(super) turn: TurnNumber,
    /// The step.
    pub(super) step: StepNumber,
    /// The call.
    pub(super) call_id: CallId,
    /// Its `tool/call`, where there is one.
    pub(super) call_seq: Option<Seq>,
}

/// Why an event is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The id of a call is taken.
    Duplicate(CallId),
    /// Any other rule.
    Order(String),
}

type Admitted = Result<(), Refusal>;

fn refuse<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Order(why.into()))
}

fn read<E: EventKind>(data: &Json) -> Result<E, Refusal> {
    data.decode().map_err(|e| Refusal::Order(format!("its data is malformed: {e}")))
}

impl Relation {
    /// Checks an event and takes note of it; kinds that are not the engine's own stand in no relation.
    pub(super) fn admit(&mut self, seq: Seq, kind: &str, data: &Json) -> Admitted {
        match kind {
            TurnStart::TYPE => self.turn_start(&read(data)?),
            TurnEnded::TYPE => self.turn_end(&read(data)?),
            StepStart::TYPE => self.step_start(&read(data)?),
            StepEnd::TYPE => self.step_end(&read(data)?),
            PromptReceived::TYPE => self.in_turn(read::<PromptReceived>(data)?.turn),
            PromptBlocked::TYPE => self.in_turn(read::<PromptBlocked>(data)?.turn),
            UserMessage::TYPE => self.user_message(&read(data)?),
            ContextAdded::TYPE => self.context(&read(data)?),
            RequestHeader::TYPE => self.in_turn(read::<RequestHeader>(data)?.turn),
            RequestSent::TYPE => self.request_sent(&read(data)?),
            RequestRetry::TYPE => {
                let event: RequestRetry = read(data)?;
                self.in_step(event.turn, event.step).map(|_| ())
            }
            AssistantMessage::TYPE => self.assistant(&read(data)?),
            ToolCall::TYPE => self.call(seq, &read(data)?),
            ToolGate::TYPE => self.in_turn(read::<ToolGate>(data)?.turn),
            RewriteDispatch::TYPE => self.rewrite(&read(data)?),
            ToolResult::TYPE => self.result(&read(data)?),
            ApprovalAsked::TYPE => self.approval_asked(read(data)?),
            ApprovalDecided::TYPE => self.approval_decided(&read(data)?),
            _ => Ok(()),
        }
    }

    /// The number that the next turn must have.
    pub(super) fn next_turn(&self) -> TurnNumber {
        TurnNumber(self.last_turn + 1)
    }

    /// The number that the next step of the open turn must have.
    pub(super) fn next_step(&self) -> StepNumber {
        StepNumber(self.turn.as_ref().map_or(0, |turn| turn.last_step) + 1)
    }

    /// The open turn.
    pub(super) fn open_turn(&self) -> Option<TurnNumber> {
        self.turn.as_ref().map(|turn| turn.number)
    }

    /// The open step.
    pub(super) fn open_step(&self) -> Option<(TurnNumber, StepNumber)> {
        let turn = self.turn.as_ref()?;
        turn.step.as_ref().map(|step| (turn.number, step.number))
    }

    /// The first call of the open step without a result.
    pub(super) fn unanswered(&self) -> Option<Unanswered> {
        let (turn, step) = self.open_step()?;
        let call = self.turn.as_ref()?.step.as_ref()?.calls.iter().find(|call| call.stage != Stage::Answered)?;
        let call_seq = match call.stage {
            Stage::Recorded(seq) => Some(seq),
            Stage::Requested | Stage::Answered => None,
        };
        Some(Unanswered { turn, step, call_id: call.id.clone(), call_seq })
    }

    /// How many calls of the open step have no result.
    pub(super) fn unanswered_count(&self) -> usize {
        let step = self.turn.as_ref().and_then(|turn| turn.step.as_ref());
        step.map_or(0, |step| step.calls.iter().filter(|call| call.stage != Stage::Answered).count())
    }

    /// Whether an id of a call is taken.
    pub(super) fn is_used(&self, id: &CallId) -> bool {
        self.ids.contains(id)
    }

    /// How many requests were sent.
    pub(super) fn requests_sent(&self) -> u64 {
        self.requests_sent
    }

    fn in_turn(&self, number: TurnNumber) -> Admitted {
        match &self.turn {
            Some(turn) if turn.number == number => Ok(()),
            Some(turn) => refuse(format!("it names turn {} and turn {} is open", number.0, turn.number.0)),
            None => refuse(format!("it names turn {} and no turn is open", number.0)),
        }
    }

    fn in_step(&mut self, turn: TurnNumber, number: StepNumber) -> Result<&mut OpenStep, Refusal> {
        self.in_turn(turn)?;
        match self.turn.as_mut().and_then(|turn| turn.step.as_mut()) {
            Some(step) if step.number == number => Ok(step),
            Some(step) => refuse(format!("it names step {} and step {} is open", number.0, step.number.0)),
            None => refuse(format!("it names step {} and no step is open", number.0)),
        }
    }

    /// What a model sees may not come between its calls and their results: no provider would accept that.
    fn no_open_calls(&self) -> Admitted {
        match self.unanswered() {
            Some(open) => refuse(format!("the call `{}` before it has no result yet", open.call_id)),
            None => Ok(()),
        }
    }

    fn turn_start(&mut self, event: &TurnStart) -> Admitted {
        if let Some(open) = self.open_turn() {
            return refuse(format!("turn {} is still open", open.0));
        }
        let next = self.next_turn();
        if event.turn != next {
            return refuse(format!("turn {} is due, not turn {}", next.0, event.turn.0));
        }
        self.last_turn = next.0;
        self.turn = Some(OpenTurn { number: next, last_step: 0, step: None, undecided: Vec::new() });
        Ok(())
    }

    fn turn_end(&mut self, event: &TurnEnded) -> Admitted {
        self.in_turn(event.turn)?;
        if let Some((_, step)) = self.open_step() {
            return refuse(format!("step {} is still open", step.0));
        }
        self.turn = None;
        Ok(())
    }

    fn step_start(&mut self, event: &StepStart) -> Admitted {
        self.in_turn(event.turn)?;
        if let Some((_, step)) = self.open_step() {
            return refuse(format!("step {} is still open", step.0));
        }
        let next = self.next_step();
        if event.step != next {
            return refuse(format!("step {} is due, not step {}", next.0, event.step.0));
        }
        if let Some(turn) = &mut self.turn {
            turn.last_step = next.0;
            turn.step = Some(OpenStep { number: next, calls: Vec::new() });
        }
        Ok(())
    }

    fn step_end(&mut self, event: &StepEnd) -> Admitted {
        self.in_step(event.turn, event.step)?;
        self.no_open_calls()?;
        if let Some(turn) = &mut self.turn {
            turn.step = None;
        }
        Ok(())
    }

    fn user_message(&self, event: &UserMessage) -> Admitted {
        self.in_turn(event.turn)?;
        self.no_open_calls()?;
        if event.content.iter().any(|block| matches!(block, Block::ToolUse { .. } | Block::ToolResult { .. })) {
            return refuse("a user's message holds neither calls nor results");
        }
        Ok(())
    }

    fn context(&self, event: &ContextAdded) -> Admitted {
        self.in_turn(event.turn)?;
        self.no_open_calls()?;
        match event.role {
            Role::System | Role::Developer | Role::User => Ok(()),
            Role::Assistant | Role::Tool => refuse("a context speaks neither for the model nor for a tool"),
        }
    }

    fn request_sent(&mut self, event: &RequestSent) -> Admitted {
        self.in_step(event.turn, event.step)?;
        self.requests_sent += 1;
        Ok(())
    }

    fn assistant(&mut self, event: &AssistantMessage) -> Admitted {
        self.in_step(event.turn, event.step)?;
        self.no_open_calls()?;
        let mut ids: Vec<CallId> = Vec::new();
        for block in &event.content {
            match block {
                Block::ToolUse { id, .. } => {
                    let id = CallId::new(id.as_str());
                    if self.is_used(&id) || ids.contains(&id) {
                        return Err(Refusal::Duplicate(id));
                    }
                    ids.push(id);
                }
                Block::ToolResult { .. } => return refuse("a model's message holds no results"),
                Block::Text(_) | Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::Image { .. } => {}
            }
        }
        self.ids.extend(ids.iter().cloned());
        let step = self.in_step(event.turn, event.step)?;
        step.calls.extend(ids.into_iter().map(|id| Call { id, stage: Stage::Requested }));
        Ok(())
    }

    fn call(&mut self, seq: Seq, event: &ToolCall) -> Admitted {
        let used = self.is_used(&event.call_id);
        let step = self.in_step(event.turn, event.step)?;
        match step.calls.iter_mut().find(|call| call.id == event.call_id) {
            Some(call) if call.stage == Stage::Requested => {
                call.stage = Stage::Recorded(seq);
                Ok(())
            }
            Some(_) => Err(Refusal::Duplicate(event.call_id.clone())),
            None if used => Err(Refusal::Duplicate(event.call_id.clone())),
            None => refuse(format!("the step's assistant/message does not ask for the call `{}`", event.call_id)),
        }
    }

    fn rewrite(&mut self, event: &RewriteDispatch) -> Admitted {
        self.in_turn(event.turn)?;
        let step = self.turn.as_ref().and_then(|turn| turn.step.as_ref());
        let parent = step.and_then(|step| step.calls.iter().find(|call| call.id == event.call_id));
        if !parent.is_some_and(|call| matches!(call.stage, Stage::Recorded(_))) {
            return refuse(format!("the call `{}` is not open", event.call_id));
        }
        if self.is_used(&event.sub_call_id) {
            return Err(Refusal::Duplicate(event.sub_call_id.clone()));
        }
        self.ids.insert(event.sub_call_id.clone());
        Ok(())
    }

    fn result(&mut self, event: &ToolResult) -> Admitted {
        let step = self.in_step(event.turn, event.step)?;
        let Some(call) = step.calls.iter_mut().find(|call| call.id == event.call_id) else {
            return refuse(format!("the step has no call `{}`", event.call_id));
        };
        match call.stage {
            Stage::Answered => return refuse(format!("the call `{}` has its one result already", event.call_id)),
            Stage::Recorded(seq) if event.call_seq != Some(seq) => {
                return refuse(format!(
                    "the call `{}` is event {}, and the result cites another",
                    event.call_id, seq.0
                ));
            }
            Stage::Recorded(_) => {}
            Stage::Requested => {
                let not_started = event.error.as_ref().is_some_and(|error| error.code == NOT_STARTED);
                if !not_started || event.call_seq.is_some() {
                    return refuse(format!("the call `{}` was never recorded", event.call_id));
                }
            }
        }
        call.stage = Stage::Answered;
        Ok(())
    }

    fn approval_asked(&mut self, event: ApprovalAsked) -> Admitted {
        self.in_turn(event.turn)?;
        if self.asked.contains(&event.id) {
            return refuse(format!("the question `{}` was asked before", event.id));
        }
        if let Some(turn) = &mut self.turn {
            self.asked.insert(event.id.clone());
            turn.undecided.push(event.id);
        }
        Ok(())
    }

    fn approval_decided(&mut self, event: &ApprovalDecided) -> Admitted {
        self.in_turn(event.turn)?;
        let open = self.turn.as_mut().and_then(|turn| {
            let at = turn.undecided.iter().position(|id| *id == event.id)?;
            Some(turn.undecided.swap_remove(at))
        });
        if open.is_none() {
            return refuse(format!("the question `{}` is not open in this turn", event.id));
        }
        Ok(())
    }
}
