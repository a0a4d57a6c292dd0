//! The events of a log as a story: turns, what was said in them, and each call with all that belongs to it.
//!
//! Pure: it reads events and prints nothing. What belongs to one call is gathered at the call, wherever its events
//! stand in the log. An event that has no place in the story is left out, never an error.

use std::collections::HashMap;

use sluice_bridges::core::record::{HookInvoked, HookResult};
use sluice_harness::agent::TurnEnd;
use sluice_harness::log::Logged;
use sluice_harness::log::event::{
    ApprovalAsked, ApprovalDecided, AssistantMessage, ContextAdded, EventKind as _, PromptBlocked, PromptReceived,
    RequestRetry, RewriteDispatch, ToolCall, ToolGate, ToolResult, TurnEnded, TurnStart, UserMessage,
};

/// A session.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// What happened before the first turn.
    pub(super) before: Vec<Item>,
    /// The turns.
    pub(super) turns: Vec<TurnStory>,
}

/// A turn.
#[derive(Debug)]
pub(super) struct TurnStory {
    /// Its number.
    pub(super) number: u32,
    /// What happened, in order.
    pub(super) items: Vec<Item>,
    /// How it ended; absent while it runs, and after a crash.
    pub(super) end: Option<TurnEnd>,
}

/// Something that happened.
#[derive(Debug)]
pub(super) enum Item {
    /// A prompt came.
    Prompt(PromptReceived),
    /// A prompt was vetoed.
    Blocked(PromptBlocked),
    /// A message in the user's role that is not the prompt.
    Message(UserMessage),
    /// A context was added.
    Context(ContextAdded),
    /// The model answered.
    Assistant(AssistantMessage),
    /// A request was repeated.
    Retry(RequestRetry),
    /// A hook ran that is about no call.
    Hook(Box<HookStory>),
    /// A tool was called.
    Call(Box<CallStory>),
}

/// A call.
#[derive(Debug)]
pub(super) struct CallStory {
    /// The call.
    pub(super) call: ToolCall,
    /// What decided about it, in order.
    pub(super) stages: Vec<Stage>,
    /// Its result; absent while it runs.
    pub(super) result: Option<ToolResult>,
}

/// Something that decided about a call.
#[derive(Debug)]
pub(super) enum Stage {
    /// A gate.
    Gate(ToolGate),
    /// A hook.
    Hook(Box<HookStory>),
    /// Another call runs in its place.
    Rewrite(RewriteDispatch),
    /// Somebody was asked.
    Asked(ApprovalAsked),
    /// An answer came.
    Answered(ApprovalDecided),
}

/// A hook's run.
#[derive(Debug)]
pub(super) struct HookStory {
    /// What was started.
    pub(super) invoked: HookInvoked,
    /// How it ended; absent while it runs.
    pub(super) result: Option<HookResult>,
}

/// The story of a log's events.
pub(super) fn story<'a>(events: impl IntoIterator<Item = &'a Logged>) -> Story {
    let mut teller = Teller::default();
    for event in events {
        teller.tell(event);
    }
    teller.story
}

/// Where a call's story is: the turn's and the item's position. `None` as the turn is before the first one.
#[derive(Debug, Clone, Copy)]
struct Place {
    turn: Option<usize>,
    item: usize,
}

/// Where a hook's story is.
#[derive(Debug, Clone, Copy)]
struct HookPlace {
    place: Place,
    /// The position among the call's stages, for a hook about a call.
    stage: Option<usize>,
}

#[derive(Default)]
struct Teller {
    story: Story,
    calls: HashMap<String, Place>,
    /// Questions by their ids, with the call that they are about.
    questions: HashMap<String, String>,
    hooks: HashMap<String, HookPlace>,
}

