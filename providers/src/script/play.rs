//! The playing of one step as a stream of events.
//!
//! The invariant: a fault or `Stop` is the last event, and no wait outlasts the signal.

use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Block, Role};
use sluice_harness::seam::model::{FaultKind, ModelEvent, ModelFault, ModelRequest, ModelStream, Retry, StopReason};
use tokio::time::Instant;

use super::format::{Failure, FailureKind, Say, Step};
use crate::fault;

/// Begins a step. A failure before the first chunk is the answer to the request itself, as a provider's status is.
pub(super) async fn start(
    step: Arc<Step>,
    ids: Vec<String>,
    request: &ModelRequest,
    place: String,
    cancel: Cancel,
) -> Result<Box<dyn ModelStream>, ModelFault> {
    if let Some(failure) = &step.failure
        && chunks_before(failure, &step) == 0
        && failure.kind != FailureKind::CutOff
    {
        wait(Some(Instant::now() + step.delay), &cancel).await?;
        return Err(fault_of(failure, &place));
    }
    let text = match &step.say {
        Say::Echo => Some(last_user_text(request)),
        Say::Chunks(_) | Say::Repeat { .. } => None,
    };
    let until = (!step.delay.is_zero()).then(|| Instant::now() + step.delay);
    Ok(Box::new(Playing { step, ids, echo: text, place, cancel, until, next: Next::Thinking }))
}

fn last_user_text(request: &ModelRequest) -> String {
    let last = request.messages.iter().rev().find(|message| message.role == Role::User);
    let texts =
        last.map(|message| message.content.as_slice()).unwrap_or_default().iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. } => None,
        });
    texts.collect::<Vec<_>>().join("\n")
}

struct Playing {
    step: Arc<Step>,
    ids: Vec<String>,
    echo: Option<String>,
    place: String,
    cancel: Cancel,
    /// Before this moment nothing more is said.
    until: Option<Instant>,
    next: Next,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Next {
    Thinking,
    Chunk(u64),
    Call(usize),
    Usage,
    Stop,
    Nothing,
}

impl ModelStream for Playing {
    fn next(&mut self) -> Fut<'_, Option<Result<ModelEvent, ModelFault>>> {
        Box::pin(async move {
            if matches!(self.next, Next::Nothing) {
                return None;
            }
            // A long `repeat` without delays must let others have their turn.
            tokio::task::coop::consume_budget().await;
            if let Err(fault) = wait(self.until, &self.cancel).await {
                self.next = Next::Nothing;
                return Some(Err(fault));
            }
            self.until = None;
            self.step()
        })
    }
}

impl Playing {
    /// Takes the next event; `None` after the last.
    fn step(&mut self) -> Option<Result<ModelEvent, ModelFault>> {
        loop {
            match self.next {
                Next::Thinking => {
                    self.next = Next::Chunk(0);
                    if let Some(thinking) = &self.step.thinking {
                        return Some(Ok(ModelEvent::Thinking(thinking.clone())));
                    }
                }
                Next::Chunk(number) => {
                    if let Some(failure) = &self.step.failure
                        && number >= chunks_before(failure, &self.step)
                    {
                        self.next = Next::Nothing;
                        return Some(Err(fault_of(failure, &self.place)));
                    }
                    match self.chunk(number) {
                        Some(chunk) => {
                            self.next = Next::Chunk(number + 1);
                            if self.chunk(number + 1).is_some() && !self.step.chunk_delay.is_zero() {
                                self.until = Some(Instant::now() + self.step.chunk_delay);
                            }
                            return Some(Ok(ModelEvent::Text(chunk)));
                        }
                        None => self.next = Next::Call(0),
                    }
                }
                Next::Call(number) => match (self.step.calls.get(number), self.ids.get(number)) {
                    (Some(call), id) => {
                        self.next = Next::Call(number + 1);
                        return Some(Ok(ModelEvent::ToolCall {
                            id: id.cloned(),
                            name: call.name.clone(),
                            arguments: call.arguments.clone(),
                        }));
                    }
                    (None, _) => self.next = Next::Usage,
                },
                Next::Usage => {
                    self.next = Next::Stop;
                    if let Some(usage) = self.step.usage {
                        return Some(Ok(ModelEvent::Usage(usage)));
                    }
                }
                Next::Stop => {
                    self.next = Next::Nothing;
                    let usual = if self.step.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
                    return Some(Ok(ModelEvent::Stop(self.step.stop.unwrap_or(usual))));
                }
                Next::Nothing => return None,
            }
        }
    }

    fn chunk(&self, number: u64) -> Option<String> {
        match &self.step.say {
            Say::Chunks(chunks) => chunks.get(usize::try_from(number).ok()?).cloned(),
            Say::Repeat { chunk, times } => (number < *times).then(|| chunk.clone()),
            Say::Echo => self.echo.clone().filter(|text| number == 0 && !text.is_empty()),
        }
    }
}

/// How many chunks come before a failure: none unless the step says so, all of them before a stream is cut off.
fn chunks_before(failure: &Failure, step: &Step) -> u64 {
    let all = match &step.say {
        Say::Chunks(chunks) => chunks.len() as u64,
        Say::Repeat { times, .. } => *times,
        Say::Echo => 1,
    };
    match (failure.after_chunks, failure.kind) {
        (Some(after), _) => after.min(all),
        (None, FailureKind::CutOff) => all,
        (None, _) => 0,
    }
}

fn fault_of(failure: &Failure, place: &str) -> ModelFault {
    let (kind, retry, what) = match failure.kind {
        FailureKind::RateLimit => (FaultKind::RateLimit, Retry::Backoff, "the rate limit is reached"),
        FailureKind::Overloaded => (FaultKind::Overloaded, Retry::Backoff, "the provider is overloaded"),
        FailureKind::Network => (FaultKind::Network, Retry::Backoff, "the provider cannot be reached"),
        FailureKind::Auth => (FaultKind::Auth, Retry::No, "the key is refused"),
        FailureKind::ContextOverflow => {
            (FaultKind::ContextOverflow, Retry::No, "the conversation does not fit into the model")
        }
        FailureKind::BadRequest => (FaultKind::BadRequest, Retry::No, "the request is refused"),
        FailureKind::CutOff => (FaultKind::BadResponse, Retry::Backoff, "the answer was cut off before its end"),
    };
    let message = failure.message.clone().unwrap_or_else(|| format!("{what} (so it is written in {place})."));
    ModelFault { kind, message, retry }
}

async fn wait(until: Option<Instant>, cancel: &Cancel) -> Result<(), ModelFault> {
    if let Some(cause) = cancel.cause() {
        return Err(fault::cancelled(&cause));
    }
    let Some(until) = until.filter(|until| *until > Instant::now()) else { return Ok(()) };
    tokio::select! {
        biased;
        cause = cancel.cancelled() => Err(fault::cancelled(&cause)),
        () = tokio::time::sleep_until(until) => Ok(()),
    }
}
