//! The requests that the script model was sent, and what a provider would refuse in them.

use std::path::Path;

use serde_json::Value;

/// Every request, in order.
pub(crate) fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

/// The ids of a message's blocks of a type.
fn ids<'a>(message: &'a Value, kind: &str, member: &str) -> Vec<&'a str> {
    let of_kind = blocks(message).iter().filter(|block| block["type"] == kind);
    of_kind.map(|block| block[member].as_str().unwrap()).collect()
}

/// Fails on a request in which a call has not exactly one result directly after it, a result has no call, or a message
/// is empty.
#[track_caller]
pub(crate) fn assert_valid(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    let mut rest = messages.as_slice();
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        let content = &message["content"];
        let empty = content.as_array().is_some_and(Vec::is_empty) || content.as_str().is_some_and(str::is_empty);
        assert!(!empty, "an empty message: {messages:#?}");
        let stray = ids(message, "tool_result", "tool_use_id");
        assert!(stray.is_empty(), "results {stray:?} do not follow their call: {messages:#?}");
        let mut calls = ids(message, "tool_use", "id");
        if calls.is_empty() {
            continue;
        }
        assert_eq!(message["role"], "assistant", "{messages:#?}");
        let mut results = Vec::new();
        while results.len() < calls.len()
            && let Some((next, after)) = rest.split_first()
        {
            let found = ids(next, "tool_result", "tool_use_id");
            assert!(!found.is_empty(), "calls {calls:?} lack results: {messages:#?}");
            assert_eq!(found.len(), blocks(next).len(), "something else beside results: {next:#}");
            results.extend(found);
            rest = after;
        }
        calls.sort_unstable();
        results.sort_unstable();
        assert_eq!(calls, results, "each call has one result: {messages:#?}");
    }
}
