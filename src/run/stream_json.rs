//! `stream-json`: one JSON object a line, in the shapes that `claude -p --output-format stream-json --verbose` prints.
//!
//! A pure projection of the session log, so that a line is there as soon as its event is.

use std::collections::HashMap;

use serde_json::{Value, json};
use sluice_bridges::core::record::{HookInvoked, HookResult};
use sluice_harness::content::Block;
use sluice_harness::ids::{CallId, SessionId};
use sluice_harness::log::Logged;
use sluice_harness::log::event::{AssistantMessage, ToolCall, ToolResult, UserMessage};
use sluice_harness::seam::live::Notice;

use super::result::{UsageWire, stop_word};

fn uuid() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// What the first line says of the run.
pub(crate) struct Init<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) cwd: String,
    pub(crate) tools: Vec<String>,
    pub(crate) model: String,
    pub(crate) mode: String,
    /// Their names; none is connected yet.
    pub(crate) mcp_servers: &'a [String],
}

/// The `system/init` line.
pub(crate) fn init(init: &Init<'_>) -> String {
    let server = |name: &String| json!({ "name": name, "status": "pending" });
    json!({
        "type": "system",
        "subtype": "init",
        "cwd": init.cwd,
        "session_id": init.session,
        "tools": init.tools,
        "mcp_servers": init.mcp_servers.iter().map(server).collect::<Vec<_>>(),
        "model": init.model,
        "permissionMode": init.mode,
        "slash_commands": [],
        "apiKeySource": "none",
        "output_style": "default",
        "uuid": uuid(),
    })
    .to_string()
}

/// The `system/informational` line of a sentence for the user.
pub(crate) fn informational(session: &SessionId, notice: &Notice) -> String {
    let level = match notice.level {
        sluice_harness::seam::live::NoticeLevel::Info => "notice",
        sluice_harness::seam::live::NoticeLevel::Warning => "warning",
        sluice_harness::seam::live::NoticeLevel::Error => "error",
    };
    json!({
        "type": "system",
        "subtype": "informational",
        "content": super::notice_text(notice),
        "level": level,
        "session_id": session,
        "uuid": uuid(),
    })
    .to_string()
}

/// Whether hooks' own lines are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookLines {
    /// They are.
    Shown,
    /// They are not.
    Left,
}

/// The projection of a session's events into lines.
pub(crate) struct Lines {
    session: SessionId,
    hooks: HookLines,
    /// Hooks that were started and have not answered.
    invoked: HashMap<String, HookInvoked>,
    /// Tool names by call, for hooks' display names.
    tools: HashMap<CallId, String>,
}

impl Lines {
    /// A projection that has seen nothing yet.
    pub(crate) fn new(session: SessionId, hooks: HookLines) -> Self {
        Self { session, hooks, invoked: HashMap::new(), tools: HashMap::new() }
    }

    /// The line of an event, where it has one.
    pub(crate) fn of(&mut self, event: &Logged) -> Option<String> {
        let session = &self.session;
        if let Some(message) = event.decode::<AssistantMessage>() {
            return assistant(session, &message);
        }
        if let Some(result) = event.decode::<ToolResult>() {
            return serde_json::to_string(&ToolResultLine::of(session, &result)).ok();
        }
        if let Some(message) = event.decode::<UserMessage>() {
            // A person's own prompt is not echoed; what hooks put in the user's place is.
            return (message.source != "user").then(|| synthetic(session, &message));
        }
        if let Some(call) = event.decode::<ToolCall>() {
            self.tools.insert(call.call_id, call.name);
            return None;
        }
        if self.hooks == HookLines::Left {
            return None;
        }
        if let Some(invoked) = event.decode::<HookInvoked>() {
            let line = self.hook_line("hook_started", &invoked, None);
            self.invoked.insert(invoked.run_id.clone(), invoked);
            return Some(line);
        }
        let result = event.decode::<HookResult>()?;
        let invoked = self.invoked.remove(&result.run_id)?;
        Some(self.hook_line("hook_response", &invoked, Some(&result)))
    }

