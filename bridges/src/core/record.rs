//! What the session log keeps of hooks: one `hook/invoked` before any process of an event starts, one `hook/result`
//! after all have ended, both in configuration order and paired by `run_id`.

use serde::{Deserialize, Serialize};
use sluice_harness::ids::{CallId, TurnId, TurnNumber};
use sluice_harness::log::event::EventKind;
use sluice_harness::seam::process::{Capture, End, RunOutput};

use super::output::cut;

/// How many characters of each output stream a record keeps.
const KEPT: usize = 500;

/// A handler is about to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookInvoked {
    /// Names this run; unique in the session, also across restarts.
    pub run_id: String,
    /// `claude-code` or `codex`.
    pub dialect: String,
    /// The event.
    pub event: String,
    /// The handler: its file and its place in it.
    pub handler: String,
    /// The file it came from.
    pub source: String,
    /// The group's matcher as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// The command as written.
    pub command: String,
    /// The turn, within one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnNumber>,
    /// The call, on events about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

impl EventKind for HookInvoked {
    const TYPE: &'static str = "hook/invoked";
    const IGNORABLE: bool = true;
}

/// A handler has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookResult {
    /// The run.
    pub run_id: String,
    /// How it ended: `exited`, `signalled`, `timed-out`, `cancelled`, `not-started`, `background`.
    pub ending: String,
    /// The exit code or the signal's number, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// What it decided: `none`, `allow`, `ask`, `deny`, `block`, `stop`, `rewrite`, `context`, `failed`.
    pub decision: String,
    /// The beginning of its stdout, with `…` where more followed.
    pub stdout: String,
    /// How many bytes it wrote there, where more followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_bytes: Option<u64>,
    /// The beginning of its stderr, with `…` where more followed.
    pub stderr: String,
    /// How many bytes it wrote there, where more followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_bytes: Option<u64>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What went wrong, where something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl EventKind for HookResult {
    const TYPE: &'static str = "hook/result";
    const IGNORABLE: bool = true;
}

impl HookResult {
    /// The record of a finished run.
    #[must_use]
    pub fn of(run_id: &str, output: &RunOutput, decision: &str, problem: Option<&str>) -> Self {
        let (ending, code) = match &output.end {
            End::Exited(code) => ("exited", Some(*code)),
            End::Signalled(signal) => ("signalled", Some(*signal)),
            End::TimedOut => ("timed-out", None),
            End::Cancelled => ("cancelled", None),
            End::NotStarted(_) => ("not-started", None),
        };
        let (stdout, stdout_bytes) = beginning(&output.stdout);
        let (stderr, stderr_bytes) = beginning(&output.stderr);
        Self {
            run_id: run_id.to_owned(),
            ending: ending.to_owned(),
            code,
            decision: decision.to_owned(),
            stdout,
            stdout_bytes,
            stderr,
            stderr_bytes,
            duration_ms: u64::try_from(output.took.as_millis()).unwrap_or(u64::MAX),
            problem: problem.map(str::to_owned),
        }
    }

    /// The record of a run that nobody waits for.
    #[must_use]
    pub fn background(run_id: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            ending: "background".to_owned(),
            code: None,
            decision: "none".to_owned(),
            stdout: String::new(),
            stdout_bytes: None,
            stderr: String::new(),
            stderr_bytes: None,
            duration_ms: 0,
            problem: None,
        }
    }
}

/// What a record keeps of a stream, and the stream's size where that is not all.
fn beginning(stream: &Capture) -> (String, Option<u64>) {
    let text = stream.text();
    let kept = cut(&text, KEPT);
    let bytes = (kept != text).then_some(stream.total);
    (kept, bytes)
}

/// A fresh run id: a version 7 UUID, made like a turn's.
pub(crate) fn fresh_run_id() -> String {
    TurnId::fresh().as_str().to_owned()
}
