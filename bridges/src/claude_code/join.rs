//! Joining a PreToolUse effect with what came back from further in, by strictness. Pure.
//!
//! The property: never looser than downstream, save that an allowance answers a question of the mode alone.

use sluice_harness::point::tools::{AskOrigin, Standing};

use super::pre_tool_use::Verdict;

/// What came back from further in, as far as joining cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Downstream {
    Deny,
    Ask(AskOrigin, Option<String>),
    Allow,
    /// An allowance of another hook's rewrite.
    AllowRewritten,
}

/// What is answered in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Joined {
    /// What came back stands.
    Keep,
    /// The call goes on as it is.
    Allow,
    /// Somebody is asked.
    Ask(String),
    /// Never runs, in these words.
    Deny(String),
    /// The rewritten input is gated in its place.
    Substitute(Standing),
}

/// Joins. A denial of our own never comes here: it need not ask further in.
pub(crate) fn join(hook: &str, verdict: &Verdict, rewrites: Rewrites, downstream: &Downstream) -> Joined {
    match (verdict, rewrites, downstream) {
        (Verdict::Deny(text), _, _) => Joined::Deny(text.clone()),
        (_, _, Downstream::Deny) => Joined::Keep,
        // The inner rewrite was judged already and cannot be asked about again: closed.
        (Verdict::Ask(_), _, Downstream::AllowRewritten) => Joined::Deny(format!(
            "{hook} hook error: it wants a confirmation of a call that another hook rewrites, which cannot be expressed"
        )),
        (_, Rewrites::Yes, Downstream::AllowRewritten) => Joined::Keep,
        (_, Rewrites::Yes, downstream) => Joined::Substitute(standing(verdict, downstream)),
        (Verdict::Silent, Rewrites::No, _) => Joined::Keep,
        (Verdict::Allow, Rewrites::No, Downstream::Ask(AskOrigin::Mode, _)) => Joined::Allow,
        (Verdict::Allow, Rewrites::No, _) => Joined::Keep,
        (Verdict::Ask(reason), Rewrites::No, Downstream::Allow | Downstream::Ask(AskOrigin::Mode, _)) => {
            Joined::Ask(reason.clone())
        }
        (Verdict::Ask(_), Rewrites::No, Downstream::Ask(_, _)) => Joined::Keep,
    }
}

/// Whether the effect rewrites the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrites {
    Yes,
    No,
}

/// What we say of the new input: a question of a rule, of plan mode or of another hook about the old one is kept.
fn standing(verdict: &Verdict, downstream: &Downstream) -> Standing {
    match (verdict, downstream) {
        (Verdict::Ask(reason), _) => Standing::Ask(Some(reason.clone())),
        (_, Downstream::Ask(AskOrigin::Plan | AskOrigin::Rule | AskOrigin::Hook, reason)) => {
            Standing::Ask(reason.clone())
        }
        (Verdict::Allow, _) => Standing::Allowed,
        (Verdict::Silent | Verdict::Deny(_), _) => Standing::Silent,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "test code")]

    use super::*;

    /// 0 runs, 1 is asked by the mode, 2 is asked by anybody else, 3 never runs.
    fn level(downstream: &Downstream) -> u8 {
        match downstream {
            Downstream::Allow | Downstream::AllowRewritten => 0,
            Downstream::Ask(AskOrigin::Mode, _) => 1,
            Downstream::Ask(_, _) => 2,
            Downstream::Deny => 3,
        }
    }

    fn joined_level(joined: &Joined, downstream: &Downstream) -> u8 {
        match joined {
            Joined::Keep => level(downstream),
            Joined::Allow => 0,
            Joined::Ask(_) => 2,
            Joined::Deny(_) => 3,
            // The nested gate asks what the mode asks by itself.
            Joined::Substitute(Standing::Silent) => 1,
            Joined::Substitute(Standing::Allowed) => 0,
            Joined::Substitute(Standing::Ask(_)) => 2,
        }
    }

    #[test]
    fn joining_is_never_looser_than_downstream_save_for_a_question_of_the_mode() {
        let verdicts = [Verdict::Silent, Verdict::Allow, Verdict::Ask("a".to_owned()), Verdict::Deny("d".to_owned())];
        let mut downstreams = vec![Downstream::Deny, Downstream::Allow, Downstream::AllowRewritten];
        for origin in [AskOrigin::Mode, AskOrigin::Plan, AskOrigin::Rule, AskOrigin::Hook] {
            downstreams.push(Downstream::Ask(origin, None));
        }
        for verdict in &verdicts {
            for rewrites in [Rewrites::Yes, Rewrites::No] {
                for downstream in &downstreams {
                    let joined = join("PreToolUse:Bash", verdict, rewrites, downstream);
                    let (before, after) = (level(downstream), joined_level(&joined, downstream));
                    let answered_by_hook = before == 1 && *verdict == Verdict::Allow;
                    assert!(after >= before || answered_by_hook, "{verdict:?} {rewrites:?} {downstream:?}: {joined:?}");
                    let own = match verdict {
                        Verdict::Silent | Verdict::Allow => 0,
                        Verdict::Ask(_) => 2,
                        Verdict::Deny(_) => 3,
                    };
                    assert!(after >= own, "{verdict:?} {rewrites:?} {downstream:?}: {joined:?}");
                }
            }
        }
    }

    #[test]
    fn a_hook_allow_answers_the_mode_alone() {
        let joined = |origin| join("h", &Verdict::Allow, Rewrites::No, &Downstream::Ask(origin, None));
        assert_eq!(joined(AskOrigin::Mode), Joined::Allow);
        assert_eq!(joined(AskOrigin::Rule), Joined::Keep);
        assert_eq!(joined(AskOrigin::Plan), Joined::Keep);
        assert_eq!(joined(AskOrigin::Hook), Joined::Keep);
    }
}