    fn hook_line(&self, subtype: &str, invoked: &HookInvoked, result: Option<&HookResult>) -> String {
        let subject = invoked.call_id.as_ref().and_then(|id| self.tools.get(id));
        let name = subject.map_or_else(|| invoked.event.clone(), |tool| format!("{}:{tool}", invoked.event));
        let mut line = json!({
            "type": "system",
            "subtype": subtype,
            "hook_id": invoked.run_id,
            "hook_name": name,
            "hook_event": invoked.event,
            "dialect": invoked.dialect,
            "source": invoked.source,
        });
        if let (Some(result), Some(members)) = (result, line.as_object_mut()) {
            members.insert("exit_code".to_owned(), json!(result.code));
            members.insert("outcome".to_owned(), outcome(result).into());
            members.insert("stdout".to_owned(), result.stdout.clone().into());
            members.insert("stderr".to_owned(), result.stderr.clone().into());
            if invoked.dialect == "codex" {
                members.insert("status".to_owned(), codex_status(result).into());
            }
        }
        if let Some(members) = line.as_object_mut() {
            members.insert("session_id".to_owned(), json!(self.session));
            members.insert("uuid".to_owned(), uuid().into());
        }
        line.to_string()
    }
}

fn outcome(result: &HookResult) -> &'static str {
    match (result.ending.as_str(), result.code) {
        ("exited", Some(0)) if result.decision != "failed" => "success",
        ("timed-out" | "cancelled", _) => "cancelled",
        ("background", _) => "success",
        _ => "error",
    }
}

fn codex_status(result: &HookResult) -> &'static str {
    match result.decision.as_str() {
        "deny" | "block" => "blocked",
        "stop" => "stopped",
        "failed" => "failed",
        _ if result.ending != "exited" => "failed",
        _ => "completed",
    }
}

fn synthetic(session: &SessionId, message: &UserMessage) -> String {
    json!({
        "type": "user",
        "message": {"role": "user", "content": with_sources(json!(message.content))},
        "isSynthetic": true,
        "parent_tool_use_id": null,
        "session_id": session,
        "uuid": uuid(),
    })
    .to_string()
}

/// Blocks as Anthropic's API has them: an image's data lies in its `source`.
fn with_sources(blocks: Value) -> Value {
    let Value::Array(blocks) = blocks else { return blocks };
    let block = |mut block: Value| {
        if block.get("type").is_some_and(|kind| kind == "image") {
            let (media_type, data) =
                (block.get_mut("media_type").map(Value::take), block.get_mut("data").map(Value::take));
            return json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}});
        }
        if let Some(inner) = block.get_mut("content") {
            *inner = with_sources(inner.take());
        }
        block
    };
    blocks.into_iter().map(block).collect()
}

#[derive(serde::Serialize)]
struct AssistantLine<'a> {
    r#type: &'static str,
    message: AssistantBody<'a>,
    parent_tool_use_id: Option<()>,
    session_id: &'a SessionId,
    uuid: String,
}

#[derive(serde::Serialize)]
struct AssistantBody<'a> {
    id: String,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: &'a [Block],
    stop_reason: Option<&'static str>,
    stop_sequence: Option<()>,
    usage: UsageWire,
}

fn assistant(session: &SessionId, message: &AssistantMessage) -> Option<String> {
    if message.content.is_empty() {
        return None;
    }
    let line = AssistantLine {
        r#type: "assistant",
        message: AssistantBody {
            id: format!("msg_{}_{}", message.turn.0, message.step.0),
            r#type: "message",
            role: "assistant",
            model: &message.model,
            content: &message.content,
            stop_reason: message.stop_reason.map(stop_word),
            stop_sequence: None,
            usage: message.usage.unwrap_or_default().into(),
        },
        parent_tool_use_id: None,
        session_id: session,
        uuid: uuid(),
    };
    // Typed, so that a call's input keeps its digits.
    serde_json::to_string(&line).ok()
}

#[derive(serde::Serialize)]
struct ToolResultLine<'a> {
    r#type: &'static str,
    message: ToolResultBody,
    parent_tool_use_id: Option<()>,
    session_id: &'a SessionId,
    uuid: String,
}

#[derive(serde::Serialize)]
struct ToolResultBody {
    role: &'static str,
    content: Value,
}

impl<'a> ToolResultLine<'a> {
    fn of(session: &'a SessionId, result: &ToolResult) -> Self {
        let block = Block::ToolResult {
            tool_use_id: result.call_id.as_str().to_owned(),
            content: result.content.clone(),
            is_error: result.is_error,
        };
        Self {
            r#type: "user",
            message: ToolResultBody { role: "user", content: with_sources(json!([block])) },
            parent_tool_use_id: None,
            session_id: session,
            uuid: uuid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_in_a_result_has_a_source() {
        let image = Block::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
        let content = vec![Block::Text("look".to_owned()), image];
        let block = Block::ToolResult { tool_use_id: "call_1".to_owned(), content, is_error: false };
        let shown = with_sources(json!([block]));
        assert_eq!(
            shown.pointer("/0/content/1"),
            Some(&json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}))
        );
        assert_eq!(shown.pointer("/0/content/0/text"), Some(&json!("look")));
    }
}
