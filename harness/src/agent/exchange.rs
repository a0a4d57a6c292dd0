//! One exchange with the model: header, barrier, request, stream, retries, and the one message that comes of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Agent;
use crate::content::{Block, plain_text};
use crate::ids::{CallId, MessageId};
use crate::json::Json;
use crate::log::{LogError, Step};
use crate::pipeline::CallRequest;
use crate::point::contained_call;
use crate::point::ring::{RequestEnd, RequestEnded, RequestEndedView, RequestStarted, RequestView};
use crate::registry;
use crate::scene::SessionScene;
use crate::seam::live::{LiveEvent, NoticeLevel};
use crate::seam::model::{
    FaultKind, Model, ModelEvent, ModelFault, ModelInfo, ModelRequest, Purpose, Retry, StopReason, Usage,
};

/// What came of an exchange.
pub(super) enum Exchanged {
    /// The model answered.
    Answered(Answer),
    /// The turn was cancelled meanwhile; what was visible is saved.
    Cancelled,
    /// It failed for good; what was visible is saved.
    Failed(ModelFault),
}

/// A complete answer, as it stands in the log.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) calls: Vec<CallRequest>,
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
}

/// What has been streamed so far.
struct Draft {
    message: MessageId,
    content: Vec<Block>,
    calls: Vec<Called>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

/// A call of the answer, and how many blocks of content stood before it.
struct Called {
    after: usize,
    id: Option<String>,
    name: String,
    arguments: String,
}

enum Streamed {
    Whole,
    Cancelled,
    Failed(ModelFault),
}

impl Draft {
    fn new() -> Self {
        Self { message: MessageId::fresh(), content: Vec::new(), calls: Vec::new(), usage: None, stop: None }
    }

    /// The block that is being streamed; a call ends it.
    fn open_block(&mut self) -> Option<&mut Block> {
        let at = self.content.len();
        if self.calls.last().is_some_and(|call| call.after == at) { None } else { self.content.last_mut() }
    }

    fn text(&mut self, delta: &str) {
        match self.open_block() {
            Some(Block::Text(text)) => text.push_str(delta),
            _ => self.content.push(Block::text(delta)),
        }
    }

    fn thinking(&mut self, delta: &str) {
        match self.open_block() {
            Some(Block::Thinking { text, signature: None }) => text.push_str(delta),
            _ => self.content.push(Block::Thinking { text: delta.to_owned(), signature: None }),
        }
    }

    fn is_untouched(&self) -> bool {
        self.content.is_empty() && self.calls.is_empty()
    }

