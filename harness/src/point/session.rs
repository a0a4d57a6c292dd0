//! `agent/session-start` and `agent/session-end`: the edges of a session.
//!
//! Start cannot veto but can delay: a listener hands over a *promise of context*, and the loop awaits every open
//! promise before it assembles a request. End is awaited under a deadline by whoever closes the session.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::prompt::ContextMessage;
use super::{Note, Point};
use crate::Fut;
use crate::scene::{Scene, SessionScene, StopCause};

/// Why a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StartSource {
    /// It is new.
    Startup,
    /// It goes on after a restart.
    Resume,
    /// Its conversation was cleared.
    Clear,
    /// Its conversation was summarised.
    Compact,
    /// It was copied from another.
    Fork,
}

impl StartSource {
    /// The word in payloads.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
            Self::Clear => "clear",
            Self::Compact => "compact",
            Self::Fork => "fork",
        }
    }
}

/// The start notification.
pub enum SessionStart {}

/// What a start listener promised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartOutcome {
    /// Contexts for the model, before the first prompt.
    pub contexts: Vec<ContextMessage>,
    /// Set where the dialect lets a start hook drop the first prompt.
    pub stop: Option<StopCause>,
}

/// A start listener's unfinished work; it owns what it needs.
pub type Promise = Fut<'static, StartOutcome>;

/// What a start listener sees, and its one capability.
pub struct SessionStartView<'a> {
    /// Why the session begins.
    pub source: StartSource,
    /// The surroundings, owned, for the promise to take along.
    pub scene: SessionScene,
    promises: &'a Mutex<Vec<(String, Duration, Promise)>>,
}

impl<'a> SessionStartView<'a> {
    /// A view that collects promises into a list.
    #[must_use]
    pub fn new(
        source: StartSource,
        scene: SessionScene,
        promises: &'a Mutex<Vec<(String, Duration, Promise)>>,
    ) -> Self {
        Self { source, scene, promises }
    }

    /// Hands over a promise. After `deadline` it is dropped, and the user is told.
    pub fn promise(&self, name: &str, deadline: Duration, promise: Promise) {
        self.promises.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), deadline, promise));
    }
}

impl Note for SessionStart {
    const NAME: &'static str = "agent/session-start";
    type Snapshot<'a> = SessionStartView<'a>;
}

/// The end point: awaited, decides nothing.
pub enum SessionEnd {}

/// What an end listener sees.
#[derive(Clone, Copy)]
pub struct SessionEndView<'a> {
    /// The surroundings, without a turn.
    pub scene: Scene<'a>,
    /// `clear`, `resume`, `logout`, `prompt_input_exit` or `other`.
    pub reason: &'a str,
}

impl Point for SessionEnd {
    const NAME: &'static str = "agent/session-end";
    type View<'a> = SessionEndView<'a>;
    type Decision = ();
}
