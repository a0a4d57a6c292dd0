//! What hooks decide, as the client sees it.

use serde_json::{Value, json};

use super::client::{Client, course, said, updates};
use super::workspace::{Workspace, bash, text};

const BYPASS: &[&str] = &["--permission-mode", "bypassPermissions"];

#[test]
fn a_vetoed_prompt_is_cancelled_with_the_reason_shown_and_in_the_metadata() {
    let veto = r#"echo '{"decision":"block","reason":"not on Sundays"}'"#;
    let workspace = Workspace::new(json!([text("never")])).with_hooks(&[("UserPromptSubmit", "", veto)]);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let (messages, answer) = client.turn(&session, "go");
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(said(&messages).contains("not on Sundays"));
    let veto = &answer["result"]["_meta"]["sluice/veto"];
    assert!(veto["reason"].as_str().unwrap().contains("not on Sundays"), "{answer}");
    assert!(veto["by"].is_string());
    assert_eq!(workspace.requests(), Vec::<Value>::new());
}

#[test]
fn a_hook_that_stops_the_turn_ends_it_with_the_reason_shown() {
    let stop = r#"echo '{"continue":false,"stopReason":"budget"}'"#;
    for event in ["PreToolUse", "PostToolUse"] {
        let workspace = Workspace::new(json!([bash("touch t"), text("never")])).with_hooks(&[(event, "Bash", stop)]);
        let (mut client, session) = Client::ready(&workspace, BYPASS);
        let (messages, answer) = client.turn(&session, "go");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{event}");
        assert!(said(&messages).contains("budget"), "{event}: {messages:?}");
        assert_eq!(workspace.requests().len(), 1, "{event}");
    }
}

#[test]
fn a_denied_call_fails_without_starting_and_the_turn_goes_on() {
    let deny = "echo 'no touching' >&2; exit 2";
    let workspace =
        Workspace::new(json!([bash("touch t"), text("then not")])).with_hooks(&[("PreToolUse", "Bash", deny)]);
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let (messages, answer) = client.turn(&session, "go");
    assert_eq!(course(&messages), ["pending", "failed"]);
    assert!(updates(&messages, "tool_call_update")[0]["content"].to_string().contains("no touching"));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(said(&messages).ends_with("then not"), "{}", said(&messages));
    assert!(!workspace.has("t"));
}

#[test]
fn a_rewritten_call_shows_what_really_ran() {
    let rewrite = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"echo new"}}}'"#;
    let workspace =
        Workspace::new(json!([bash("echo old"), text("ok")])).with_hooks(&[("PreToolUse", "Bash", rewrite)]);
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let (messages, _) = client.turn(&session, "go");
    assert_eq!(course(&messages), ["pending", "in_progress", "completed"]);
    let running = &updates(&messages, "tool_call_update")[0];
    assert_eq!((&running["title"], &running["rawInput"]["command"]), (&json!("echo new"), &json!("echo new")));
    let finished = updates(&messages, "tool_call_update").pop().unwrap();
    assert!(finished["content"].to_string().contains("new"), "{finished}");
}

#[test]
fn what_a_hook_tells_the_person_is_a_message_of_its_own_with_its_source() {
    let tell = r#"echo '{"systemMessage":"mind the step"}'"#;
    let workspace = Workspace::new(json!([bash("true"), text("ok")])).with_hooks(&[("PostToolUse", "Bash", tell)]);
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let (messages, _) = client.turn(&session, "go");
    let chunks = updates(&messages, "agent_message_chunk");
    let told: Vec<_> =
        chunks.iter().filter(|c| c["content"]["text"].as_str().unwrap().contains("mind the step")).collect();
    assert_eq!(told.len(), 1, "{chunks:?}");
    assert!(told[0]["content"]["text"].as_str().unwrap().starts_with('['), "{told:?}");
    let same = chunks.iter().filter(|c| c["messageId"] == told[0]["messageId"]).count();
    assert_eq!(same, 1);
}

#[test]
fn a_start_hooks_message_waits_for_the_first_turn() {
    let tell = r#"echo '{"systemMessage":"good morning"}'"#;
    let workspace = Workspace::new(json!([text("hi")])).with_hooks(&[("SessionStart", "", tell)]);
    let mut client = Client::start(&workspace, &[]);
    client.initialize();
    let ids: Vec<_> = (0..20).map(|_| client.request("session/new", json!({ "cwd": workspace.project() }))).collect();
    let mut answered = Vec::new();
    while answered.len() < ids.len() {
        let message = client.next();
        assert!(message.get("method").is_none(), "nothing precedes the answers: {message}");
        answered.push(message["result"]["sessionId"].as_str().unwrap().to_owned());
    }
    let (messages, _) = client.turn(&answered[0], "go");
    assert!(said(&messages).contains("good morning"), "{messages:?}");
}

#[test]
fn held_back_hooks_are_named_in_the_metadata_on_stderr_and_in_the_first_turn() {
    let workspace =
        Workspace::new(json!([text("hi"), text("again")])).with_hooks(&[("SessionStart", "", "touch started")]);
    let model = workspace.model();
    let mut client = Client::bare(workspace.root(), &["--model", &model], &[], super::client::Framing::Lines);
    client.initialize();
    let answer = client.ask("session/new", json!({ "cwd": workspace.project() }));
    let notices = answer["result"]["_meta"]["sluice/notices"].to_string();
    assert!(notices.contains("touch started"), "{answer}");
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    assert!(said(&client.turn(&session, "go").0).contains("touch started"));
    assert_eq!(said(&client.turn(&session, "go").0), "again");
    assert!(!workspace.has("started"));
    client.close_input();
    assert!(client.end().stderr.contains("touch started"));
}
