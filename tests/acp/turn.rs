//! Turns: what is shown, in which order, and that nothing follows the answer.

use serde_json::{Value, json};

use super::client::{Client, course, said, updates};
use super::workspace::{Workspace, bash, call, text};

const BYPASS: &[&str] = &["--permission-mode", "bypassPermissions"];

#[test]
fn a_turn_shows_thought_text_and_the_call_before_its_answer() {
    let steps = json!([
        { "thinking": "hm", "text": "Looking.",
          "tool_calls": [{ "id": "t1", "name": "Bash", "input": { "command": "printf out" } }] },
        text("All done."),
    ]);
    let workspace = Workspace::new(steps);
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let (messages, answer) = client.turn(&session, "go");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(messages.iter().all(|m| m["params"]["sessionId"] == session.as_str()), "{messages:?}");
    assert_eq!(course(&messages), ["pending", "in_progress", "completed"]);
    assert_eq!(said(&messages), "Looking.All done.");
    assert_eq!(updates(&messages, "agent_thought_chunk")[0]["content"]["text"], "hm");
    let pending = &updates(&messages, "tool_call")[0];
    assert_eq!((&pending["toolCallId"], &pending["kind"]), (&json!("t1"), &json!("execute")));
    assert_eq!((&pending["title"], &pending["rawInput"]["command"]), (&json!("printf out"), &json!("printf out")));
    let finished = updates(&messages, "tool_call_update").pop().unwrap();
    assert!(finished["content"][0]["content"]["text"].as_str().unwrap().contains("out"), "{finished}");
    let chunks = updates(&messages, "agent_message_chunk");
    assert!(chunks.iter().all(|c| c["messageId"].is_string()), "{chunks:?}");
    assert_ne!(chunks.first().unwrap()["messageId"], chunks.last().unwrap()["messageId"]);
    // Nothing of the turn follows its answer: the next thing to come is the answer to the next request.
    let id = client.request("session/new", json!({ "cwd": workspace.project() }));
    assert_eq!(client.next()["id"], id);
}

#[test]
fn a_failed_command_shows_its_output_and_exit_code() {
    let workspace = Workspace::new(json!([bash("printf 'a\\033[31mb'; exit 3"), text("ok")]));
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let (messages, _) = client.turn(&session, "go");
    assert_eq!(course(&messages), ["pending", "in_progress", "failed"]);
    assert!(updates(&messages, "tool_call")[0]["title"].as_str().unwrap().contains("printf"));
    let shown = updates(&messages, "tool_call_update").pop().unwrap()["content"].to_string();
    assert!(shown.contains('a') && shown.contains('b') && shown.contains('3'), "{shown}");
}

#[test]
fn edits_are_shown_as_diffs_with_absolute_paths() {
    let workspace = Workspace::new(json!([]));
    let file = workspace.project().join("f.txt");
    let steps = json!([
        call("Write", json!({ "file_path": file, "content": "one\n" })),
        call("Edit", json!({ "file_path": file, "old_string": "one", "new_string": "two" })),
        call("Edit", json!({ "file_path": file, "old_string": "nowhere", "new_string": "x" })),
        text("ok"),
    ]);
    let script = json!({ "steps": steps });
    std::fs::write(workspace.root().join("script.json"), script.to_string()).unwrap();
    let (mut client, session) = Client::ready(&workspace, BYPASS);
    let (messages, _) = client.turn(&session, "go");
    // What a client shows at the end: the last content that each call was given.
    let mut shown: Vec<(String, Value)> = Vec::new();
    for message in messages.iter().map(|m| &m["params"]["update"]).filter(|u| u["toolCallId"].is_string()) {
        let id = message["toolCallId"].as_str().unwrap().to_owned();
        if let Some(content) = message.get("content") {
            shown.retain(|(of, _)| *of != id);
            shown.push((id, content.clone()));
        }
    }
    let diff = |index: usize| shown[index].1.as_array().unwrap().iter().find(|c| c["type"] == "diff").cloned();
    let (created, edited) = (diff(0).unwrap(), diff(1).unwrap());
    assert_eq!(created["path"], file.to_str().unwrap());
    assert!(created["oldText"].is_null());
    assert_eq!(created["newText"], "one\n");
    assert!(edited["oldText"].as_str().unwrap().contains("one"), "{edited}");
    assert!(edited["newText"].as_str().unwrap().contains("two"), "{edited}");
    assert_eq!(diff(2), None, "a failed edit shows no diff");
    assert_eq!(course(&messages).last().unwrap(), "failed");
    assert_eq!(workspace.read("f.txt"), "two\n");
}

