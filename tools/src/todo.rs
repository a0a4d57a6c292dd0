//! `TodoWrite`: the session's to-do list, replaced as a whole.
//!
//! The list is session state and lives in the log, as the last [`TodoWritten`] of its agent, so that a reopened session
//! has it still. Keys that the tool does not know are kept, none are added.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::ids::Seq;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::log::{EventKind, LogHandle};
use sluice_harness::scene::SessionFacts;
use sluice_harness::tool::{BodyView, CallCard, CallFacts, CallKind, CardItem, Content, Effect, Tool, ToolFailure};

use crate::arguments::schema;
use crate::failure;

/// The list was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoWritten {
    /// The whole new list, as the model gave it.
    pub todos: Json,
    /// The subagent whose list it is; absent for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl EventKind for TodoWritten {
    const TYPE: &'static str = "todo/write";
}

/// The tool. It has no state: the log has.
#[derive(Debug, Default)]
pub struct TodoWrite;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TodoValue {
    old_todos: Json,
    new_todos: Json,
}

impl TodoWrite {
    async fn run(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let scene = body.scene();
        let agent = scene.session.agent.as_ref().map(|agent| agent.id.clone());
        let new = body.input().object().and_then(|input| input.get("todos").cloned());
        let new = new.ok_or_else(|| ToolFailure::new("todos is missing"))?;
        let old = last_list(scene.log, agent.as_deref());
        let event = TodoWritten { todos: new.clone(), agent };
        scene.log.append(&event).map_err(|fault| {
            ToolFailure::coded("LogError", "LOG_WRITE_FAILED", format!("the list could not be kept: {fault}"))
        })?;
        Json::of(&TodoValue { old_todos: old, new_todos: new }).map_err(|fault| failure::of_value(&fault))
    }
}

/// The list as it stands; the main agent and each subagent have one of their own.
fn last_list(log: &LogHandle, agent: Option<&str>) -> Json {
    let events = log.since(Seq(0));
    let written = events.iter().rev().filter(|event| *event.kind == *TodoWritten::TYPE);
    let last = written.filter_map(|event| event.decode::<TodoWritten>()).find(|last| last.agent.as_deref() == agent);
    last.map_or_else(|| schema(&json!([])), |last| last.todos)
}

/// One entry, as far as it is looked at.
struct Entry<'a> {
    content: &'a str,
    status: &'a str,
}

fn entries<'a>(holder: &'a Json, key: &str) -> Vec<Entry<'a>> {
    let text = |entry: &'a serde_json::Value, key: &str| {
        entry.get(key).and_then(serde_json::Value::as_str).unwrap_or_default()
    };
    let list = holder.view().get(key).and_then(serde_json::Value::as_array);
    list.into_iter()
        .flatten()
        .map(|entry| Entry { content: text(entry, "content"), status: text(entry, "status") })
        .collect()
}

/// What makes a list senseless (R-467).
fn check(entries: &[Entry<'_>]) -> Result<(), String> {
    let mut seen = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let content = entry.content.trim();
        if content.is_empty() {
            return Err(format!("the content of entry {} is empty; say what is to be done", at + 1));
        }
        if !seen.insert(content) {
            return Err(format!("entry {} repeats {content:?}; list each task once", at + 1));
        }
    }
    match entries.iter().filter(|entry| entry.status == "in_progress").count() {
        0 | 1 => Ok(()),
        many => Err(format!("{many} entries are in_progress; mark at most one")),
    }
}

impl Tool for TodoWrite {
    fn name(&self) -> &str {
        "TodoWrite"
    }

    fn description(&self) -> &str {
        "Replaces the to-do list of this session. Give the whole list each time. Each task is listed once, and at most \
         one is in progress."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "description": "The whole list.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "content": {"type": "string", "description": "What is to be done."},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                            "activeForm": {"type": "string", "description": "The same as it is being done."}
                        },
                        "required": ["content", "status"]
                    }
                }
            },
            "required": ["todos"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "oldTodos": {"type": "array"},
                "newTodos": {"type": "array"}
            },
            "required": ["oldTodos", "newTodos"]
        }))
    }

    fn normalise(&self, arguments: JsonObject, _session: &SessionFacts) -> Result<JsonObject, String> {
        check(&entries(&arguments.to_json(), "todos"))?;
        Ok(arguments)
    }

    fn facts(&self, _input: &Json) -> CallFacts {
        CallFacts { effect: Effect::Session, ..CallFacts::default() }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { self.run(&body).await })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        let entries = entries(value, "newTodos");
        let count = |status: &str| entries.iter().filter(|entry| entry.status == status).count();
        vec![Block::text(format!(
            "The to-do list has been updated: {} pending, {} in progress, {} completed.",
            count("pending"),
            count("in_progress"),
            count("completed")
        ))]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let lines: Vec<String> = entries(input, "todos")
            .iter()
            .map(|entry| {
                let mark = match entry.status {
                    "completed" => 'x',
                    "in_progress" => '~',
                    _ => ' ',
                };
                format!("[{mark}] {}", entry.content)
            })
            .collect();
        CallCard {
            title: "Update the to-do list".to_owned(),
            kind: CallKind::Think,
            items: vec![CardItem::Text(lines.join("\n"))],
            locations: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[track_caller]
    fn verdict(todos: &str) -> Result<(), String> {
        let input = Json::parse(&format!("{{\"todos\":{todos}}}")).unwrap();
        check(&entries(&input, "todos"))
    }

    #[test]
    fn r_467_a_list_is_unique_non_empty_and_has_one_task_in_progress() {
        let entry = |content: &str, status: &str| format!(r#"{{"content":"{content}","status":"{status}"}}"#);
        let (a, b) = (entry("a", "in_progress"), entry("b", "pending"));
        assert_eq!(verdict("[]"), Ok(()));
        assert_eq!(verdict(&format!("[{a},{b}]")), Ok(()));
        assert!(verdict(&format!("[{}]", entry(" ", "pending"))).unwrap_err().contains("entry 1 is empty"));
        assert!(verdict(&format!("[{a},{}]", entry("a ", "pending"))).unwrap_err().contains("repeats \"a\""));
        assert!(verdict(&format!("[{a},{}]", entry("c", "in_progress"))).unwrap_err().starts_with("2 entries"));
    }
}
