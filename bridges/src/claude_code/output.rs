//! The JSON output of a Claude Code hook: which keys there are, of which types, and what an invalid one is.
//!
//! Unknown keys are ignored; a wrong type in one known key, `null` included, makes the whole output invalid.

use serde_json::Value;
use sluice_harness::json::{Json, JsonObject};

use crate::core::config::Event;

/// The words of `decision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Approve,
    Block,
}

/// The words of `permissionDecision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    Allow,
    Deny,
    Ask,
    Defer,
}

/// The answer of a PermissionRequest hook.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Allow { input: Option<Json>, updates: Vec<Value> },
    Deny { message: Option<String>, interrupt: Interrupt },
}

/// Whether a denial ends the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Turn,
    Nothing,
}

/// A valid output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// Set by `continue: false`, with the reason for the user.
    pub(crate) stop: Option<Option<String>>,
    pub(crate) system_message: Option<String>,
    pub(crate) decision: Option<Decision>,
    pub(crate) reason: Option<String>,
    /// `decision`, on the event that answers a question.
    pub(crate) answer: Option<Answer>,
    /// `permissionDecision`, on the event that has one.
    own_permission: Option<Permission>,
    specific: Option<JsonObject>,
}

/// Events whose `hookSpecificOutput` is known.
const WITH_SPECIFIC: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "Setup",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreModelSwitch",
    "PostModelSwitch",
    "PermissionRequest",
    "PermissionDenied",
    "CwdChanged",
    "FileChanged",
    "WorktreeCreate",
    "Elicitation",
    "ElicitationResult",
    "MessageDisplay",
    "PreSkillShellCommand",
];

impl Output {
    /// Reads and validates an output for an event.
    pub(crate) fn read(event: Event, json: &Json) -> Result<Self, String> {
        let object = json.object().ok_or("Hook JSON output validation failed — it is no object")?;
        let invalid = |why: String| format!("Hook JSON output validation failed — {why}");
        let mut output = Self::default();
        let go_on = boolean(&object, "continue").map_err(invalid)?;
        let stop_reason = string(&object, "stopReason").map_err(invalid)?;
        boolean(&object, "suppressOutput").map_err(invalid)?;
        output.system_message = string(&object, "systemMessage").map_err(invalid)?;
        output.decision = match string(&object, "decision").map_err(invalid)?.as_deref() {
            None => None,
            Some("approve") => Some(Decision::Approve),
            Some("block") => Some(Decision::Block),
            Some(other) => return Err(invalid(format!("decision: `{other}` is neither approve nor block"))),
        };
        output.reason = string(&object, "reason").map_err(invalid)?;
        if go_on == Some(false) {
            output.stop = Some(stop_reason);
        }
        if let Some(specific) = object.get("hookSpecificOutput") {
            let specific =
                specific.object().ok_or_else(|| invalid(expected("hookSpecificOutput", "object", specific)))?;
            let specific = Self::read_specific(event, specific)?;
            if event == Event::PreToolUse {
                output.own_permission = permission(&specific).map_err(invalid)?;
            }
            if event == Event::PermissionRequest {
                output.answer = Some(answer(&specific).map_err(invalid)?);
            }
            output.specific = Some(specific);
        }
        Ok(output)
    }

    fn read_specific(event: Event, specific: JsonObject) -> Result<JsonObject, String> {
        let invalid = |why: String| format!("Hook JSON output validation failed — {why}");
        let name = string(&specific, "hookEventName").map_err(invalid)?;
        let name =
            name.ok_or_else(|| invalid("hookSpecificOutput is missing required field \"hookEventName\"".to_owned()))?;
        if !WITH_SPECIFIC.contains(&name.as_str()) {
            return Err(invalid(format!("hookSpecificOutput: `{name}` has no output of its own")));
        }
        if name != event.word() {
            return Err(format!(
                "Failed to run: Hook returned incorrect event name: expected '{}' but got '{name}'.",
                event.word()
            ));
        }
        string(&specific, "additionalContext").map_err(invalid)?;
        match event {
            Event::PreToolUse => {
                permission(&specific).map_err(invalid)?;
                string(&specific, "permissionDecisionReason").map_err(invalid)?;
                if let Some(input) = specific.get("updatedInput")
                    && !input.view().is_object()
                {
                    return Err(invalid(expected("updatedInput", "object", input)));
                }
            }
            Event::UserPromptSubmit => {
                string(&specific, "sessionTitle").map_err(invalid)?;
                boolean(&specific, "suppressOriginalPrompt").map_err(invalid)?;
            }
            Event::SessionStart => {
                string(&specific, "sessionTitle").map_err(invalid)?;
                string(&specific, "initialUserMessage").map_err(invalid)?;
            }
            Event::PermissionRequest
            | Event::PostToolUse
            | Event::PostToolUseFailure
            | Event::Stop
            | Event::SessionEnd
            | Event::Notification
            | Event::ConfigChange => {}
        }
        Ok(specific)
    }

