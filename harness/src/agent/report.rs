//! What a front end is told of a finished turn.

use std::time::Duration;

use super::end::{Budget, CompletedHow, TurnEnd};
use crate::ids::CallId;
use crate::json::Json;
use crate::point::tools::DeniedBy;
use crate::scene::StopKind;
use crate::seam::model::{FaultKind, StopReason, Usage};

/// A call that was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: CallId,
    /// Its sealed input.
    pub tool_input: Json,
    /// What the model was told.
    pub reason: String,
    /// Who denied it.
    pub by: DeniedBy,
}

/// The end of a turn, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnReport {
    /// How it ended.
    pub end: TurnEnd,
    /// The final text of the last assistant message.
    pub text: String,
    /// The model's own last stop reason.
    pub stop_reason: Option<StopReason>,
    /// Tokens of all its requests.
    pub usage: Usage,
    /// How many model exchanges there were.
    pub steps: u32,
    /// Calls that were denied, in order.
    pub denials: Vec<Denial>,
    /// How long it took.
    pub took: Duration,
}

impl TurnReport {
    pub(crate) fn failed(message: String) -> Self {
        Self {
            end: TurnEnd::Error { kind: FaultKind::Internal, message },
            text: String::new(),
            stop_reason: None,
            usage: Usage::default(),
            steps: 0,
            denials: Vec::new(),
            took: Duration::ZERO,
        }
    }
}

impl TurnEnd {
    /// The word of a result's `terminal_reason`; `None` for an end that only repair writes.
    #[must_use]
    pub fn terminal_reason(&self) -> Option<&'static str> {
        match self {
            Self::Completed { how, .. } => Some(match how {
                CompletedHow::Normal | CompletedHow::StopHookCapped | CompletedHow::Concluded => "completed",
                CompletedHow::StopHookPrevented => "stop_hook_prevented",
            }),
            Self::Rejected { .. } => Some("rejected"),
            Self::Stopped { cause } => Some(match cause.kind {
                StopKind::Hook => "hook_stopped",
                StopKind::Interrupt => "aborted_tools",
            }),
            Self::Budget { which, .. } => Some(match which {
                Budget::MaxTurns => "max_turns",
                Budget::MaxSteps => "max_steps",
                Budget::Timeout => "timeout",
                Budget::Continuations => "completed",
            }),
            Self::MaxTokens => Some("max_tokens"),
            Self::Refused => Some("refused"),
            Self::Cancelled { .. } => Some("cancelled"),
            Self::Error { .. } => Some("error"),
            Self::Interrupted => None,
        }
    }
}
