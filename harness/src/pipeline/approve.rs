//! Approval: a question is asked at most once, every answer is durable, and silence means no.
//!
//! What is shown is [`redact`]ed, what is recorded holds no input at all.

use super::answerer;
use super::identity::Identity;
use super::redact;
use super::seal::Sealed;
use crate::log::event::{ApprovalAsked, ApprovalDecided};
use crate::point::approval::{Approval, ApprovalView};
use crate::point::tools::{AskOrigin, DeniedBy, Reason};
use crate::scene::Scene;
use crate::seam::approval::{ApprovalCard, ApprovalOutcome, Rejecter};
use crate::tool::{CallCard, CallKind};

/// What came of the question.
pub(super) enum Approved {
    /// Yes, once.
    Once,
    /// The caller was cancelled.
    Aborted,
    /// No.
    No(Reason),
    /// The question itself could not be asked safely.
    Defect(String),
}

pub(super) async fn ask(
    id: &Identity,
    shown: CallCard,
    scene: Scene<'_>,
    reason: Option<String>,
    origin: AskOrigin,
) -> Approved {
    // Nobody is asked about a call that is cancelled already.
    if scene.cancel.is_cancelled() {
        return Approved::Aborted;
    }
    let name = id.name();
    let Some(turn) = scene.turn else {
        return Approved::Defect(format!("tool \"{name}\" requires approval, but no turn is open to ask in"));
    };
    let question = format!("{}#{}", id.call_id(), turn.number.0);
    let card = ApprovalCard {
        call_id: id.root_call_id().clone(),
        tool: name.to_owned(),
        input: redact::input(id.input()),
        card: redact::card(shown),
        reason: reason.clone(),
        origin,
    };
    let asked = ApprovalAsked {
        turn: turn.number,
        id: question.clone(),
        call_id: id.call_id().clone(),
        tool: name.to_owned(),
        reason: reason.clone(),
        origin,
    };
    // Nobody is asked what could not be recorded.
    if let Err(fault) = scene.log.append_core(&asked) {
        return Approved::Defect(format!("the question could not be recorded: {fault}"));
    }
    let waterfall = scene.context.waterfall::<Approval>();
    let answered = {
        let view = ApprovalView { scene, card: &card, sealed: id.input() };
        tokio::select! {
            biased;
            // An answer that is there wins; a late one is discarded with the future.
            answer = answerer::ask(waterfall, view) => answer,
            _ = scene.cancel.cancelled() => Ok((ApprovalOutcome::Cancelled, None)),
        }
    };
    let (outcome, by) = answered.unwrap_or_else(|fault| {
        tracing::warn!(%fault, "an approval answerer failed; nobody is taken to have answered");
        (ApprovalOutcome::Unavailable, None)
    });
    let decided = ApprovalDecided { turn: turn.number, id: question, by, outcome: outcome.clone() };
    if let Err(fault) = scene.log.append_core(&decided) {
        return Approved::Defect(format!("the answer could not be recorded: {fault}"));
    }
    match outcome {
        ApprovalOutcome::AllowedOnce => Approved::Once,
        ApprovalOutcome::Rejected { message, by } => Approved::No(match (message, denier(by)) {
            (Some(text), by) => Reason::verbatim(by, text),
            (None, by) => Reason::new(by, format!("the user rejected tool \"{name}\"")),
        }),
        ApprovalOutcome::Cancelled if scene.cancel.is_cancelled() => Approved::Aborted,
        ApprovalOutcome::Cancelled => {
            Approved::No(Reason::new(DeniedBy::User, format!("approval for tool \"{name}\" was cancelled")))
        }
        ApprovalOutcome::Unavailable => Approved::No(unavailable(name, reason, origin)),
    }
}

fn denier(by: Rejecter) -> DeniedBy {
    match by {
        Rejecter::Person => DeniedBy::User,
        Rejecter::Hook => DeniedBy::Hook,
    }
}

/// Nobody could be asked: the asker's own reason reaches the model, as it stands where a hook gave it.
fn unavailable(name: &str, reason: Option<String>, origin: AskOrigin) -> Reason {
    let nobody = "no approval channel is available";
    match (reason, origin) {
        (Some(text), AskOrigin::Hook) => Reason::verbatim(DeniedBy::NobodyToAsk, text),
        (Some(text), AskOrigin::Mode | AskOrigin::Plan | AskOrigin::Rule | AskOrigin::Escalation) => {
            Reason::new(DeniedBy::NobodyToAsk, format!("{text} (tool \"{name}\" requires approval, but {nobody})"))
        }
        (None, _) => Reason::new(DeniedBy::NobodyToAsk, format!("tool \"{name}\" requires approval, but {nobody}")),
    }
}

/// The card of a question: made from what may be shown, so that no part of it can hold what is hidden.
pub(super) fn card_of(sealed: &Sealed) -> CallCard {
    present(sealed.definition.as_ref().map(|d| d.tool()), sealed.id.name(), &redact::input(&sealed.id.input))
}

/// A card for a call; total: a panicking or missing tool falls back to its name.
pub(crate) fn present(tool: Option<&dyn crate::tool::Tool>, name: &str, input: &crate::json::Json) -> CallCard {
    tool.and_then(|t| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| t.present_call(input))).ok())
        .unwrap_or_else(|| CallCard {
            title: name.to_owned(),
            kind: CallKind::Other,
            items: Vec::new(),
            locations: Vec::new(),
        })
}
