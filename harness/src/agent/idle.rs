//! The wait for the next prompt: after a while of it, a notification says that a person is waited for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Agent;
use crate::cancel::{Cancel, CancelCause};
use crate::point::notification::{Notification, NotificationKind, NotificationView};
use crate::scene::StopLatch;

/// How long a wait may take before it is told of, and the wait that is under way.
#[derive(Default)]
pub(super) struct Idle {
    patience: Option<Duration>,
    waiting: Mutex<Option<Cancel>>,
}

impl Idle {
    /// One that tells after so long.
    pub(super) fn after(patience: Duration) -> Self {
        Self { patience: Some(patience), waiting: Mutex::new(None) }
    }

    /// The wait is over: a prompt has come.
    pub(super) fn end(&self) {
        if let Some(waiting) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waiting.cancel(CancelCause::User);
        }
    }

    /// A turn has ended; the scope of the agent owns the wait.
    pub(super) fn begin(&self, agent: &Agent) {
        let Some(patience) = self.patience else { return };
        let waiting = Cancel::new();
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waiting.clone());
        let mut scene = agent.scene(None, Cancel::new(), Arc::new(StopLatch::new()));
        let started = agent.context.run("idle notice", move |ended| async move {
            tokio::select! {
                biased;
                _ = ended.cancelled() => return,
                _ = waiting.cancelled() => return,
                () = tokio::time::sleep(patience) => {}
            }
            scene.cancel = ended;
            let view = NotificationView { scene: scene.scene(), kind: NotificationKind::Idle };
            scene.context.notify::<Notification>(&view);
        });
        if let Err(gone) = started {
            tracing::debug!(%gone, "no idle notice: the session is ending");
        }
    }
}
