//! Questions to the client: announced, self-contained, and answered by an offered option or not at all.

use serde_json::{Value, json};

use super::client::{Client, course, said, updates};
use super::workspace::{Workspace, bash, text};

/// Runs a turn whose one question is answered by `reply`.
fn asked(client: &mut Client, session: &str, reply: impl FnOnce(&mut Client, &Value)) -> (Vec<Value>, Value) {
    let id = client.prompt(session, "go");
    let mut messages = client.until(|m| m["method"] == "session/request_permission");
    let request = messages.last().unwrap().clone();
    reply(client, &request);
    let (rest, answer) = client.answer(id);
    messages.extend(rest);
    (messages, answer)
}

#[test]
fn an_allowed_call_is_pending_until_the_answer_and_runs_then() {
    let workspace = Workspace::new(json!([bash("touch t"), text("ok")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let (messages, answer) = asked(&mut client, &session, |client, request| {
        let params = &request["params"];
        let call = &params["toolCall"];
        assert_eq!(params["sessionId"], session.as_str());
        assert_eq!((&call["title"], &call["status"]), (&json!("touch t"), &json!("pending")));
        assert_eq!((&call["kind"], &call["rawInput"]["command"]), (&json!("execute"), &json!("touch t")));
        assert!(!call["content"].as_array().unwrap().is_empty(), "{call}");
        let kinds: Vec<_> = params["options"].as_array().unwrap().iter().map(|o| o["kind"].clone()).collect();
        assert_eq!(kinds, [json!("allow_once"), json!("allow_always"), json!("reject_once")]);
        client.pick(request, "allow_once");
    });
    assert_eq!(course(&messages), ["pending", "asked", "in_progress", "completed"]);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(workspace.has("t"));
}

#[test]
fn anything_but_an_offered_allow_is_no_consent_and_the_turn_goes_on() {
    let selected = |option: &str| json!({ "result": { "outcome": { "outcome": "selected", "optionId": option } } });
    let answers = [
        selected("reject_once"),
        selected("yes"),
        selected("allow"),
        json!({ "result": { "outcome": { "outcome": "cancelled" } } }),
        json!({ "result": {} }),
        json!({ "result": null }),
        json!({ "error": { "code": -32601, "message": "no such method" } }),
    ];
    for reply in answers {
        let workspace = Workspace::new(json!([bash("touch t"), text("then not")]));
        let (mut client, session) = Client::ready(&workspace, &[]);
        let (messages, answer) = asked(&mut client, &session, |client, request| {
            let mut whole = reply.clone();
            whole["jsonrpc"] = json!("2.0");
            whole["id"] = request["id"].clone();
            client.send(&whole);
        });
        assert_eq!(course(&messages), ["pending", "asked", "failed"], "{reply}");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{reply}");
        assert!(said(&messages).contains("then not"), "{reply}");
        assert!(!workspace.has("t"), "{reply}");
    }
}

#[test]
fn always_means_this_command_in_this_session() {
    let steps = json!([bash("touch t"), bash("touch t"), bash("touch u"), text("ok")]);
    let workspace = Workspace::new(steps);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let id = client.prompt(&session, "go");
    let request = client.until(|m| m["method"] == "session/request_permission").pop().unwrap();
    client.pick(&request, "allow_always");
    // The same command is not asked again; another one is.
    let messages = client.until(|m| m["method"] == "session/request_permission");
    let request = messages.last().unwrap().clone();
    assert_eq!(request["params"]["toolCall"]["rawInput"]["command"], "touch u");
    assert_eq!(updates(&messages, "tool_call").len(), 2);
    client.pick(&request, "reject_once");
    assert_eq!(client.answer(id).1["result"]["stopReason"], "end_turn");
    assert!(workspace.has("t") && !workspace.has("u"));
}

#[test]
fn an_ask_rule_asks_even_when_a_hook_allows_and_offers_no_always() {
    let allow = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;
    let hook = json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": allow }] });
    let settings = json!({ "permissions": { "ask": ["Bash(touch *)"] }, "hooks": { "PreToolUse": [hook] } });
    let workspace = Workspace::new(json!([bash("touch t"), text("ok")])).with_settings(&settings);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let (messages, _) = asked(&mut client, &session, |client, request| {
        let options = request["params"]["options"].to_string();
        assert!(!options.contains("allow_always"), "{options}");
        client.pick(request, "allow_once");
    });
    assert_eq!(course(&messages), ["pending", "asked", "in_progress", "completed"]);
}

#[test]
fn a_question_beyond_its_time_is_withdrawn_and_denied() {
    let workspace = Workspace::new(json!([bash("touch t"), text("ok")]));
    let config = workspace.root().join("home/.config/sluice");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[permissions]\nanswer_timeout = 1\n").unwrap();
    let (mut client, session) = Client::ready(&workspace, &[]);
    let id = client.prompt(&session, "go");
    let request = client.until(|m| m["method"] == "session/request_permission").pop().unwrap();
    let withdrawn = client.until(|m| m["method"] == "$/cancel_request").pop().unwrap();
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    assert_eq!(client.answer(id).1["result"]["stopReason"], "end_turn");
    client.pick(&request, "allow_once");
    assert_eq!(client.ask("session/new", json!({ "cwd": "rel" }))["error"]["code"], -32602);
    assert!(!workspace.has("t"));
}
