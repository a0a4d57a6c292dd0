//! The gate: entry check, pre-execute, approval, guards. Only here is a [`Permit`] made.
//!
//! Fails closed: a fault of a listener, a panicking guard, a question that nobody answers, a log that cannot be
//! written: each is a refusal, never a pass.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use super::aborted;
use super::approve::{self, Approved};
use super::frozen::{Candidate, Lane, Outcome};
use super::identity::Identity;
use super::seal::{CallRequest, Defect, Sealed, invalid_args, seal_nested};
use crate::Fut;
use crate::ids::CallId;
use crate::json::Json;
use crate::log::event::ToolGate;
use crate::point::prompt::ContextMessage;
use crate::point::tools::{
    Allow, AskOrigin, DeniedBy, GuardView, Origin, PolicyView, PreAnswer, PreExecute, PreTool, Reason, Standing,
};
use crate::point::{Point, within_grace};
use crate::registry::{self, Definition};
use crate::scene::Scene;
use crate::tool::{CallFacts, Concurrency};

/// What the gate says.
pub enum Gated {
    /// It may be dispatched, once.
    Pass(Permit),
    /// It may not; this is what becomes of it.
    Refused(Candidate),
}

/// The right to dispatch one call, once: no public constructor, not `Clone`, consumed by use (R-053).
///
/// ```
/// # use sluice_harness::{pipeline::{Candidate, Permit, dispatch}, scene::Scene};
/// async fn once(permit: Permit, scene: Scene<'_>) -> Candidate {
///     dispatch(permit, scene).await
/// }
/// ```
///
/// It cannot be used twice:
///
/// ```compile_fail,E0382
/// # use sluice_harness::{pipeline::{Candidate, Permit, dispatch}, scene::Scene};
/// async fn twice(permit: Permit, scene: Scene<'_>) -> Candidate {
///     dispatch(permit, scene).await;
///     dispatch(permit, scene).await
/// }
/// ```
///
/// and nobody but the gate can make one:
///
/// ```compile_fail,E0451
/// # use sluice_harness::pipeline::{Permit, Sealed};
/// fn forged(sealed: Sealed) -> Permit {
///     Permit { sealed, before: Vec::new(), through: None }
/// }
/// ```
pub struct Permit {
    pub(super) sealed: Sealed,
    pub(super) before: Vec<ContextMessage>,
    pub(super) through: Option<Box<Permit>>,
}

impl Permit {
    /// The identity of the call that was gated.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.sealed.id
    }

    /// The call that would really run: the substituted one where there is one.
    #[must_use]
    pub fn effective(&self) -> &Identity {
        match &self.through {
            Some(nested) => nested.effective(),
            None => &self.sealed.id,
        }
    }

    /// Whether the call that would really run may overlap others; anything unclear is exclusive (R-140).
    #[must_use]
    pub fn concurrency(&self) -> Concurrency {
        match &self.through {
            Some(nested) => nested.concurrency(),
            None => classify(self.sealed.definition.as_ref(), &self.sealed.id.input),
        }
    }
}

/// Classifies a call; a missing tool or a panicking classifier is exclusive.
pub(crate) fn classify(definition: Option<&Arc<Definition>>, input: &Json) -> Concurrency {
    definition
        .and_then(|d| catch_unwind(AssertUnwindSafe(|| d.tool().concurrency(input))).ok())
        .unwrap_or(Concurrency::Exclusive)
}

/// The power to have another input judged in a call's place; lives only while the call is being judged.
pub struct Substitution<'a> {
    scene: Scene<'a>,
    parent: &'a Identity,
    /// How many were asked for, so that each has an id of its own.
    made: &'a AtomicU32,
}

/// How many rewrites may enclose one another; beyond this a listener rewrites its own rewrites, and the stack would
/// end before it does.
const MAX_NESTING: u8 = 8;

impl<'a> Substitution<'a> {
    pub(crate) fn gate(&self, arguments: Json, standing: Standing) -> Fut<'a, Gated> {
        let scene = self.scene;
        let parent = self.parent;
        let call_id = self.unused_id();
        Box::pin(async move {
            let request =
                CallRequest { call_id, name: parent.name().to_owned(), arguments: arguments.text().to_owned() };
            let sealed = seal_nested(scene.context, scene.session, request, parent);
            if parent.depth >= MAX_NESTING {
                let why = format!("the input was rewritten more than {MAX_NESTING} times over");
                return refused(sealed, Vec::new(), &Reason::new(DeniedBy::Guard, why));
            }
            gate_as(sealed, scene, standing).await
        })
    }

    /// An id that neither the model nor another rewrite has used.
    fn unused_id(&self) -> CallId {
        loop {
            let id = match self.made.fetch_add(1, Ordering::Relaxed) {
                0 => CallId::new(format!("{}:rewrite", self.parent.call_id())),
                n => CallId::new(format!("{}:rewrite{}", self.parent.call_id(), n.saturating_add(1))),
            };
            if !self.scene.log.is_call_id_used(&id) {
                return id;
            }
        }
    }
}

