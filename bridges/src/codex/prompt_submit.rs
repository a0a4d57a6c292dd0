//! UserPromptSubmit of the Codex dialect: the prompt is dropped or goes on; contexts are kept either way.

use super::hear::{Heard, contexts};
use super::output::Said;
use crate::core::output::Printed;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// The text for the user when the prompt is dropped.
    pub(crate) block: Option<String>,
    pub(crate) contexts: Vec<Printed>,
}

/// One block is enough.
pub(crate) fn merge(heard: &[&Heard]) -> Effect {
    let block = heard.iter().find_map(|h| match &h.output.said {
        Said::Block(reason) => Some(reason.clone()),
        Said::Stop(reason) => {
            Some(reason.clone().unwrap_or_else(|| "UserPromptSubmit hook stopped the prompt".to_owned()))
        }
        Said::Nothing | Said::Rewrite(_) => None,
    });
    Effect { block, contexts: contexts(heard) }
}
