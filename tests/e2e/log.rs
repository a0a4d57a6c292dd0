//! What must hold of every session log, and a reader for tests.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

/// A session's events.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) header: Value,
    pub(crate) events: Vec<Value>,
}

impl Log {
    #[track_caller]
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'), "the log {} ends within a line", path.display());
        let mut lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")));
        let header = lines.next().expect("a header");
        Self { header, events: lines.collect() }
    }

    /// The data of all events of a kind.
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).map(|event| &event["data"]).collect()
    }

    /// The kinds in order.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.events.iter().filter_map(|event| event["type"].as_str()).collect()
    }

    /// The result of a call, and its text.
    #[track_caller]
    pub(crate) fn result(&self, call: &str) -> (&Value, String) {
        let result = self.of("tool/result").into_iter().find(|data| data["call_id"] == call);
        let result = result.unwrap_or_else(|| panic!("no result of {call} in {:?}", self.kinds()));
        (result, texts(&result["content"]).join("\n"))
    }

    /// Each hook that ran, as `Event:decision`.
    pub(crate) fn hooks(&self) -> Vec<String> {
        let invoked: HashMap<&str, &str> = self
            .of("hook/invoked")
            .into_iter()
            .map(|hook| (hook["run_id"].as_str().unwrap(), hook["event"].as_str().unwrap()))
            .collect();
        self.of("hook/result")
            .into_iter()
            .map(|result| {
                let event = invoked[result["run_id"].as_str().unwrap()];
                format!("{event}:{}", result["decision"].as_str().unwrap())
            })
            .collect()
    }

    /// Checks the pairing and the order that every closed log has.
    #[track_caller]
    pub(crate) fn assert_closed(&self) {
        assert_eq!(self.header["type"], "session", "{}", self.header);
        for (at, event) in self.events.iter().enumerate() {
            assert_eq!(event["seq"], at, "events are numbered without a gap: {event}");
        }
        let calls: Vec<&Value> = self.of("tool/call").iter().map(|call| &call["call_id"]).collect();
        let mut results: Vec<&Value> = self.of("tool/result").iter().map(|result| &result["call_id"]).collect();
        let asked: Vec<&Value> = self
            .of("assistant/message")
            .iter()
            .filter_map(|message| message["content"].as_array())
            .flatten()
            .filter(|block| block["type"] == "tool_use")
            .map(|block| &block["id"])
            .collect();
        for call in &asked {
            assert_eq!(results.iter().filter(|id| id == &call).count(), 1, "one result of {call}");
        }
        results.retain(|id| !asked.contains(id));
        assert!(results.is_empty(), "results of no call: {results:?}");
        assert!(calls.iter().all(|call| asked.contains(call)), "calls that no model made: {calls:?}");
        let invoked = self.of("hook/invoked").len();
        assert_eq!(
            self.of("hook/result").len(),
            invoked,
            "each hook that was started has its result: {:?}",
            self.kinds()
        );
        for (open, close) in [("turn/start", "turn/end"), ("step/start", "step/end")] {
            let mut depth = 0;
            for kind in self.kinds() {
                depth += i32::from(kind == open) - i32::from(kind == close);
                assert!((0..=1).contains(&depth), "{open} and {close} alternate: {:?}", self.kinds());
            }
            assert_eq!(depth, 0, "{open} has its {close}: {:?}", self.kinds());
        }
    }
}

/// Every text of a value, at any depth.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => {
            members.iter().filter(|(name, _)| *name != "type").flat_map(|(_, value)| texts(value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
