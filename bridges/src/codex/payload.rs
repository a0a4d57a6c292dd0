//! What a Codex hook reads on stdin: one compact object without a line feed, keys in the order captured.

use sluice_harness::content::Block;
use sluice_harness::ids::CallId;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::permission::Mode;
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
        /// The prompt's texts.
        prompt: &'a str,
    },
    /// PreToolUse.
    PreToolUse {
        /// The call.
        call: Call<'a>,
    },
    /// PostToolUse.
    PostToolUse {
        /// The call.
        call: Call<'a>,
        /// What came of it, in this dialect's shape.
        response: &'a Json,
    },
    /// Stop.
    Stop {
        /// Whether a hook made the turn go on before.
        active: bool,
        /// The final text.
        last_message: Option<&'a str>,
    },
}

/// The call of a tool event, in this dialect's names and shapes.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The model's own id of it.
    pub id: &'a CallId,
    /// The tool's name here.
    pub tool: &'a str,
    /// The input here.
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
            Self::PostToolUse { .. } => Event::PostToolUse,
            Self::Stop { .. } => Event::Stop,
        }
    }
}

/// The whole payload.
#[must_use]
pub fn payload(scene: Scene<'_>, own: Own<'_>) -> Vec<u8> {
    let session = scene.session;
    let event = own.event();
    let mut fields = Fields(JsonObject::new());
    fields.text("session_id", session.id.as_str());
    if event != Event::SessionStart
        && let Some(turn) = scene.turn
    {
        fields.text("turn_id", turn.id.as_str());
        if let Some(agent) = &session.agent {
            fields.text("agent_id", &agent.id);
            fields.text("agent_type", &agent.kind);
        }
    }
    let transcript = transcript::codex_path(&session.state_dir, &session.id);
    fields.text("transcript_path", &transcript.to_string_lossy());
    fields.text("cwd", &session.cwd().to_string_lossy());
    fields.text("hook_event_name", event.word());
    fields.text("model", &session.model().model);
    fields.text(
        "permission_mode",
        match session.mode() {
            Mode::BypassPermissions => "bypassPermissions",
            Mode::Default | Mode::AcceptEdits | Mode::Plan | Mode::DontAsk => "default",
        },
    );
    match own {
        Own::SessionStart { source } => fields.text("source", source.word()),
        Own::UserPromptSubmit { prompt } => fields.text("prompt", prompt),
        Own::PreToolUse { call } => {
            fields.call(call);
            fields.text("tool_use_id", call.id.as_str());
        }
        Own::PostToolUse { call, response } => {
            fields.call(call);
            fields.0.set("tool_response", response.clone());
            fields.text("tool_use_id", call.id.as_str());
        }
        Own::Stop { active, last_message } => {
            fields.value("stop_hook_active", &active);
            fields.value("last_assistant_message", &last_message);
        }
    }
    fields.0.to_json().text().to_owned().into_bytes()
}

/// The prompt's texts, joined without a separator; images are left out.
#[must_use]
pub fn prompt_text(content: &[Block]) -> String {
    content
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Image { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. } => None,
        })
        .collect()
}

struct Fields(JsonObject);

impl Fields {
    fn value<T: serde::Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        // Texts, flags and absent texts always have a JSON form.
        let json = Json::of(value).unwrap_or_else(|_| Json::null());
        self.0.set(key, json);
    }

    fn text(&mut self, key: &str, text: &str) {
        self.value(key, text);
    }

    fn call(&mut self, call: Call<'_>) {
        self.text("tool_name", call.tool);
        self.0.set("tool_input", call.input.clone());
    }
}
