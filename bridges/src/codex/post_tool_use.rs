//! PostToolUse of the Codex dialect: feedback in place of the result, and contexts. The turn goes on in any case.

use super::hear::{Heard, contexts};
use super::output::Said;
use crate::core::output::Printed;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// Stands in the result's place.
    pub(crate) feedback: Option<Printed>,
    pub(crate) contexts: Vec<Printed>,
}

/// All feedback texts, joined by a blank line.
pub(crate) fn merge(heard: &[&Heard]) -> Effect {
    let mut feedback: Option<Printed> = None;
    for one in heard {
        let text = match &one.output.said {
            Said::Block(reason) => reason,
            Said::Stop(text) => text.as_deref().unwrap_or("PostToolUse hook stopped execution"),
            Said::Nothing | Said::Rewrite(_) => continue,
        };
        match &mut feedback {
            None => feedback = Some(Printed { text: text.to_owned(), missing: one.missing }),
            Some(all) => {
                all.text.push_str("\n\n");
                all.text.push_str(text);
                all.missing = all.missing.saturating_add(one.missing);
            }
        }
    }
    Effect { feedback, contexts: contexts(heard) }
}
