//! One turn, from the prompt to the one reason of its end.

use std::sync::Arc;
use std::time::Instant;

use super::Agent;
use super::batch::{self, BatchEnd};
use super::end::{Budget, CompletedHow, TurnEnd};
use super::exchange::{self, Answer, Exchanged};
use super::report::TurnReport;
use super::settings;
use crate::Fut;
use crate::cancel::{Cancel, CancelCause};
use crate::content::{Block, Role};
use crate::ids::{PromptId, TurnId};
use crate::log::{LogError, SessionLog, Step, Turn};
use crate::point::prompt::{ContextMessage, Keep, PromptDecision, PromptSubmit, PromptView};
use crate::point::ring::{BatchDecision, BatchSettled, BatchView};
use crate::point::turn::{
    Continuation, ContinuationDecision, ContinuationView, Steering, StopWord, TurnContinuation, TurnEnded,
    TurnEndedView,
};
use crate::point::{Point, contained_call, within_grace};
use crate::scene::{SessionScene, StopLatch, TurnFacts};
use crate::seam::live::{LiveEvent, NoticeLevel};
use crate::seam::model::{FaultKind, StopReason};

/// Runs a prompt to the end of its turn; the turn is closed in the log in every exit.
pub(super) async fn run(agent: &Agent, log: &mut SessionLog, content: Vec<Block>, caller: &Cancel) -> TurnReport {
    let began = Instant::now();
    let turn_id = TurnId::fresh();
    let prompt_id = PromptId::fresh();
    let mut turn = match log.turn(turn_id.clone(), prompt_id.clone()) {
        Ok(turn) => turn,
        Err(fault) => return TurnReport::failed(fault.to_string()),
    };
    let facts = Arc::new(TurnFacts { number: turn.number(), id: turn_id, prompt_id });
    // The turn ends with its caller, with the agent and with the session's scope.
    let cancel = caller.child();
    let scene = agent.scene(Some(Arc::clone(&facts)), cancel.clone(), Arc::new(StopLatch::new()));
    let mut report = TurnReport::failed(String::new());
    let driven = {
        let mut course = Course { agent, scene: &scene, report: &mut report };
        let whole: Fut<'_, Result<TurnEnd, LogError>> = Box::pin(course.bounded(&mut turn, content));
        let mut whole = contained_call(move || whole);
        tokio::select! {
            biased;
            driven = &mut whole => driven,
            cause = agent.closing.cancelled() => {
                cancel.cancel(cause);
                whole.await
            }
        }
    };
    let end = match driven {
        Ok(Ok(end)) => end,
        Ok(Err(fault)) => TurnEnd::Error { kind: FaultKind::Internal, message: fault.to_string() },
        Err(panic) => {
            TurnEnd::Error { kind: FaultKind::Internal, message: format!("a part of the agent failed: {panic}") }
        }
    };
    let closed = turn.end(end.clone());
    let flushed = agent.handle.durable().await;
    report.end = match closed.map(|_| ()).and(flushed) {
        Ok(()) => end,
        // The end is what it is; that it could not be kept is said beside it.
        Err(fault) => TurnEnd::Error { kind: FaultKind::Internal, message: fault.to_string() },
    };
    report.took = began.elapsed();
    agent.context.notify::<TurnEnded>(&TurnEndedView { scene: scene.scene(), end: &report.end });
    report
}

/// A turn on its way.
struct Course<'a> {
    agent: &'a Agent,
    scene: &'a SessionScene,
    report: &'a mut TurnReport,
}

/// What the first step begins with.
struct Opening {
    before: Vec<ContextMessage>,
    prompt: Vec<Block>,
    after: Vec<ContextMessage>,
}

