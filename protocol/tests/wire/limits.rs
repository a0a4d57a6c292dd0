//! The real size limit, and many things at once.
//!
//! Lives here: what is too big for a transcript. Invariant: the connection lives through all of it.

use std::collections::HashSet;

use serde_json::{Value, json};
use sluice_protocol::Options;

use crate::fixture::{Editor, router};

const LIMIT: usize = 64 * 1024 * 1024;

#[test]
fn a_line_over_64_mib_is_refused_by_name_and_the_connection_lives() {
    let mut editor = Editor::start(router(), Options::default());
    let megabyte = vec![b'a'; 1024 * 1024];
    for _ in 0..65 {
        editor.send(&megabyte);
    }
    editor.send("\n");
    let error: Value = serde_json::from_str(&editor.receive()).unwrap();
    assert_eq!(error["error"]["code"], -32600);
    assert_eq!(error["id"], Value::Null);
    assert!(error["error"]["message"].as_str().unwrap().contains(&LIMIT.to_string()));
    editor.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"nothing"}"#);
    assert_eq!(editor.receive(), r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
}

#[test]
fn a_large_message_passes_in_both_framings() {
    let text = "x".repeat(5_000_000);
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo", "params": [text] }).to_string();
    let expected = json!({ "jsonrpc": "2.0", "id": 1, "result": [text] }).to_string();
    let mut lines = Editor::start(router(), Options::default());
    lines.send_line(&message);
    assert!(lines.receive() == expected);
    let mut headers = Editor::start(router(), Options::default());
    headers.send_framed(&message);
    assert!(headers.receive() == expected);
}

#[test]
fn a_hundred_requests_run_at_once() {
    let mut editor = Editor::start(router(), Options::default());
    for id in 0..100 {
        editor.send_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ask","params":{{}}}}"#));
    }
    let questions: Vec<Value> = (0..100).map(|_| serde_json::from_str(&editor.receive()).unwrap()).collect();
    // All are open now; they are answered from the last to the first.
    for question in questions.iter().rev() {
        let id = &question["id"];
        editor.send_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#));
    }
    let answered: HashSet<i64> = (0..100)
        .map(|_| {
            let answer: Value = serde_json::from_str(&editor.receive()).unwrap();
            assert_eq!(answer["result"], answer["id"], "the question of request n has the id n");
            answer["id"].as_i64().unwrap()
        })
        .collect();
    assert_eq!(answered, (0..100).collect());
}
