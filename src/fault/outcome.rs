//! What the end of a turn means for a script: the exit code and the words of the result object.
//!
//! The one table of them. Nothing here prints; the runner puts these words where they belong.

use sluice_harness::agent::{Budget, TurnEnd};
use sluice_harness::cancel::CancelCause;

/// Whether a denied call shows in the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DenialPolicy {
    /// It does not: the model was told, and that is all.
    #[default]
    Tolerate,
    /// `--fail-on-denial`: a turn that ended well is exit 7.
    Fail,
}

/// How a finished turn is told to a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The exit code of `run`.
    pub(crate) exit: u8,
    /// The result object's `subtype`.
    pub(crate) subtype: &'static str,
    /// The result object's `terminal_reason`.
    pub(crate) terminal_reason: &'static str,
}

impl Outcome {
    /// The result object's `is_error`.
    pub(crate) fn is_error(&self) -> bool {
        self.subtype != SUCCESS
    }
}

const SUCCESS: &str = "success";

/// The outcome of a turn that ended so, with so many denied calls.
pub(crate) fn outcome(end: &TurnEnd, denials: usize, policy: DenialPolicy) -> Outcome {
    let (exit, subtype) = exit_and_subtype(end);
    let exit = if exit == 0 && denials > 0 && policy == DenialPolicy::Fail { 7 } else { exit };
    // Only repair writes an interrupted end, and no runner is there to report it.
    Outcome { exit, subtype, terminal_reason: end.terminal_reason().unwrap_or("error") }
}

fn exit_and_subtype(end: &TurnEnd) -> (u8, &'static str) {
    match end {
        TurnEnd::Completed { .. } => (0, SUCCESS),
        TurnEnd::Rejected { .. } => (3, "error_rejected"),
        TurnEnd::Stopped { .. } => (4, SUCCESS),
        TurnEnd::Budget { which, .. } => match which {
            Budget::MaxTurns => (5, "error_max_turns"),
            Budget::MaxSteps => (5, "error_max_steps"),
            Budget::Timeout => (5, "error_timeout"),
            // The cap overrode a hook: the turn had ended by itself.
            Budget::Continuations => (0, SUCCESS),
        },
        TurnEnd::MaxTokens => (5, "error_max_tokens"),
        TurnEnd::Refused => (6, "error_refused"),
        TurnEnd::Cancelled { cause } => (cancelled(cause), "error_cancelled"),
        TurnEnd::Error { .. } | TurnEnd::Interrupted => (1, "error_during_execution"),
    }
}

/// 128 and the signal's number, as shells count; a cancel by a person is their interrupt.
fn cancelled(cause: &CancelCause) -> u8 {
    const INTERRUPT: u8 = 130;
    match cause {
        CancelCause::Signal(number) => u8::try_from(*number).ok().and_then(|n| n.checked_add(128)).unwrap_or(INTERRUPT),
        _ => INTERRUPT,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed test may panic")]

    use sluice_harness::agent::CompletedHow;
    use sluice_harness::scene::{StopCause, StopKind};
    use sluice_harness::seam::model::FaultKind;

    use super::*;

    fn completed(how: CompletedHow) -> TurnEnd {
        TurnEnd::Completed { how, note: None }
    }

    fn stopped(kind: StopKind) -> TurnEnd {
        TurnEnd::Stopped { cause: StopCause { kind, by: "a hook".into(), reason: None } }
    }

    fn budget(which: Budget) -> TurnEnd {
        TurnEnd::Budget { which, limit: 1 }
    }

    fn cancelled_by(cause: CancelCause) -> TurnEnd {
        TurnEnd::Cancelled { cause }
    }

    #[test]
    fn each_end_has_its_exit_code_and_its_words() {
        let error = TurnEnd::Error { kind: FaultKind::Auth, message: String::new() };
        let table = [
            (completed(CompletedHow::Normal), 0, "success", "completed"),
            (completed(CompletedHow::Concluded), 0, "success", "completed"),
            (completed(CompletedHow::StopHookCapped), 0, "success", "completed"),
            (completed(CompletedHow::StopHookPrevented), 0, "success", "stop_hook_prevented"),
            (budget(Budget::Continuations), 0, "success", "completed"),
            (error, 1, "error_during_execution", "error"),
            (TurnEnd::Rejected { by: "h".into(), text: "no".into() }, 3, "error_rejected", "rejected"),
            (stopped(StopKind::Hook), 4, "success", "hook_stopped"),
            (stopped(StopKind::Interrupt), 4, "success", "aborted_tools"),
            (budget(Budget::MaxTurns), 5, "error_max_turns", "max_turns"),
            (budget(Budget::MaxSteps), 5, "error_max_steps", "max_steps"),
            (budget(Budget::Timeout), 5, "error_timeout", "timeout"),
            (TurnEnd::MaxTokens, 5, "error_max_tokens", "max_tokens"),
            (TurnEnd::Refused, 6, "error_refused", "refused"),
            (cancelled_by(CancelCause::Signal(2)), 130, "error_cancelled", "cancelled"),
            (cancelled_by(CancelCause::Signal(15)), 143, "error_cancelled", "cancelled"),
            (cancelled_by(CancelCause::User), 130, "error_cancelled", "cancelled"),
        ];
        for (end, exit, subtype, terminal_reason) in table {
            let got = outcome(&end, 0, DenialPolicy::Fail);
            assert_eq!(got, Outcome { exit, subtype, terminal_reason }, "{end:?}");
            assert_eq!(got.is_error(), !matches!(exit, 0 | 4 | 7), "{end:?}");
        }
    }

    #[test]
    fn a_denied_call_is_exit_7_only_when_asked_for_and_only_after_a_good_end() {
        let good = completed(CompletedHow::Normal);
        assert_eq!(outcome(&good, 1, DenialPolicy::Fail).exit, 7);
        assert!(!outcome(&good, 1, DenialPolicy::Fail).is_error());
        assert_eq!(outcome(&good, 1, DenialPolicy::Tolerate).exit, 0);
        assert_eq!(outcome(&good, 0, DenialPolicy::Fail).exit, 0);
        assert_eq!(outcome(&budget(Budget::MaxTurns), 1, DenialPolicy::Fail).exit, 5);
    }
}
