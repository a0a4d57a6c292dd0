//! The process: it ends with its input, on a signal and without a reader, and takes everything with it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::client::{Client, eventually, runs};
use super::workspace::{Workspace, bash, text};

const BYPASS: &[&str] = &["--permission-mode", "bypassPermissions"];
/// The limit is a second or two; a busy machine gets five times that.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn the_end_of_the_input_ends_an_idle_agent_with_0() {
    let workspace = Workspace::new(json!([text("x")])).with_hooks(&[("SessionEnd", "", "touch ended")]);
    let (mut client, session) = Client::ready(&workspace, &[]);
    client.turn(&session, "go");
    client.close_input();
    let ended = client.end();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.took < SOON, "{:?}", ended.took);
    assert_eq!(ended.stderr, "");
    assert!(workspace.has("ended"));
}

#[test]
fn the_end_of_the_input_cancels_a_running_command_and_runs_the_end_hooks() {
    let hooks = [("SessionEnd", "", "sleep 1; touch ended")];
    let workspace = Workspace::new(json!([bash("touch begun; sleep 63.0417")])).with_hooks(&hooks);
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let prompt = client.prompt(&session, "go");
    eventually("the command", || workspace.has("begun") && runs("sleep 63.0417"));
    client.close_input();
    let ended = client.end();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.took < SOON, "{:?}", ended.took);
    let answer = ended.messages.iter().find(|m| m["id"] == prompt && m.get("method").is_none()).unwrap();
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(!runs("sleep 63.0417"));
    assert!(workspace.has("ended"));
    let log = workspace.log();
    let end = log.iter().find(|e| e["kind"] == "turn/end" || e["type"] == "turn/end").unwrap();
    assert!(end.to_string().contains("cancelled"), "{end}");
}

#[test]
fn a_signal_ends_it_with_the_signals_code_and_takes_the_children_along() {
    for (number, code) in [(15, 143), (2, 130)] {
        let marker = format!("sleep 64.{number}");
        let command = format!("touch begun; {marker}");
        let workspace = Workspace::new(json!([bash(&command)])).with_hooks(&[("SessionEnd", "", "touch ended")]);
        let (mut client, session) = Client::ready(&workspace, BYPASS);
        client.prompt(&session, "go");
        eventually("the command", || workspace.has("begun") && runs(&marker));
        client.signal(number);
        let ended = client.end();
        assert_eq!(ended.status.code(), Some(code));
        assert!(ended.took < SOON, "{:?}", ended.took);
        assert!(!runs(&marker));
        assert!(workspace.has("ended"));
    }
}

#[test]
fn a_client_that_stops_reading_does_not_keep_it_alive() {
    let workspace = Workspace::new(json!([{ "repeat": { "chunk": "0123456789abcdef", "times": 200_000 } }]));
    let model = workspace.model();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["acp", "--model", &model])
        .env("HOME", workspace.root().join("home"))
        .env("XDG_STATE_HOME", workspace.root().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let cwd = workspace.project();
    let setup = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": { "cwd": cwd } });
    std::io::Write::write_all(&mut stdin, format!("{setup}\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" {
        stdout.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    let session = &answer["result"]["sessionId"];
    let content = json!([{ "type": "text", "text": "go" }]);
    let params = json!({ "sessionId": session, "prompt": content });
    let prompt = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params });
    std::io::Write::write_all(&mut stdin, format!("{prompt}\n").as_bytes()).unwrap();
    // Some of the stream is read, so the turn runs; then nobody reads any more, and the input ends.
    let mut some = vec![0; 100_000];
    stdout.read_exact(&mut some).unwrap();
    drop(stdin);
    let began = std::time::Instant::now();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    drop(stdout);
}

#[test]
fn a_closed_output_ends_it() {
    let workspace = Workspace::new(json!([text("x")]));
    let model = workspace.model();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["acp", "--model", &model])
        .env("HOME", workspace.root().join("home"))
        .env("XDG_STATE_HOME", workspace.root().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
    std::io::Write::write_all(&mut stdin, format!("{ask}\n").as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn requests_that_are_piped_in_at_once_are_all_answered() {
    let workspace = Workspace::new(json!([text("x")]));
    let mut client = Client::start(&workspace, &[]);
    let ids: Vec<_> = (0..50).map(|_| client.request("initialize", json!({ "protocolVersion": 1 }))).collect();
    client.close_input();
    let ended = client.end();
    let mut answered: Vec<_> = ended.messages.iter().map(|m| m["id"].as_i64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
}