#[test]
fn a_todo_list_becomes_a_plan() {
    let todos = json!([{ "content": "a", "status": "completed" }, { "content": "b", "status": "pending" }]);
    let workspace = Workspace::new(json!([call("TodoWrite", json!({ "todos": todos })), text("ok")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let (messages, _) = client.turn(&session, "go");
    let plan = &updates(&messages, "plan")[0];
    assert_eq!(plan["entries"][1], json!({ "content": "b", "priority": "medium", "status": "pending" }));
}

#[test]
fn five_thousand_chunks_come_whole_and_before_the_answer() {
    let workspace = Workspace::new(json!([{ "repeat": { "chunk": "0123456789", "times": 5000 } }]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let (messages, answer) = client.turn(&session, "go");
    assert_eq!(said(&messages), "0123456789".repeat(5000));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(client.ask("session/new", json!({ "cwd": "rel" }))["error"]["code"], -32602);
}

#[test]
fn usage_is_shown_where_the_window_is_known() {
    let workspace = Workspace::new(json!([]));
    let step = json!({ "text": "x", "usage": { "input_tokens": 30, "output_tokens": 5 } });
    let script = json!({ "steps": [step], "context_window": 1000 });
    std::fs::write(workspace.root().join("script.json"), script.to_string()).unwrap();
    let (mut client, session) = Client::ready(&workspace, &[]);
    let (messages, _) = client.turn(&session, "go");
    let usage = &updates(&messages, "usage_update")[0];
    assert_eq!((&usage["used"], &usage["size"]), (&json!(35), &json!(1000)));
}

#[test]
fn links_and_embedded_text_reach_the_model_whole() {
    let workspace = Workspace::new(json!([text("ok")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let long = "x".repeat(1024 * 1024);
    let prompt = json!([
        { "type": "text", "text": "read this" },
        { "type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs" },
        { "type": "resource", "resource": { "uri": "file:///w/b.md", "text": long } },
    ]);
    let answer = client.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let request = workspace.requests()[0].to_string();
    assert!(request.contains("file:///w/a.rs") && request.contains("file:///w/b.md") && request.contains(&long));
}

#[test]
fn a_failing_model_is_an_error_with_its_code() {
    let workspace = Workspace::new(json!([{ "error": { "kind": "auth", "message": "the key was refused" } }]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let error = client.turn(&session, "go").1["error"].clone();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32603), &json!("auth")));
    assert!(error["message"].as_str().unwrap().contains("the key was refused"), "{error}");
}

#[test]
fn other_ends_have_their_stop_reasons() {
    for (reason, expected) in [("max_tokens", "max_tokens"), ("refusal", "refusal")] {
        let workspace = Workspace::new(json!([{ "text": "x", "stop_reason": reason }]));
        let (mut client, session) = Client::ready(&workspace, &[]);
        assert_eq!(client.turn(&session, "go").1["result"]["stopReason"], expected);
    }
    let workspace = Workspace::new(json!([bash("true"), bash("true"), text("never")]));
    let (mut client, session) =
        Client::ready(&workspace, &["--permission-mode", "bypassPermissions", "--max-turns", "1"]);
    assert_eq!(client.turn(&session, "go").1["result"]["stopReason"], "max_turn_requests");
}

#[test]
fn a_second_prompt_in_a_running_session_is_refused_and_the_first_goes_on() {
    let steps = json!([{ "chunks": ["a", "b"], "chunk_delay_ms": 1500 }, text("later")]);
    let workspace = Workspace::new(steps);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let first = client.prompt(&session, "one");
    client.until(|m| m["method"] == "session/update");
    let second = client.prompt(&session, "two");
    let (mut messages, answer) = client.answer(second);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    let (rest, answer) = client.answer(first);
    messages.extend(rest);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(said(&messages), "b");
    assert_eq!(said(&client.turn(&session, "three").0), "later");
}
