//! The map from our tools to the names and shapes that Codex hooks know.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sluice_harness::json::Json;

use super::patch;

/// What kind of tool it is to this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Shell,
    Patch,
    Agent,
    Other,
}

/// A call as this dialect's hooks see it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) input: Json,
}

impl Seen {
    /// A call of ours, as seen from the payload's folder.
    pub(crate) fn of(tool: &str, input: &Json, cwd: &Path) -> Self {
        if tool == "Bash" {
            let command = input.str_at("command").unwrap_or_default();
            return Self { kind: Kind::Shell, name: "Bash".to_owned(), input: command_object(command) };
        }
        if let Some(text) = patch::patch_of(tool, input, cwd) {
            return Self { kind: Kind::Patch, name: "apply_patch".to_owned(), input: command_object(&text) };
        }
        if tool == "Agent" || tool == "Task" {
            let input = swapped_type(input, "general-purpose", "default");
            return Self { kind: Kind::Agent, name: "spawn_agent".to_owned(), input };
        }
        Self { kind: Kind::Other, name: tool.to_owned(), input: input.clone() }
    }

    /// The names a matcher may use.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self.kind {
            Kind::Patch => vec!["apply_patch", "Edit", "Write"],
            Kind::Shell | Kind::Agent | Kind::Other => vec![&self.name],
        }
    }

    /// What the model reads of a denial.
    pub(crate) fn denial(&self, reason: &str) -> String {
        match self.kind {
            Kind::Shell | Kind::Patch => {
                let command = self.input.str_at("command").unwrap_or_default();
                format!("Command blocked by PreToolUse hook: {reason}. Command: {command}")
            }
            Kind::Agent | Kind::Other => {
                format!("Tool call blocked by PreToolUse hook: {reason}. Tool: {}", self.name)
            }
        }
    }

    /// The new arguments of our own tool, from what a hook wants in their place.
    ///
    /// # Errors
    /// The whole text for the model when it cannot be.
    pub(crate) fn rewritten(&self, own: &Json, updated: &Json) -> Result<Json, String> {
        let command = || {
            updated
                .str_at("command")
                .ok_or_else(|| "hook returned updatedInput without string field `command`".to_owned())
        };
        match self.kind {
            Kind::Shell => {
                let command = command()?;
                let mut object = own.object().unwrap_or_default();
                object.put("command", command).map_err(|e| e.to_string())?;
                Ok(object.to_json())
            }
            Kind::Patch => {
                if command()? == self.input.str_at("command").unwrap_or_default() {
                    return Ok(own.clone());
                }
                Err("hook returned another patch, and a rewritten patch cannot be expressed here, so nothing was \
                     run; deny the call with a reason instead"
                    .to_owned())
            }
            Kind::Agent if updated.view().is_object() => Ok(swapped_type(updated, "default", "general-purpose")),
            Kind::Other if updated.view().is_object() => Ok(updated.clone()),
            Kind::Agent | Kind::Other if self.name.starts_with("mcp__") => {
                Err("MCP tool arguments must be a JSON object".to_owned())
            }
            Kind::Agent | Kind::Other => Err("tool arguments must be a JSON object".to_owned()),
        }
    }

    /// `tool_response` of a finished call.
    pub(crate) fn response(&self, tool: &str, own: &Json, value: &Json, cwd: &Path, took: Duration) -> Json {
        match self.kind {
            Kind::Shell => text(&combined(value)),
            Kind::Patch => text(&format!(
                "Exit code: 0\nWall time: {} seconds\nOutput:\nSuccess. Updated the following files:\n{}\n",
                tenths(took),
                patch::report_line(tool, own, cwd)
            )),
            Kind::Other if self.name.starts_with("mcp__") && value.view().is_array() => {
                let mut object = sluice_harness::json::JsonObject::new();
                object.set("content", value.clone());
                object.to_json()
            }
            Kind::Agent | Kind::Other => value.clone(),
        }
    }
}

/// Both output streams of a shell call as one text.
fn combined(value: &Json) -> String {
    let mut out = value.str_at("stdout").unwrap_or_default().to_owned();
    let stderr = value.str_at("stderr").unwrap_or_default();
    if !stderr.is_empty() {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(stderr);
    }
    out
}

fn tenths(took: Duration) -> String {
    let tenths = took.as_millis() / 100;
    if tenths.is_multiple_of(10) { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

fn command_object(command: &str) -> Json {
    let mut object = sluice_harness::json::JsonObject::new();
    object.set("command", text(command));
    object.to_json()
}

fn swapped_type(input: &Json, from: &str, to: &str) -> Json {
    match input.object() {
        Some(mut object) if input.view().get("subagent_type") == Some(&Value::from(from)) => {
            object.set("subagent_type", text(to));
            object.to_json()
        }
        Some(_) | None => input.clone(),
    }
}

fn text(text: &str) -> Json {
    // A text always has a JSON form.
    Json::of(text).unwrap_or_else(|_| Json::null())
}
