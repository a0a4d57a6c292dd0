//! SessionStart, UserPromptSubmit and Stop of the Codex dialect.

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::Fut;
use sluice_harness::content::Role;
use sluice_harness::point::prompt::{Keep, PromptBlock, PromptDecision, PromptSubmit, PromptView};
use sluice_harness::point::session::{SessionStart, SessionStartView, StartOutcome, StartSource};
use sluice_harness::point::turn::{ContinuationDecision, ContinuationView, Steering, StopWord, TurnContinuation};
use sluice_harness::point::{Listener, ListenerFault, Next, Observer};
use sluice_harness::scene::{SessionScene, StopCause, StopKind};
use sluice_harness::seam::live::NoticeLevel;

use super::firing::{DEFAULT_LIMIT, messages};
use super::{Bridge, Mounted, NAME};
use crate::codex::payload::{Own, prompt_text};
use crate::codex::{long_text, prompt_submit, session_start, stop};
use crate::core::config::Event;
use crate::core::continued::by_a_stop_hook;

/// How much longer than its slowest handler a promise may take: for killing it and for the records.
const SLACK: Duration = Duration::from_secs(10);

impl Observer<SessionStart> for Mounted {
    fn observe(&self, view: &SessionStartView<'_>) {
        let handlers = self.0.handlers.current();
        let limits = handlers.of(Event::SessionStart).map(|h| h.timeout.unwrap_or(DEFAULT_LIMIT));
        let Some(slowest) = limits.max() else { return };
        let bridge = Arc::clone(&self.0);
        let (scene, source) = (view.scene.clone(), view.source);
        let deadline = crate::core::run::deadline(slowest) + SLACK;
        view.promise(
            "codex:SessionStart",
            deadline,
            Box::pin(async move {
                match bridge.session_start(&scene, source).await {
                    Ok(outcome) => outcome,
                    Err(fault) => {
                        scene.scene().tell(NoticeLevel::Error, "SessionStart", fault.to_string()).await;
                        StartOutcome::default()
                    }
                }
            }),
        );
    }
}

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
    async fn session_start(&self, owned: &SessionScene, source: StartSource) -> Result<StartOutcome, ListenerFault> {
        let scene = owned.scene();
        let own = Own::SessionStart { source };
        let fired = self.fire(scene, "SessionStart", &[source.word()], None, own).await?;
        let effect = session_start::merge(&fired.heard());
        let contexts = messages(scene, Event::SessionStart, effect.contexts).await;
        let stop =
            effect.stop.map(|reason| StopCause { by: "codex:SessionStart".to_owned(), reason, kind: StopKind::Hook });
        Ok(StartOutcome { contexts, stop })
    }

    async fn prompt<'a>(
        &'a self,
        view: PromptView<'a>,
        next: Next<'a, PromptSubmit>,
    ) -> Result<PromptDecision, ListenerFault> {
        if !self.has(Event::UserPromptSubmit) {
            return next.delegate().await;
        }
        let scene = view.scene;
        let prompt = prompt_text(view.content);
        let own = Own::UserPromptSubmit { prompt: &prompt };
        let fired = self.fire(scene, "UserPromptSubmit", &[], None, own).await?;
        let effect = prompt_submit::merge(&fired.heard());
        let mut own = messages(scene, Event::UserPromptSubmit, effect.contexts).await;
        if let Some(reason) = effect.block {
            let by = "codex:UserPromptSubmit".to_owned();
            return Ok(PromptDecision::Block(PromptBlock { reason, by, keep: Keep::Dropped, contexts: own }));
        }
        Ok(match next.delegate().await? {
            PromptDecision::Allow { content, contexts } => {
                own.extend(contexts);
                PromptDecision::Allow { content, contexts: own }
            }
            PromptDecision::Block(mut block) => {
                // Contexts of this dialect are kept although the prompt is not.
                own.append(&mut block.contexts);
                PromptDecision::Block(PromptBlock { contexts: own, ..block })
            }
        })
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
        let fired = self.fire(scene, "Stop", &[], None, own).await?;
        let effect = stop::merge(
            fired.ran.iter().enumerate().map(|(at, (ran, heard))| (at, ran.handler.source.as_path(), heard)),
        );
        let inner = next.delegate().await?;
        if let Some(reason) = effect.prevented {
            return Ok(ContinuationDecision::Stop(StopWord::Prevented { reason }));
        }
        if effect.blocks.is_empty() {
            return Ok(inner);
        }
        let cap = usize::try_from(self.config.continuation_cap).unwrap_or(usize::MAX);
        if view.continuations.len() >= cap {
            let reason = format!("a Stop hook wanted the turn to go on, but hooks made it go on {cap} times already");
            scene.tell(NoticeLevel::Warning, "Stop", reason.clone()).await;
            return Ok(match inner {
                ContinuationDecision::Continue(messages) => ContinuationDecision::Continue(messages),
                ContinuationDecision::Stop(_) => ContinuationDecision::Stop(StopWord::Capped { reason }),
            });
        }
        let mut prompts = Vec::with_capacity(effect.blocks.len());
        for (at, source, text) in effect.blocks {
            prompts.push(stop::hook_prompt(at, &source, &long_text::shorten(scene, text).await));
        }
        // One message, whatever the number of hooks.
        let mut steering =
            vec![Steering { source: stop::SOURCE.to_owned(), role: Role::User, text: prompts.join("\n") }];
        match inner {
            ContinuationDecision::Continue(more) => steering.extend(more),
            ContinuationDecision::Stop(StopWord::Completed | StopWord::Capped { .. }) => {}
            ContinuationDecision::Stop(word @ StopWord::Prevented { .. }) => {
                return Ok(ContinuationDecision::Stop(word));
            }
        }
        Ok(ContinuationDecision::Continue(steering))
    }
}
