//! The handshake, bad input, and both framings.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, Framing, course, said, updates};
use super::workspace::{Workspace, bash, text};

#[test]
fn initialize_says_what_there_is_whatever_version_is_wanted() {
    let workspace = Workspace::new(json!([]));
    let mut client = Client::start(&workspace, &[]);
    for version in [1, 0, 2, 4711] {
        let answer = client.ask("initialize", json!({ "protocolVersion": version, "unknown": {} }));
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], 1);
        assert_eq!(result["agentInfo"]["name"], "sluice");
        assert_eq!(result["agentCapabilities"]["loadSession"], false);
        let expected = json!({ "image": true, "audio": false, "embeddedContext": true });
        assert_eq!(result["agentCapabilities"]["promptCapabilities"], expected);
        assert_eq!(result["authMethods"], json!([]));
    }
}

#[test]
fn authentication_is_refused_for_any_method() {
    let workspace = Workspace::new(json!([]));
    let mut client = Client::start(&workspace, &[]);
    for params in [json!({ "methodId": "login" }), json!({})] {
        assert_eq!(client.ask("authenticate", params)["error"]["code"], -32602);
    }
}

#[test]
fn a_missing_key_names_the_variable_and_asks_for_a_login() {
    let workspace = Workspace::new(json!([]));
    let flags = ["--model", "deepseek/deepseek-chat"];
    let mut client = Client::bare(workspace.root(), &flags, &[], Framing::Lines);
    assert_eq!(client.initialize()["result"]["protocolVersion"], 1);
    let answer = client.ask("session/new", json!({ "cwd": workspace.project() }));
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("DEEPSEEK_API_KEY"), "{answer}");
}

#[test]
fn without_a_model_the_first_prompt_says_how_to_name_one() {
    let workspace = Workspace::new(json!([]));
    let mut client = Client::bare(workspace.root(), &[], &[], Framing::Lines);
    client.initialize();
    let answer = client.ask("session/new", json!({ "cwd": workspace.project() }));
    let notices = answer["result"]["_meta"]["sluice/notices"].to_string();
    assert!(notices.contains("DEEPSEEK_API_KEY"), "{answer}");
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let id = client.prompt(&session, "hi");
    let first = client.next();
    assert!(first["params"]["update"]["content"]["text"].as_str().unwrap().contains("DEEPSEEK_API_KEY"), "{first}");
    client.cancel(&session);
    client.answer(id);
}

