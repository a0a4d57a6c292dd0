//! The words for a command's outcome: for the model, for failure hooks, for titles.
//!
//! Pure functions of the sealed input and the value, so that they are the same on replay.

use sluice_harness::json::Json;

use crate::arguments::{flag_at, text_at};

/// What a success reads like.
pub(super) fn success(value: &Json) -> String {
    if let Some(id) = value.str_at("backgroundTaskId") {
        let begun = format!("Running in the background as {id}. BashOutput shows what it prints, KillShell ends it.");
        return joined(&begun, text_at(value, "stderr"));
    }
    match output(value) {
        text if text.is_empty() => "(no output)".to_owned(),
        text => text,
    }
}

/// What a failure reads like; `None` when the value is a success. The form of an exit code is Claude Code's
/// (observed in PostToolUseFailure of Bash).
pub(super) fn failure(input: &Json, value: &Json) -> Option<String> {
    let number = |key: &str| value.view().get(key).and_then(serde_json::Value::as_i64);
    let head = if flag_at(value, "timedOut") {
        format!("Command timed out after {}", seconds(super::time_limit_ms(input)))
    } else if let Some(signal) = number("signal") {
        format!("Command was killed by signal {signal}{}", signal_name(signal))
    } else {
        format!("Exit code {}", number("exitCode").filter(|code| *code != 0)?)
    };
    let text = joined(&output(value), text_at(value, "sandbox"));
    Some(if text.is_empty() { head } else { format!("{head}\n{text}") })
}

fn output(value: &Json) -> String {
    joined(text_at(value, "stdout"), text_at(value, "stderr"))
}

/// Two texts on lines of their own, without an empty one and without final line ends.
pub(crate) fn joined(first: &str, second: &str) -> String {
    let [first, second] = [first, second].map(|text| text.trim_end_matches(['\n', '\r']));
    match (first.is_empty(), second.is_empty()) {
        (_, true) => first.to_owned(),
        (true, false) => second.to_owned(),
        (false, false) => format!("{first}\n{second}"),
    }
}

fn seconds(milliseconds: u64) -> String {
    match (milliseconds / 1000, milliseconds % 1000) {
        (whole, 0) => format!("{whole}s"),
        (whole, rest) => format!("{whole}.{}s", format!("{rest:03}").trim_end_matches('0')),
    }
}

pub(crate) fn signal_name(signal: i64) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[track_caller]
    fn check(input: &str, value: &str, expected: Option<&str>) {
        let (input, value) = (Json::parse(input).unwrap(), Json::parse(value).unwrap());
        assert_eq!(failure(&input, &value).as_deref(), expected);
    }

    #[test]
    fn a_non_zero_exit_reads_as_captured_from_the_reference() {
        check("{}", r#"{"stdout":"out","stderr":"err","exitCode":3}"#, Some("Exit code 3\nout\nerr"));
        check("{}", r#"{"stdout":"","stderr":"","exitCode":1}"#, Some("Exit code 1"));
        check("{}", r#"{"stdout":"out","stderr":""}"#, None);
    }

    #[test]
    fn r_434_timeout_and_signal_are_facts_of_their_own() {
        check(
            r#"{"timeout":2000}"#,
            r#"{"stdout":"tick","stderr":"","timedOut":true}"#,
            Some("Command timed out after 2s\ntick"),
        );
        check(
            r#"{"timeout":1500}"#,
            r#"{"stdout":"","stderr":"","timedOut":true}"#,
            Some("Command timed out after 1.5s"),
        );
        check("{}", r#"{"stdout":"","stderr":"","timedOut":true}"#, Some("Command timed out after 120s"));
        check("{}", r#"{"stdout":"","stderr":"e","signal":9}"#, Some("Command was killed by signal 9 (SIGKILL)\ne"));
    }
}
