//! Runs every transcript of `tests/transcripts`.
//!
//! A transcript is read line by line:
//!
//! - `# text` is for the reader;
//! - `! limit 100` sets the longest message, before anything is sent;
//! - `> text` sends a line, `>raw "json string"` exact bytes, `>repeat 1000 a` a line of so many, `>framed
//!   text` a message behind a `Content-Length` header; `>>` in place of `>` sends on without expecting
//!   anything yet;
//! - `< text` is the next message the agent must send;
//! - `= end` ends the input.
//!
//! After the last line the input is closed, and nothing more may come than what is written. With `UPDATE_EXPECT=1`
//! the `<` lines are written anew from what comes. Invariant: every output line is a JSON-RPC 2.0 object.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::fixture::{Editor, options, router};

#[test]
fn every_transcript_plays_as_written() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "the transcripts are missing");
    let mut failures = String::new();
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let played = play(&written, update);
        if update {
            fs::write(&file, played).unwrap();
        } else if played != written {
            writeln!(failures, "{}:\n{played}", file.display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "these went differently (UPDATE_EXPECT=1 writes them anew):\n{failures}");
}

/// Plays a transcript and returns it as it really went.
fn play(written: &str, update: bool) -> String {
    let mut options = options();
    let mut editor = None;
    let mut played = String::new();
    for line in written.lines() {
        if let Some(expected) = line.strip_prefix('<') {
            if update {
                continue;
            }
            let editor: &Editor = editor.as_ref().expect("`<` before the first `>`");
            match editor.receive_within(Duration::from_secs(10)) {
                Some(message) => writeln!(played, "< {}", checked(&message)).unwrap(),
                None => writeln!(played, "(missing) <{expected}").unwrap(),
            }
            continue;
        }
        writeln!(played, "{line}").unwrap();
        if let Some(limit) = line.strip_prefix("! limit ") {
            options.max_message = limit.parse().unwrap();
        } else if line == "= end" {
            editor.as_mut().expect("`=` before the first `>`").close_input();
        } else if let Some(order) = line.strip_prefix('>') {
            let editor = editor.get_or_insert_with(|| Editor::start(router(), options.clone()));
            let sends_on = order.strip_prefix('>');
            send(editor, sends_on.unwrap_or(order));
            if update && sends_on.is_none() {
                while let Some(message) = editor.receive_within(Duration::from_millis(500)) {
                    writeln!(played, "< {}", checked(&message)).unwrap();
                }
            }
        }
    }
    let (rest, _) = editor.expect("a transcript sends something").finish();
    for message in rest {
        writeln!(played, "< {}", checked(&message)).unwrap();
    }
    played
}

fn send(editor: &mut Editor, order: &str) {
    if let Some(text) = order.strip_prefix("raw ") {
        editor.send(serde_json::from_str::<String>(text).unwrap());
    } else if let Some(text) = order.strip_prefix("repeat ") {
        let (count, text) = text.split_once(' ').unwrap();
        editor.send_line(&text.repeat(count.parse().unwrap()));
    } else if let Some(text) = order.strip_prefix("framed ") {
        editor.send_framed(text);
    } else {
        editor.send_line(order.strip_prefix(' ').unwrap_or(order));
    }
}

fn checked(message: &str) -> &str {
    #[derive(Deserialize)]
    struct Version {
        jsonrpc: String,
    }
    let version: Version = serde_json::from_str(message).unwrap();
    assert_eq!(version.jsonrpc, "2.0", "{message}");
    assert!(!message.contains(['\n', '\r']), "{message}");
    message
}
