//! How a turn ends: one durable reason, which each front end says in its own words.

use serde::{Deserialize, Serialize};

use crate::cancel::CancelCause;
use crate::scene::StopCause;
use crate::seam::model::FaultKind;

/// The reason of `turn/end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum TurnEnd {
    /// The turn ended by itself.
    Completed {
        /// How.
        how: CompletedHow,
        /// What the user is told, where something is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The prompt was vetoed; no step happened.
    Rejected {
        /// Who vetoed.
        by: String,
        /// The whole text for the user.
        text: String,
    },
    /// A stage set the stop latch.
    Stopped {
        /// Who and why.
        cause: StopCause,
    },
    /// A budget was reached.
    Budget {
        /// Which.
        which: Budget,
        /// Its limit: a count, or milliseconds for a time.
        limit: u64,
    },
    /// The model ran into its output limit.
    MaxTokens,
    /// The model refused.
    Refused,
    /// Cancelled.
    Cancelled {
        /// By whom.
        cause: CancelCause,
    },
    /// The model or the agent failed.
    Error {
        /// What kind of failure.
        kind: FaultKind,
        /// Cause and remedy.
        message: String,
    },
    /// The process died in the turn; only repair writes this.
    Interrupted,
}

/// How a turn completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletedHow {
    /// The model had nothing more to do.
    Normal,
    /// A stop hook's `continue: false` confirmed the end.
    StopHookPrevented,
    /// A stop hook wanted to go on and its cap was reached.
    StopHookCapped,
    /// A tool's result ended the turn.
    Concluded,
}

/// The budgets a run may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Model requests of one prompt, as `--max-turns` counts.
    MaxTurns,
    /// Steps of one turn.
    MaxSteps,
    /// Wall-clock time.
    Timeout,
    /// Continuations forced by hooks in one turn.
    Continuations,
}
