//! A person who is not looking is called: Notification hooks, when a question stands and when a session waits.

use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, Framing};
use super::workspace::{Workspace, bash, text};

/// Far beyond any limit that a test means.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A hook that hands its payload to the test, through a pipe in the project.
struct Told(Receiver<Value>);

impl Told {
    fn open(workspace: &Workspace, name: &str) -> Self {
        let path: PathBuf = workspace.project().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            while let Ok(text) = std::fs::read_to_string(&path) {
                let payload =
                    serde_json::from_str(&text).unwrap_or_else(|why| json!({ "no payload": why.to_string() }));
                if sender.send(payload).is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    fn next(&self) -> Value {
        self.0.recv_timeout(WATCHDOG).expect("the hook was never run")
    }
}

fn ready(workspace: &Workspace, variables: &[(&str, &str)]) -> (Client, String) {
    let model = workspace.model();
    let flags = ["--model", model.as_str(), "--trust-hooks"];
    let mut client = Client::bare(workspace.root(), &flags, variables, Framing::Lines);
    client.initialize();
    let session = client.session(workspace);
    (client, session)
}

#[test]
fn a_question_that_stands_runs_the_notification_hooks_and_is_answered_all_the_same() {
    let workspace = Workspace::new(json!([bash("touch t"), text("ok")])).with_hooks(&[
        ("Notification", "permission_prompt", "cat > told"),
        ("Notification", "idle_prompt", "touch wrong"),
    ]);
    let told = Told::open(&workspace, "told");
    let (mut client, session) = ready(&workspace, &[("SLUICE_NOTIFY_PERMISSION_AFTER", "0.05")]);
    let id = client.prompt(&session, "go");
    let request = client.until(|m| m["method"] == "session/request_permission").pop().unwrap();
    let payload = told.next();
    assert_eq!(payload["hook_event_name"], "Notification");
    assert_eq!(payload["notification_type"], "permission_prompt");
    assert_eq!(payload["message"], "Claude needs your permission");
    assert_eq!(payload["session_id"], session.as_str());
    assert!(payload["prompt_id"].is_string(), "{payload}");
    assert!(payload.get("permission_mode").is_none(), "{payload}");
    client.pick(&request, "allow_once");
    assert_eq!(client.answer(id).1["result"]["stopReason"], "end_turn");
    assert!(workspace.has("t") && !workspace.has("wrong"));
    client.close_input();
    client.end();
    let log = workspace.log();
    let asked = log.iter().filter(|e| e["type"] == "approval/decided").map(|e| &e["data"]["by"]).collect::<Vec<_>>();
    assert_eq!(asked, [&json!("client")]);
    let kinds = |kind: &str| log.iter().filter(|e| e["type"] == kind && e.to_string().contains("Notification")).count();
    assert_eq!(kinds("hook/invoked"), 1);
}

#[test]
fn a_session_that_waits_for_a_prompt_runs_the_notification_hooks_once_a_turn() {
    let workspace =
        Workspace::new(json!([text("one"), text("two")])).with_hooks(&[("Notification", "idle_prompt", "cat > told")]);
    let told = Told::open(&workspace, "told");
    let (mut client, session) = ready(&workspace, &[("SLUICE_NOTIFY_IDLE_AFTER", "0.05")]);
    for _ in 0..2 {
        client.turn(&session, "go");
        let payload = told.next();
        assert_eq!(payload["notification_type"], "idle_prompt");
        assert_eq!(payload["message"], "Claude is waiting for your input");
        assert!(payload["prompt_id"].is_string(), "{payload}");
    }
    client.close_input();
    client.end();
}

#[test]
fn a_question_that_is_answered_at_once_calls_nobody() {
    let workspace =
        Workspace::new(json!([bash("touch t"), text("ok")])).with_hooks(&[("Notification", "", "touch wrong")]);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let id = client.prompt(&session, "go");
    let request = client.until(|m| m["method"] == "session/request_permission").pop().unwrap();
    client.pick(&request, "allow_once");
    client.answer(id);
    client.close_input();
    client.end();
    assert!(workspace.has("t") && !workspace.has("wrong"));
    assert!(workspace.log().iter().all(|e| e["type"] != "hook/invoked"));
}
