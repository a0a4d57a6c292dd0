//! Files through the client: unsaved text is what the model sees, and changes land in the editor.

use serde_json::{Value, json};

use super::client::{Client, updates};
use super::workspace::{Workspace, call, text};

/// A client with these abilities, and a session in it.
fn ready(workspace: &Workspace, fs: &Value) -> (Client, String) {
    let mut client = Client::start(workspace, &["--permission-mode", "acceptEdits"]);
    client.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": { "fs": fs } }));
    let session = client.session(workspace);
    (client, session)
}

fn is_fs(message: &Value) -> bool {
    message["method"].as_str().is_some_and(|method| method.starts_with("fs/"))
}

/// A turn whose file requests are answered by an editor; gives the requests.
fn turn(client: &mut Client, session: &str, mut editor: impl FnMut(&Value) -> Value) -> Vec<Value> {
    let id = client.prompt(session, "go");
    let mut asked = Vec::new();
    loop {
        let last = client.until(|m| is_fs(m) || (m["id"] == id && m.get("method").is_none())).pop().unwrap();
        if !is_fs(&last) {
            assert_eq!(last["result"]["stopReason"], "end_turn", "{last}");
            return asked;
        }
        let answer = editor(&last);
        client.send(&json!({ "jsonrpc": "2.0", "id": last["id"], "result": answer }));
        asked.push(last);
    }
}

/// What the model was told of its calls, in order.
fn told(workspace: &Workspace) -> Vec<String> {
    let last = workspace.requests().pop().unwrap();
    let results = last["messages"].as_array().unwrap().iter().flat_map(|m| m["content"].as_array().cloned());
    results.flatten().filter(|b| b["type"] == "tool_result").map(|b| b["content"].to_string()).collect()
}

#[test]
fn an_unsaved_buffer_is_read_and_an_edit_of_it_lands_in_the_editor() {
    let workspace = Workspace::new(json!([
        call("Read", json!({ "file_path": "a.txt" })),
        call("Edit", json!({ "file_path": "a.txt", "old_string": "unsaved", "new_string": "edited" })),
        call("Write", json!({ "file_path": "sub/new.txt", "content": "fresh\n" })),
        text("done")
    ]));
    let path = workspace.project().join("a.txt");
    std::fs::write(&path, "saved\n").unwrap();
    let (mut client, session) = ready(&workspace, &json!({ "readTextFile": true, "writeTextFile": true }));
    let mut buffer = "unsaved\n".to_owned();
    let asked = turn(&mut client, &session, |request| {
        let params = &request["params"];
        assert_eq!(params["sessionId"], session.as_str());
        let file = std::path::PathBuf::from(params["path"].as_str().unwrap());
        if request["method"] == "fs/write_text_file" {
            let content = params["content"].as_str().unwrap();
            std::fs::write(&file, content).unwrap();
            if file == path {
                buffer = content.to_owned();
            }
            return Value::Null;
        }
        let content = if file == path { buffer.clone() } else { std::fs::read_to_string(&file).unwrap_or_default() };
        json!({ "content": content })
    });
    let written: Vec<_> = asked.iter().filter(|m| m["method"] == "fs/write_text_file").collect();
    assert_eq!(written.len(), 2, "{asked:?}");
    assert_eq!(written[0]["params"]["content"], "edited\n");
    assert_eq!(written[1]["params"]["path"], json!(workspace.project().join("sub/new.txt")));
    assert_eq!((workspace.read("a.txt").as_str(), workspace.read("sub/new.txt").as_str()), ("edited\n", "fresh\n"));
    let told = told(&workspace);
    assert!(told[0].contains("unsaved"), "{told:?}");
}

