//! The points of a tool call: PreToolUse and PostToolUse of the Codex dialect.

use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::Json;
use sluice_harness::pipeline::Gated;
use sluice_harness::point::tools::{
    Allow, AskOrigin, DeniedBy, Origin, PolicyView, PostAnswer, PostExecute, PostResult, PostView, PreAnswer,
    PreExecute, PreTool, Reason, Standing, SuccessView,
};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::live::NoticeLevel;

use super::firing::{Fired, messages};
use super::{Bridge, Mounted, NAME};
use crate::codex::payload::{Call, Own};
use crate::codex::tool::Seen;
use crate::codex::{long_text, post_tool_use, pre_tool_use};
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

impl Listener<PostExecute> for Mounted {
    fn name(&self) -> &str {
        NAME
    }

    fn decide<'a>(
        &'a self,
        view: PostView<'a>,
        next: Next<'a, PostExecute>,
    ) -> Fut<'a, Result<PostAnswer, ListenerFault>> {
        Box::pin(async move {
            let PostResult::Success(success) = view.result() else { return next.delegate().await };
            // A shell command with a non-zero exit is a result here; any other failure has no hook.
            let counts = view.failure().is_none() || view.call().name() == "Bash";
            if view.origin() != Origin::Body || !counts || !self.0.has(Event::PostToolUse) {
                return next.delegate().await;
            }
            self.0.after_tool(view, success, next).await
        })
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
        let seen = Seen::of(call.name(), call.input(), &scene.session.cwd());
        let hook = format!("PreToolUse:{}", seen.name);
        let own = Own::PreToolUse { call: Call { id: call.call_id(), tool: &seen.name, input: &seen.input } };
        let fired = self.fire(scene, &hook, &seen.names(), Some(call.call_id()), own).await?;
        let effect = pre_tool_use::merge(&fired.heard());
        for warning in &effect.warnings {
            scene.tell(NoticeLevel::Warning, &hook, warning.clone()).await;
        }
        let mut contexts = messages(scene, Event::PreToolUse, effect.contexts).await;
        let deny = |text| PreTool::Deny(Reason::verbatim(DeniedBy::Hook, text));
        if let Some(reason) = effect.deny {
            return Ok(PreAnswer { decision: deny(seen.denial(&reason)), contexts });
        }
        let rewrite = match effect.rewrite.map(|updated| seen.rewritten(call.input(), &updated)) {
            Some(Ok(input)) => Some(input).filter(|input| input != call.input()),
            Some(Err(text)) => {
                scene.tell(NoticeLevel::Warning, &hook, text.clone()).await;
                return Ok(PreAnswer { decision: deny(text), contexts });
            }
            None => None,
        };
        let PreAnswer { mut decision, contexts: mut inner } = next.delegate().await?;
        contexts.append(&mut inner);
        if let Some(input) = rewrite {
            decision = self.substituted(view, &hook, decision, input, &mut contexts).await;
        }
        Ok(PreAnswer { decision: asked_for(&fired, decision), contexts })
    }

    /// Has the new input judged, unless what came back forbids or replaces the call already. A question about the old
    /// input that is not the mode's own stands for the new one too; an allowance of this dialect skips no question.
    async fn substituted(
        &self,
        view: PolicyView<'_>,
        hook: &str,
        decision: PreTool,
        input: Json,
        contexts: &mut Vec<sluice_harness::point::prompt::ContextMessage>,
    ) -> PreTool {
        let replaced = matches!(&decision, PreTool::Allow(allow) if allow.is_substitute());
        if replaced {
            let warning = "another dialect's hook rewrites the same input; its rewrite is used";
            view.scene().tell(NoticeLevel::Warning, hook, warning).await;
            return decision;
        }
        let standing = match &decision {
            PreTool::Deny(_) => return decision,
            PreTool::Allow(_) | PreTool::Ask { origin: AskOrigin::Mode, .. } => Standing::Silent,
            PreTool::Ask {
                reason,
                origin: AskOrigin::Plan | AskOrigin::Rule | AskOrigin::Hook | AskOrigin::Escalation,
            } => Standing::Ask(reason.clone()),
        };
        match view.substitute(input, standing).await {
            Gated::Pass(permit) => PreTool::Allow(Allow::through(permit)),
            Gated::Refused(candidate) => {
                let (reason, mut inner) = candidate.into_reason();
                contexts.append(&mut inner);
                PreTool::Deny(reason)
            }
        }
    }

    async fn after_tool<'a>(
        &'a self,
        view: PostView<'a>,
        success: SuccessView<'a>,
        next: Next<'a, PostExecute>,
    ) -> Result<PostAnswer, ListenerFault> {
        let scene = view.scene();
        let cwd = scene.session.cwd();
        let (tool, input) = (view.call().name(), view.call().input());
        let seen = Seen::of(tool, input, &cwd);
        let hook = format!("PostToolUse:{}", seen.name);
        let response = seen.response(tool, input, success.value_seen(), &cwd, view.took());
        let call = Call { id: view.reported_id(), tool: &seen.name, input: &seen.input };
        let own = Own::PostToolUse { call, response: &response };
        let fired = self.fire(scene, &hook, &seen.names(), Some(view.reported_id()), own).await?;
        let effect = post_tool_use::merge(&fired.heard());
        let contexts = messages(scene, Event::PostToolUse, effect.contexts).await;
        let mut answer = next.delegate().await?;
        if let Some(feedback) = effect.feedback
            && !answer.is_block()
        {
            let inner = answer.take_contexts();
            let feedback = long_text::shorten(scene, feedback).await;
            answer = success.content(vec![Block::text(feedback)]).with_contexts_before(inner);
        }
        Ok(answer.with_contexts_before(contexts))
    }
}

/// A handler that cannot be run here is a question, never "no objection"; a rewritten call that was judged already
/// cannot be asked about again, and is closed.
fn asked_for(fired: &Fired, decision: PreTool) -> PreTool {
    let Some(handler) = fired.unrunnable.first() else { return decision };
    let reason =
        format!("the hook `{}` ({}) would judge this call and cannot be run here", handler.label(), handler.place());
    match decision {
        PreTool::Deny(reason) => PreTool::Deny(reason),
        PreTool::Ask {
            reason,
            origin: origin @ (AskOrigin::Plan | AskOrigin::Rule | AskOrigin::Hook | AskOrigin::Escalation),
        } => PreTool::Ask { reason, origin },
        PreTool::Allow(allow) if allow.is_substitute() => PreTool::Deny(Reason::verbatim(DeniedBy::Hook, reason)),
        PreTool::Allow(_) | PreTool::Ask { origin: AskOrigin::Mode, .. } => {
            PreTool::Ask { reason: Some(reason), origin: AskOrigin::Hook }
        }
    }
}
