//! No orphans over ACP: a cancel and a client that dies take along what a command started, daemons too.

use serde_json::json;

use super::client::{Client, eventually, runs};
use super::workspace::{Workspace, bash, text};

const BYPASS: &[&str] = &["--permission-mode", "bypassPermissions"];

/// A command that starts a daemon, deaf to TERM, and stays.
fn daemon(marker: &str) -> String {
    format!("setsid sh -c 'trap \"\" TERM HUP; {marker}; true' >/dev/null 2>&1 & touch begun; wait; sleep 600")
}

#[test]
fn r_430_a_cancel_takes_a_daemon_of_the_command_along() {
    let marker = "sleep 63.1171";
    let workspace = Workspace::new(json!([bash(&daemon(marker)), text("again")]));
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let prompt = client.prompt(&session, "go");
    eventually("the daemon", || workspace.has("begun") && runs(marker));
    client.cancel(&session);
    let (_, answer) = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert!(!runs(marker), "gone when the prompt is answered");
    assert_eq!(client.turn(&session, "go on").1["result"]["stopReason"], "end_turn");
}

#[test]
fn r_437_a_client_that_dies_takes_a_daemon_of_the_command_along() {
    let marker = "sleep 63.1172";
    let workspace = Workspace::new(json!([bash(&daemon(marker)), text("never")]));
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    client.prompt(&session, "go");
    eventually("the daemon", || workspace.has("begun") && runs(marker));
    client.close_input();
    client.end();
    assert!(!runs(marker), "gone before sluice is");
}

#[test]
fn r_437_a_killed_agent_takes_a_daemon_of_the_command_along() {
    for (marker, signal) in [("sleep 63.1173", 9), ("sleep 63.1174", 15)] {
        let workspace = Workspace::new(json!([bash(&daemon(marker)), text("never")]));
        let (mut client, session) = Client::ready(&workspace, BYPASS);
        client.prompt(&session, "go");
        eventually("the daemon", || workspace.has("begun") && runs(marker));
        client.signal(signal);
        eventually("the end of the daemon", || !runs(marker));
    }
}
