//! PostToolUseFailure: a reason after the failed result, and contexts. `continue: false` is not honoured here.

use super::effect::{Answer, contexts};
use super::text;

/// What all handlers together gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// The whole text of each block.
    pub(crate) blocks: Vec<String>,
    pub(crate) contexts: Vec<String>,
}

/// Collects.
pub(crate) fn merge(hook: &str, answers: &[Answer<'_>]) -> Effect {
    let blocks = answers
        .iter()
        .filter_map(|a| a.heard.block().map(|reason| text::blocking_error(hook, a.command, &reason)))
        .collect();
    Effect { blocks, contexts: contexts(answers) }
}
