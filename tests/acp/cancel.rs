//! Cancelling: at every place where a turn can be, of one session alone, and without an effect on the next prompt.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, course, eventually, runs, said};
use super::workspace::{Workspace, bash, text};

const BYPASS: &[&str] = &["--permission-mode", "bypassPermissions"];
/// The limit is a second; a busy machine gets five times that.
const SOON: Duration = Duration::from_secs(5);

/// Cancels and expects `cancelled` soon; gives what came meanwhile.
fn cancelled(client: &mut Client, session: &str, prompt: i64) -> Vec<Value> {
    let began = Instant::now();
    client.cancel(session);
    let (messages, answer) = client.answer(prompt);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    messages
}

#[test]
fn a_cancelled_stream_stops_and_its_text_stays_in_the_history() {
    let steps = json!([{ "chunks": ["half", "never"], "chunk_delay_ms": 60000 }, text("seven")]);
    let workspace = Workspace::new(steps);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let prompt = client.prompt(&session, "remember 7");
    client.until(|m| m["params"]["update"]["content"]["text"] == "half");
    cancelled(&mut client, &session, prompt);
    let (messages, answer) = client.turn(&session, "what?");
    assert_eq!((said(&messages).as_str(), &answer["result"]["stopReason"]), ("seven", &json!("end_turn")));
    let second = workspace.requests()[1].to_string();
    assert!(second.contains("remember 7") && second.contains("half"), "{second}");
}

#[test]
fn a_cancelled_command_is_killed_and_its_call_closed() {
    let workspace = Workspace::new(json!([bash("touch begun; sleep 61.0417"), text("again")]));
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let prompt = client.prompt(&session, "go");
    eventually("the command", || workspace.has("begun") && runs("sleep 61.0417"));
    let messages = cancelled(&mut client, &session, prompt);
    assert_eq!(course(&messages).last().unwrap(), "failed");
    eventually("the end of the command", || !runs("sleep 61.0417"));
    let (messages, answer) = client.turn(&session, "go on");
    assert_eq!((said(&messages).as_str(), &answer["result"]["stopReason"]), ("again", &json!("end_turn")));
}

#[test]
fn a_cancelled_hook_is_killed_at_every_event() {
    for (event, matcher) in [("UserPromptSubmit", ""), ("PreToolUse", "Bash"), ("PostToolUse", "Bash"), ("Stop", "")] {
        let marker = format!("sleep 62.{}", event.len());
        let command = format!("if [ -e second ]; then exit 0; fi; touch begun; {marker}");
        let workspace =
            Workspace::new(json!([bash("true"), text("x"), text("y")])).with_hooks(&[(event, matcher, &command)]);
        let (mut client, session) = Client::ready(&workspace, BYPASS);
        let prompt = client.prompt(&session, "go");
        eventually(event, || workspace.has("begun") && runs(&marker));
        let messages = cancelled(&mut client, &session, prompt);
        let open: Vec<_> = course(&messages).into_iter().filter(|s| s == "pending" || s == "in_progress").collect();
        assert!(
            open.len() <= 2 && course(&messages).last().is_none_or(|s| s == "failed" || s == "completed"),
            "{event}"
        );
        eventually("the end of the hook", || !runs(&marker));
        std::fs::write(workspace.project().join("second"), "").unwrap();
        assert_eq!(client.turn(&session, "again").1["result"]["stopReason"], "end_turn", "{event}");
    }
}

#[test]
fn a_cancel_that_comes_with_the_prompt_finds_it() {
    for _ in 0..20 {
        let workspace = Workspace::new(json!([{ "text": "x", "delay_ms": 60000 }, text("next")]));
        let (mut client, session) = Client::ready(&workspace, &[]);
        let prompt = client.prompt(&session, "go");
        cancelled(&mut client, &session, prompt);
        if workspace.requests().len() == 1 {
            assert_eq!(said(&client.turn(&session, "again").0), "next");
        }
    }
}

#[test]
fn a_cancel_while_nothing_runs_does_not_touch_the_next_prompt() {
    let workspace = Workspace::new(json!([text("one"), text("two")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    client.cancel(&session);
    assert_eq!(client.turn(&session, "a").1["result"]["stopReason"], "end_turn");
    client.cancel(&session);
    client.cancel(&session);
    let (messages, answer) = client.turn(&session, "b");
    assert_eq!((said(&messages).as_str(), &answer["result"]["stopReason"]), ("two", &json!("end_turn")));
}

#[test]
fn a_cancel_request_for_the_prompt_is_answered_in_acps_words() {
    let workspace = Workspace::new(json!([{ "chunks": ["a", "b"], "chunk_delay_ms": 60000 }, text("next")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let prompt = client.prompt(&session, "go");
    client.until(|m| m["method"] == "session/update");
    client.notify("$/cancel_request", json!({ "requestId": prompt }));
    assert_eq!(client.answer(prompt).1["result"]["stopReason"], "cancelled");
    assert_eq!(said(&client.turn(&session, "again").0), "next");
}

#[test]
fn cancelling_one_session_leaves_the_other_alone() {
    let steps = json!([{ "chunks": ["a", "b", "c"], "chunk_delay_ms": 700 }]);
    let workspace = Workspace::new(steps);
    let (mut client, first) = Client::ready(&workspace, &[]);
    let second = client.session(&workspace);
    let (one, two) = (client.prompt(&first, "go"), client.prompt(&second, "go"));
    let mut seen = client.until(|m| m["params"]["sessionId"] == first.as_str());
    seen.extend(client.until(|m| m["params"]["sessionId"] == second.as_str()));
    client.cancel(&first);
    let (more, answer) = client.answer(one);
    seen.extend(more);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    let (more, answer) = client.answer(two);
    seen.extend(more);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    seen.retain(|m| m["params"]["sessionId"] == second.as_str());
    assert_eq!(said(&seen), "abc");
}

#[test]
fn an_open_question_is_withdrawn_and_a_late_answer_changes_nothing() {
    let workspace = Workspace::new(json!([bash("touch t"), text("next")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let prompt = client.prompt(&session, "go");
    let request = client.until(|m| m["method"] == "session/request_permission").pop().unwrap();
    let messages = cancelled(&mut client, &session, prompt);
    assert_eq!(course(&messages).last().unwrap(), "failed");
    let withdrawn = messages.iter().find(|m| m["method"] == "$/cancel_request").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    client.pick(&request, "allow_once");
    let (messages, answer) = client.turn(&session, "again");
    assert_eq!((said(&messages).as_str(), &answer["result"]["stopReason"]), ("next", &json!("end_turn")));
    assert!(!workspace.has("t"));
}
