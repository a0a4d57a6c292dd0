//! Dispatch: wrappers around the body, and the body itself. Unreachable without a [`Permit`].
//!
//! A started body is never abandoned, except one that ignores its signal for [`BODY_GRACE`]: its future is
//! then dropped, which ends what it owns, and the result names it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::frozen::{Candidate, Lane, Outcome};
use super::gate::{Permit, facts_of, record_gate, resolve_again};
use super::identity::{Identity, Token};
use super::seal::invalid_args;
use super::{aborted, approve};
use crate::Fut;
use crate::cancel::{Cancel, CancelCause};
use crate::json::Json;
use crate::log::event::RewriteDispatch;
use crate::point::prompt::ContextMessage;
use crate::point::tools::{Dispatch, Origin, Wrapper};
use crate::point::{LISTENER_GRACE, contained_call};
use crate::registry::Definition;
use crate::scene::Scene;
use crate::seam::live::LiveEvent;
use crate::tool::{BodyView, ErrorInfo, Rewritten, ToolFailure};

/// How long a body may go on after its signal fired.
pub const BODY_GRACE: Duration = Duration::from_secs(10);

/// What an attempt to run a call came to, as wrappers see it.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub(super) result: AttemptResult,
    pub(super) contexts: Vec<ContextMessage>,
    pub(super) concludes: bool,
    /// Set by the pipeline alone: the value was validated and belongs to this very call.
    pub(super) canonical: Option<Token>,
    pub(super) timed_out: bool,
}

#[derive(Debug, Clone)]
pub(super) enum AttemptResult {
    Value(Json),
    Failed { message: String, info: Option<ErrorInfo>, how: Failing },
}

/// How an attempt failed, which decides the lane of its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failing {
    /// A body or a wrapper said so.
    Said,
    /// The body was never started, for the signal had fired.
    Cancelled,
    /// The tool is not there any more.
    Unknown,
    /// The input does not fit the tool that took the name over.
    Misfit,
    /// A wrapper's defect: it goes straight to the end.
    Defect,
}

impl Attempt {
    /// A wrapper's own success; it is validated and rendered like a body's.
    #[must_use]
    pub fn success(value: Json) -> Self {
        Self::of(AttemptResult::Value(value))
    }

    /// A wrapper's own failure.
    #[must_use]
    pub fn failure(failure: ToolFailure) -> Self {
        Self::failing(failure, Failing::Said)
    }

    fn failing(failure: ToolFailure, how: Failing) -> Self {
        Self::of(AttemptResult::Failed { message: failure.message, info: failure.info, how })
    }

    fn of(result: AttemptResult) -> Self {
        Self { result, contexts: Vec::new(), concludes: false, canonical: None, timed_out: false }
    }

    fn cancelled() -> Self {
        Self::of(AttemptResult::Failed { message: String::new(), info: None, how: Failing::Cancelled })
    }

    /// Whether it has a value.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self.result, AttemptResult::Value(_))
    }

    /// Whether the time that the wrapper allowed ran out first.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }

    /// The failure's message, for a retry to look at.
    #[must_use]
    pub fn failure_message(&self) -> Option<&str> {
        match &self.result {
            AttemptResult::Failed { message, .. } => Some(message),
            AttemptResult::Value(_) => None,
        }
    }

    /// Adds a context after those of the body.
    #[must_use]
    pub fn with_context(mut self, context: ContextMessage) -> Self {
        self.contexts.push(context);
        self
    }
}

/// What is further in from a wrapper.
pub struct Dispatching<'a> {
    core: &'a Core<'a>,
    wrappers: &'a [Arc<dyn Wrapper>],
    cancel: Cancel,
}

