//! The edges of a session: SessionStart as a promise of contexts, SessionEnd.

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::Fut;
use sluice_harness::point::session::{
    SessionEnd, SessionEndView, SessionStart, SessionStartView, StartOutcome, StartSource,
};
use sluice_harness::point::{Listener, ListenerFault, Next, Observer};
use sluice_harness::scene::SessionScene;
use sluice_harness::seam::live::NoticeLevel;

use super::firing::{Occurrence, context_message, default_limit, plain_messages, plain_word};
use super::{Bridge, Mounted, NAME};
use crate::claude_code::payload::Own;
use crate::claude_code::{session_start, text};
use crate::core::config::Event;

/// How much longer than its slowest handler a promise may take: for killing it and for the records.
const SLACK: Duration = Duration::from_secs(10);

impl Observer<SessionStart> for Mounted {
    fn observe(&self, view: &SessionStartView<'_>) {
        let Some(slowest) = self
            .0
            .handlers
            .current()
            .of(Event::SessionStart)
            .map(|h| h.timeout.unwrap_or_else(|| default_limit(Event::SessionStart)))
            .max()
        else {
            return;
        };
        let bridge = Arc::clone(&self.0);
        let (scene, source) = (view.scene.clone(), view.source);
        let deadline = crate::core::run::deadline(slowest) + SLACK;
        view.promise(
            "claude-code:SessionStart",
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

impl Listener<SessionEnd> for Mounted {
    fn name(&self) -> &str {
        NAME
    }

    fn decide<'a>(
        &'a self,
        view: SessionEndView<'a>,
        next: Next<'a, SessionEnd>,
    ) -> Fut<'a, Result<(), ListenerFault>> {
        Box::pin(async move {
            let fired = self
                .0
                .fire(Occurrence {
                    scene: view.scene,
                    hook: "SessionEnd",
                    subjects: &[view.reason],
                    call_id: None,
                    call: None,
                    own: Own::SessionEnd { reason: view.reason },
                    word: plain_word,
                })
                .await;
            // What is further in ends too, whatever happened here.
            next.delegate().await?;
            fired.map(|_| ())
        })
    }
}

impl Bridge {
    async fn session_start(&self, owned: &SessionScene, source: StartSource) -> Result<StartOutcome, ListenerFault> {
        let scene = owned.scene();
        let hook = text::hook_name("SessionStart", source.word());
        let fired = self
            .fire(Occurrence {
                scene,
                hook: &hook,
                subjects: &[source.word()],
                call_id: None,
                call: None,
                own: Own::SessionStart { source },
                word: plain_word,
            })
            .await?;
        let effect = session_start::merge(&fired.answers());
        let mut contexts = plain_messages(scene, &hook, effect.plains).await;
        contexts.extend(context_message(scene, "SessionStart", effect.contexts).await);
        Ok(StartOutcome { contexts, stop: None })
    }
}
