//! What a Claude Code hook reads on stdin: one compact object and one line feed, keys in the order captured.

use std::path::Path;
use std::time::Duration;

use sluice_harness::content::Block;
use sluice_harness::ids::{CallId, PromptId};
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::log::event::TurnStart;
use sluice_harness::point::session::StartSource;
use sluice_harness::scene::Scene;

use crate::core::config::Event;
use crate::core::transcript;

/// What an event adds to the common fields.
#[derive(Debug, Clone, Copy)]
pub enum Own<'a> {
    /// SessionStart.
    SessionStart {
        /// Why the session begins.
        source: StartSource,
    },
    /// UserPromptSubmit.
    UserPromptSubmit {
        /// The prompt as it came.
        prompt: &'a str,
    },
    /// PreToolUse.
    PreToolUse {
        /// The call.
        call: Call<'a>,
    },
    /// PermissionRequest.
    PermissionRequest {
        /// The tool.
        tool: &'a str,
        /// The sealed input.
        input: &'a Json,
    },
    /// PostToolUse.
    PostToolUse {
        /// The call.
        call: Call<'a>,
        /// The tool's structured result.
        response: &'a Json,
        /// How long the body took.
        took: Duration,
    },
    /// PostToolUseFailure.
    PostToolUseFailure {
        /// The call.
        call: Call<'a>,
        /// What went wrong.
        error: &'a str,
        /// Whether a person interrupted it.
        interrupted: bool,
        /// How long the body took.
        took: Duration,
    },
    /// Stop.
    Stop {
        /// Whether a hook made the turn go on before.
        active: bool,
        /// The final text.
        last_message: Option<&'a str>,
    },
    /// SessionEnd.
    SessionEnd {
        /// Why it ends.
        reason: &'a str,
    },
    /// Notification.
    Notification {
        /// `permission_prompt` or `idle_prompt`.
        kind: &'a str,
        /// What a person would be told.
        message: &'a str,
    },
    /// ConfigChange.
    ConfigChange {
        /// `user_settings`, `project_settings` or `local_settings`.
        source: &'a str,
        /// The file.
        path: &'a Path,
    },
}

/// The call of a tool event.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The model's own id of it.
    pub id: &'a CallId,
    /// The tool.
    pub tool: &'a str,
    /// The sealed input.
    pub input: &'a Json,
}

impl Own<'_> {
    /// The event.
    #[must_use]
    pub fn event(&self) -> Event {
        match self {
            Self::SessionStart { .. } => Event::SessionStart,
            Self::UserPromptSubmit { .. } => Event::UserPromptSubmit,
            Self::PreToolUse { .. } => Event::PreToolUse,
            Self::PermissionRequest { .. } => Event::PermissionRequest,
            Self::PostToolUse { .. } => Event::PostToolUse,
            Self::PostToolUseFailure { .. } => Event::PostToolUseFailure,
            Self::Stop { .. } => Event::Stop,
            Self::SessionEnd { .. } => Event::SessionEnd,
            Self::Notification { .. } => Event::Notification,
            Self::ConfigChange { .. } => Event::ConfigChange,
        }
    }
}

/// The whole payload, its line feed included.
#[must_use]
pub fn payload(scene: Scene<'_>, own: Own<'_>) -> Vec<u8> {
    let mut bytes = object(scene, own).to_json().text().to_owned().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// The prompt's text as hooks see it.
#[must_use]
pub fn prompt_text(content: &[Block]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. } => None,
        })
        .collect();
    texts.join("\n")
}

