//! PreToolUse: deny, ask, allow, rewrite, and what becomes of several answers.

use sluice_harness::json::Json;

use super::effect::{Answer, contexts, stop};
use super::hear::Heard;
use super::output::Permission;
use super::text;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    pub(crate) verdict: Verdict,
    /// A rewrite of the input, unless it is denied.
    pub(crate) rewrite: Option<Json>,
    pub(crate) contexts: Vec<String>,
    /// Ends the turn after the call.
    pub(crate) stop: Option<Option<String>>,
    /// For the user.
    pub(crate) warnings: Vec<String>,
}

/// The decision, by strictness.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Verdict {
    #[default]
    Silent,
    Allow,
    Ask(String),
    /// With the whole text for the model.
    Deny(String),
}

/// One handler's decision.
fn verdict(hook: &str, heard: &Heard) -> Verdict {
    if let Some(reason) = heard.block() {
        return Verdict::Deny(text::denial(hook, &reason));
    }
    let Some(output) = &heard.output else { return Verdict::Silent };
    match output.permission() {
        None => Verdict::Silent,
        Some(Permission::Allow) => Verdict::Allow,
        Some(Permission::Ask) => Verdict::Ask(output.permission_reason().unwrap_or_else(|| text::asked(hook))),
        // Nobody could take the call up again yet: closed rather than dropped.
        Some(Permission::Defer) => Verdict::Deny(text::denial(hook, "deferring a call is not supported yet")),
        Some(Permission::Deny) => Verdict::Deny(text::denial(hook, "Blocked by hook")),
    }
}

/// The word for the record.
pub(crate) fn word(hook: &str, heard: &Heard) -> &'static str {
    match verdict(hook, heard) {
        Verdict::Deny(_) => "deny",
        Verdict::Ask(_) => "ask",
        Verdict::Allow if rewrite(heard).is_some() => "rewrite",
        Verdict::Allow => "allow",
        Verdict::Silent if rewrite(heard).is_some() => "rewrite",
        Verdict::Silent => heard.word(),
    }
}

fn rewrite(heard: &Heard) -> Option<&Json> {
    heard.output.as_ref()?.specific("updatedInput")
}

/// Deny beats ask beats allow; of several denials or questions the first in configuration order gives the words.
pub(crate) fn merge(hook: &str, answers: &[Answer<'_>]) -> Effect {
    let mut effect = Effect { contexts: contexts(answers), stop: stop(answers), ..Effect::default() };
    let mut rewriter: Option<&str> = None;
    for answer in answers {
        let next = verdict(hook, answer.heard);
        let denied = matches!(next, Verdict::Deny(_));
        if strictness(&next) > strictness(&effect.verdict) {
            effect.verdict = next;
        }
        let Some(input) = rewrite(answer.heard).filter(|_| !denied) else { continue };
        match (&effect.rewrite, rewriter) {
            (Some(first), Some(by)) if first != input => effect.warnings.push(format!(
                "hooks `{by}` and `{}` rewrite the same input differently; the first one's is used",
                answer.command
            )),
            (Some(_), _) => {}
            (None, _) => {
                effect.rewrite = Some(input.clone());
                rewriter = Some(answer.command);
            }
        }
    }
    if matches!(effect.verdict, Verdict::Deny(_)) {
        effect.rewrite = None;
    }
    effect
}

fn strictness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Silent => 0,
        Verdict::Allow => 1,
        Verdict::Ask(_) => 2,
        Verdict::Deny(_) => 3,
    }
}
