//! The JSON outputs of Codex hooks: one closed type an event, read by serde exactly as strictly as the reference does.
//!
//! An explicit `null` is an absent key where the type is optional; `continue` and `suppressOutput` take none.

use serde::Deserialize;
use sluice_harness::json::Json;

use crate::core::config::Event;

/// What an output says that fits its event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) system_message: Option<String>,
    pub(crate) context: Option<String>,
    pub(crate) said: Said,
}

/// The decision of an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Said {
    #[default]
    Nothing,
    Block(String),
    /// `continue: false`, with the text that goes with it.
    Stop(Option<String>),
    Rewrite(Json),
}

/// Why an output fails its hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not of the event's type.
    Unreadable(String),
    /// It is, and says something the event does not take.
    Unsupported(String),
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
enum Block {
    #[serde(rename = "block")]
    Block,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum BlockOrApprove {
    Block,
    Approve,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Permission {
    Allow,
    Deny,
    Ask,
}

/// Any of these is taken, whatever the event.
#[derive(Deserialize)]
enum EventName {
    PreToolUse,
    PermissionRequest,
    PostToolUse,
    PreCompact,
    PostCompact,
    SessionStart,
    UserPromptSubmit,
    SubagentStart,
    SubagentStop,
    Stop,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ContextOnly {
    #[serde(rename = "hookEventName")]
    _name: EventName,
    #[serde(default)]
    additional_context: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SessionStart {
    #[serde(default = "yes")]
    r#continue: bool,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default, rename = "suppressOutput")]
    _suppress_output: bool,
    #[serde(default)]
    system_message: Option<String>,
    #[serde(default)]
    hook_specific_output: Option<ContextOnly>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UserPromptSubmit {
    #[serde(default = "yes")]
    r#continue: bool,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default, rename = "suppressOutput")]
    _suppress_output: bool,
    #[serde(default)]
    system_message: Option<String>,
    #[serde(default)]
    decision: Option<Block>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    hook_specific_output: Option<ContextOnly>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PreSpecific {
    #[serde(rename = "hookEventName")]
    _name: EventName,
    #[serde(default)]
    permission_decision: Option<Permission>,
    #[serde(default)]
    permission_decision_reason: Option<String>,
    #[serde(default)]
    updated_input: Option<Json>,
    #[serde(default)]
    additional_context: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PreToolUse {
    #[serde(default = "yes")]
    r#continue: bool,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    suppress_output: bool,
    #[serde(default)]
    system_message: Option<String>,
    #[serde(default)]
    decision: Option<BlockOrApprove>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    hook_specific_output: Option<PreSpecific>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PostSpecific {
    #[serde(rename = "hookEventName")]
    _name: EventName,
    #[serde(default)]
    additional_context: Option<String>,
    #[serde(default, rename = "updatedMCPToolOutput")]
    updated_mcp_tool_output: Option<Json>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PostToolUse {
    #[serde(default = "yes")]
    r#continue: bool,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    suppress_output: bool,
    #[serde(default)]
    system_message: Option<String>,
    #[serde(default)]
    decision: Option<Block>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    hook_specific_output: Option<PostSpecific>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Stop {
    #[serde(default = "yes")]
    r#continue: bool,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default, rename = "suppressOutput")]
    _suppress_output: bool,
    #[serde(default)]
    system_message: Option<String>,
    #[serde(default)]
    decision: Option<Block>,
    #[serde(default)]
    reason: Option<String>,
}

/// The words for an output that is not of the event's type.
pub(crate) fn invalid(event: Event) -> String {
    let what = match event {
        Event::SessionStart => "session start",
        Event::UserPromptSubmit => "user prompt submit",
        Event::PreToolUse => "pre-tool-use",
        Event::PostToolUse | Event::PostToolUseFailure => "post-tool-use",
        Event::PermissionRequest => "permission-request",
        Event::Stop => "stop hook",
        Event::SessionEnd => "session end",
        Event::Notification => "notification",
        Event::ConfigChange => "configuration change",
    };
    format!("hook returned invalid {what} JSON output")
}

/// Reads an object that a hook of an event printed.
pub(crate) fn read(event: Event, text: &str) -> Result<Output, Fault> {
    match event {
        Event::SessionStart => {
            let o: SessionStart = parse(event, text)?;
            let said = if o.r#continue { Said::Nothing } else { Said::Stop(trimmed(o.stop_reason)) };
            Ok(Output { system_message: o.system_message, context: context(o.hook_specific_output), said })
        }
        Event::UserPromptSubmit => {
            let o: UserPromptSubmit = parse(event, text)?;
            let said = if !o.r#continue {
                Said::Stop(trimmed(o.stop_reason))
            } else if o.decision.is_some() {
                Said::Block(block_reason(event, o.reason)?)
            } else {
                Said::Nothing
            };
            Ok(Output { system_message: o.system_message, context: context(o.hook_specific_output), said })
        }
        Event::PreToolUse => pre_tool_use(parse(event, text)?),
        Event::PostToolUse => post_tool_use(parse(event, text)?),
        Event::Stop => {
            let o: Stop = parse(event, text)?;
            let said = if !o.r#continue {
                Said::Stop(trimmed(o.stop_reason))
            } else if o.decision.is_some() {
                Said::Block(block_reason(event, o.reason)?)
            } else {
                Said::Nothing
            };
            Ok(Output { system_message: o.system_message, context: None, said })
        }
        // Not events of this dialect, or without an output.
        Event::PermissionRequest
        | Event::PostToolUseFailure
        | Event::SessionEnd
        | Event::Notification
        | Event::ConfigChange => Ok(Output::default()),
    }
}

fn parse<'de, T: Deserialize<'de>>(event: Event, text: &'de str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|_| Fault::Unreadable(invalid(event)))
}

fn pre_tool_use(o: PreToolUse) -> Result<Output, Fault> {
    let unsupported = |what: &str| Err(Fault::Unsupported(format!("PreToolUse hook returned {what}")));
    if !o.r#continue {
        return unsupported("unsupported continue:false");
    }
    if o.stop_reason.is_some() {
        return unsupported("unsupported stopReason");
    }
    if o.suppress_output {
        return unsupported("unsupported suppressOutput");
    }
    let specific = o.hook_specific_output;
    let (permission, permission_reason, updated, context) = match specific {
        Some(s) => (s.permission_decision, s.permission_decision_reason, s.updated_input, s.additional_context),
        None => (None, None, None, None),
    };
    let context = context.filter(|c| !c.is_empty());
    let said = match permission {
        Some(Permission::Deny) => match trimmed(permission_reason) {
            Some(reason) => Said::Block(reason),
            None => return unsupported("permissionDecision:deny without a non-empty permissionDecisionReason"),
        },
        Some(Permission::Ask) => return unsupported("unsupported permissionDecision:ask"),
        Some(Permission::Allow) => match updated {
            Some(input) => Said::Rewrite(input),
            // A bare allow is no objection: it skips nothing, and is no error here.
            None => Said::Nothing,
        },
        None if updated.is_some() => return unsupported("updatedInput without permissionDecision:allow"),
        None if permission_reason.is_some() => {
            return unsupported("permissionDecisionReason without permissionDecision");
        }
        None => Said::Nothing,
    };
    let said = match (o.decision, said) {
        (_, said @ Said::Block(_)) => said,
        (Some(BlockOrApprove::Approve), _) => return unsupported("unsupported decision:approve"),
        (Some(BlockOrApprove::Block), _) => Said::Block(block_reason(Event::PreToolUse, o.reason)?),
        (None, _) if o.reason.is_some() => return unsupported("reason without decision"),
        (None, said) => said,
    };
    Ok(Output { system_message: o.system_message, context, said })
}

fn post_tool_use(o: PostToolUse) -> Result<Output, Fault> {
    let unsupported = |what: &str| Err(Fault::Unsupported(format!("PostToolUse hook returned {what}")));
    if o.suppress_output {
        return unsupported("unsupported suppressOutput");
    }
    let (context, updated) = match o.hook_specific_output {
        Some(s) => (s.additional_context, s.updated_mcp_tool_output),
        None => (None, None),
    };
    if updated.is_some() {
        return unsupported("unsupported updatedMCPToolOutput");
    }
    let said = if !o.r#continue {
        let text = trimmed(o.reason).or_else(|| trimmed(o.stop_reason));
        Said::Stop(text)
    } else if o.decision.is_some() {
        Said::Block(block_reason(Event::PostToolUse, o.reason)?)
    } else if o.reason.is_some() {
        return unsupported("reason without decision");
    } else {
        Said::Nothing
    };
    Ok(Output { system_message: o.system_message, context: context.filter(|c| !c.is_empty()), said })
}

fn block_reason(event: Event, reason: Option<String>) -> Result<String, Fault> {
    trimmed(reason).ok_or_else(|| {
        Fault::Unsupported(format!("{} hook returned decision:block without a non-empty reason", event.word()))
    })
}

fn context(specific: Option<ContextOnly>) -> Option<String> {
    specific?.additional_context.filter(|c| !c.is_empty())
}

fn trimmed(text: Option<String>) -> Option<String> {
    text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty())
}
