//! UserPromptSubmit: the prompt is blocked, stopped, or goes on with contexts.

use super::effect::{Answer, contexts, plains, stop};
use crate::core::output::Printed;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The prompt goes on.
    Allow {
        /// Plain texts, each its own message.
        plains: Vec<Printed>,
        /// Contexts, one message together.
        contexts: Vec<String>,
    },
    /// It is dropped.
    Block {
        /// The reason.
        reason: String,
        /// Whether the text for the user repeats the prompt.
        repeat: Repeat,
    },
    /// No request is made, but it stays in the history.
    Stop(Option<String>),
}

/// Whether the prompt is repeated to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It is.
    Prompt,
    /// It is not.
    Nothing,
}

/// A block beats a stop beats contexts.
pub(crate) fn merge(answers: &[Answer<'_>]) -> Effect {
    for answer in answers {
        if let Some(reason) = answer.heard.block() {
            let failed = answer.heard.blocking_failure.is_some();
            let suppressed = answer.heard.output.as_ref().is_some_and(|o| o.specific_flag("suppressOriginalPrompt"));
            let repeat = if failed || suppressed { Repeat::Nothing } else { Repeat::Prompt };
            return Effect::Block { reason, repeat };
        }
    }
    match stop(answers) {
        Some(reason) => Effect::Stop(reason),
        None => Effect::Allow { plains: plains(answers), contexts: contexts(answers) },
    }
}
