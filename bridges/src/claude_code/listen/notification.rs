//! `agent/notification`: Notification hooks, which nobody waits for and which decide nothing.

use std::sync::Arc;

use sluice_harness::point::notification::{Notification, NotificationKind, NotificationView};
use sluice_harness::point::{ListenerFault, Observer};
use sluice_harness::scene::SessionScene;

use super::firing::{Occurrence, plain_word};
use super::{Bridge, Mounted};
use crate::claude_code::payload::Own;
use crate::core::config::Event;

impl Observer<Notification> for Mounted {
    fn observe(&self, view: &NotificationView<'_>) {
        if !self.0.has(Event::Notification) {
            return;
        }
        let bridge = Arc::clone(&self.0);
        let (mut scene, kind) = (view.scene.owned(), view.kind);
        // The hooks outlive the question; the bridge's scope owns them.
        let started = self.0.owner.run("notification hooks", |ended| async move {
            scene.cancel = ended;
            if let Err(fault) = bridge.notify(&scene, kind).await {
                tracing::warn!(%fault, "Notification hooks could not be run");
            }
        });
        if let Err(gone) = started {
            tracing::debug!(%gone, "Notification hooks were not started: their scope has ended");
        }
    }
}

impl Bridge {
    async fn notify(&self, owned: &SessionScene, kind: NotificationKind) -> Result<(), ListenerFault> {
        let (kind, message) = words(kind);
        self.fire(Occurrence {
            scene: owned.scene(),
            hook: "Notification",
            subjects: &[kind],
            call_id: None,
            call: None,
            own: Own::Notification { kind, message },
            word: plain_word,
        })
        .await
        .map(drop)
    }
}

/// The `notification_type` and the message, as captured.
fn words(kind: NotificationKind) -> (&'static str, &'static str) {
    match kind {
        NotificationKind::PermissionPrompt => ("permission_prompt", "Claude needs your permission"),
        NotificationKind::Idle => ("idle_prompt", "Claude is waiting for your input"),
    }
}