#[test]
fn a_client_that_does_not_offer_files_is_not_asked_for_any() {
    for fs in [json!({}), json!({ "readTextFile": false, "writeTextFile": false }), json!({ "writeTextFile": true })] {
        let workspace = Workspace::new(json!([
            call("Read", json!({ "file_path": "a.txt" })),
            call("Edit", json!({ "file_path": "a.txt", "old_string": "saved", "new_string": "edited" })),
            text("done")
        ]));
        std::fs::write(workspace.project().join("a.txt"), "saved\n").unwrap();
        let (mut client, session) = ready(&workspace, &fs);
        let asked = turn(&mut client, &session, |request| {
            let file = request["params"]["path"].as_str().unwrap();
            std::fs::write(file, request["params"]["content"].as_str().unwrap()).unwrap();
            json!({})
        });
        let methods: Vec<_> = asked.iter().map(|m| m["method"].as_str().unwrap()).collect();
        let wanted: &[&str] = if fs["writeTextFile"] == true { &["fs/write_text_file"] } else { &[] };
        assert_eq!(methods, wanted, "{fs}");
        assert_eq!(workspace.read("a.txt"), "edited\n");
    }
}

#[test]
fn an_editors_error_is_the_calls_failure_and_the_turn_goes_on() {
    let workspace = Workspace::new(json!([call("Read", json!({ "file_path": "a.txt" })), text("done")]));
    std::fs::write(workspace.project().join("a.txt"), "saved\n").unwrap();
    let (mut client, session) = ready(&workspace, &json!({ "readTextFile": true }));
    let id = client.prompt(&session, "go");
    let request = client.until(is_fs).pop().unwrap();
    let error = json!({ "code": -32603, "message": "the project is closed" });
    client.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
    assert_eq!(client.answer(id).1["result"]["stopReason"], "end_turn");
    let told = told(&workspace);
    assert!(told[0].contains("answered `fs/read_text_file` with error -32603: the project is closed"), "{told:?}");
}

#[test]
fn r_103_a_mute_editor_does_not_outlive_a_cancel() {
    let workspace = Workspace::new(json!([call("Read", json!({ "file_path": "a.txt" })), text("not said")]));
    std::fs::write(workspace.project().join("a.txt"), "saved\n").unwrap();
    let (mut client, session) = ready(&workspace, &json!({ "readTextFile": true }));
    let id = client.prompt(&session, "go");
    let request = client.until(is_fs).pop().unwrap();
    let began = std::time::Instant::now();
    client.cancel(&session);
    let (messages, answer) = client.answer(id);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    // Its own limit is 30 s; a cancel needs none of it.
    assert!(began.elapsed().as_secs() < 25, "{:?}", began.elapsed());
    let withdrawn = messages.iter().find(|m| m["method"] == "$/cancel_request").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    assert_eq!(updates(&messages, "tool_call_update").last().unwrap()["status"], "failed");
    // A late answer is nobody's.
    client.reply(&request, json!({ "content": "late" }));
    client.close_input();
    assert!(client.end().status.success());
}

#[test]
fn r_411_the_fence_holds_for_what_the_editor_would_write() {
    let workspace = Workspace::new(json!([
        call("Read", json!({ "file_path": "a.txt" })),
        call("Edit", json!({ "file_path": "a.txt", "old_string": "saved", "new_string": "edited" })),
        call("Write", json!({ "file_path": "new/b.txt", "content": "x" })),
        text("done")
    ]));
    std::fs::write(workspace.project().join("a.txt"), "saved\n").unwrap();
    let mut client = Client::start(&workspace, &["--permission-mode", "bypassPermissions", "--sandbox", "read-only"]);
    let fs = json!({ "readTextFile": true, "writeTextFile": true });
    client.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": { "fs": fs } }));
    let session = client.session(&workspace);
    let asked = turn(&mut client, &session, |request| {
        let file = request["params"]["path"].as_str().unwrap();
        json!({ "content": std::fs::read_to_string(file).unwrap_or_default() })
    });
    let written: Vec<_> = asked.iter().filter(|m| m["method"] != "fs/read_text_file").collect();
    assert!(written.is_empty(), "{written:?}");
    let told = told(&workspace);
    assert!(told[0].contains("saved"), "{told:?}");
    for denied in &told[1..] {
        assert!(
            denied.contains("The sandbox mode read-only does not let") && denied.contains("be changed"),
            "{told:?}"
        );
    }
    assert_eq!((told.len(), workspace.read("a.txt").as_str()), (3, "saved\n"));
    assert!(!workspace.has("new"));
}
