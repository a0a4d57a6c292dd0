//! Logs written by the engine's own writer, listed and shown.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed test may panic"
)]

use std::io;
use std::path::PathBuf;

use expect_test::expect;
use tempfile::TempDir;

use super::*;
use crate::config::Environment;

const ID: &str = "0199f3a2-0000-7000-8000-000000000001";

/// Events of a turn in which one call was denied by a hook and another ran; `time` counts up.
const EVENTS: &[(&str, &str)] = &[
    (
        "hook/invoked",
        r#"{"run_id":"r0","dialect":"claude-code","event":"SessionStart","handler":"h","source":"s","command":"start"}"#,
    ),
    (
        "hook/result",
        r#"{"run_id":"r0","ending":"exited","code":0,"decision":"context","stdout":"hello","stderr":"","duration_ms":3}"#,
    ),
    ("turn/start", r#"{"turn":1,"turn_id":"t","prompt_id":"p"}"#),
    ("prompt/received", r#"{"turn":1,"content":[{"type":"text","text":"look\naround \u001b[31mred"}]}"#),
    ("user/message", r#"{"turn":1,"source":"user","content":[{"type":"text","text":"look\naround"}]}"#),
    ("context/message", r#"{"turn":1,"source":"claude-code:SessionStart","role":"system","text":"hello"}"#),
    ("step/start", r#"{"turn":1,"step":1}"#),
    (
        "request/header",
        r#"{"turn":1,"why":"initial","provider":"script","model":"demo","system":"S","tools":[],"max_output_tokens":null}"#,
    ),
    ("request/sent", r#"{"turn":1,"step":1,"attempt":1,"index":0}"#),
    (
        "assistant/message",
        r#"{"turn":1,"step":1,"content":[{"type":"text","text":"Two calls."},{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"rm x"}},{"type":"tool_use","id":"c2","name":"Read","input":{"file_path":"/p/a"}}],"provider":"script","model":"demo","stop_reason":"tool_use","usage":null,"interrupted":false}"#,
    ),
    (
        "tool/call",
        r#"{"turn":1,"step":1,"call_id":"c1","name":"Bash","arguments":"{\"command\":\"rm x\"}","input":{"command":"rm x"}}"#,
    ),
    (
        "hook/invoked",
        r#"{"run_id":"r1","dialect":"codex","event":"PreToolUse","handler":"h","source":"s","command":"guard","turn":1,"call_id":"c1"}"#,
    ),
    (
        "hook/result",
        r#"{"run_id":"r1","ending":"exited","code":2,"decision":"deny","stdout":"","stderr":"not that","duration_ms":5}"#,
    ),
    (
        "tool/gate",
        r#"{"turn":1,"call_id":"c1","stage":"pre-execute","owner":"codex","verdict":"deny","reason":"not that","ms":6}"#,
    ),
    (
        "tool/call",
        r#"{"turn":1,"step":1,"call_id":"c2","name":"Read","arguments":"{\"file_path\":\"/p/a\"}","input":{"file_path":"/p/a"}}"#,
    ),
    (
        "tool/gate",
        r#"{"turn":1,"call_id":"c2","stage":"pre-execute","owner":"permission","verdict":"allow","reason":null,"ms":0}"#,
    ),
    (
        "tool/result",
        r#"{"turn":1,"step":1,"call_id":"c1","content":[{"type":"text","text":"not that"}],"is_error":true,"error":null,"denied_by":"hook","meta":null,"call_seq":10}"#,
    ),
    (
        "tool/result",
        r#"{"turn":1,"step":1,"call_id":"c2","content":[{"type":"text","text":"the text"}],"is_error":false,"error":null,"denied_by":null,"meta":null,"call_seq":14}"#,
    ),
    ("step/end", r#"{"turn":1,"step":1}"#),
    ("turn/end", r#"{"turn":1,"end":{"reason":"completed","how":"normal"}}"#),
];

struct Logs {
    _folder: TempDir,
    state: State,
}

impl Logs {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let (state, _) = State::open(&Environment::made_up(folder.path(), &[])).unwrap();
        Self { _folder: folder, state }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.state.sessions_dir().join(format!("{id}.jsonl"))
    }

    /// A log with the first so many of the events.
    fn add(&self, id: &str, events: usize) -> String {
        let mut text = format!(
            "{{\"type\":\"session\",\"version\":0,\"id\":\"{id}\",\"created_at\":\"2026-11-29T21:00:00.000Z\",\"cwd\":\"/p\"}}\n"
        );
        for (seq, (kind, data)) in EVENTS.iter().take(events).enumerate() {
            let ignorable = if kind.starts_with("hook/") || matches!(*kind, "tool/gate" | "request/sent") {
                "\"ignorable\":true,"
            } else {
                ""
            };
            let time = 1_796_072_400_000 + seq as u64;
            text.push_str(&format!(
                "{{\"seq\":{seq},\"time\":{time},\"type\":\"{kind}\",{ignorable}\"data\":{data}}}\n"
            ));
        }
        std::fs::write(self.path(id), &text).unwrap();
        text
    }

    fn list(&self, format: ListFormat) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        list(&self.state, format, &mut out, &mut err).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn show(&self, id: &str, format: ListFormat) -> Result<(String, String), Fault> {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        show(&self.state, &ShowPlan { id: id.to_owned(), format }, &mut out, &mut err)?;
        let text = String::from_utf8(out).unwrap();
        let dir = self.state.sessions_dir().display().to_string();
        Ok((text.replace(&dir, "…"), String::from_utf8(err).unwrap()))
    }
}

#[test]
fn sessions_of_an_empty_state_are_none() {
    let logs = Logs::new();
    assert_eq!(logs.list(ListFormat::Human), ("no sessions yet\n".to_owned(), String::new()));
    assert_eq!(logs.list(ListFormat::Json), (String::new(), String::new()));
    assert_eq!(logs.show("x", ListFormat::Human).unwrap_err().code, "session-missing");
}

#[test]
fn each_session_is_a_row_or_a_line_and_a_damaged_one_is_named() {
    let logs = Logs::new();
    logs.add(ID, EVENTS.len());
    std::fs::write(logs.path("broken"), "what\n").unwrap();
    let (out, err) = logs.list(ListFormat::Human);
    expect![[r#"
        ID                                    UPDATED (UTC)        TURNS  TITLE
        0199f3a2-0000-7000-8000-000000000001  2026-11-30 21:00:00      1  look around [31mred
                                              /p
    "#]]
    .assert_eq(&out);
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("broken.jsonl"), "{err}");
    let (out, _) = logs.list(ListFormat::Json);
    expect![[r#"
        {"id":"0199f3a2-0000-7000-8000-000000000001","cwd":"/p","title":"look around [31mred","created":"2026-11-29T21:00:00.000Z","updated":"2026-11-30T21:00:00.019Z","turns":1}
    "#]].assert_eq(&out);
}

#[test]
fn a_session_reads_as_turns_with_each_call_and_what_decided_about_it() {
    let logs = Logs::new();
    logs.add(ID, EVENTS.len());
    let (out, err) = logs.show("0199", ListFormat::Human).unwrap();
    assert_eq!(err, "");
    expect![[r#"
        session 0199f3a2-0000-7000-8000-000000000001
          folder  /p
          began   2026-11-29T21:00:00.000Z
          log     …/0199f3a2-0000-7000-8000-000000000001.jsonl
          hook claude-code SessionStart `start`: exited 0, decision context (3 ms)
            stdout
              hello

        turn 1
          prompt
            look
            around [31mred
          context from claude-code:SessionStart
            hello
          assistant
            Two calls.
          call Bash {"command":"rm x"} [c1]
            hook codex PreToolUse `guard`: exited 2, decision deny (5 ms)
              stderr
                not that
            pre-execute deny by codex: not that (6 ms)
            denied
              not that
          call Read {"file_path":"/p/a"} [c2]
            pre-execute allow by permission (0 ms)
            result
              the text
          ended: by itself
    "#]]
    .assert_eq(&out);
}

#[test]
fn json_is_the_log_as_it_stands() {
    let logs = Logs::new();
    let text = logs.add(ID, EVENTS.len());
    assert_eq!(logs.show(ID, ListFormat::Json).unwrap(), (text, String::new()));
}

#[test]
fn an_open_turn_is_shown_and_said() {
    let logs = Logs::new();
    logs.add(ID, 11);
    let (out, err) = logs.show(ID, ListFormat::Human).unwrap();
    assert!(out.ends_with("  call Bash {\"command\":\"rm x\"} [c1]\n    no result\n  not ended\n"), "{out}");
    assert_eq!(
        err,
        "sluice: the log has the open turn 1: the session still runs, or was interrupted; resuming it mends the log\n"
    );
}

#[test]
fn a_corrupt_log_is_a_fault_that_names_it() {
    let logs = Logs::new();
    std::fs::write(logs.path("broken"), "what\nelse\n").unwrap();
    let fault = logs.show("broken", ListFormat::Human).unwrap_err();
    assert_eq!(fault.exit_code(), 2);
    assert!(fault.cause.contains("broken.jsonl"), "{fault}");
}

#[test]
fn a_reader_that_has_gone_ends_it_quietly() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::BrokenPipe))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let logs = Logs::new();
    logs.add(ID, EVENTS.len());
    for fault in [
        list(&logs.state, ListFormat::Json, &mut Gone, &mut Vec::new()).unwrap_err(),
        show(&logs.state, &ShowPlan { id: ID.into(), format: ListFormat::Human }, &mut Gone, &mut Vec::new())
            .unwrap_err(),
    ] {
        assert!(fault.is_quiet());
    }
}
