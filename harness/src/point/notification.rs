//! `agent/notification`: a person is waited for, and may not be looking.
//!
//! It decides nothing and nobody waits for its observers. It is raised when a question has stood unanswered for a
//! while ([`while_waiting`]), and when the agent has had nothing to do for a while after a turn
//! ([`Agent::with_idle_notice`](crate::agent::Agent::with_idle_notice)). A front end without a person raises none.

use std::future::Future;
use std::time::Duration;

use super::Note;
use crate::scene::Scene;

/// The point.
pub enum Notification {}

/// What a person is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationKind {
    /// The answer to an approval question.
    PermissionPrompt,
    /// The next prompt.
    Idle,
}

/// What is shown.
#[derive(Clone, Copy)]
pub struct NotificationView<'a> {
    /// The surroundings: those of the question, or of the session between turns.
    pub scene: Scene<'a>,
    /// What is waited for.
    pub kind: NotificationKind,
}

impl Note for Notification {
    const NAME: &'static str = "agent/notification";
    type Snapshot<'a> = NotificationView<'a>;
}

/// Awaits what a person is to bring, and raises the notification once when it has not come after `patience`.
/// Cancel-safe: dropped, it raises nothing any more.
pub async fn while_waiting<T>(
    scene: Scene<'_>,
    kind: NotificationKind,
    patience: Duration,
    waiting: impl Future<Output = T>,
) -> T {
    tokio::pin!(waiting);
    tokio::select! {
        biased;
        come = &mut waiting => return come,
        () = tokio::time::sleep(patience) => {}
    }
    scene.context.notify::<Notification>(&NotificationView { scene, kind });
    waiting.await
}
