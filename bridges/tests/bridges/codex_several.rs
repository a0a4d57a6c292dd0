//! Several Codex hooks of one event, and the condensed captures about them.

use serde_json::{Value, json};
use sluice_harness::agent::TurnEnd;
use sluice_harness::content::Role;

use crate::world::{World, bash, call, text};

fn hooks(event: &str, commands: &[&str]) -> Value {
    let handlers: Vec<Value> = commands.iter().map(|c| json!({ "type": "command", "command": c })).collect();
    json!({ event: [{ "hooks": handlers }] })
}

fn context(event: &str, text: &str) -> String {
    let output = json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } });
    format!("echo '{output}'")
}

fn rewrite(input: &Value) -> String {
    let output = json!({
        "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input }
    });
    format!("echo '{output}'")
}

#[tokio::test]
async fn contexts_keep_configuration_order_and_all_hooks_run_at_once() {
    let world = World::new();
    let slow = format!("sleep 1; {}", context("PreToolUse", "CTX0"));
    let middle = format!("sleep 1; {}", context("PreToolUse", "CTX2"));
    world.codex(&hooks("PreToolUse", &[&slow, &context("PreToolUse", "CTX1"), &middle]));
    let session = world.session(vec![bash("true"), text("final")]).await;
    let begun = std::time::Instant::now();
    session.prompt("hello").await;
    assert!(begun.elapsed().as_millis() < 1900, "the hooks ran one after another");
    assert_eq!(session.seen(Role::Developer), ["CTX0", "CTX1", "CTX2"]);
}

#[tokio::test]
async fn the_first_denial_in_configuration_order_gives_the_only_reason_and_beats_a_rewrite() {
    let world = World::new();
    let rewritten = rewrite(&json!({ "command": "echo AAA" }));
    world.codex(&hooks("PreToolUse", &[&rewritten, "sleep 0.3; echo DENY1 >&2; exit 2", "echo DENY2 >&2; exit 2"]));
    let session = world.session(vec![bash("echo tool-output"), text("final")]).await;
    session.prompt("hello").await;
    let denial = "Command blocked by PreToolUse hook: DENY1. Command: echo tool-output";
    assert_eq!(session.results(), [(denial.to_owned(), true)]);
}

#[tokio::test]
async fn feedback_after_a_tool_is_joined_by_a_blank_line_and_replaces_the_result() {
    let world = World::new();
    let third = context("PostToolUse", "CTX");
    world.codex(&hooks("PostToolUse", &["echo FB1 >&2; exit 2", "echo FB2 >&2; exit 2", &third]));
    let session = world.session(vec![bash("echo tool-output"), text("final")]).await;
    session.prompt("hello").await;
    assert_eq!(session.results()[0].0, "FB1\n\nFB2");
    assert_eq!(session.seen(Role::Developer), ["CTX"]);
}

#[tokio::test]
async fn a_blocked_prompt_is_dropped_and_the_contexts_of_other_hooks_stay() {
    let world = World::new();
    let block_first = "if grep -q first; then echo NO >&2; exit 2; fi";
    world.codex(&hooks("UserPromptSubmit", &["echo ctx A", block_first]));
    let session = world.session(vec![text("final")]).await;
    assert!(matches!(session.prompt("first").await.end, TurnEnd::Rejected { .. }));
    assert_eq!(session.requests(), 0);
    session.prompt("second").await;
    assert_eq!(session.seen(Role::Developer), ["ctx A", "ctx A"]);
    assert_eq!(session.seen(Role::User), ["second"]);
}