struct Core<'a> {
    scene: Scene<'a>,
    id: &'a Identity,
    definition: &'a Arc<Definition>,
    started: AtomicBool,
    deferred: Mutex<Vec<ContextMessage>>,
    /// The definition that the name meant when the body was last started.
    current: Mutex<Arc<Definition>>,
    /// The first defect of a wrapper; no wrapper further out can make anything else of it.
    fault: Mutex<Option<String>>,
}

impl<'a> Dispatching<'a> {
    pub(crate) fn call(&self) -> &'a Identity {
        self.core.id
    }
    pub(crate) fn budget(&self) -> Option<Duration> {
        self.core.definition.tool().timeout()
    }
    pub(crate) fn body_invoked(&self) -> bool {
        self.core.started.load(Ordering::Acquire)
    }
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    pub(crate) fn run(&mut self, at_most: Option<Duration>) -> Fut<'_, Attempt> {
        let cancel = self.cancel.child();
        let inner = proceed(self.core, self.wrappers, cancel.clone());
        Box::pin(async move {
            let Some(limit) = at_most else { return Attempt { timed_out: false, ..inner.await } };
            let mut inner = inner;
            tokio::select! {
                biased;
                attempt = &mut inner => Attempt { timed_out: false, ..attempt },
                () = tokio::time::sleep(limit) => {
                    let own = cancel.cancel(CancelCause::Timeout);
                    // Each wrapper is told of its own limit alone.
                    Attempt { timed_out: own, ..inner.await }
                }
            }
        })
    }
}

fn proceed<'a>(core: &'a Core<'a>, wrappers: &'a [Arc<dyn Wrapper>], cancel: Cancel) -> Fut<'a, Attempt> {
    let Some((first, rest)) = wrappers.split_first() else {
        return Box::pin(body(core, cancel));
    };
    let dispatch = Dispatch { inner: Dispatching { core, wrappers: rest, cancel } };
    let name = first.name().to_owned();
    let running = contained_call(move || first.around(dispatch));
    Box::pin(async move {
        let fault = match running.await {
            Ok(Ok(attempt)) => return attempt,
            Ok(Err(fault)) => fault.to_string(),
            Err(panic) => format!("{name}: panicked: {panic}"),
        };
        core.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| fault.clone());
        Attempt::failing(wrapper_fault(fault), Failing::Defect)
    })
}

fn wrapper_fault(what: String) -> ToolFailure {
    ToolFailure::coded("WrapperError", "WRAPPER_FAULT", what)
}

/// What the name means right before the body starts: a wrapper may have taken the tool away or put another in its
/// place. Another one runs only what was judged: the input must fit it, and mean the same to policy.
fn current(core: &Core<'_>) -> Result<Arc<Definition>, Box<Attempt>> {
    let Some(now) = resolve_again(core.scene, core.id) else {
        return Err(Box::new(Attempt::failing(unknown_tool(core.id), Failing::Unknown)));
    };
    if Arc::ptr_eq(&now, core.definition) {
        return Ok(now);
    }
    let input = core.id.input();
    let violations = now.parameters().validate_as("arguments", input);
    if !violations.is_empty() {
        let why = format!("invalid arguments: {}", violations.join("; "));
        return Err(Box::new(Attempt::failing(
            ToolFailure { message: why, info: Some(invalid_args()) },
            Failing::Misfit,
        )));
    }
    if facts_of(Some(&now), input) != facts_of(Some(core.definition), input) {
        let why = format!("the tool \"{}\" was replaced after the call was judged; call it again", core.id.name());
        return Err(Box::new(Attempt::failing(
            ToolFailure::coded("ToolReplacedError", "TOOL_REPLACED", why),
            Failing::Said,
        )));
    }
    Ok(now)
}

fn unknown_tool(id: &Identity) -> ToolFailure {
    ToolFailure::coded("ToolNotFoundError", "UNKNOWN_TOOL", format!("unknown tool \"{}\"", id.name()))
}

