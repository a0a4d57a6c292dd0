//! `BashOutput`: what a background shell has printed since it was last read.
//!
//! The invariant: every byte is either shown once, or said to be left out. A piece that ends inside a character waits
//! for its rest, and under a filter a line without its end does, while the shell runs.

use std::sync::Arc;

use regex::Regex;
use serde::Serialize;
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::process::running::Mark;
use sluice_harness::seam::process::{Capture, End};
use sluice_harness::tool::{BodyView, CallCard, CallFacts, CallKind, Content, Effect, Tool, ToolFailure};

use crate::arguments::{flag_at, one_line, schema, text_at};
use crate::bash::{joined, signal_name};
use crate::failure;
use crate::jobs::Jobs;

/// The tool.
pub struct BashOutput {
    jobs: Arc<Jobs>,
}

/// The value: Claude Code's five members, and what tells ends apart.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BashOutputValue {
    shell_id: String,
    status: &'static str,
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<bool>,
}

/// The state of a shell: Claude Code's word for it, and what is known beside it.
struct State {
    status: &'static str,
    exit_code: Option<i32>,
    signal: Option<i32>,
    timed_out: Option<bool>,
}

impl State {
    fn of(end: Option<&End>) -> Self {
        let plain = |status| Self { status, exit_code: None, signal: None, timed_out: None };
        match end {
            None => plain("running"),
            Some(End::Exited(code)) => {
                let status = if *code == 0 { "completed" } else { "failed" };
                Self { exit_code: Some(*code), ..plain(status) }
            }
            Some(End::Signalled(number)) => Self { signal: Some(*number), ..plain("failed") },
            Some(End::TimedOut) => Self { timed_out: Some(true), ..plain("failed") },
            Some(End::NotStarted(_)) => plain("failed"),
            Some(End::Cancelled) => plain("killed"),
        }
    }
}

impl BashOutput {
    /// The tool for the shells that `Bash` starts.
    #[must_use]
    pub fn new(jobs: Arc<Jobs>) -> Self {
        Self { jobs }
    }

    async fn run(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let id = text_at(body.input(), "bash_id");
        let filter = filter_of(body.input()).map_err(ToolFailure::new)?;
        let job = self.jobs.find(body.scene(), id)?;
        let mut read = job.read.lock().await;
        // Before the output, so that an ended shell's is complete.
        let end = job.running.end();
        let output = job.running.output(*read).await;
        let (stdout, after_stdout) = shown(output.stdout, end.is_none(), filter.as_ref());
        let (mut stderr, after_stderr) = shown(output.stderr, end.is_none(), filter.as_ref());
        if let Some(End::NotStarted(problem)) = &end {
            // Whoever keeps the command found this out only after it had begun to start it.
            stderr = joined(&stderr, &format!("the command could not be started: {problem}"));
        }
        *read = Mark { stdout: read.stdout + after_stdout, stderr: read.stderr + after_stderr };
        let State { status, exit_code, signal, timed_out } = State::of(end.as_ref());
        let value = BashOutputValue { shell_id: id.to_owned(), status, exit_code, stdout, stderr, signal, timed_out };
        Json::of(&value).map_err(|fault| failure::of_value(&fault))
    }
}

fn filter_of(input: &Json) -> Result<Option<Regex>, String> {
    let Some(pattern) = input.str_at("filter").filter(|pattern| !pattern.is_empty()) else { return Ok(None) };
    Regex::new(pattern).map(Some).map_err(|fault| {
        format!("filter is no valid regular expression: {fault}; escape special characters to mean them literally")
    })
}

