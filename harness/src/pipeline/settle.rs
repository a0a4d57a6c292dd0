//! Settling: post-execute, materialise, finalise once, freeze, observe. Total: there is no way to fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::aborted;
use super::frozen::{Candidate, Frozen, Lane, Outcome};
use super::gate::{record_gate, resolve_again};
use super::identity::Identity;
use crate::Fut;
use crate::json::Json;
use crate::point::tools::{
    FailureView, Origin, PostAnswer, PostChange, PostExecute, PostResult, PostView, ResultView, ToolResultNote,
};
use crate::point::{Point, panic_text, within_grace};
use crate::registry::Definition;
use crate::scene::Scene;
use crate::tool::ErrorInfo;

/// Turns a body's value into an outcome: validate, render, project. Every defect in it is one failure.
pub(super) fn materialise(definition: &Definition, id: &Identity, value: Json) -> Outcome {
    let tool = definition.tool();
    let invalid = |why: String| {
        let info = ErrorInfo { name: "ToolOutputError".to_owned(), code: "INVALID_TOOL_OUTPUT".to_owned() };
        Outcome::failure(&format!("tool \"{}\" returned an invalid value: {why}", id.name()), Some(info))
    };
    let violations = definition.output().validate_as("value", &value);
    if !violations.is_empty() {
        return invalid(violations.join("; "));
    }
    let input = id.input();
    let projected = catch_unwind(AssertUnwindSafe(|| {
        let content = tool.render(input, &value);
        let verdict = tool.verdict(input, &value);
        // Presentation is for the model's own calls; a nested one is shown through its outer call.
        let meta = tool.meta(input, &value);
        (content, verdict, meta)
    }));
    match projected {
        Ok((content, verdict, meta)) => Outcome::Success { value, content, meta, verdict },
        Err(panic) => invalid(panic_text(&*panic)),
    }
}

/// Brings a candidate to its one result.
pub async fn settle(candidate: Candidate, scene: Scene<'_>) -> Frozen {
    settle_as(candidate, scene).await
}

fn settle_as<'a>(mut candidate: Candidate, scene: Scene<'a>) -> Fut<'a, Frozen> {
    Box::pin(async move {
        let mut ran = None;
        if let Some(nested) = candidate.nested.take() {
            let input = nested.id.input().clone();
            let inner = settle_as(*nested, scene).await;
            candidate.outcome = inner.outcome;
            candidate.contexts = inner.contexts;
            candidate.concludes = inner.concludes;
            ran = Some(inner.ran.unwrap_or(input));
        }
        if candidate.lane == Lane::Post {
            post(&mut candidate, scene).await;
        }
        freeze(candidate, ran, scene)
    })
}

async fn post(candidate: &mut Candidate, scene: Scene<'_>) {
    let began = Instant::now();
    let id = Arc::clone(&candidate.id);
    let answer = {
        let waterfall = scene.context.waterfall::<PostExecute>();
        let view = PostView {
            scene,
            call: &id,
            reported_id: id.root_call_id(),
            origin: candidate.origin,
            outcome: &candidate.outcome,
            content: candidate.outcome.content(),
            took: candidate.took,
            failure: candidate.outcome.failure_text(),
        };
        let keep = move || -> Fut<'_, _> {
            let answer = match view.result() {
                PostResult::Success(success) => success.keep(),
                PostResult::Failure(failure) => FailureView::keep(failure),
            };
            Box::pin(std::future::ready(Ok(answer)))
        };
        within_grace(scene.cancel, PostExecute::NAME, waterfall.run(view, keep)).await
    };
    let PostAnswer { change, contexts } = match answer {
        Ok(answer) => answer,
        Err(fault) => {
            record_gate(scene, &id, "post-execute", &fault.listener, "fault", Some(&fault.what), began);
            candidate.outcome = Outcome::failure(&fault.to_string(), None);
            candidate.contexts.clear();
            candidate.concludes = false;
            return;
        }
    };
    // A cancellation during post-execute drops an accepted success, but not a block.
    let late_cancel = scene.cancel.is_cancelled();
    match change {
        PostChange::Block(feedback) => {
            candidate.outcome = Outcome::blocked(feedback);
            record_gate(
                scene,
                &id,
                "post-execute",
                "post-execute",
                "block",
                candidate.outcome.failure_text().map(str::to_owned).as_deref(),
                began,
            );
            candidate.contexts = contexts;
            candidate.concludes = false;
            return;
        }
        PostChange::Keep => {}
        PostChange::Content(content) => {
            candidate.outcome.set_content(content);
            record_gate(scene, &id, "post-execute", "post-execute", "change", Some("content"), began);
        }
        PostChange::Value(value) => {
            candidate.outcome = match resolve_again(scene, &id) {
                Some(definition) if candidate.outcome.is_success() => materialise(&definition, &id, value),
                // The view offers a value only on a success, so what is left is a tool that vanished.
                _ => unknown(&id),
            };
            record_gate(scene, &id, "post-execute", "post-execute", "change", Some("value"), began);
        }
    }
    candidate.contexts.extend(contexts);
    if late_cancel && candidate.outcome.is_success() {
        candidate.outcome = if candidate.body_invoked { aborted::running() } else { aborted::before_dispatch() };
    }
    candidate.concludes &= candidate.outcome.is_success();
}

fn unknown(id: &Identity) -> Outcome {
    let info = ErrorInfo { name: "ToolNotFoundError".to_owned(), code: "UNKNOWN_TOOL".to_owned() };
    Outcome::failure(&format!("unknown tool \"{}\"", id.name()), Some(info))
}

fn freeze(candidate: Candidate, ran: Option<Json>, scene: Scene<'_>) -> Frozen {
    let Candidate {
        id, finalizer, sealed, mut outcome, origin, before, contexts, concludes, body_invoked, took, ..
    } = candidate;
    let input = sealed.then(|| id.input());
    match catch_unwind(AssertUnwindSafe(|| finalizer(input, outcome.content()))) {
        Ok(None) => {}
        Ok(Some(content)) => outcome.set_content(content),
        // Consumed by the call, so there is no second one.
        Err(panic) => {
            let text = format!("the tool \"{}\" failed to finalise its result: {}", id.name(), panic_text(&*panic));
            outcome = Outcome::failure(&text, None);
        }
    }
    let mut all = before;
    all.extend(contexts);
    let concludes = concludes && outcome.is_success();
    let frozen = Frozen {
        call_id: id.call_id().clone(),
        name: id.name().to_owned(),
        outcome,
        origin,
        contexts: all,
        concludes,
        took,
        body_invoked,
        ran,
    };
    scene.context.notify::<ToolResultNote>(&ResultView { scene, call: sealed.then_some(&*id), result: &frozen });
    frozen
}

/// Whether hooks of a dialect are to hear of a result of this origin.
impl Origin {
    /// A body's own result, not a denial, an unknown tool or arguments that did not fit.
    #[must_use]
    pub fn is_body(self) -> bool {
        matches!(self, Self::Body)
    }
}
