//! Outcomes on their way: a candidate that stages may still change, and the frozen result that nobody can.

use std::time::Duration;

use crate::content::{Block, plain_text};
use crate::ids::CallId;
use crate::json::Json;
use crate::point::prompt::ContextMessage;
use crate::point::tools::{DeniedBy, Origin, Reason, ReasonForm};
use crate::tool::{Content, ErrorInfo, Verdict};

use super::identity::Shared;
use super::seal::Finalizer;

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A valid value, as rendered for the model.
    Success {
        /// The canonical value; hooks see it, the log never stores it (R-130).
        value: Json,
        /// What the model reads.
        content: Content,
        /// What presentation needs on replay.
        meta: Option<Json>,
        /// What the tool says the value means.
        verdict: Verdict,
    },
    /// No value.
    Failure {
        /// What the model reads.
        content: Content,
        /// The bare message.
        message: String,
        /// A structured error.
        info: Option<ErrorInfo>,
        /// Who denied the call, if anybody.
        denied_by: Option<DeniedBy>,
    },
}

impl Outcome {
    /// A failure that the model reads as `Error: <message>` (R-079).
    pub(crate) fn failure(message: &str, info: Option<ErrorInfo>) -> Self {
        Self::Failure {
            content: vec![Block::text(format!("Error: {message}"))],
            message: message.to_owned(),
            info,
            denied_by: None,
        }
    }

    /// A denial (R-062).
    pub(crate) fn denial(reason: &Reason) -> Self {
        let text = match reason.form {
            ReasonForm::Prefixed => format!("Error: {}", reason.text),
            ReasonForm::Verbatim => reason.text.clone(),
        };
        Self::Failure {
            content: vec![Block::text(text)],
            message: reason.text.clone(),
            info: None,
            denied_by: Some(reason.by),
        }
    }

    /// Feedback that replaced a result (R-114).
    pub(crate) fn blocked(feedback: Content) -> Self {
        let message = match plain_text(&feedback) {
            text if text.is_empty() => "tool result blocked by post-execute policy".to_owned(),
            text => text,
        };
        Self::Failure { content: feedback, message, info: None, denied_by: None }
    }

    /// What the model reads.
    #[must_use]
    pub fn content(&self) -> &[Block] {
        match self {
            Self::Success { content, .. } | Self::Failure { content, .. } => content,
        }
    }

    pub(crate) fn set_content(&mut self, new: Content) {
        match self {
            Self::Success { content, .. } | Self::Failure { content, .. } => *content = new,
        }
    }

    /// The error text, for a failure and for a value whose verdict is *failed*.
    #[must_use]
    pub fn failure_text(&self) -> Option<&str> {
        match self {
            Self::Success { verdict: Verdict::Failed(text), .. } => Some(text),
            Self::Success { verdict: Verdict::Succeeded, .. } => None,
            Self::Failure { message, .. } => Some(message),
        }
    }

    /// Whether there is a value.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Success { .. })
    }
}

/// Which stages are still ahead of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Post-execute, then the rest.
    Post,
    /// Straight to materialisation.
    Final,
}

/// A call on its way to its one result.
pub struct Candidate {
    pub(super) id: Shared,
    pub(super) finalizer: Finalizer,
    pub(super) sealed: bool,
    pub(super) lane: Lane,
    pub(super) origin: Origin,
    pub(super) outcome: Outcome,
    /// Contexts of pre-execute, kept on every lane.
    pub(super) before: Vec<ContextMessage>,
    /// Contexts of the body, then of wrappers.
    pub(super) contexts: Vec<ContextMessage>,
    pub(super) concludes: bool,
    pub(super) body_invoked: bool,
    pub(super) took: Duration,
    /// Set when a substituted call ran in its place: settled first, its outcome adopted.
    pub(super) nested: Option<Box<Candidate>>,
}

impl Candidate {
    /// What a refused substitute says, for the listener that asked for it.
    #[must_use]
    pub fn into_reason(self) -> (Reason, Vec<ContextMessage>) {
        let (by, message, text) = match &self.outcome {
            Outcome::Failure { denied_by, message, content, .. } => {
                (denied_by.unwrap_or(DeniedBy::Guard), message.clone(), plain_text(content))
            }
            Outcome::Success { .. } => (DeniedBy::Guard, String::new(), String::new()),
        };
        let form = if text.starts_with("Error: ") { ReasonForm::Prefixed } else { ReasonForm::Verbatim };
        (Reason { text: message, by, form }, self.before)
    }

    /// Whether the arguments were refused before any policy, and in which words.
    #[must_use]
    pub fn invalid_arguments(&self) -> Option<&str> {
        match (&self.outcome, self.origin) {
            (Outcome::Failure { message, .. }, Origin::InvalidArgs) => Some(message),
            _ => None,
        }
    }
}

/// The one result of a call. Private fields, no setters: nothing can change it.
///
/// ```
/// # use sluice_harness::pipeline::Frozen;
/// fn looked_at(result: &Frozen) -> bool {
///     result.is_error()
/// }
/// ```
///
/// Only [`settle`](super::settle) makes one:
///
/// ```compile_fail,E0451
/// # use sluice_harness::pipeline::Frozen;
/// fn forged(real: Frozen) -> Frozen {
///     Frozen { concludes: true, ..real }
/// }
/// ```
///
/// and its outcome is for reading:
///
/// ```compile_fail,E0594
/// # use sluice_harness::pipeline::{Frozen, Outcome};
/// fn edited(result: &Frozen) {
///     if let Outcome::Failure { message, .. } = result.outcome() {
///         *message = String::new();
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Frozen {
    pub(super) call_id: CallId,
    pub(super) name: String,
    pub(super) outcome: Outcome,
    pub(super) origin: Origin,
    pub(super) contexts: Vec<ContextMessage>,
    pub(super) concludes: bool,
    pub(super) took: Duration,
    pub(super) body_invoked: bool,
    pub(super) ran: Option<Json>,
}

impl Frozen {
    /// The call's id.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }
    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
    /// What it came to.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
    /// Where it came from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }
    /// Contexts for the model, after the batch.
    #[must_use]
    pub fn contexts(&self) -> &[ContextMessage] {
        &self.contexts
    }
    /// Whether it ends the turn; only a success does (R-083).
    #[must_use]
    pub fn concludes(&self) -> bool {
        self.concludes
    }
    /// How long the body took.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }
    /// Whether the body was started.
    #[must_use]
    pub fn body_invoked(&self) -> bool {
        self.body_invoked
    }
    /// The input that really ran, when the call was rewritten.
    #[must_use]
    pub fn rewritten_input(&self) -> Option<&Json> {
        self.ran.as_ref()
    }
    /// Whether the model is told of an error: a failure, or a value whose verdict is *failed*.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.outcome.failure_text().is_some()
    }
    /// Who denied the call, if anybody.
    #[must_use]
    pub fn denied_by(&self) -> Option<DeniedBy> {
        match &self.outcome {
            Outcome::Failure { denied_by, .. } => *denied_by,
            Outcome::Success { .. } => None,
        }
    }
}
