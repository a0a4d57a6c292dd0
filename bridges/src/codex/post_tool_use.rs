//! PostToolUse of the Codex dialect: feedback in place of the result, and contexts. The turn goes on in any case.

use super::hear::{Heard, contexts};
use super::output::Said;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// Stands in the result's place.
    pub(crate) feedback: Option<String>,
    pub(crate) contexts: Vec<String>,
}

/// All feedback texts, joined by a blank line.
pub(crate) fn merge(heard: &[&Heard]) -> Effect {
    let texts: Vec<String> = heard
        .iter()
        .filter_map(|h| match &h.output.said {
            Said::Block(reason) => Some(reason.clone()),
            Said::Stop(text) => Some(text.clone().unwrap_or_else(|| "PostToolUse hook stopped execution".to_owned())),
            Said::Nothing | Said::Rewrite(_) => None,
        })
        .collect();
    let feedback = (!texts.is_empty()).then(|| texts.join("\n\n"));
    Effect { feedback, contexts: contexts(heard) }
}
