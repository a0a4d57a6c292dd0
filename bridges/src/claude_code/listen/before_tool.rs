//! `tools/pre-execute`: PreToolUse.

use sluice_harness::Fut;
use sluice_harness::pipeline::Gated;
use sluice_harness::point::tools::{Allow, AskOrigin, DeniedBy, PolicyView, PreAnswer, PreExecute, PreTool, Reason};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::live::NoticeLevel;

use super::firing::{Fired, Occurrence, context_message, stop_turn, tool_names};
use super::{Bridge, Mounted, NAME};
use crate::claude_code::join::{Downstream, Joined, Rewrites, join};
use crate::claude_code::payload::{Call, Own};
use crate::claude_code::pre_tool_use::{Effect, Verdict, merge, word};
use crate::claude_code::text;
use crate::core::condition::CallInput;
use crate::core::config::Event;

impl Listener<PreExecute> for Mounted {
    fn name(&self) -> &str {
        NAME
    }

    fn decide<'a>(
        &'a self,
        view: PolicyView<'a>,
        next: Next<'a, PreExecute>,
    ) -> Fut<'a, Result<PreAnswer, ListenerFault>> {
        Box::pin(self.0.before_tool(view, next))
    }
}

impl Bridge {
    async fn before_tool<'a>(
        &'a self,
        view: PolicyView<'a>,
        next: Next<'a, PreExecute>,
    ) -> Result<PreAnswer, ListenerFault> {
        let call = view.call();
        if call.is_nested() || !call.is_known() || !self.has(Event::PreToolUse) {
            return next.delegate().await;
        }
        let scene = view.scene();
        let hook = text::hook_name("PreToolUse", call.name());
        let payload = Call { id: call.call_id(), tool: call.name(), input: call.input() };
        let fired = self
            .fire(Occurrence {
                scene,
                hook: &hook,
                subjects: &tool_names(call.name()),
                call_id: Some(call.call_id()),
                call: Some(CallInput {
                    tool: call.name(),
                    input: call.input(),
                    root: &self.config.workspace_root,
                    home: &self.config.home,
                }),
                own: Own::PreToolUse { call: payload },
                word,
            })
            .await?;
        let mut effect = merge(&hook, &fired.answers());
        ask_for_unrunnable(&fired, &mut effect);
        for warning in &effect.warnings {
            scene.tell(NoticeLevel::Warning, &hook, warning.clone()).await;
        }
        if let Some(reason) = effect.stop {
            stop_turn(scene, &hook, reason);
        }
        let mut contexts: Vec<_> = context_message(scene, &hook, effect.contexts).await.into_iter().collect();
        if let Verdict::Deny(text) = effect.verdict {
            let decision = PreTool::Deny(Reason::verbatim(DeniedBy::Hook, text));
            return Ok(PreAnswer { decision, contexts });
        }
        let PreAnswer { mut decision, contexts: mut inner } = next.delegate().await?;
        contexts.append(&mut inner);
        let rewrite = effect.rewrite.filter(|input| input != call.input());
        let rewrites = if rewrite.is_some() { Rewrites::Yes } else { Rewrites::No };
        let downstream = downstream(&decision);
        match (join(&hook, &effect.verdict, rewrites, &downstream), rewrite) {
            (Joined::Keep, Some(_)) if downstream == Downstream::AllowRewritten => {
                let warning = "another dialect's hook rewrites the same input; its rewrite is used";
                scene.tell(NoticeLevel::Warning, &hook, warning).await;
            }
            (Joined::Keep, _) => {}
            (Joined::Allow, _) => decision = PreTool::Allow(Allow::plain()),
            (Joined::Ask(reason), _) => {
                decision = PreTool::Ask { reason: Some(reason), origin: AskOrigin::Hook };
            }
            (Joined::Deny(text), _) => decision = PreTool::Deny(Reason::verbatim(DeniedBy::Hook, text)),
            (Joined::Substitute(standing), Some(input)) => match view.substitute(input, standing).await {
                Gated::Pass(permit) => decision = PreTool::Allow(Allow::through(permit)),
                Gated::Refused(candidate) => {
                    let invalid = candidate.invalid_arguments().map(|why| text::invalid_rewrite(call.name(), why));
                    let (reason, mut inner) = candidate.into_reason();
                    contexts.append(&mut inner);
                    decision = PreTool::Deny(match invalid {
                        Some(text) => Reason::verbatim(DeniedBy::Hook, text),
                        None => reason,
                    });
                }
            },
            // Without a rewrite nothing is substituted.
            (Joined::Substitute(_), None) => {}
        }
        Ok(PreAnswer { decision, contexts })
    }
}

/// A handler that cannot be run here is a question, never "no objection".
fn ask_for_unrunnable(fired: &Fired, effect: &mut Effect) {
    let Some(handler) = fired.unrunnable.first() else { return };
    match effect.verdict {
        Verdict::Silent | Verdict::Allow => {
            effect.verdict = Verdict::Ask(format!(
                "the hook `{}` ({}) would judge this call and cannot be run here",
                handler.label(),
                handler.place()
            ));
        }
        Verdict::Ask(_) | Verdict::Deny(_) => {}
    }
}

fn downstream(decision: &PreTool) -> Downstream {
    match decision {
        PreTool::Allow(allow) if allow.is_substitute() => Downstream::AllowRewritten,
        PreTool::Allow(_) => Downstream::Allow,
        PreTool::Deny(_) => Downstream::Deny,
        PreTool::Ask { reason, origin } => Downstream::Ask(*origin, reason.clone()),
    }
}
