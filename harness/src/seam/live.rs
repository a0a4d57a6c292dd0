//! The live seam: what a front end shows while a turn runs. Nothing here is logged, and nothing here decides.
//!
//! Sending may wait: a slow reader slows the model's stream instead of filling memory.

use crate::Fut;
use crate::ids::{CallId, MessageId, TurnNumber};
use crate::json::Json;
use crate::seam::model::Usage;
use crate::tool::{CallCard, ResultCard};

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// For information; a hook's `systemMessage` is one.
    Info,
    /// Something did not go as written, and the user should know.
    Warning,
    /// Something failed.
    Error,
}

/// A sentence for the user, never for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How loud.
    pub level: NoticeLevel,
    /// Who says it, such as `PreToolUse:Bash`.
    pub source: String,
    /// What is said, one line or more.
    pub text: String,
}

/// What happens, as it happens.
#[derive(Debug, Clone)]
pub enum LiveEvent {
    /// A turn began.
    TurnStarted(TurnNumber),
    /// A piece of the assistant's text.
    Text {
        /// Which message.
        message: MessageId,
        /// The piece.
        delta: String,
    },
    /// A piece of the assistant's reasoning.
    Thinking {
        /// Which message.
        message: MessageId,
        /// The piece.
        delta: String,
    },
    /// The model asked for a call; policy has not spoken yet.
    CallPending {
        /// The call.
        call_id: CallId,
        /// The tool's name.
        tool: String,
        /// How it is shown.
        card: CallCard,
        /// The sealed input.
        input: Json,
    },
    /// Its body starts; after a rewrite, with the input and card of what really runs.
    CallRunning {
        /// The call.
        call_id: CallId,
        /// Set when the call was rewritten.
        rewritten: Option<(CallCard, Json)>,
    },
    /// It has its one result.
    CallFinished {
        /// The call.
        call_id: CallId,
        /// How the result is shown.
        card: ResultCard,
        /// Whether it failed or was denied.
        is_error: bool,
    },
    /// Tokens used by the request that just ended, and the model's window.
    Usage {
        /// Of the last request.
        usage: Usage,
        /// The window, where known.
        context_window: Option<u64>,
    },
    /// A sentence for the user.
    Notice(Notice),
}

/// A front end's ear.
pub trait LiveSink: Send + Sync {
    /// Takes one event, in order. A sink whose reader is gone swallows it.
    fn send(&self, event: LiveEvent) -> Fut<'_, ()>;
}

/// A sink for nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl LiveSink for Silent {
    fn send(&self, _event: LiveEvent) -> Fut<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