#[tokio::test]
async fn all_stop_reasons_are_delivered_and_continue_false_beats_them() {
    let world = World::new();
    let once = |then: &str| format!("[ -e once ] && exit 0; sleep 0.2; touch once; {then}");
    let first = once("echo GO ON 1 >&2; exit 2");
    let second = once(r#"echo '{"decision":"block","reason":"GO ON 2"}'"#);
    world.codex(&hooks("Stop", &[&first, &second]));
    let session = world.session(vec![text("final")]).await;
    session.prompt("hello").await;
    let prompts = session.seen(Role::User);
    let source = world.home.join(".codex/hooks.json");
    for (at, reason) in ["GO ON 1", "GO ON 2"].iter().enumerate() {
        let wanted = format!("<hook_prompt hook_run_id=\"stop:{at}:{}\">{reason}</hook_prompt>", source.display());
        assert!(prompts[1].contains(&wanted), "{prompts:?}");
    }
    let world = World::new();
    world.codex(&hooks("Stop", &["echo GO >&2; exit 2", r#"echo '{"continue":false,"stopReason":"SR"}'"#]));
    let session = world.session(vec![text("final")]).await;
    let report = session.prompt("hello").await;
    assert_eq!(session.requests(), 1);
    assert_eq!(report.end.terminal_reason(), Some("stop_hook_prevented"));
}

#[tokio::test]
async fn a_hook_that_always_blocks_the_end_is_capped_in_this_dialect_too() {
    let mut world = World::new();
    world.config.continuation_cap = 3;
    world.codex(&hooks("Stop", &["echo again >&2; exit 2"]));
    let session = world.session(vec![text("final")]).await;
    session.prompt("hello").await;
    assert_eq!(session.requests(), 4);
    assert!(session.said().contains("3 times already"), "{}", session.said());
}

#[tokio::test]
async fn identical_commands_each_run() {
    let world = World::new();
    world.codex(&hooks("PreToolUse", &["echo x >> marks", "echo x >> marks"]));
    let session = world.session(vec![bash("true"), text("final")]).await;
    session.prompt("hello").await;
    assert_eq!(world.lines("marks").len(), 2);
}

#[tokio::test]
async fn other_tools_are_denied_and_rewritten_by_their_own_names() {
    let world = World::new();
    world.codex(&hooks("PreToolUse", &["echo NO MCP >&2; exit 2"]));
    let session = world.session(vec![call("mcp__srv__echo", json!({ "x": "hi" })), text("final")]).await;
    session.prompt("hello").await;
    assert_eq!(session.results()[0].0, "Tool call blocked by PreToolUse hook: NO MCP. Tool: mcp__srv__echo");

    let world = World::new();
    world.codex(&hooks("PreToolUse", &[&rewrite(&json!({ "x": "REWRITTEN" }))]));
    let session = world.session(vec![call("mcp__srv__echo", json!({ "x": "hi" })), text("final")]).await;
    session.prompt("hello").await;
    assert!(session.results()[0].0.contains("echo:REWRITTEN"), "{:?}", session.results());

    let world = World::new();
    world.codex(&hooks("PreToolUse", &[&rewrite(&json!("x"))]));
    let session = world.session(vec![call("mcp__srv__echo", json!({ "x": "hi" })), text("final")]).await;
    session.prompt("hello").await;
    assert!(session.results()[0].0.contains("MCP tool arguments must be a JSON object"), "{:?}", session.results());
}

#[tokio::test]
async fn a_write_is_seen_as_a_patch_and_a_rewritten_patch_is_refused_loudly() {
    let world = World::new();
    let log = |name: &str| format!("cat >> {name}; echo >> {name}");
    world.codex(&json!({ "PreToolUse": [
        { "matcher": "^apply_patch$", "hooks": [{ "type": "command", "command": log("one") }] },
        { "matcher": "Edit|Write", "hooks": [{ "type": "command", "command": log("two") }] },
        { "matcher": "^Bash$", "hooks": [{ "type": "command", "command": log("three") }] },
    ] }));
    let write = call("Write", json!({ "file_path": "f.txt", "content": "hello\n" }));
    let session = world.session(vec![write.clone(), bash("true"), text("final")]).await;
    session.prompt("hello").await;
    for name in ["one", "two"] {
        let lines = world.lines(name);
        assert_eq!(lines.len(), 1, "{name}: {lines:?}");
        let payload: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(payload["tool_name"], "apply_patch");
        assert_eq!(payload["tool_input"]["command"], "*** Begin Patch\n*** Add File: f.txt\n+hello\n*** End Patch\n");
    }
    assert_eq!(world.lines("three").len(), 1);
    assert!(world.has("f.txt"));

    let world = World::new();
    world.codex(&hooks("PreToolUse", &[&rewrite(&json!({ "command": "*** Begin Patch\n*** End Patch\n" }))]));
    let session = world.session(vec![write, text("final")]).await;
    session.prompt("hello").await;
    assert!(!world.has("f.txt"));
    assert!(session.results()[0].0.contains("cannot be expressed"), "{:?}", session.results());
    assert!(session.said().contains("cannot be expressed"));
}

#[tokio::test]
async fn a_failed_shell_command_has_a_post_hook_with_its_combined_output() {
    let world = World::new();
    world.codex(&hooks("PostToolUse", &["cat > in.json"]));
    let session = world.session(vec![bash("echo out; echo err >&2; exit 3"), text("final")]).await;
    session.prompt("hello").await;
    let payload: Value = serde_json::from_str(&world.lines("in.json")[0]).unwrap();
    assert_eq!(payload["tool_response"], "out\nerr\n");
    assert_eq!(payload["tool_input"], json!({ "command": "echo out; echo err >&2; exit 3" }));
}

#[tokio::test]
async fn broken_bytes_are_replaced_and_unread_stdin_is_fine() {
    let world = World::new();
    world.codex(&hooks("UserPromptSubmit", &["printf '\\377\\376 bad utf8'", "exit 0"]));
    let session = world.session(vec![text("final")]).await;
    session.prompt(&"x".repeat(300_000)).await;
    assert_eq!(session.seen(Role::Developer), ["\u{fffd}\u{fffd} bad utf8"]);
}

#[tokio::test]
async fn a_timeout_kills_the_whole_group_and_the_tool_runs() {
    let world = World::new();
    world.codex(&json!({ "PreToolUse": [{ "hooks": [
        { "type": "command", "command": "(sleep 3; touch late) & sleep 3", "timeout": 1 }
    ] }] }));
    let session = world.session(vec![bash("touch ran.txt; sleep 3"), text("final")]).await;
    session.prompt("hello").await;
    assert!(world.has("ran.txt"));
    assert!(!world.has("late"));
    assert!(session.said().contains("hook timed out after 1s"), "{}", session.said());
}

#[tokio::test]
async fn a_command_that_is_not_found_is_shown_with_its_code() {
    let world = World::new();
    world.codex(&hooks("PreToolUse", &["nosuchcommand_zz"]));
    let session = world.session(vec![bash("touch ran.txt"), text("final")]).await;
    session.prompt("hello").await;
    assert!(world.has("ran.txt"));
    assert!(session.said().contains("hook exited with code 127"), "{}", session.said());
}

#[tokio::test]
async fn a_bare_allow_is_no_objection_and_no_error_and_its_message_is_shown() {
    let world = World::new();
    let output = json!({
        "systemMessage": "hi",
        "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "allow" }
    });
    world.codex(&hooks("PreToolUse", &[&format!("echo '{output}'")]));
    let session = world.session(vec![bash("touch ran.txt"), text("final")]).await;
    session.prompt("hello").await;
    assert!(world.has("ran.txt"));
    assert_eq!(session.said(), "Info PreToolUse:Bash: hi\n");
}

#[tokio::test]
async fn continue_false_at_the_start_drops_the_first_prompt_alone() {
    let world = World::new();
    world.codex(&hooks("SessionStart", &[r#"echo '{"continue":false}'"#]));
    let session = world.session(vec![text("final")]).await;
    session.prompt("first").await;
    assert_eq!(session.requests(), 0);
    session.prompt("second").await;
    assert_eq!(session.requests(), 1);
    assert_eq!(session.seen(Role::User), ["second"]);
}

#[tokio::test]
async fn one_prompt_fires_the_five_events_in_order() {
    let world = World::new();
    let log = json!([{ "hooks": [{ "type": "command", "command": "cat >> log; echo >> log" }] }]);
    world.codex(&json!({
        "SessionStart": log, "UserPromptSubmit": log, "PreToolUse": log, "PostToolUse": log, "Stop": log,
    }));
    let session = world.session(vec![bash("true"), text("final")]).await;
    session.prompt("hello").await;
    let payloads: Vec<Value> = world.lines("log").iter().map(|l| serde_json::from_str(l).unwrap()).collect();
    let names: Vec<&str> = payloads.iter().map(|p| p["hook_event_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"]);
    assert!(payloads.iter().all(|p| p["model"] == "player"));
    assert!(payloads[1..].iter().all(|p| p["turn_id"].is_string()));
}