    /// Whether a person has seen anything of it.
    fn is_visible(&self) -> bool {
        self.content.iter().any(|b| match b {
            Block::Text(text) | Block::Thinking { text, .. } => !text.trim().is_empty(),
            Block::Image { .. } => true,
            Block::RedactedThinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => false,
        })
    }
}

fn text_of(content: &[Block]) -> String {
    let texts: Vec<Block> = content.iter().filter(|b| matches!(b, Block::Text(_))).cloned().collect();
    plain_text(&texts)
}

/// Runs one exchange inside an open step.
///
/// # Errors
/// The log's; then no request was sent, or its answer could not be kept.
pub(super) async fn run(
    agent: &Agent,
    step: &Step<'_>,
    scene: &SessionScene,
    partial: &mut String,
) -> Result<Exchanged, LogError> {
    let model = match agent.context.lease::<dyn Model>() {
        Ok(model) => model,
        Err(fault) => {
            return Ok(Exchanged::Failed(ModelFault {
                kind: FaultKind::Internal,
                message: fault.to_string(),
                retry: Retry::No,
            }));
        }
    };
    let info = model.info();
    agent.session.set_model(info.clone());
    let tools = registry::schemas(&agent.context);
    header(agent, step, &info, &tools)?;
    let mut attempt = 1;
    loop {
        // A request that will not be sent is not recorded as sent.
        if scene.cancel.is_cancelled() {
            return Ok(Exchanged::Cancelled);
        }
        let index = agent.handle.requests_sent();
        let request = ModelRequest {
            session: agent.session.id.clone(),
            agent: agent.session.agent.as_ref().map(|a| a.kind.clone()),
            purpose: Purpose::Turn,
            index,
            system: agent.system.clone(),
            messages: agent.handle.messages(),
            tools: tools.clone(),
            max_output_tokens: agent.limits.max_output_tokens,
        };
        step.sent(attempt, index)?;
        // What the model is about to see must be on disk first.
        agent.handle.durable().await?;
        let mut draft = Draft::new();
        scene.context.notify::<RequestStarted>(&RequestView { scene: scene.scene(), attempt, index });
        let streamed = stream(&*model, request, scene, &mut draft).await;
        tell_ended(scene, attempt, index, &streamed, draft.usage);
        if let Some(usage) = draft.usage {
            scene.live.send(LiveEvent::Usage { usage, context_window: info.context_window }).await;
        }
        match streamed {
            Streamed::Whole => return keep(agent, step, &info, draft).map(Exchanged::Answered),
            Streamed::Cancelled => {
                *partial = interrupted(step, &info, draft)?;
                return Ok(Exchanged::Cancelled);
            }
            Streamed::Failed(fault) => {
                let wait = if draft.is_untouched() { wait_for(agent, &fault, attempt, index) } else { None };
                let Some(wait) = wait else {
                    *partial = interrupted(step, &info, draft)?;
                    return Ok(Exchanged::Failed(fault));
                };
                let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                step.retry(attempt, fault.kind.code(), fault.message.clone(), ms)?;
                let of = agent.retry.retries + 1;
                let text = format!(
                    "the request failed (attempt {attempt} of {of}) and is sent again in {ms} ms: {}",
                    fault.message
                );
                scene.scene().tell(NoticeLevel::Warning, "model", text).await;
                tokio::select! {
                    biased;
                    _ = scene.cancel.cancelled() => return Ok(Exchanged::Cancelled),
                    () = tokio::time::sleep(wait) => {}
                }
                attempt += 1;
            }
        }
    }
}

fn tell_ended(scene: &SessionScene, attempt: u32, index: u64, streamed: &Streamed, usage: Option<Usage>) {
    let end = match streamed {
        Streamed::Whole => RequestEnd::Completed,
        Streamed::Cancelled => RequestEnd::Cancelled,
        Streamed::Failed(fault) => RequestEnd::Failed(fault.message.clone()),
    };
    let request = RequestView { scene: scene.scene(), attempt, index };
    scene.context.notify::<RequestEnded>(&RequestEndedView { request, end: &end, usage });
}

/// Writes what requests carry beside the messages, when it differs from the last one.
fn header(
    agent: &Agent,
    step: &Step<'_>,
    info: &ModelInfo,
    tools: &[crate::seam::model::ToolSchema],
) -> Result<(), LogError> {
    let last = agent.handle.last_request_header();
    let same = last.as_ref().is_some_and(|h| {
        h.provider == info.provider
            && h.model == info.model
            && h.system == agent.system
            && h.tools == tools
            && h.max_output_tokens == agent.limits.max_output_tokens
    });
    // An agent's own first request says what it carries, also when an earlier process said the same.
    let first = !agent.asked.swap(true, Ordering::Relaxed);
    let why = match (last.is_some(), first) {
        (false, _) => "initial",
        (true, true) => "resume",
        (true, false) if same => return Ok(()),
        (true, false) => "change",
    };
    let limit = agent.limits.max_output_tokens;
    step.header(why, &info.provider, &info.model, &agent.system, tools.to_vec(), limit).map(|_| ())
}

async fn stream(model: &dyn Model, request: ModelRequest, scene: &SessionScene, draft: &mut Draft) -> Streamed {
    let opened = tokio::select! {
        biased;
        _ = scene.cancel.cancelled() => return Streamed::Cancelled,
        opened = contained_call(|| model.stream(request, &scene.cancel)) => opened,
    };
    let mut answer = match opened {
        Ok(Ok(answer)) => answer,
        Err(panic) => return Streamed::Failed(panicked(&panic)),
        Ok(Err(fault)) => return failed_or_cancelled(scene, fault),
    };
    loop {
        let next = tokio::select! {
            biased;
            _ = scene.cancel.cancelled() => return Streamed::Cancelled,
            next = contained_call(|| answer.next()) => next,
        };
        let next = match next {
            Ok(next) => next,
            Err(panic) => return Streamed::Failed(panicked(&panic)),
        };
        let event = match next {
            Some(Ok(event)) => event,
            Some(Err(fault)) => return failed_or_cancelled(scene, fault),
            None if draft.stop.is_some() => return Streamed::Whole,
            None => {
                return Streamed::Failed(ModelFault {
                    kind: FaultKind::BadResponse,
                    message: "the model's answer was cut off before its end; try again".to_owned(),
                    retry: Retry::Backoff,
                });
            }
        };
        match event {
            ModelEvent::Text(delta) => {
                draft.text(&delta);
                scene.live.send(LiveEvent::Text { message: draft.message.clone(), delta }).await;
            }
            ModelEvent::Thinking(delta) => {
                draft.thinking(&delta);
                scene.live.send(LiveEvent::Thinking { message: draft.message.clone(), delta }).await;
            }
            ModelEvent::ThinkingSignature(proof) => {
                match draft.open_block() {
                    Some(Block::Thinking { signature: signature @ None, .. }) => *signature = Some(proof),
                    // Of reasoning that was not shown.
                    _ => draft.content.push(Block::Thinking { text: String::new(), signature: Some(proof) }),
                }
            }
            ModelEvent::RedactedThinking(data) => draft.content.push(Block::RedactedThinking { data }),
            ModelEvent::ToolCall { id, name, arguments } => {
                draft.calls.push(Called { after: draft.content.len(), id, name, arguments });
            }
            ModelEvent::Usage(usage) => draft.usage = Some(usage),
            ModelEvent::Stop(stop) => draft.stop = Some(stop),
        }
    }
}

/// A provider's defect: what was visible is saved, and nothing is tried again.
fn panicked(what: &str) -> ModelFault {
    ModelFault { kind: FaultKind::Internal, message: format!("the model's provider failed: {what}"), retry: Retry::No }
}

/// A cancellation beats whatever some library made of it.
fn failed_or_cancelled(scene: &SessionScene, fault: ModelFault) -> Streamed {
    if scene.cancel.is_cancelled() { Streamed::Cancelled } else { Streamed::Failed(fault) }
}

/// Whether and after how long a failed request is repeated.
fn wait_for(agent: &Agent, fault: &ModelFault, attempt: u32, index: u64) -> Option<Duration> {
    let policy = agent.retry;
    if attempt > policy.retries {
        return None;
    }
    match fault.retry {
        Retry::No => None,
        Retry::After(wanted) => (wanted <= policy.cap).then_some(wanted),
        Retry::Backoff => {
            let doubled = policy.base.saturating_mul(1_u32.checked_shl(attempt - 1).unwrap_or(u32::MAX));
            let seed = agent.session.id.as_str();
            Some(agent.jitter.moved(doubled.min(policy.cap), seed, index))
        }
    }
}

/// Puts a complete answer into the log: exactly one message, also when it is empty.
fn keep(agent: &Agent, step: &Step<'_>, info: &ModelInfo, draft: Draft) -> Result<Answer, LogError> {
    let stop = draft.stop.unwrap_or(StopReason::EndTurn);
    let text = text_of(&draft.content);
    let mut said = draft.content.into_iter();
    let mut content = Vec::new();
    let mut calls = Vec::new();
    // A call that the output limit may have cut, or that a refusal stands beside, is dropped and never runs.
    if matches!(stop, StopReason::EndTurn | StopReason::ToolUse) {
        let mut taken = 0;
        for (at, Called { after, id, name, arguments }) in draft.calls.into_iter().enumerate() {
            content.extend(said.by_ref().take(after - taken));
            taken = after;
            let wanted = id.unwrap_or_else(|| format!("call_{}_{at}", agent.handle.requests_sent()));
            let call_id = unused(agent, &calls, wanted);
            let (input, raw) = history_input(&arguments);
            content.push(Block::ToolUse { id: call_id.as_str().to_owned(), name: name.clone(), input, raw });
            calls.push(CallRequest { call_id, name, arguments });
        }
    }
    content.extend(said);
    step.assistant(content, &info.provider, &info.model, Some(stop), draft.usage, false)?;
    Ok(Answer { text, calls, stop, usage: draft.usage.unwrap_or_default() })
}

/// What the history shows of the model's arguments: the exact object, or the empty one beside the raw text.
fn history_input(arguments: &str) -> (Json, Option<String>) {
    match Json::parse(arguments) {
        Ok(input) if input.object().is_some() => {
            let raw = (input.text() != arguments).then(|| arguments.to_owned());
            (input, raw)
        }
        _ => (Json::empty_object(), Some(arguments.to_owned())),
    }
}

/// An id that the session has not seen: two calls of one id get a result each.
fn unused(agent: &Agent, calls: &[CallRequest], wanted: String) -> CallId {
    let taken = |id: &CallId| agent.handle.is_call_id_used(id) || calls.iter().any(|c| c.call_id == *id);
    let first = CallId::new(wanted.clone());
    if !taken(&first) {
        return first;
    }
    let mut n = 2_u64;
    loop {
        let next = CallId::new(format!("{wanted}_{n}"));
        if !taken(&next) {
            return next;
        }
        n += 1;
    }
}

/// Saves the visible prefix of an answer that was cut off; its calls are dropped. Returns its text.
fn interrupted(step: &Step<'_>, info: &ModelInfo, draft: Draft) -> Result<String, LogError> {
    if !draft.is_visible() {
        return Ok(String::new());
    }
    let text = text_of(&draft.content);
    step.assistant(draft.content, &info.provider, &info.model, None, draft.usage, true)?;
    Ok(text)
}
