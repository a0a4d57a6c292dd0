//! Hook settings and handlers in short, and one call under them.

use serde_json::{Value, json};

use crate::world::{Session, World, bash, text};

pub(crate) fn pre(handlers: &[Value]) -> Value {
    json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": handlers }] } })
}

pub(crate) fn command(line: &str) -> Value {
    json!({ "type": "command", "command": line })
}

pub(crate) fn says(output: &Value) -> Value {
    command(&format!("echo '{output}'"))
}

pub(crate) fn decides(decision: &str, reason: &str) -> Value {
    says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason
    } }))
}

/// One call of a shell command under these settings.
pub(crate) async fn call(world: &World, settings: &Value, line: &str) -> Session {
    world.claude(settings);
    let session = world.session(vec![bash(line), text("FINAL")]).await;
    session.prompt("go").await;
    session
}