    /// A text of the event's own output; an empty one is no text.
    pub(crate) fn specific_text(&self, key: &str) -> Option<String> {
        let text = self.specific.as_ref()?.get(key)?.view().as_str()?.to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Any value of the event's own output.
    pub(crate) fn specific(&self, key: &str) -> Option<&Json> {
        self.specific.as_ref()?.get(key)
    }

    /// Whether a flag of the event's own output is set.
    pub(crate) fn specific_flag(&self, key: &str) -> bool {
        self.specific(key).is_some_and(|v| v.view() == &Value::Bool(true))
    }

    /// The permission decision, the older `decision` included.
    pub(crate) fn permission(&self) -> Option<Permission> {
        match (self.own_permission, self.decision) {
            // Both said: the stricter counts.
            (_, Some(Decision::Block)) => Some(Permission::Deny),
            (Some(own), _) => Some(own),
            (None, Some(Decision::Approve)) => Some(Permission::Allow),
            (None, None) => None,
        }
    }

    /// The reason that goes with a permission decision.
    pub(crate) fn permission_reason(&self) -> Option<String> {
        self.specific_text("permissionDecisionReason").or_else(|| self.reason.clone().filter(|r| !r.is_empty()))
    }

    /// Whether it denies or blocks.
    pub(crate) fn denies(&self) -> bool {
        match &self.answer {
            Some(Answer::Deny { .. }) => true,
            Some(Answer::Allow { .. }) => false,
            None => self.decision == Some(Decision::Block) || self.permission() == Some(Permission::Deny),
        }
    }

    /// Whether it blocks in any way, a stop of the turn included: what a failing exit code does not undo.
    pub(crate) fn blocks(&self) -> bool {
        self.denies() || self.stop.is_some()
    }

    /// The reason of its own denial, where it has one.
    pub(crate) fn blocking_reason(&self) -> Option<String> {
        if !self.denies() {
            return None;
        }
        self.permission_reason()
    }

    /// Only what a denial needs: what counts of an output that stands in noise.
    pub(crate) fn only_denial(self) -> Self {
        if let Some(answer @ Answer::Deny { .. }) = self.answer {
            return Self { answer: Some(answer), ..Self::default() };
        }
        let reason = self.blocking_reason();
        Self { decision: Some(Decision::Block), reason, ..Self::default() }
    }
}

fn answer(specific: &JsonObject) -> Result<Answer, String> {
    let decision = specific.get("decision").ok_or("hookSpecificOutput is missing required field \"decision\"")?;
    let decision = decision.object().ok_or_else(|| expected("decision", "object", decision))?;
    match string(&decision, "behavior")?.as_deref() {
        Some("allow") => {
            let input = decision.get("updatedInput").cloned();
            if let Some(input) = input.as_ref().filter(|i| !i.view().is_object()) {
                return Err(expected("updatedInput", "object", input));
            }
            let updates = match decision.get("updatedPermissions") {
                None => Vec::new(),
                Some(list) => match list.view() {
                    Value::Array(updates) => updates.clone(),
                    _ => return Err(expected("updatedPermissions", "array", list)),
                },
            };
            Ok(Answer::Allow { input, updates })
        }
        Some("deny") => {
            let interrupt = match boolean(&decision, "interrupt")? {
                Some(true) => Interrupt::Turn,
                Some(false) | None => Interrupt::Nothing,
            };
            Ok(Answer::Deny { message: string(&decision, "message")?, interrupt })
        }
        _ => Err("decision.behavior is neither allow nor deny".to_owned()),
    }
}

fn permission(specific: &JsonObject) -> Result<Option<Permission>, String> {
    match string(specific, "permissionDecision")?.as_deref() {
        None => Ok(None),
        Some("allow") => Ok(Some(Permission::Allow)),
        Some("deny") => Ok(Some(Permission::Deny)),
        Some("ask") => Ok(Some(Permission::Ask)),
        Some("defer") => Ok(Some(Permission::Defer)),
        Some(other) => Err(format!("permissionDecision: `{other}` is none of allow, deny, ask, defer")),
    }
}

fn string(object: &JsonObject, key: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None => Ok(None),
        Some(value) => match value.view() {
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(expected(key, "string", value)),
        },
    }
}

fn boolean(object: &JsonObject, key: &str) -> Result<Option<bool>, String> {
    match object.get(key) {
        None => Ok(None),
        Some(value) => match value.view() {
            Value::Bool(flag) => Ok(Some(*flag)),
            _ => Err(expected(key, "boolean", value)),
        },
    }
}

fn expected(key: &str, kind: &str, found: &Json) -> String {
    let found = match found.view() {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("{key}: expected {kind}, received {found}")
}
