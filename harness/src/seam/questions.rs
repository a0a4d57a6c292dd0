//! The questions seam: ask the person something, with choices.
//!
//! A provider asks what it is given, in order, and answers for every question or for none: half an answer is never
//! returned. It grants nothing; leave to run a call is the approval seam's business. Dropping the future withdraws what
//! is being asked.

use thiserror::Error;

use crate::Fut;
use crate::ids::{CallId, SessionId};

/// What is asked, and for which call.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The call that asks.
    pub call_id: &'a CallId,
    /// The questions, at least one.
    pub questions: &'a [Question],
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question itself.
    pub question: String,
    /// A word or two for a heading.
    pub header: String,
    /// The choices, at least one.
    pub choices: Vec<Choice>,
    /// How many of them may be picked.
    pub picks: Picks,
}

/// One choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What is shown, and what is answered.
    pub label: String,
    /// What it means; may be empty.
    pub description: String,
}

/// How many choices may be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picks {
    /// One.
    One,
    /// Any number, none included.
    Any,
}

/// The answer to one question: labels that were picked, in the order of the choices, or words of the person's own.
pub type Answer = Vec<String>;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QuestionFault {
    /// `ASK_ABORTED`: the person declined, or the question was withdrawn.
    #[error("{why}")]
    Aborted {
        /// A sentence.
        why: String,
    },
}

impl QuestionFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Aborted { .. } => "ASK_ABORTED",
        }
    }
}

/// Somebody who can be asked.
pub trait Questions: Send + Sync {
    /// Asks; one answer a question, in their order.
    fn ask<'a>(&'a self, asking: Asking<'a>) -> Fut<'a, Result<Vec<Answer>, QuestionFault>>;
}
