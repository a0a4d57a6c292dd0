//! The edges of a turn: UserPromptSubmit and Stop.

use sluice_harness::Fut;
use sluice_harness::point::prompt::{Keep, PromptBlock, PromptDecision, PromptSubmit, PromptView};
use sluice_harness::point::turn::{ContinuationDecision, ContinuationView, StopWord, TurnContinuation};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::live::NoticeLevel;

use super::firing::{Occurrence, context_message, plain_messages, plain_word};
use super::{Bridge, Mounted, NAME};
use crate::claude_code::payload::{Own, prompt_text};
use crate::claude_code::prompt_submit::{Effect, Repeat, merge};
use crate::claude_code::{long_text, stop, text};
use crate::core::config::Event;
use crate::core::continued::by_a_stop_hook;

impl Listener<PromptSubmit> for Mounted {
    fn name(&self) -> &str {
        NAME
    }

    fn decide<'a>(
        &'a self,
        view: PromptView<'a>,
        next: Next<'a, PromptSubmit>,
    ) -> Fut<'a, Result<PromptDecision, ListenerFault>> {
        Box::pin(self.0.prompt(view, next))
    }
}

impl Listener<TurnContinuation> for Mounted {
    fn name(&self) -> &str {
        NAME
    }

    fn decide<'a>(
        &'a self,
        view: ContinuationView<'a>,
        next: Next<'a, TurnContinuation>,
    ) -> Fut<'a, Result<ContinuationDecision, ListenerFault>> {
        Box::pin(self.0.stop(view, next))
    }
}

impl Bridge {
    async fn prompt<'a>(
        &'a self,
        view: PromptView<'a>,
        next: Next<'a, PromptSubmit>,
    ) -> Result<PromptDecision, ListenerFault> {
        if !self.has(Event::UserPromptSubmit) {
            return next.delegate().await;
        }
        let scene = view.scene;
        let hook = "UserPromptSubmit";
        let prompt = prompt_text(view.content);
        let fired = self
            .fire(Occurrence {
                scene,
                hook,
                subjects: &[],
                call_id: None,
                call: None,
                own: Own::UserPromptSubmit { prompt: &prompt },
                word: plain_word,
            })
            .await?;
        let refuse = |reason, keep| {
            let by = "claude-code:UserPromptSubmit".to_owned();
            PromptDecision::Block(PromptBlock { reason, by, keep, contexts: Vec::new() })
        };
        match merge(&fired.answers()) {
            Effect::Block { reason, repeat } => {
                let repeated = match repeat {
                    Repeat::Prompt => Some(prompt.as_str()),
                    Repeat::Nothing => None,
                };
                Ok(refuse(text::prompt_blocked(&reason, repeated), Keep::Dropped))
            }
            Effect::Stop(reason) => Ok(refuse(text::prompt_stopped(reason.as_deref()), Keep::InHistory)),
            Effect::Allow { plains, contexts } => {
                let mut own = plain_messages(scene, hook, plains).await;
                own.extend(context_message(scene, hook, contexts).await);
                Ok(match next.delegate().await? {
                    PromptDecision::Allow { content, contexts } => {
                        own.extend(contexts);
                        PromptDecision::Allow { content, contexts: own }
                    }
                    // Contexts of this dialect go with the prompt they were meant for.
                    PromptDecision::Block(block) => PromptDecision::Block(block),
                })
            }
        }
    }

    async fn stop<'a>(
        &'a self,
        view: ContinuationView<'a>,
        next: Next<'a, TurnContinuation>,
    ) -> Result<ContinuationDecision, ListenerFault> {
        if !self.has(Event::Stop) {
            return next.delegate().await;
        }
        let scene = view.scene;
        let own = Own::Stop { active: by_a_stop_hook(view.continuations), last_message: view.last_message };
        let fired = self
            .fire(Occurrence { scene, hook: "Stop", subjects: &[], call_id: None, call: None, own, word: plain_word })
            .await?;
        let mut effect = stop::merge(&fired.answers());
        let inner = next.delegate().await?;
        if let Some(reason) = effect.prevented {
            return Ok(ContinuationDecision::Stop(StopWord::Prevented { reason }));
        }
        if !effect.goes_on() {
            return Ok(inner);
        }
        let hook = effect.blocks.first().map_or(fired.first_command(), |b| b.command.as_str());
        let (row, turn) = (self.config.stop_block_cap, self.config.continuation_cap);
        if let Some(reason) = stop::capped(view.continuations, row, turn, hook) {
            scene.tell(NoticeLevel::Warning, "Stop", reason.clone()).await;
            return Ok(match inner {
                ContinuationDecision::Continue(messages) => ContinuationDecision::Continue(messages),
                ContinuationDecision::Stop(_) => ContinuationDecision::Stop(StopWord::Capped { reason }),
            });
        }
        effect.contexts = long_text::shorten_all(scene, "additionalContext", effect.contexts).await;
        let mut messages = effect.steering();
        match inner {
            ContinuationDecision::Continue(more) => messages.extend(more),
            ContinuationDecision::Stop(StopWord::Completed | StopWord::Capped { .. }) => {}
            // Another dialect's hook confirmed the end: that beats a block.
            ContinuationDecision::Stop(word @ StopWord::Prevented { .. }) => {
                return Ok(ContinuationDecision::Stop(word));
            }
        }
        Ok(ContinuationDecision::Continue(messages))
    }
}