async fn body(core: &Core<'_>, cancel: Cancel) -> Attempt {
    if cancel.is_cancelled() {
        return Attempt::cancelled();
    }
    let definition = match current(core) {
        Ok(definition) => definition,
        Err(attempt) => return *attempt,
    };
    *core.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&definition);
    core.started.store(true, Ordering::Release);
    let mut deferred = Vec::new();
    let mut concludes = false;
    let ran = {
        let scene = core.scene.with_cancel(&cancel);
        let view = BodyView {
            scene,
            input: core.id.input(),
            call_id: core.id.call_id(),
            rewritten: if core.id.is_nested() { Rewritten::Yes } else { Rewritten::No },
            deferred: &mut deferred,
            concludes: &mut concludes,
        };
        let mut running = contained_call(|| definition.tool().execute(view));
        tokio::select! {
            biased;
            done = &mut running => Some(done),
            () = cancel.past(BODY_GRACE) => None,
        }
    };
    core.deferred.lock().unwrap_or_else(PoisonError::into_inner).append(&mut deferred);
    let failure = match ran {
        Some(Ok(Ok(value))) => {
            let mut attempt = Attempt::success(value);
            attempt.canonical = Some(core.id.token());
            attempt.concludes = concludes;
            return attempt;
        }
        Some(Ok(Err(failure))) => failure,
        Some(Err(panic)) => ToolFailure::new(panic),
        None => ToolFailure::coded(
            "AbortError",
            "ABANDONED",
            format!(
                "the tool `{}` did not stop within {} s of being cancelled and was abandoned",
                core.id.name(),
                BODY_GRACE.as_secs()
            ),
        ),
    };
    Attempt::failure(failure)
}

