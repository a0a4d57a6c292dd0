//! SessionStart of the Codex dialect: contexts, and `continue: false`, which drops the first prompt.

use super::hear::{Heard, contexts};
use super::output::Said;
use crate::core::output::Printed;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// Drops the first prompt.
    pub(crate) stop: Option<Option<String>>,
    pub(crate) contexts: Vec<Printed>,
}

/// The first stop counts.
pub(crate) fn merge(heard: &[&Heard]) -> Effect {
    let stop = heard.iter().find_map(|h| match &h.output.said {
        Said::Stop(reason) => Some(reason.clone()),
        Said::Block(_) | Said::Nothing | Said::Rewrite(_) => None,
    });
    Effect { stop, contexts: contexts(heard) }
}
