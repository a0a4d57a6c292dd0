//! The session's start: promises of context, each with its own deadline, awaited before the first request.

use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::oneshot;

use crate::point::session::{SessionStart, SessionStartView, StartOutcome, StartSource};
use crate::scene::SessionScene;
use crate::seam::live::NoticeLevel;

/// What session-start listeners have promised, in order, and what was kept of it so far.
pub(super) struct Promises {
    waiting: VecDeque<oneshot::Receiver<StartOutcome>>,
    kept: StartOutcome,
}

/// Tells the listeners and sets their promises running on the session's scope.
pub(super) fn begin(source: StartSource, scene: &SessionScene) -> Promises {
    let collected = Mutex::new(Vec::new());
    scene.context.notify::<SessionStart>(&SessionStartView::new(source, scene.clone(), &collected));
    let promises = collected.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut waiting = VecDeque::with_capacity(promises.len());
    for (name, deadline, promise) in promises {
        let (tell, told) = oneshot::channel();
        let scene = scene.clone();
        let context = scene.context.clone();
        let started = context.run("a session-start promise", move |ended| async move {
            let kept = tokio::select! {
                kept = crate::point::contained_call(move || promise) => kept,
                () = tokio::time::sleep(deadline) => {
                    Err(format!("did not answer within {} s; the session goes on without it", deadline.as_secs()))
                }
                _ = ended.cancelled() => return,
            };
            let outcome = match kept {
                Ok(outcome) => outcome,
                Err(why) => {
                    scene.scene().tell(NoticeLevel::Warning, &name, why).await;
                    StartOutcome::default()
                }
            };
            // The prompt that would have used it may be gone.
            let _ = tell.send(outcome);
        });
        if started.is_ok() {
            waiting.push_back(told);
        }
    }
    Promises { waiting, kept: StartOutcome::default() }
}

impl Promises {
    /// Nothing promised.
    pub(super) fn none() -> Self {
        Self { waiting: VecDeque::new(), kept: StartOutcome::default() }
    }

    /// Awaits all, in order of promising, and gives away what they left. Cancel-safe: a prompt that is cancelled
    /// meanwhile leaves it to the next one.
    pub(super) async fn keep(&mut self) -> StartOutcome {
        while let Some(promise) = self.waiting.front_mut() {
            let told = promise.await;
            self.waiting.pop_front();
            if let Ok(outcome) = told {
                self.kept.contexts.extend(outcome.contexts);
                if self.kept.stop.is_none() {
                    self.kept.stop = outcome.stop;
                }
            }
        }
        std::mem::take(&mut self.kept)
    }
}
