//! The session's start: promises of context, each with its own deadline, awaited before the first request.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::point::session::{SessionStart, SessionStartView, StartOutcome, StartSource};
use crate::scene::SessionScene;
use crate::seam::live::NoticeLevel;

/// How long a promise may take to end after its session did.
const ENDING: Duration = Duration::from_secs(5);

/// What session-start listeners have promised.
pub(super) struct Promises {
    waiting: Option<oneshot::Receiver<StartOutcome>>,
}

/// Tells the listeners and sets their promises running on the session's scope: one after another, in the order of
/// mounting, so that every front end leaves the same records.
pub(super) fn begin(source: StartSource, scene: &SessionScene) -> Promises {
    let collected = Mutex::new(Vec::new());
    scene.context.notify::<SessionStart>(&SessionStartView::new(source, scene.clone(), &collected));
    let promises = collected.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if promises.is_empty() {
        return Promises::none();
    }
    let (tell, told) = oneshot::channel();
    let scene = scene.clone();
    let context = scene.context.clone();
    let started = context.run("session-start promises", move |ended| async move {
        let mut all = StartOutcome::default();
        for (name, deadline, promise) in promises {
            let mut running = crate::point::contained_call(move || promise);
            let kept = tokio::select! {
                kept = &mut running => kept,
                () = tokio::time::sleep(deadline) => {
                    Err(format!("did not answer within {} s; the session goes on without it", deadline.as_secs()))
                }
                // Its own signal has fired too: it gets the time to end what it runs and to record it.
                _ = ended.cancelled() => {
                    let _ = tokio::time::timeout(ENDING, running).await;
                    return;
                }
            };
            match kept {
                Ok(outcome) => {
                    all.contexts.extend(outcome.contexts);
                    if all.stop.is_none() {
                        all.stop = outcome.stop;
                    }
                }
                Err(why) => scene.scene().tell(NoticeLevel::Warning, &name, why).await,
            }
        }
        // The prompt that would have used it may be gone.
        let _ = tell.send(all);
    });
    Promises { waiting: started.is_ok().then_some(told) }
}

impl Promises {
    /// Nothing promised.
    pub(super) fn none() -> Self {
        Self { waiting: None }
    }

    /// Awaits all and gives away what they left, contexts in the order of promising. Cancel-safe: a prompt that is
    /// cancelled meanwhile leaves it to the next one.
    pub(super) async fn keep(&mut self) -> StartOutcome {
        let Some(waiting) = self.waiting.as_mut() else { return StartOutcome::default() };
        let told = waiting.await;
        self.waiting = None;
        told.unwrap_or_default()
    }
}
