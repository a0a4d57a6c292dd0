//! The short way to write a hook, and files as JSON values.
//!
//! `Event[matcher] => command (timeout 5)` is one entry of a settings file. In commands `mark x` appends `x` to the
//! file `marks` of the project and `log NAME` appends the payload as one line to the file NAME.

use serde::Deserialize;
use serde_json::{Value, json};

/// What stands in a settings file: a hook in short, or any members.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Entry {
    Short(String),
    Members(serde_json::Map<String, Value>),
}

/// The text of a settings file of these entries.
#[track_caller]
pub(crate) fn settings(entries: &[Entry]) -> String {
    let mut settings = json!({});
    for entry in entries {
        match entry {
            Entry::Short(text) => {
                let (event, group) = hook(text);
                join(&mut settings, json!({"hooks": {event: [group]}}));
            }
            Entry::Members(members) => join(&mut settings, Value::Object(members.clone())),
        }
    }
    serde_json::to_string_pretty(&settings).unwrap()
}

/// Objects member by member, lists one after the other.
fn join(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                join(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(more)) => into.extend(more),
        (into, more) => *into = more,
    }
}

#[track_caller]
fn hook(text: &str) -> (String, Value) {
    let (head, rest) = text.split_once(" => ").unwrap_or_else(|| panic!("no hook: {text}"));
    let (event, matcher) = match head.split_once('[') {
        Some((event, matcher)) => (event, Some(matcher.strip_suffix(']').unwrap_or_else(|| panic!("no `]`: {text}")))),
        None => (head, None),
    };
    let (command, timeout) = match rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (timeout ")) {
        Some((command, seconds)) => (command, Some(seconds.parse::<serde_json::Number>().unwrap())),
        None => (rest, None),
    };
    let mut handler = json!({"type": "command", "command": spelled_out(command)});
    if let Some(timeout) = timeout {
        handler["timeout"] = timeout.into();
    }
    let mut group = json!({"hooks": [handler]});
    if let Some(matcher) = matcher {
        group["matcher"] = matcher.into();
    }
    (event.to_owned(), group)
}

fn spelled_out(command: &str) -> String {
    let folder = r#""${CLAUDE_PROJECT_DIR:-.}""#;
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    for at in (0..words.len().saturating_sub(1)).rev() {
        // The argument may have the end of a command behind it.
        let end = words[at + 1].find([';', '\'']).unwrap_or(words[at + 1].len());
        let (name, after) = (words[at + 1][..end].to_owned(), words[at + 1][end..].to_owned());
        let replaced = match words[at].as_str() {
            "mark" => format!("echo {name} >> {folder}/marks"),
            "log" => format!("d=$(cat); printf '%s\\n' \"$d\" >> {folder}/{name}"),
            _ => continue,
        };
        words[at] = replaced + &after;
        words.remove(at + 1);
    }
    words.join(" ")
}

/// A file's content: text, lines, or for a name in `.json` any value.
#[track_caller]
pub(crate) fn file_text(name: &str, content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        value if name.ends_with(".json") => value.to_string(),
        Value::Array(lines) => lines.iter().map(|line| format!("{}\n", line.as_str().unwrap())).collect(),
        other => panic!("{name}: a file is text, a list of lines, or JSON in a .json file: {other}"),
    }
}
