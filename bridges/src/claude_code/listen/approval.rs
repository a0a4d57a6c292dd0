//! The chain of approval answerers: PermissionRequest hooks stand before the person.

use sluice_harness::Fut;
use sluice_harness::point::approval::{Approval, ApprovalView};
use sluice_harness::point::tools::AskOrigin;
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::scene::{StopCause, StopKind};
use sluice_harness::seam::approval::{ApprovalOutcome, Rejecter};
use sluice_harness::seam::live::NoticeLevel;

use super::firing::{Occurrence, tool_names};
use super::{Bridge, Mounted, NAME};
use crate::claude_code::hear::Heard;
use crate::claude_code::output::{Answer, Interrupt};
use crate::claude_code::payload::Own;
use crate::claude_code::permission_request::{Effect, apply, merge};
use crate::claude_code::text;
use crate::core::condition::CallInput;
use crate::core::config::Event;

impl Listener<Approval> for Mounted {
    fn name(&self) -> &str {
        NAME
    }

    fn decide<'a>(
        &'a self,
        view: ApprovalView<'a>,
        next: Next<'a, Approval>,
    ) -> Fut<'a, Result<ApprovalOutcome, ListenerFault>> {
        Box::pin(self.0.approval(view, next))
    }
}

impl Bridge {
    async fn approval<'a>(
        &'a self,
        view: ApprovalView<'a>,
        next: Next<'a, Approval>,
    ) -> Result<ApprovalOutcome, ListenerFault> {
        if !self.has(Event::PermissionRequest) {
            return next.delegate().await;
        }
        // A hook judges what will run; only people are shown a card without secrets.
        let (scene, card, input) = (view.scene, view.card, view.sealed);
        let hook = text::hook_name("PermissionRequest", &card.tool);
        let fired = self
            .fire(Occurrence {
                scene,
                hook: &hook,
                subjects: &tool_names(&card.tool),
                call_id: Some(&card.call_id),
                call: Some(CallInput {
                    tool: &card.tool,
                    input,
                    root: &self.config.workspace_root,
                    home: &self.config.home,
                }),
                own: Own::PermissionRequest { tool: &card.tool, input },
                word,
            })
            .await?;
        match merge(&fired.answers()) {
            Effect::Silent => next.delegate().await,
            Effect::Deny { message, interrupt } => {
                if interrupt == Interrupt::Turn {
                    let reason = Some(message.clone());
                    scene.stop_turn(StopCause { by: hook, reason, kind: StopKind::Interrupt });
                }
                Ok(ApprovalOutcome::Rejected { message: Some(message), by: Rejecter::Hook })
            }
            // Out of the sandbox only a person lets a call.
            Effect::Allow { .. } if card.origin == AskOrigin::Escalation => next.delegate().await,
            Effect::Allow { input: rewritten, updates } => {
                if rewritten.is_some_and(|other| other != *input) {
                    // The answer is about the call as it was asked; another input would run unjudged.
                    let message = format!("{hook} hook error: it rewrites the input, which an answer cannot express");
                    scene.tell(NoticeLevel::Warning, &hook, message.clone()).await;
                    return Ok(ApprovalOutcome::Rejected { message: Some(message), by: Rejecter::Hook });
                }
                for warning in apply(scene, &updates) {
                    scene.tell(NoticeLevel::Warning, &hook, warning).await;
                }
                Ok(ApprovalOutcome::AllowedOnce)
            }
        }
    }
}

fn word(_: &str, heard: &Heard) -> &'static str {
    match heard.output.as_ref().and_then(|o| o.answer.as_ref()) {
        Some(Answer::Allow { .. }) => "allow",
        Some(Answer::Deny { .. }) => "deny",
        None if heard.blocking_failure.is_some() => "deny",
        None if heard.problem.is_some() => "failed",
        None => "none",
    }
}