/// Judges a sealed call.
pub async fn gate(sealed: Sealed, scene: Scene<'_>) -> Gated {
    gate_as(sealed, scene, Standing::Silent).await
}

/// Boxed, because a substitution gates a nested call from inside.
fn gate_as<'a>(sealed: Sealed, scene: Scene<'a>, standing: Standing) -> Fut<'a, Gated> {
    Box::pin(judge(sealed, scene, standing))
}

async fn judge(mut sealed: Sealed, scene: Scene<'_>, standing: Standing) -> Gated {
    // A sealing failure beats a cancellation that came before (R-087).
    match sealed.defect.take() {
        Some(Defect::Lossy(why)) => {
            let outcome = Outcome::failure(&why, Some(invalid_args()));
            return Gated::Refused(sealed.into_candidate(Lane::Final, Origin::InvalidArgs, outcome));
        }
        Some(Defect::Unreadable(_) | Defect::Invalid(_)) if scene.cancel.is_cancelled() => {}
        Some(Defect::Unreadable(why) | Defect::Invalid(why)) => {
            let outcome = Outcome::failure(&why, Some(invalid_args()));
            return Gated::Refused(sealed.into_candidate(Lane::Post, Origin::InvalidArgs, outcome));
        }
        None => {}
    }
    if scene.cancel.is_cancelled() {
        return Gated::Refused(sealed.into_candidate(Lane::Final, Origin::Cancelled, aborted::before_dispatch()));
    }
    let facts = facts_of(sealed.definition.as_ref(), &sealed.id.input);
    let id = Arc::clone(&sealed.id);
    let recorder = Recorder { scene, id: &id };

    let began = Instant::now();
    let made = AtomicU32::new(0);
    let substitution = Substitution { scene, parent: &id, made: &made };
    let view = PolicyView { scene, call: &id, facts: &facts, substitution: &substitution };
    let waterfall = scene.context.waterfall::<PreExecute>();
    let plain = || -> Fut<'_, _> { Box::pin(std::future::ready(Ok(PreAnswer::new(PreTool::Allow(Allow::plain()))))) };
    let answer = within_grace(scene.cancel, PreExecute::NAME, waterfall.run(view, plain)).await;
    let PreAnswer { decision, contexts: before } = match answer {
        Ok(answer) => answer,
        Err(fault) => {
            recorder.write("pre-execute", &fault.listener, "fault", Some(&fault.what), began);
            let outcome = Outcome::failure(&fault.to_string(), None);
            return Gated::Refused(sealed.into_candidate(Lane::Final, Origin::Denied, outcome));
        }
    };
    recorder.decision(&decision, began);

    let allow = match join_standing(decision, standing) {
        PreTool::Deny(reason) => return refused(sealed, before, &reason),
        PreTool::Allow(allow) => allow,
        PreTool::Ask { reason, origin } => {
            let began = Instant::now();
            let approved = approve::ask(&id, approve::card_of(&sealed), scene, reason, origin).await;
            recorder.approval(&approved, began);
            match approved {
                Approved::Once => Allow::plain(),
                Approved::Aborted => {
                    let candidate = sealed.into_candidate(Lane::Post, Origin::Cancelled, aborted::before_dispatch());
                    return Gated::Refused(Candidate { before, ..candidate });
                }
                Approved::No(reason) => return refused(sealed, before, &reason),
                Approved::Defect(what) => {
                    let candidate = sealed.into_candidate(Lane::Final, Origin::Denied, Outcome::failure(&what, None));
                    return Gated::Refused(Candidate { before, ..candidate });
                }
            }
        }
    };

    // Guards come after all policy, also when the caller was cancelled meanwhile: a denial beats a cancellation
    // (R-070).
    let began = Instant::now();
    if let Some((guard, reason)) = guards(GuardView { call: &id, facts: &facts, scene }) {
        recorder.write("guard", guard, "deny", Some(&reason.text), began);
        return refused(sealed, before, &reason);
    }
    if scene.cancel.is_cancelled() {
        let candidate = sealed.into_candidate(Lane::Post, Origin::Cancelled, aborted::before_dispatch());
        return Gated::Refused(Candidate { before, ..candidate });
    }
    let through = allow.into_permit().map(Box::new);
    // A permit stands for the call it was made for: one that was kept from another call, or made elsewhere, opens
    // nothing.
    if through.as_ref().is_some_and(|permit| permit.sealed.id.parent != Some(id.token)) {
        let what = "the permit of another call was given for this one";
        recorder.write("pre-execute", "substitute", "fault", Some(what), began);
        let candidate = sealed.into_candidate(Lane::Final, Origin::Denied, Outcome::failure(what, None));
        return Gated::Refused(Candidate { before, ..candidate });
    }
    Gated::Pass(Permit { sealed, before, through })
}

fn refused(sealed: Sealed, before: Vec<ContextMessage>, reason: &Reason) -> Gated {
    let candidate = sealed.into_candidate(Lane::Post, Origin::Denied, Outcome::denial(reason));
    Gated::Refused(Candidate { before, ..candidate })
}