impl Teller {
    fn tell(&mut self, event: &Logged) {
        match &*event.kind {
            TurnStart::TYPE => self.open(event.decode::<TurnStart>().map_or(0, |start| start.turn.0)),
            PromptReceived::TYPE => self.add(event.decode().map(Item::Prompt)),
            PromptBlocked::TYPE => self.add(event.decode().map(Item::Blocked)),
            // The person's own message repeats the prompt.
            UserMessage::TYPE => {
                self.add(event.decode::<UserMessage>().filter(|message| message.source != "user").map(Item::Message));
            }
            ContextAdded::TYPE => self.add(event.decode().map(Item::Context)),
            AssistantMessage::TYPE => self.add(event.decode().map(Item::Assistant)),
            RequestRetry::TYPE => self.add(event.decode().map(Item::Retry)),
            ToolCall::TYPE => self.call(event.decode()),
            ToolGate::TYPE => {
                let gate = event.decode::<ToolGate>();
                self.stage(gate.map(|gate| (gate.call_id.as_str().to_owned(), Stage::Gate(gate))));
            }
            RewriteDispatch::TYPE => self.rewrite(event.decode()),
            ApprovalAsked::TYPE => {
                if let Some(asked) = event.decode::<ApprovalAsked>() {
                    let call = asked.call_id.as_str().to_owned();
                    self.questions.insert(asked.id.clone(), call.clone());
                    self.stage(Some((call, Stage::Asked(asked))));
                }
            }
            ApprovalDecided::TYPE => {
                if let Some(decided) = event.decode::<ApprovalDecided>()
                    && let Some(call) = self.questions.get(&decided.id).cloned()
                {
                    self.stage(Some((call, Stage::Answered(decided))));
                }
            }
            HookInvoked::TYPE => self.hook(event.decode()),
            HookResult::TYPE => self.hook_ended(event.decode()),
            ToolResult::TYPE => {
                if let Some(result) = event.decode::<ToolResult>()
                    && let Some(place) = self.calls.get(result.call_id.as_str()).copied()
                    && let Some(Item::Call(call)) = self.item(place)
                {
                    call.result = Some(result);
                }
            }
            TurnEnded::TYPE => {
                if let Some(turn) = self.story.turns.last_mut() {
                    turn.end = event.decode::<TurnEnded>().map(|ended| ended.end);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, number: u32) {
        self.story.turns.push(TurnStory { number, items: Vec::new(), end: None });
    }

    /// Where the next item goes: the turn that runs, or before, or after the last one that ended.
    fn items(&mut self) -> (Option<usize>, &mut Vec<Item>) {
        let last = self.story.turns.len().checked_sub(1);
        match self.story.turns.last_mut() {
            Some(turn) => (last, &mut turn.items),
            None => (None, &mut self.story.before),
        }
    }

    fn add(&mut self, item: Option<Item>) {
        if let Some(item) = item {
            self.items().1.push(item);
        }
    }

    fn item(&mut self, place: Place) -> Option<&mut Item> {
        match place.turn {
            Some(turn) => self.story.turns.get_mut(turn)?.items.get_mut(place.item),
            None => self.story.before.get_mut(place.item),
        }
    }

    fn call(&mut self, call: Option<ToolCall>) {
        let Some(call) = call else { return };
        let id = call.call_id.as_str().to_owned();
        let (turn, items) = self.items();
        let place = Place { turn, item: items.len() };
        items.push(Item::Call(Box::new(CallStory { call, stages: Vec::new(), result: None })));
        self.calls.insert(id, place);
    }

    /// Adds a stage to its call, and says where it stands now.
    fn stage(&mut self, stage: Option<(String, Stage)>) -> Option<HookPlace> {
        let (call, stage) = stage?;
        let place = *self.calls.get(&call)?;
        let Item::Call(story) = self.item(place)? else { return None };
        story.stages.push(stage);
        Some(HookPlace { place, stage: Some(story.stages.len() - 1) })
    }

    fn rewrite(&mut self, rewrite: Option<RewriteDispatch>) {
        let Some(rewrite) = rewrite else { return };
        // What happens to the nested call belongs to the model's own.
        if let Some(place) = self.calls.get(rewrite.call_id.as_str()).copied() {
            self.calls.insert(rewrite.sub_call_id.as_str().to_owned(), place);
        }
        self.stage(Some((rewrite.call_id.as_str().to_owned(), Stage::Rewrite(rewrite))));
    }

    fn hook(&mut self, invoked: Option<HookInvoked>) {
        let Some(invoked) = invoked else { return };
        let run = invoked.run_id.clone();
        let call = invoked.call_id.as_ref().map(|id| id.as_str().to_owned()).filter(|id| self.calls.contains_key(id));
        let hook = Box::new(HookStory { invoked, result: None });
        let place = match call {
            Some(call) => self.stage(Some((call, Stage::Hook(hook)))),
            None => {
                let (turn, items) = self.items();
                let place = Place { turn, item: items.len() };
                items.push(Item::Hook(hook));
                Some(HookPlace { place, stage: None })
            }
        };
        if let Some(place) = place {
            self.hooks.insert(run, place);
        }
    }

    fn hook_ended(&mut self, result: Option<HookResult>) {
        let Some(result) = result else { return };
        let Some(HookPlace { place, stage }) = self.hooks.get(&result.run_id).copied() else { return };
        let hook = match (self.item(place), stage) {
            (Some(Item::Hook(hook)), None) => Some(hook),
            (Some(Item::Call(call)), Some(stage)) => match call.stages.get_mut(stage) {
                Some(Stage::Hook(hook)) => Some(hook),
                _ => None,
            },
            _ => None,
        };
        if let Some(hook) = hook {
            hook.result = Some(result);
        }
    }
}
