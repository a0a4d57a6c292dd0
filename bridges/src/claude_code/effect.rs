//! What is alike in the effects of Claude Code events: contexts in order, and how they become messages.

use sluice_harness::content::Role;
use sluice_harness::point::prompt::ContextMessage;

use super::hear::Heard;
use crate::core::output::Printed;

/// A handler's answer with the command it is named by.
pub(crate) struct Answer<'a> {
    pub(crate) command: &'a str,
    pub(crate) heard: &'a Heard,
}

/// The contexts of all answers, in configuration order.
pub(crate) fn contexts(answers: &[Answer<'_>]) -> Vec<String> {
    answers.iter().filter_map(|a| a.heard.context()).collect()
}

/// The plain texts of all answers, in configuration order.
pub(crate) fn plains(answers: &[Answer<'_>]) -> Vec<Printed> {
    let plain = |heard: &Heard| Some(Printed { text: heard.plain.clone()?, missing: heard.missing });
    answers.iter().filter_map(|a| plain(a.heard)).collect()
}

/// The first stop of the turn that any answer asks for.
pub(crate) fn stop(answers: &[Answer<'_>]) -> Option<Option<String>> {
    answers.iter().find_map(|a| a.heard.stop())
}

/// A message of this dialect.
pub(crate) fn message(source: &str, text: String) -> ContextMessage {
    ContextMessage { source: format!("claude-code:{source}"), role: Role::System, text }
}