/// Runs what the permit stands for, and nothing else. Total: whatever goes wrong is the candidate.
pub async fn dispatch(permit: Permit, scene: Scene<'_>) -> Candidate {
    let Permit { sealed, before, through } = permit;
    if let Some(nested) = through {
        let inner = dispatch_nested(&sealed.id, *nested, scene).await;
        let placeholder = Outcome::failure("", None);
        let candidate = sealed.into_candidate(Lane::Final, Origin::Substituted, placeholder);
        // The nested call has had its post-execute; its outcome is adopted whole.
        return Candidate {
            before,
            body_invoked: inner.body_invoked,
            took: inner.took,
            nested: Some(Box::new(inner)),
            ..candidate
        };
    }
    let id = Arc::clone(&sealed.id);
    let refuse = |sealed: super::Sealed, lane, origin, outcome| {
        let candidate = sealed.into_candidate(lane, origin, outcome);
        Candidate { before: before.clone(), ..candidate }
    };
    // The call must be on disk before its body may have effects.
    if let Err(fault) = scene.log.durable().await {
        let text = format!("the call could not be recorded, so it was not run: {fault}");
        return refuse(sealed, Lane::Final, Origin::Denied, Outcome::failure(&text, None));
    }
    if scene.cancel.is_cancelled() {
        return refuse(sealed, Lane::Post, Origin::Cancelled, aborted::before_dispatch());
    }
    let known = sealed.definition.clone().filter(|_| resolve_again(scene, &id).is_some());
    let Some(definition) = known else {
        let ToolFailure { message, info } = unknown_tool(&id);
        return refuse(sealed, Lane::Post, Origin::Unknown, Outcome::failure(&message, info));
    };
    if !id.is_nested() {
        scene.live.send(LiveEvent::CallRunning { call_id: id.root_call_id().clone(), rewritten: None }).await;
    }
    let core = Core {
        scene,
        id: &id,
        definition: &definition,
        started: AtomicBool::new(false),
        deferred: Mutex::new(Vec::new()),
        current: Mutex::new(Arc::clone(&definition)),
        fault: Mutex::new(None),
    };
    let wrappers = scene.context.wrappers();
    let began = Instant::now();
    let attempt = tokio::select! {
        biased;
        attempt = proceed(&core, &wrappers, scene.cancel.clone()) => attempt,
        () = scene.cancel.past(LISTENER_GRACE) => {
            let s = LISTENER_GRACE.as_secs();
            let why = format!("a wrapper did not stop within {s} s of the cancellation and was given up");
            Attempt::failing(wrapper_fault(why), Failing::Defect)
        }
    };
    let took = began.elapsed();
    let started = core.started.load(Ordering::Acquire);
    let mut contexts = std::mem::take(&mut *core.deferred.lock().unwrap_or_else(PoisonError::into_inner));
    contexts.extend(attempt.contexts.iter().cloned());
    // A defect fails closed, as at every point: what an outer wrapper made of it does not count.
    let defect = core.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
    let attempt = match defect {
        Some(fault) => {
            Attempt { contexts: attempt.contexts, ..Attempt::failing(wrapper_fault(fault), Failing::Defect) }
        }
        None => attempt,
    };
    let concludes = attempt.concludes && attempt.canonical == Some(id.token());
    // What never started is nobody's own result.
    let own = if started { Origin::Body } else { Origin::Cancelled };
    let aborted = || if started { aborted::running() } else { aborted::before_dispatch() };
    let (lane, origin, outcome) = match attempt.result {
        AttemptResult::Failed { how: Failing::Cancelled, .. } => (Lane::Post, own, aborted()),
        AttemptResult::Failed { message, info, how } => {
            let (lane, origin) = match how {
                Failing::Said | Failing::Cancelled => (Lane::Post, Origin::Body),
                Failing::Unknown => (Lane::Post, Origin::Unknown),
                Failing::Misfit => (Lane::Post, Origin::InvalidArgs),
                Failing::Defect => {
                    record_gate(scene, &id, "execute", "wrapper", "fault", Some(&message), began);
                    (Lane::Final, Origin::Body)
                }
            };
            (lane, origin, Outcome::failure(&message, info))
        }
        // The caller's cancellation drops a value, also a wrapper's own.
        AttemptResult::Value(_) if scene.cancel.is_cancelled() => (Lane::Post, own, aborted()),
        AttemptResult::Value(value) => {
            let definition = Arc::clone(&core.current.lock().unwrap_or_else(PoisonError::into_inner));
            (Lane::Post, Origin::Body, super::settle::materialise(&definition, &id, value))
        }
    };
    let concludes = concludes && outcome.is_success();
    let candidate = sealed.into_candidate(lane, origin, outcome);
    Candidate { before, contexts, concludes, body_invoked: started, took, ..candidate }
}

fn dispatch_nested<'a>(outer: &'a Identity, nested: Permit, scene: Scene<'a>) -> Fut<'a, Candidate> {
    Box::pin(async move {
        // A rewrite of a rewrite is one rewrite to the log: the model's call, and what really runs.
        if outer.is_nested() {
            return dispatch(nested, scene).await;
        }
        let inner = nested.effective();
        let definition = resolve_again(scene, inner);
        let card = approve::present(definition.as_ref().map(|d| d.tool()), inner.name(), inner.input());
        if let Some(turn) = scene.turn {
            let event = RewriteDispatch {
                turn: turn.number,
                call_id: outer.call_id().clone(),
                sub_call_id: inner.call_id().clone(),
                name: inner.name().to_owned(),
                input: inner.input().clone(),
            };
            if let Err(fault) = scene.log.append_core(&event) {
                let text = format!("the rewritten call could not be recorded, so it was not run: {fault}");
                let Permit { sealed, before, .. } = nested;
                let candidate = sealed.into_candidate(Lane::Final, Origin::Denied, Outcome::failure(&text, None));
                return Candidate { before, ..candidate };
            }
        }
        let rewritten = Some((card, inner.input().clone()));
        scene.live.send(LiveEvent::CallRunning { call_id: outer.root_call_id().clone(), rewritten }).await;
        dispatch(nested, scene).await
    })
}
