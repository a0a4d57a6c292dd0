//! `tools/post-execute`: PostToolUse after a success, PostToolUseFailure after a failure. Only what a body brought
//! about has post hooks: not a denial, not a refusal, and a rewritten call only once.

use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::point::tools::{Origin, PostAnswer, PostExecute, PostResult, PostView, SuccessView};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::live::NoticeLevel;

use super::firing::{Occurrence, context_message, plain_word, stop_turn, tool_names};
use super::{Bridge, Mounted, NAME};
use crate::claude_code::effect::message;
use crate::claude_code::payload::{Call, Own, tool_response};
use crate::claude_code::post_tool_use::{self, Replacement};
use crate::claude_code::{long_text, post_tool_use_failure, text};
use crate::core::condition::CallInput;
use crate::core::config::Event;
use crate::core::output::Printed;

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
            match (view.origin(), view.failure(), view.result()) {
                (Origin::Body, None, PostResult::Success(success)) if self.0.has(Event::PostToolUse) => {
                    self.0.after_success(view, success, next).await
                }
                (Origin::Body, Some(error), _) if self.0.has(Event::PostToolUseFailure) => {
                    self.0.after_failure(view, error, next).await
                }
                _ => next.delegate().await,
            }
        })
    }
}

impl Bridge {
    async fn after_success<'a>(
        &'a self,
        view: PostView<'a>,
        success: SuccessView<'a>,
        next: Next<'a, PostExecute>,
    ) -> Result<PostAnswer, ListenerFault> {
        let scene = view.scene();
        let tool = view.call().name();
        let hook = text::hook_name("PostToolUse", tool);
        let response = tool_response(tool, success.value_seen());
        let own = Own::PostToolUse { call: call_of(view), response: &response, took: view.took() };
        let fired = self.fire(self.occurrence(view, &hook, &tool_names(tool), own)).await?;
        let effect = post_tool_use::merge(&hook, tool, success.value_seen(), &fired.answers());
        for warning in &effect.warnings {
            scene.tell(NoticeLevel::Warning, &hook, warning.clone()).await;
        }
        if let Some(reason) = effect.stop {
            stop_turn(scene, &hook, reason);
        }
        let contexts = self.messages(view, &hook, effect.blocks, effect.contexts).await;
        let mut answer = next.delegate().await?;
        if let Some(replacement) = effect.replacement {
            if answer.is_keep() {
                let inner = answer.take_contexts();
                answer = match replacement {
                    Replacement::Value(value) => success.value(value),
                    Replacement::Text(text) => success.content(vec![Block::text(text)]),
                }
                .with_contexts_before(inner);
            } else {
                let warning = "another dialect's hook changes the same result; its change is used";
                scene.tell(NoticeLevel::Warning, &hook, warning).await;
            }
        }
        Ok(answer.with_contexts_before(contexts))
    }

    async fn after_failure<'a>(
        &'a self,
        view: PostView<'a>,
        error: &'a str,
        next: Next<'a, PostExecute>,
    ) -> Result<PostAnswer, ListenerFault> {
        let tool = view.call().name();
        let hook = text::hook_name("PostToolUseFailure", tool);
        let interrupted = view.scene().cancel.is_cancelled();
        let own = Own::PostToolUseFailure { call: call_of(view), error, interrupted, took: view.took() };
        let fired = self.fire(self.occurrence(view, &hook, &tool_names(tool), own)).await?;
        let effect = post_tool_use_failure::merge(&hook, &fired.answers());
        let contexts = self.messages(view, &hook, effect.blocks, effect.contexts).await;
        Ok(next.delegate().await?.with_contexts_before(contexts))
    }

    fn occurrence<'a>(
        &'a self,
        view: PostView<'a>,
        hook: &'a str,
        subjects: &'a [&'a str],
        own: Own<'a>,
    ) -> Occurrence<'a> {
        Occurrence {
            scene: view.scene(),
            hook,
            subjects,
            call_id: Some(view.reported_id()),
            call: Some(CallInput {
                tool: view.call().name(),
                input: view.call().input(),
                root: &self.config.workspace_root,
                home: &self.config.home,
            }),
            own,
            word: plain_word,
        }
    }

    async fn messages(
        &self,
        view: PostView<'_>,
        hook: &str,
        blocks: Vec<Printed>,
        contexts: Vec<String>,
    ) -> Vec<ContextMessage> {
        let source = hook.split(':').next().unwrap_or(hook);
        let blocks = long_text::shorten_all(view.scene(), "blockingError", blocks).await;
        let mut messages: Vec<_> = blocks.into_iter().map(|text| message(source, text)).collect();
        messages.extend(context_message(view.scene(), hook, contexts).await);
        messages
    }
}

fn call_of(view: PostView<'_>) -> Call<'_> {
    Call { id: view.reported_id(), tool: view.call().name(), input: view.call().input() }
}
