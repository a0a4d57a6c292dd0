//! PostToolUseFailure: a reason after the failed result, and contexts. `continue: false` is not honoured here.

use super::effect::{Answer, contexts};
use super::text;
use crate::core::output::Printed;

/// What all handlers together gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// The whole text of each block.
    pub(crate) blocks: Vec<Printed>,
    pub(crate) contexts: Vec<String>,
}

/// Collects.
pub(crate) fn merge(hook: &str, answers: &[Answer<'_>]) -> Effect {
    let blocks = answers
        .iter()
        .filter_map(|a| a.heard.printed_block(|reason| text::blocking_error(hook, a.command, reason)))
        .collect();
    Effect { blocks, contexts: contexts(answers) }
}
