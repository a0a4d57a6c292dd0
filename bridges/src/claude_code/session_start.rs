//! SessionStart: contexts, and nothing else; it cannot prevent the session.

use super::effect::{Answer, contexts, plains};
use crate::core::output::Printed;

/// What all handlers together gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// Plain texts, each its own message.
    pub(crate) plains: Vec<Printed>,
    /// Contexts, one message together.
    pub(crate) contexts: Vec<String>,
}

/// Collects.
pub(crate) fn merge(answers: &[Answer<'_>]) -> Effect {
    Effect { plains: plains(answers), contexts: contexts(answers) }
}
