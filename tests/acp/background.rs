//! Shells in the background of an editor's session: they outlive turns, and nothing outlives the session.

use std::time::Duration;

use serde_json::json;

use super::client::{Client, eventually, runs, updates};
use super::workspace::{Workspace, call, text};

const BYPASS: &[&str] = &["--permission-mode", "bypassPermissions"];

fn in_background(command: &str) -> serde_json::Value {
    call("Bash", json!({ "command": command, "run_in_background": true }))
}

#[test]
fn an_end_between_turns_wakes_nobody_and_comes_with_the_next_prompt() {
    let steps = json!([in_background("read x < go; exit 5"), text("started"), text("noticed")]);
    let workspace = Workspace::new(steps);
    let go = workspace.project().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let (messages, _) = client.turn(&session, "go");
    let shown = updates(&messages, "tool_call_update").pop().unwrap();
    assert!(shown["content"][0]["content"]["text"].as_str().unwrap().contains("bash_1"), "{shown}");
    std::fs::write(&go, "\n").unwrap();
    let kind = |event: &serde_json::Value| event["kind"] == "shell/ended" || event["type"] == "shell/ended";
    eventually("its end", || workspace.log().iter().any(kind));
    assert_eq!(workspace.requests().len(), 2, "nobody was woken");
    client.turn(&session, "and now?");
    let requests = workspace.requests();
    assert_eq!(requests.len(), 3);
    let last = requests[2]["messages"].to_string();
    assert!(last.contains("The background shell bash_1") && last.contains("exit code 5"), "{last}");
    assert!(!requests[1]["messages"].to_string().contains("has ended"));
}

#[test]
fn a_cancelled_turn_leaves_them_and_the_end_of_the_input_does_not() {
    let marker = "sleep 65.0733";
    let steps = json!([
        in_background(&format!("trap '' TERM; {marker}; {marker}")),
        call("Bash", json!({ "command": "touch begun; sleep 66.0733" })),
    ]);
    let workspace = Workspace::new(steps).with_hooks(&[("SessionEnd", "", "pgrep -f '[s]leep 65.0733' > alive")]);
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let prompt = client.prompt(&session, "go");
    eventually("both commands", || workspace.has("begun") && runs(marker));
    client.cancel(&session);
    let (_, answer) = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(!runs("sleep 66.0733"));
    assert!(runs(marker), "it belongs to the session, not to the turn");
    client.close_input();
    let ended = client.end();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    assert!(!runs(marker));
    assert!(!workspace.read("alive").is_empty(), "the end hooks come first");
}
