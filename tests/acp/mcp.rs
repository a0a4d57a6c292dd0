//! MCP servers that the client names: connected, asked about like any tool, and gone with the session.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::client::{Client, course, eventually, runs, said, updates};
use super::workspace::{Workspace, call, text};

const BOX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/box.py");

fn python() -> Option<String> {
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok();
    let path = found.filter(|output| output.status.success()).map(|output| String::from_utf8(output.stdout).unwrap());
    if path.is_none() {
        println!("skipped: no python3");
    }
    path.map(|path| path.trim().to_owned())
}

fn stdio(python: &str, mode: &[&str]) -> Value {
    let args: Vec<&str> = [BOX].into_iter().chain(mode.iter().copied()).collect();
    json!({ "name": "box", "command": python, "args": args, "env": [{ "name": "WHO", "value": "the client" }] })
}

fn session(client: &mut Client, workspace: &Workspace, servers: &[Value]) -> (String, Value) {
    client.initialize();
    let answer = client.ask("session/new", json!({ "cwd": workspace.project(), "mcpServers": servers }));
    (answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}")).to_owned(), answer)
}

#[test]
fn servers_over_http_are_offered_and_those_over_sse_are_not() {
    let workspace = Workspace::new(json!([]));
    let mut client = Client::start(&workspace, &[]);
    let answer = client.initialize();
    let capabilities = &answer["result"]["agentCapabilities"]["mcpCapabilities"];
    assert_eq!((&capabilities["http"], &capabilities["sse"]), (&json!(true), &json!(false)), "{answer}");
}

#[test]
fn a_clients_server_is_connected_asked_about_and_called() {
    let Some(python) = python() else { return };
    let steps = json!([call("mcp__box__variable", json!({ "name": "WHO" })), text("ok")]);
    let workspace = Workspace::new(steps);
    let mut client = Client::start(&workspace, &[]);
    let (id, _) = session(&mut client, &workspace, &[stdio(&python, &["good"])]);
    let prompt = client.prompt(&id, "go");
    let mut seen = client.until(|message| message["method"] == "session/request_permission");
    let question = seen.last().unwrap().clone();
    assert_eq!(question["params"]["toolCall"]["title"], "box: variable", "{question}");
    client.pick(&question, "allow_once");
    let (rest, answer) = client.answer(prompt);
    seen.extend(rest);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(course(&seen), ["pending", "asked", "in_progress", "completed"], "{seen:?}");
    let finished = updates(&seen, "tool_call_update").pop().unwrap();
    assert!(finished["content"].to_string().contains("the client"), "{finished}");
}

#[test]
fn a_server_of_a_kind_that_is_not_spoken_is_named_and_a_mute_one_is_named_in_the_first_turn() {
    let Some(python) = python() else { return };
    let workspace = Workspace::new(json!([text("ok")]));
    let flags = ["--model", &workspace.model()];
    let variables = [("SLUICE_MCP_STARTUP_TIMEOUT", "1")];
    let mut client = Client::bare(workspace.root(), &flags, &variables, super::client::Framing::Lines);
    let sse = json!({ "type": "sse", "name": "old", "url": "http://127.0.0.1:9/sse", "headers": [] });
    let (id, answer) = session(&mut client, &workspace, &[sse, stdio(&python, &["mute"])]);
    let notices = answer["result"]["_meta"]["sluice/notices"].to_string();
    assert!(notices.contains("`old`") && notices.contains("sse"), "{notices}");
    let (messages, answer) = client.turn(&id, "go");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert!(said(&messages).contains("did not answer within 1 s"), "{}", said(&messages));
}

#[test]
fn a_call_that_is_cancelled_is_over_and_the_server_is_told() {
    let Some(python) = python() else { return };
    let workspace = Workspace::new(json!([call("mcp__box__wait", json!({})), text("never")]));
    let told = workspace.root().join("told");
    let mut client = Client::start(&workspace, &["--permission-mode", "bypassPermissions"]);
    let (id, _) = session(&mut client, &workspace, &[stdio(&python, &["good", told.to_str().unwrap()])]);
    let prompt = client.prompt(&id, "go");
    client.until(|message| message["params"]["update"]["status"] == "in_progress");
    client.cancel(&id);
    let (_, answer) = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    eventually("the server hears of it", || told.exists());
}

#[test]
fn servers_end_with_the_agent_however_it_ends() {
    let Some(python) = python() else { return };
    for end in ["end of input", "TERM", "client death"] {
        let workspace = Workspace::new(json!([text("ok")]));
        let marker = workspace.root().join("marker").display().to_string();
        let mut client = Client::start(&workspace, &[]);
        let (id, _) = session(&mut client, &workspace, &[stdio(&python, &["stubborn", &marker])]);
        client.turn(&id, "go");
        assert!(runs(&marker), "{end}");
        match end {
            "end of input" => client.close_input(),
            "TERM" => client.signal(15),
            // Both of its pipes are gone at once.
            _ => {
                client.close_input();
                client.signal(1);
            }
        }
        let ended = client.end();
        assert!(!runs(&marker), "{end}: a server is left; {}", ended.stderr);
    }
}

/// A server on a loopback port; it ends with the test.
struct HttpBox(Child, String);

impl HttpBox {
    fn start(python: &str, folder: &Path) -> Self {
        let file = folder.join("port");
        let args = [BOX, "http", file.to_str().unwrap()];
        let child = Command::new(python).args(args).stdin(Stdio::null()).spawn().unwrap();
        eventually("the server listens", || file.exists());
        let port = std::fs::read_to_string(file).unwrap();
        Self(child, format!("http://127.0.0.1:{port}/mcp"))
    }
}

impl Drop for HttpBox {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_clients_server_over_http_gets_its_headers_and_a_refused_one_is_named_without_them() {
    let Some(python) = python() else { return };
    for (key, works) in [("open sesame", true), ("wrong-secret", false)] {
        let workspace = Workspace::new(json!([call("mcp__far__put", json!({ "x": "hi" })), text("ok")]));
        let server = HttpBox::start(&python, workspace.root());
        let mut client = Client::start(&workspace, &["--permission-mode", "bypassPermissions"]);
        let headers = json!([{ "name": "X-Key", "value": key }]);
        let far = json!({ "type": "http", "name": "far", "url": server.1, "headers": headers });
        let (id, _) = session(&mut client, &workspace, &[far]);
        let (messages, answer) = client.turn(&id, "go");
        assert_eq!(answer["result"]["stopReason"], "end_turn");
        let seen = format!("{messages:?}");
        if works {
            assert!(seen.contains("ECHO:"), "{seen}");
        } else {
            assert!(said(&messages).contains("MCP server far"), "{seen}");
            assert!(said(&messages).contains("401"), "{seen}");
            assert!(!seen.contains("wrong-secret"), "{seen}");
        }
    }
}