impl Course<'_> {
    async fn bounded(&mut self, turn: &mut Turn<'_>, content: Vec<Block>) -> Result<TurnEnd, LogError> {
        let Some(limit) = self.agent.limits.timeout else { return self.whole(turn, content).await };
        let cancel = self.scene.cancel.clone();
        let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let end = {
            let mut whole = Box::pin(self.whole(turn, content));
            tokio::select! {
                biased;
                end = &mut whole => end?,
                () = tokio::time::sleep(limit) => {
                    cancel.cancel(CancelCause::Timeout);
                    whole.await?
                }
            }
        };
        Ok(match end {
            TurnEnd::Cancelled { cause: CancelCause::Timeout } => TurnEnd::Budget { which: Budget::Timeout, limit: ms },
            other => other,
        })
    }

    async fn whole(&mut self, turn: &mut Turn<'_>, content: Vec<Block>) -> Result<TurnEnd, LogError> {
        turn.received(content.clone())?;
        // A crash during a hook must not lose what the person typed.
        self.agent.handle.durable().await?;
        if let Some(turn) = &self.scene.turn {
            self.scene.live.send(LiveEvent::TurnStarted(turn.number)).await;
        }
        let opening = match self.open(turn, content).await? {
            Ok(opening) => opening,
            Err(end) => return Ok(end),
        };
        self.steps(turn, opening).await
    }

    /// Awaits the session's start and asks the prompt's listeners.
    async fn open(&mut self, turn: &Turn<'_>, content: Vec<Block>) -> Result<Result<Opening, TurnEnd>, LogError> {
        if self.scene.cancel.is_cancelled() {
            return Ok(Err(self.cancelled()));
        }
        settings::refresh(self.scene).await?;
        let kept = {
            let mut promises = self.agent.promises.lock().await;
            tokio::select! {
                biased;
                kept = promises.keep() => kept,
                _ = self.scene.cancel.cancelled() => return Ok(Err(self.cancelled())),
            }
        };
        let before = kept.contexts;
        if let Some(stop) = kept.stop {
            contexts(turn, &before)?;
            let text = stop.reason.clone().unwrap_or_else(|| format!("{} stopped the turn", stop.by));
            turn.blocked(content, text.clone(), stop.by.clone())?;
            return Ok(Err(TurnEnd::Rejected { by: stop.by, text }));
        }
        if self.scene.cancel.is_cancelled() {
            // They were given away once; the next turn's model must still see them.
            contexts(turn, &before)?;
            return Ok(Err(self.cancelled()));
        }
        let decision = {
            let waterfall = self.scene.context.waterfall::<PromptSubmit>();
            let view = PromptView { scene: self.scene.scene(), content: &content };
            let allow = || -> Fut<'_, _> {
                Box::pin(std::future::ready(Ok(PromptDecision::Allow { content: None, contexts: Vec::new() })))
            };
            within_grace(&self.scene.cancel, PromptSubmit::NAME, waterfall.run(view, allow)).await
        };
        let decision = match decision {
            Ok(decision) => decision,
            Err(fault) => {
                contexts(turn, &before)?;
                if self.scene.cancel.is_cancelled() {
                    tracing::warn!(%fault, "a prompt listener failed in a cancelled turn");
                    return Ok(Err(self.cancelled()));
                }
                let message = format!("the prompt could not be judged, so it was not sent: {fault}");
                return Ok(Err(TurnEnd::Error { kind: FaultKind::Internal, message }));
            }
        };
        match decision {
            PromptDecision::Allow { content: replaced, contexts } => {
                if self.scene.cancel.is_cancelled() {
                    // What was typed and judged stays in the history of a cancelled turn.
                    self.enter(turn, &before, replaced.unwrap_or(content), &contexts)?;
                    return Ok(Err(self.cancelled()));
                }
                let prompt = replaced.unwrap_or(content);
                Ok(Ok(Opening { before, prompt, after: contexts }))
            }
            PromptDecision::Block(block) => {
                contexts(turn, &before)?;
                if block.keep == Keep::InHistory {
                    turn.user("user", content.clone())?;
                }
                contexts(turn, &block.contexts)?;
                turn.blocked(content, block.reason.clone(), block.by.clone())?;
                Ok(Err(TurnEnd::Rejected { by: block.by, text: block.reason }))
            }
        }
    }

    fn enter(
        &self,
        turn: &Turn<'_>,
        before: &[ContextMessage],
        prompt: Vec<Block>,
        after: &[ContextMessage],
    ) -> Result<(), LogError> {
        contexts(turn, before)?;
        turn.user("user", prompt)?;
        contexts(turn, after)
    }

    fn cancelled(&self) -> TurnEnd {
        TurnEnd::Cancelled { cause: self.scene.cancel.cause().unwrap_or(CancelCause::User) }
    }

    async fn steps(&mut self, turn: &mut Turn<'_>, opening: Opening) -> Result<TurnEnd, LogError> {
        let mut opening = Some(opening);
        let mut steering: Vec<Steering> = Vec::new();
        let mut continuations: Vec<Continuation> = Vec::new();
        loop {
            if let Some(end) = self.budget() {
                return Ok(end);
            }
            if opening.is_none() {
                settings::refresh(self.scene).await?;
            }
            let step = turn.step()?;
            if let Some(Opening { before, prompt, after }) = opening.take() {
                for context in &before {
                    step.context(context)?;
                }
                step.user("user", prompt)?;
                for context in &after {
                    step.context(context)?;
                }
            }
            steer(&step, std::mem::take(&mut steering))?;
            let put_in = self.agent.inbox.take();
            for context in &put_in.contexts {
                step.context(context)?;
            }
            steer(&step, put_in.steering)?;
            self.report.steps += 1;
            let mut partial = String::new();
            let exchanged = exchange::run(self.agent, &step, self.scene, &mut partial).await?;
            let answer = match exchanged {
                Exchanged::Answered(answer) => answer,
                Exchanged::Cancelled => {
                    self.report.text = partial;
                    step.end()?;
                    return Ok(self.cancelled());
                }
                Exchanged::Failed(fault) => {
                    self.report.text = partial;
                    step.end()?;
                    return Ok(TurnEnd::Error { kind: fault.kind, message: fault.message });
                }
            };
            let next = self.after_answer(&step, answer, &mut continuations).await?;
            step.end()?;
            match next {
                After::End(end) => return Ok(end),
                After::Another => {}
                After::Settled if self.agent.inbox.steers() => {}
                After::Settled => match self.go_on(&mut continuations).await {
                    Ok(messages) => steering = messages,
                    Err(end) => return Ok(end),
                },
            }
        }
    }

    /// Runs the answer's calls and hands their contexts over, after the last result.
    async fn after_answer(
        &mut self,
        step: &Step<'_>,
        answer: Answer,
        continuations: &mut [Continuation],
    ) -> Result<After, LogError> {
        let Answer { text, calls, stop, usage } = answer;
        self.report.text = text;
        self.report.stop_reason = Some(stop);
        self.report.usage = self.report.usage.plus(usage);
        match stop {
            StopReason::MaxTokens => return Ok(After::End(TurnEnd::MaxTokens)),
            StopReason::Refusal => return Ok(After::End(TurnEnd::Refused)),
            StopReason::EndTurn | StopReason::ToolUse => {}
        }
        if calls.is_empty() {
            if self.scene.cancel.is_cancelled() {
                return Ok(After::End(self.cancelled()));
            }
            // The latch beats a continuation, also where no batch was there to read it.
            return Ok(match self.scene.latch.get() {
                Some(cause) => After::End(TurnEnd::Stopped { cause }),
                None => After::Settled,
            });
        }
        let mut done = batch::run(self.scene, step, calls, self.agent.limits.parallel_calls).await?;
        let fault = self.settled(&mut done).await;
        for context in &done.contexts {
            step.context(context)?;
        }
        if let Some(last) = continuations.last_mut() {
            last.calls_since = last.calls_since.saturating_add(done.calls);
        }
        self.report.denials.extend(done.denials);
        // A cancellation beats the latch: the client was promised that word.
        if self.scene.cancel.is_cancelled() {
            return Ok(After::End(self.cancelled()));
        }
        if let Some(cause) = self.scene.latch.get() {
            return Ok(After::End(TurnEnd::Stopped { cause }));
        }
        if let Some(end) = fault {
            return Ok(After::End(end));
        }
        if done.concludes && done.contexts.is_empty() {
            return Ok(After::End(TurnEnd::Completed { how: CompletedHow::Concluded, note: None }));
        }
        Ok(After::Another)
    }

    /// Asks those who look at a whole batch; what they add comes after the calls' own contexts. A cancelled turn asks
    /// nobody: its end is known.
    async fn settled(&self, done: &mut BatchEnd) -> Option<TurnEnd> {
        if self.scene.cancel.is_cancelled() {
            return None;
        }
        let waterfall = self.scene.context.waterfall::<BatchSettled>();
        let view = BatchView { scene: self.scene.scene(), calls: &done.settled };
        let go_on = || -> Fut<'_, _> { Box::pin(std::future::ready(Ok(BatchDecision::default()))) };
        match waterfall.run(view, go_on).await {
            Ok(BatchDecision { contexts, stop }) => {
                done.contexts.extend(contexts);
                if let Some(cause) = stop {
                    self.scene.latch.set(cause);
                }
                None
            }
            Err(fault) => Some(TurnEnd::Error { kind: FaultKind::Internal, message: fault.to_string() }),
        }
    }

    fn budget(&self) -> Option<TurnEnd> {
        let limits = self.agent.limits;
        let reached = |limit: Option<u32>| limit.is_some_and(|l| self.report.steps >= l);
        let end = |which, limit: Option<u32>| TurnEnd::Budget { which, limit: u64::from(limit.unwrap_or_default()) };
        if reached(limits.max_turns) {
            return Some(end(Budget::MaxTurns, limits.max_turns));
        }
        reached(limits.max_steps).then(|| end(Budget::MaxSteps, limits.max_steps))
    }

    /// The answer had no calls: whether somebody makes the agent go on.
    async fn go_on(&mut self, continuations: &mut Vec<Continuation>) -> Result<Vec<Steering>, TurnEnd> {
        let decision = {
            let waterfall = self.scene.context.waterfall::<TurnContinuation>();
            let last_message = Some(self.report.text.as_str()).filter(|t| !t.is_empty());
            let view = ContinuationView { scene: self.scene.scene(), last_message, continuations };
            let stop =
                || -> Fut<'_, _> { Box::pin(std::future::ready(Ok(ContinuationDecision::Stop(StopWord::Completed)))) };
            within_grace(&self.scene.cancel, TurnContinuation::NAME, waterfall.run(view, stop)).await
        };
        if self.scene.cancel.is_cancelled() {
            return Err(self.cancelled());
        }
        let messages = match decision {
            Err(fault) => {
                return Err(TurnEnd::Error { kind: FaultKind::Internal, message: fault.to_string() });
            }
            Ok(ContinuationDecision::Stop(word)) => return Err(completed(word)),
            Ok(ContinuationDecision::Continue(messages)) => messages,
        };
        if let Some(cause) = self.scene.latch.get() {
            return Err(TurnEnd::Stopped { cause });
        }
        let Some(first) = messages.first() else {
            return Err(completed(StopWord::Completed));
        };
        let limit = self.agent.limits.max_continuations;
        if continuations.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            let reason = format!("{} wanted to go on, but a turn is continued at most {limit} times", first.source);
            self.scene.scene().tell(NoticeLevel::Warning, &first.source, reason.clone()).await;
            return Err(completed(StopWord::Capped { reason }));
        }
        continuations.push(Continuation { source: first.source.clone(), calls_since: 0 });
        Ok(messages)
    }
}

/// What follows an answer.
enum After {
    /// Another exchange: results are waiting to be read.
    Another,
    /// The model has nothing more to do.
    Settled,
    /// The turn is over.
    End(TurnEnd),
}

fn completed(word: StopWord) -> TurnEnd {
    match word {
        StopWord::Completed => TurnEnd::Completed { how: CompletedHow::Normal, note: None },
        StopWord::Prevented { reason } => TurnEnd::Completed { how: CompletedHow::StopHookPrevented, note: reason },
        StopWord::Capped { reason } => TurnEnd::Completed { how: CompletedHow::StopHookCapped, note: Some(reason) },
    }
}

fn contexts(turn: &Turn<'_>, messages: &[ContextMessage]) -> Result<(), LogError> {
    for context in messages {
        turn.context(context)?;
    }
    Ok(())
}

fn steer(step: &Step<'_>, messages: Vec<Steering>) -> Result<(), LogError> {
    for Steering { source, role, text } in messages {
        match role {
            Role::System | Role::Developer => step.context(&ContextMessage { source, role, text })?,
            Role::User | Role::Assistant | Role::Tool => step.user(&source, vec![Block::text(text)])?,
        };
    }
    Ok(())
}
