//! What a text should hold.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Expectations of one text; all of them count.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Text {
    /// The whole, without final line ends.
    is: Option<String>,
    contains: Vec<String>,
    lacks: Vec<String>,
    /// Each of them exactly once.
    once: Vec<String>,
    /// The text is one JSON value that has these values at these pointers; null where nothing must be.
    json: BTreeMap<String, Value>,
    /// The text is JSON, one a line; these follow one another, with others between.
    lines: Vec<BTreeMap<String, Value>>,
    line_count: Option<usize>,
    byte_count: Option<usize>,
    /// Of a tool's result: whether it is an error.
    error: Option<bool>,
}

impl Text {
    /// Checks a text; `fill` puts folders in place of their names.
    #[track_caller]
    pub(crate) fn check(&self, what: &str, text: &str, fill: &dyn Fn(&str) -> String) {
        let shown = if text.len() > 6000 {
            format!("{}… ({} bytes)", text.chars().take(6000).collect::<String>(), text.len())
        } else {
            text.to_owned()
        };
        if let Some(is) = &self.is {
            assert_eq!(text.trim_end_matches('\n'), fill(is), "{what}");
        }
        for part in &self.contains {
            let part = fill(part);
            assert!(text.contains(&part), "{what} lacks {part:?}:\n{shown}");
        }
        for part in &self.lacks {
            let part = fill(part);
            assert!(!text.contains(&part), "{what} has {part:?}:\n{shown}");
        }
        for part in &self.once {
            let part = fill(part);
            assert_eq!(text.matches(&part).count(), 1, "{what} has {part:?} once:\n{shown}");
        }
        if let Some(count) = self.line_count {
            assert_eq!(text.lines().count(), count, "the lines of {what}:\n{shown}");
        }
        if let Some(count) = self.byte_count {
            assert_eq!(text.len(), count, "the bytes of {what}");
        }
        if !self.json.is_empty() {
            let json = parsed(what, text);
            for (pointer, value) in &self.json {
                assert!(at(&json, pointer, &filled(value, fill)), "{what} at {pointer} is not {value}:\n{json:#}");
            }
        }
        if !self.lines.is_empty() {
            self.check_lines(what, text, fill);
        }
    }

    #[track_caller]
    fn check_lines(&self, what: &str, text: &str, fill: &dyn Fn(&str) -> String) {
        let mut rest = text.lines().map(|line| parsed(what, line));
        for (number, wanted) in self.lines.iter().enumerate() {
            let found = rest.any(|line| wanted.iter().all(|(pointer, value)| at(&line, pointer, &filled(value, fill))));
            assert!(found, "{what} has no line {wanted:?} (expected as number {}) in its place:\n{text}", number + 1);
        }
    }

    /// Whether an error is expected, where the case says so.
    pub(crate) fn error(&self) -> Option<bool> {
        self.error
    }
}

#[track_caller]
fn parsed(what: &str, text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{what} is no JSON ({error}): {text}"))
}

/// Whether a value has this at a pointer. `{"contains": TEXT}` asks for a part, `{"any": true}` for anything.
fn at(json: &Value, pointer: &str, wanted: &Value) -> bool {
    let found = json.pointer(pointer);
    if let Some(part) = wanted.get("contains").and_then(Value::as_str) {
        return found
            .is_some_and(|found| found.as_str().map_or_else(|| found.to_string(), str::to_owned).contains(part));
    }
    if wanted.get("any") == Some(&Value::Bool(true)) {
        return found.is_some_and(|found| !found.is_null());
    }
    found.unwrap_or(&Value::Null) == wanted
}

fn filled(value: &Value, fill: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => fill(text).into(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), filled(value, fill))).collect(),
        other => other.clone(),
    }
}