/// What the asking hook said of a rewritten input, joined by strictness: its allowance answers the mode's question
/// alone, its question stands beside an allowance.
fn join_standing(decision: PreTool, standing: Standing) -> PreTool {
    match (decision, standing) {
        (PreTool::Ask { origin: AskOrigin::Mode, .. }, Standing::Allowed) => PreTool::Allow(Allow::plain()),
        // Judged already, so it cannot be asked about again; without its permit another input would run.
        (PreTool::Allow(allow), Standing::Ask(_)) if allow.is_substitute() => PreTool::Deny(Reason::new(
            DeniedBy::Hook,
            "a hook wants a confirmation of an input that another hook rewrites, which cannot be expressed",
        )),
        (PreTool::Allow(_) | PreTool::Ask { origin: AskOrigin::Mode, .. }, Standing::Ask(reason)) => {
            PreTool::Ask { reason, origin: AskOrigin::Hook }
        }
        (decision, _) => decision,
    }
}

/// What the tool says of an input; a tool that panics says the most dangerous thing.
pub(super) fn facts_of(definition: Option<&Arc<Definition>>, input: &Json) -> CallFacts {
    definition.and_then(|d| catch_unwind(AssertUnwindSafe(|| d.tool().facts(input))).ok()).unwrap_or_default()
}

fn guards(view: GuardView<'_>) -> Option<(&'static str, Reason)> {
    // Read one by one, so that a guard mounted by an earlier guard is heard too (R-014).
    let mut index = 0;
    while let Some(guard) = view.scene.context.guard_at(index) {
        match catch_unwind(AssertUnwindSafe(|| (guard.check)(view))) {
            Ok(None) => {}
            Ok(Some(reason)) => return Some((guard.name, reason)),
            Err(panic) => {
                let what = crate::point::panic_text(&*panic);
                let text = format!("the guard `{}` failed, and a failing guard denies: {what}", guard.name);
                return Some((guard.name, Reason::new(DeniedBy::Guard, text)));
            }
        }
        index += 1;
    }
    None
}

/// Writes the durable `tool/gate` record of every gate that decided.
struct Recorder<'a> {
    scene: Scene<'a>,
    id: &'a Identity,
}

impl Recorder<'_> {
    fn write(&self, stage: &str, owner: &str, verdict: &str, reason: Option<&str>, began: Instant) {
        record_gate(self.scene, self.id, stage, owner, verdict, reason, began);
    }

    fn decision(&self, decision: &PreTool, began: Instant) {
        match decision {
            PreTool::Allow(allow) if allow.is_substitute() => {
                self.write("pre-execute", "substitute", "change", None, began);
            }
            PreTool::Allow(_) => {}
            PreTool::Deny(reason) => {
                self.write("pre-execute", word(reason.by), "deny", Some(&reason.text), began);
            }
            PreTool::Ask { reason, origin } => {
                let owner = match origin {
                    AskOrigin::Mode => "mode",
                    AskOrigin::Plan => "plan",
                    AskOrigin::Rule => "rule",
                    AskOrigin::Hook => "hook",
                    AskOrigin::Escalation => "escalation",
                };
                self.write("pre-execute", owner, "ask", reason.as_deref(), began);
            }
        }
    }

    fn approval(&self, approved: &Approved, began: Instant) {
        let (verdict, reason) = match approved {
            Approved::Once => ("allow", None),
            Approved::Aborted => ("cancelled", None),
            Approved::No(reason) => ("deny", Some(reason.text.as_str())),
            Approved::Defect(what) => ("fault", Some(what.as_str())),
        };
        self.write("approval", "approval", verdict, reason, began);
    }
}

fn word(by: DeniedBy) -> &'static str {
    match by {
        DeniedBy::Hook => "hook",
        DeniedBy::Rule => "rule",
        DeniedBy::Mode => "mode",
        DeniedBy::Guard => "guard",
        DeniedBy::User => "user",
        DeniedBy::NobodyToAsk => "nobody-to-ask",
        DeniedBy::Sandbox => "sandbox",
    }
}

pub(super) fn record_gate(
    scene: Scene<'_>,
    id: &Identity,
    stage: &str,
    owner: &str,
    verdict: &str,
    reason: Option<&str>,
    began: Instant,
) {
    let Some(turn) = scene.turn else { return };
    let event = ToolGate {
        turn: turn.number,
        call_id: id.call_id().clone(),
        stage: stage.to_owned(),
        owner: owner.to_owned(),
        verdict: verdict.to_owned(),
        reason: reason.map(str::to_owned),
        ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    // A log that cannot be written fails the call at its durability barrier; a trace line must not decide.
    if let Err(fault) = scene.log.append_core(&event) {
        tracing::warn!(%fault, "a gate record could not be written");
    }
}

/// Whether the tool of a call is still there (R-055).
pub(super) fn resolve_again(scene: Scene<'_>, id: &Identity) -> Option<Arc<Definition>> {
    registry::resolve(scene.context, id.name())
}
