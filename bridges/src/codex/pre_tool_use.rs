//! PreToolUse of the Codex dialect: deny, rewrite, contexts.

use sluice_harness::json::Json;

use super::hear::{Heard, contexts};
use super::output::Said;
use crate::core::output::Printed;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// The first denial's reason.
    pub(crate) deny: Option<String>,
    /// The first rewrite, unless the call is denied.
    pub(crate) rewrite: Option<Json>,
    pub(crate) contexts: Vec<Printed>,
    pub(crate) warnings: Vec<String>,
}

/// Any denial wins, in the words of the first; a rewrite beside it is dropped.
pub(crate) fn merge(heard: &[&Heard]) -> Effect {
    let mut effect = Effect { contexts: contexts(heard), ..Effect::default() };
    for one in heard {
        match &one.output.said {
            Said::Block(reason) if effect.deny.is_none() => effect.deny = Some(reason.clone()),
            Said::Rewrite(input) => match &effect.rewrite {
                None => effect.rewrite = Some(input.clone()),
                Some(first) if first != input => effect
                    .warnings
                    .push("two hooks rewrite the same input differently; the first one's is used".to_owned()),
                Some(_) => {}
            },
            Said::Block(_) | Said::Stop(_) | Said::Nothing => {}
        }
    }
    if effect.deny.is_some() {
        effect.rewrite = None;
    }
    effect
}