#[test]
fn session_setup_is_lenient_where_editors_are_and_clear_where_it_must_be() {
    let workspace = Workspace::new(json!([]));
    let mut client = Client::start(&workspace, &[]);
    let cwd = workspace.project();
    let server = json!({ "name": "box", "command": "/bin/true", "args": [], "env": [] });
    for params in [json!({ "cwd": cwd }), json!({ "cwd": cwd, "mcpServers": null, "x": 1 })] {
        let answer = client.ask("session/new", params);
        assert!(answer["result"]["sessionId"].is_string(), "{answer}");
    }
    let answer = client.ask("session/new", json!({ "cwd": cwd, "mcpServers": [server] }));
    assert!(answer["result"]["sessionId"].is_string(), "a server that does not speak costs its tools alone: {answer}");
    let table = [
        (json!({ "cwd": cwd, "mcpServers": "no" }), "mcpServers"),
        (json!({ "cwd": "rel" }), "cwd must be absolute"),
        (json!({ "cwd": workspace.root().join("nowhere") }), "does not exist"),
        (json!({ "cwd": workspace.root().join("script.json") }), "is not a folder"),
    ];
    for (params, words) in table {
        let error = client.ask("session/new", params)["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
}

#[test]
fn bad_lines_cost_themselves_alone() {
    let workspace = Workspace::new(json!([]));
    let mut client = Client::start(&workspace, &[]);
    let long = format!("{}\n", "a".repeat(1024 * 1024));
    for line in ["hello from profile\n", "\n", "LANG=x\n", "[1\n", "42\n", "{\"jsonrpc\":\"2.0\"}\n", &long] {
        client.raw(line.as_bytes());
    }
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\r\n");
    let (before, answer) = client.answer(7);
    assert_eq!(answer["result"]["protocolVersion"], 1);
    let codes: Vec<_> = before.iter().map(|m| (m["error"]["code"].as_i64().unwrap(), m["id"].clone())).collect();
    assert!(codes.iter().all(|(code, id)| [-32700, -32600].contains(code) && id.is_null()), "{codes:?}");
    assert_eq!(codes.first().unwrap().0, -32700);
}

#[test]
fn unknown_sessions_and_methods_are_said_and_the_agent_stays() {
    let workspace = Workspace::new(json!([text("hi")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let prompt = json!([{ "type": "text", "text": "x" }]);
    let error = client.ask("session/prompt", json!({ "sessionId": "nope", "prompt": prompt }))["error"].clone();
    assert_eq!((&error["code"], &error["data"]["sessionId"]), (&json!(-32002), &json!("nope")));
    client.cancel("nope");
    for method in ["session/load", "_vendor/thing"] {
        assert_eq!(client.ask(method, json!({ "sessionId": "nope" }))["error"]["code"], -32601);
    }
    let image = json!([{ "type": "image", "data": "", "mimeType": "image/png" }]);
    let audio = json!([{ "type": "audio", "data": "", "mimeType": "audio/wav" }]);
    for (prompt, words) in [(json!([]), "empty"), (image, "an image whose data"), (audio, "audio")] {
        let answer = client.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    assert_eq!(client.turn(&session, "x").1["result"]["stopReason"], "end_turn");
}

/// One conversation; what it shows must not depend on the framing.
fn conversation(framing: Framing) -> (Vec<String>, String, Value) {
    let workspace = Workspace::new(json!([bash("printf 'ä\\nb'"), text("done — ja")]));
    let mut client = Client::framed(&workspace, &["--permission-mode", "bypassPermissions"], framing);
    client.initialize();
    let session = client.session(&workspace);
    let (messages, answer) = client.turn(&session, "los, ärger");
    let finished = updates(&messages, "tool_call_update").pop().unwrap();
    assert!(finished["content"].to_string().contains('ä'), "{finished}");
    (course(&messages), said(&messages), answer["result"].clone())
}

#[test]
fn both_framings_carry_the_same_conversation() {
    let lines = conversation(Framing::Lines);
    assert_eq!(lines.0, ["pending", "in_progress", "completed"]);
    assert_eq!(lines, conversation(Framing::Headers));
}

#[test]
fn initialize_and_a_new_session_do_not_wait_for_a_slow_start_hook() {
    let hooks = [("SessionStart", "", "sleep 3; echo CTX-START")];
    let workspace = Workspace::new(json!([text("hi")])).with_hooks(&hooks);
    let began = Instant::now();
    let (mut client, session) = Client::ready(&workspace, &[]);
    let ready = began.elapsed();
    assert!(ready < Duration::from_millis(2500), "{ready:?}");
    assert_eq!(client.turn(&session, "x").1["result"]["stopReason"], "end_turn");
    assert!(workspace.requests()[0].to_string().contains("CTX-START"));
}

#[test]
fn the_trace_holds_all_three_streams() {
    let workspace = Workspace::new(json!([])).with_settings(&json!({ "hooks": { "NoSuchEvent": [] } }));
    let file = workspace.root().join("trace.jsonl");
    let (mut client, _) = Client::ready(&workspace, &["--trace-wire", file.to_str().unwrap()]);
    client.close_input();
    let ended = client.end();
    assert_eq!(ended.status.code(), Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_stream = |stream: &str| -> Vec<&str> {
        lines.iter().filter(|line| line["stream"] == stream).map(|line| line["text"].as_str().unwrap()).collect()
    };
    assert_eq!(of_stream("stdin").len(), 2, "{text}");
    assert_eq!(of_stream("stdout").len(), 2, "{text}");
    assert!(of_stream("stderr").iter().any(|line| line.contains("NoSuchEvent")), "{text}");
    assert!(ended.stderr.contains("NoSuchEvent"), "{}", ended.stderr);
}