fn object(scene: Scene<'_>, own: Own<'_>) -> JsonObject {
    let event = own.event();
    let session = scene.session;
    let mut fields = Fields(JsonObject::new());
    fields.text("session_id", session.id.as_str());
    fields.path("transcript_path", &transcript::claude_path(&session.state_dir, &session.id));
    fields.path("cwd", &session.cwd());
    if let Some(prompt) = prompt_id(scene, own) {
        fields.text("prompt_id", prompt.as_str());
    }
    if event.is_about_a_call() || matches!(event, Event::UserPromptSubmit | Event::Stop) {
        fields.text("permission_mode", session.mode().word());
    }
    if let Some(agent) = &session.agent {
        fields.text("agent_id", &agent.id);
        fields.text("agent_type", &agent.kind);
    }
    if (event.is_about_a_call() || event == Event::Stop)
        && let Some(level) = session.model().effort
    {
        let mut effort = Fields(JsonObject::new());
        effort.text("level", &level);
        fields.0.set("effort", effort.0.to_json());
    }
    fields.text("hook_event_name", event.word());
    match own {
        Own::SessionStart { source } => fields.text("source", source.word()),
        Own::UserPromptSubmit { prompt } => fields.text("prompt", prompt),
        Own::PreToolUse { call } => {
            fields.call(call);
            fields.text("tool_use_id", call.id.as_str());
            fields.mcp_server(call);
        }
        Own::PermissionRequest { tool, input } => {
            fields.text("tool_name", tool);
            fields.0.set("tool_input", input.clone());
            let nothing: [u8; 0] = [];
            fields.value("permission_suggestions", &nothing);
        }
        Own::PostToolUse { call, response, took } => {
            fields.call(call);
            fields.0.set("tool_response", response.clone());
            fields.text("tool_use_id", call.id.as_str());
            fields.millis(took);
            fields.mcp_server(call);
        }
        Own::PostToolUseFailure { call, error, interrupted, took } => {
            fields.call(call);
            fields.text("tool_use_id", call.id.as_str());
            fields.text("error", error);
            fields.flag("is_interrupt", interrupted);
            fields.millis(took);
            fields.mcp_server(call);
        }
        Own::Stop { active, last_message } => {
            fields.flag("stop_hook_active", active);
            fields.text("last_assistant_message", last_message.unwrap_or_default());
            let nothing: [u8; 0] = [];
            fields.value("background_tasks", &nothing);
            fields.value("session_crons", &nothing);
        }
        Own::SessionEnd { reason } => fields.text("reason", reason),
        Own::Notification { kind, message } => {
            fields.text("message", message);
            fields.text("notification_type", kind);
        }
        Own::ConfigChange { source, path } => {
            fields.text("source", source);
            fields.path("file_path", path);
        }
    }
    fields.0
}

/// The prompt an event belongs to: between turns the last one's, where the reference has it too.
fn prompt_id(scene: Scene<'_>, own: Own<'_>) -> Option<PromptId> {
    if let Some(turn) = scene.turn {
        return Some(turn.prompt_id.clone());
    }
    let told_between_turns = match own {
        Own::SessionStart { source } => source == StartSource::Compact,
        Own::SessionEnd { .. } | Own::Notification { .. } | Own::ConfigChange { .. } => true,
        Own::UserPromptSubmit { .. }
        | Own::PreToolUse { .. }
        | Own::PermissionRequest { .. }
        | Own::PostToolUse { .. }
        | Own::PostToolUseFailure { .. }
        | Own::Stop { .. } => false,
    };
    let last = told_between_turns.then(|| scene.log.last::<TurnStart>()).flatten();
    last.map(|turn| turn.prompt_id)
}

struct Fields(JsonObject);

impl Fields {
    fn value<T: serde::Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        // Texts, flags and numbers always have a JSON form.
        let json = Json::of(value).unwrap_or_else(|_| Json::null());
        self.0.set(key, json);
    }

    fn text(&mut self, key: &str, text: &str) {
        self.value(key, text);
    }

    fn flag(&mut self, key: &str, flag: bool) {
        self.value(key, &flag);
    }

    fn path(&mut self, key: &str, path: &Path) {
        self.text(key, &path.to_string_lossy());
    }

    fn millis(&mut self, took: Duration) {
        self.value("duration_ms", &u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    }

    fn call(&mut self, call: Call<'_>) {
        self.text("tool_name", call.tool);
        self.0.set("tool_input", call.input.clone());
    }

    fn mcp_server(&mut self, call: Call<'_>) {
        let Some((name, _)) = call.tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) else { return };
        let mut server = Fields(JsonObject::new());
        server.text("name", name);
        server.text("source", "dynamic");
        self.0.set("mcp_server", server.0.to_json());
    }
}

/// `tool_response` as this dialect shows it: a shell's outputs come without their final line ends, of an MCP tool's
/// result only the content blocks (captured).
pub(crate) fn tool_response(tool: &str, value: &Json) -> Json {
    if tool.starts_with("mcp__")
        && let Some(blocks) = value.object().and_then(|result| result.get("content").cloned())
        && blocks.view().is_array()
    {
        return blocks;
    }
    let Some(mut object) = value.object().filter(|_| tool == "Bash") else { return value.clone() };
    for key in ["stdout", "stderr"] {
        let Some(text) = value.str_at(key) else { continue };
        // A text always has a JSON form.
        let _ = object.put(key, text.trim_end_matches(['\n', '\r']));
    }
    object.to_json()
}