/// What of a piece of output is shown, and how many of its bytes are read with that.
fn shown(mut piece: Capture, goes_on: bool, filter: Option<&Regex>) -> (String, u64) {
    if goes_on {
        let last = if piece.tail.is_empty() { &mut piece.head } else { &mut piece.tail };
        let keep = match filter {
            None => last.len() - unfinished_character(last),
            Some(_) => last.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        piece.total -= (last.len() - keep) as u64;
        last.truncate(keep);
    }
    let text = match filter {
        None => piece.text(),
        Some(filter) => {
            let matching = |bytes: &[u8]| -> String {
                let text = String::from_utf8_lossy(bytes);
                text.split_inclusive('\n').filter(|line| filter.is_match(line.trim_end_matches('\n'))).collect()
            };
            let head = matching(&piece.head);
            let tail = matching(&piece.tail);
            format!("{head}{}{tail}", piece.note().unwrap_or_default())
        }
    };
    (text, piece.total)
}

/// How many bytes at the end are the beginning of a character that is not whole.
fn unfinished_character(bytes: &[u8]) -> usize {
    let starts_one = |n: &usize| {
        let end = bytes.get(bytes.len() - n..).unwrap_or_default();
        matches!(std::str::from_utf8(end), Err(fault) if fault.valid_up_to() == 0 && fault.error_len().is_none())
    };
    (1..=bytes.len().min(3)).find(starts_one).unwrap_or(0)
}

impl Tool for BashOutput {
    fn name(&self) -> &str {
        "BashOutput"
    }

    fn description(&self) -> &str {
        "Returns what a background shell has printed since it was last read, and whether it still runs. With `filter`, \
         a regular expression, only the lines that match are shown; the others count as read. You are told when a \
         background shell ends, so there is no need to ask again and again."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "bash_id": {"type": "string", "description": "The shell's id, such as bash_1."},
                "filter": {"type": "string", "description": "Show only lines that this regular expression matches."}
            },
            "required": ["bash_id"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "shellId": {"type": "string"},
                "status": {"type": "string", "enum": ["running", "completed", "failed", "killed"]},
                "exitCode": {"oneOf": [{"type": "integer"}, {"type": "null"}]},
                "stdout": {"type": "string"},
                "stderr": {"type": "string"},
                "signal": {"type": "integer", "description": "Only when a signal ended the shell."},
                "timedOut": {"type": "boolean", "description": "Only when its time limit passed."}
            },
            "required": ["shellId", "status", "exitCode", "stdout", "stderr"]
        }))
    }

    fn normalise(&self, arguments: JsonObject, _session: &SessionFacts) -> Result<JsonObject, String> {
        filter_of(&arguments.to_json())?;
        Ok(arguments)
    }

    fn facts(&self, _input: &Json) -> CallFacts {
        CallFacts { effect: Effect::Reads, ..CallFacts::default() }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { self.run(&body).await })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        let number = |key: &str| value.view().get(key).and_then(serde_json::Value::as_i64);
        let id = text_at(value, "shellId");
        let state = match (text_at(value, "status"), number("exitCode"), number("signal")) {
            ("running", _, _) => "is running".to_owned(),
            ("killed", _, _) => "was stopped".to_owned(),
            (_, Some(code), _) => format!("has ended with exit code {code}"),
            (_, None, Some(signal)) => format!("was killed by signal {signal}{}", signal_name(signal)),
            (_, None, None) if flag_at(value, "timedOut") => "ran into its time limit".to_owned(),
            (_, None, None) => "did not start".to_owned(),
        };
        let text = match joined(text_at(value, "stdout"), text_at(value, "stderr")) {
            text if text.is_empty() => format!("{id} {state}. (no new output)"),
            text => format!("{id} {state}. New output:\n{text}"),
        };
        vec![Block::text(text)]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        CallCard {
            title: format!("Output of {}", one_line(text_at(input, "bash_id"))),
            kind: CallKind::Read,
            items: Vec::new(),
            locations: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn piece(head: &[u8], tail: &[u8], total: u64) -> Capture {
        Capture { head: head.to_vec(), tail: tail.to_vec(), total, saved: None }
    }

    #[test]
    fn a_character_that_is_not_whole_waits_for_its_rest_while_the_shell_runs() {
        let euro = "a€".as_bytes();
        for cut in 1..=2 {
            let part = euro.get(..euro.len() - cut).unwrap();
            assert_eq!(shown(piece(part, b"", part.len() as u64), true, None), ("a".to_owned(), 1));
            assert_eq!(shown(piece(part, b"", part.len() as u64), false, None).1, part.len() as u64);
        }
        assert_eq!(shown(piece(euro, b"", 4), true, None), ("a€".to_owned(), 4));
        assert_eq!(shown(piece(b"a\xff", b"", 2), true, None).1, 2, "what never becomes a character does not wait");
        assert_eq!(shown(piece(b"", b"", 0), true, None), (String::new(), 0));
    }

    #[test]
    fn a_filter_takes_whole_lines_and_keeps_the_note_of_what_is_missing() {
        let filter = Regex::new("^E").unwrap();
        assert_eq!(shown(piece(b"E1\nx\nE2", b"", 7), true, Some(&filter)), ("E1\n".to_owned(), 5));
        assert_eq!(shown(piece(b"E1\nx\nE2", b"", 7), false, Some(&filter)), ("E1\nE2".to_owned(), 7));
        let (text, read) = shown(piece(b"E1\n", b"x\nE9\n", 100), true, Some(&filter));
        assert!(text.starts_with("E1\n") && text.ends_with("E9\n") && text.contains("92 of 100 bytes"), "{text}");
        assert_eq!(read, 100);
    }
}
