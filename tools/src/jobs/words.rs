//! How the state of a background shell reads: for the model, for the log, for the user.

use sluice_harness::seam::process::End;

use crate::arguments::one_line;
use crate::bash::signal_name;

/// How much of a command is shown beside its shell's id.
const SHOWN_OF_COMMAND: usize = 80;

/// How it ended, as a noun phrase.
pub(crate) fn how(end: &End) -> String {
    match end {
        End::Exited(code) => format!("exit code {code}"),
        End::Signalled(number) => format!("signal {number}{}", signal_name(i64::from(*number))),
        End::TimedOut => "time limit passed".to_owned(),
        End::Cancelled => "stopped".to_owned(),
        End::NotStarted(problem) => problem.to_string(),
    }
}

/// What the model is told of an end that it did not ask for.
pub(super) fn notice(id: &str, command: &str, end: &End) -> String {
    format!(
        "The background shell {id} ({}) has ended: {}. What it printed since it was last read can be read with BashOutput.",
        shortened(command),
        how(end)
    )
}

/// What the user is told of a shell that nobody ended.
pub(super) fn ended_with_session(id: &str, command: &str) -> String {
    format!("the background shell {id} ({}) was still running, and was ended with the session", shortened(command))
}

fn shortened(command: &str) -> String {
    let line = one_line(command);
    match line.char_indices().nth(SHOWN_OF_COMMAND) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}
