//! Captured payloads of both dialects: the same keys in the same order, the same values but for ids, paths and times.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sluice_bridges::claude_code::payload::{Own, payload};
use sluice_harness::permission::Mode;

use crate::world::{Play, World, bash, call, text};

/// Keys whose values differ from run to run; their types must agree.
const VARIES: &[&str] =
    &["session_id", "transcript_path", "cwd", "prompt_id", "turn_id", "duration_ms", "model", "tool_use_id"];

fn golden(dialect: &str, name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(dialect).join(format!("{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[track_caller]
fn same(what: &str, expected: &Value, found: &Value, project: &Path) {
    let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(expected), keys(found), "{what}: keys in order");
    for (key, value) in expected.as_object().unwrap() {
        let mine = &found[key];
        if VARIES.contains(&key.as_str()) {
            assert_eq!(value.is_string(), mine.is_string(), "{what}: {key} is {mine}");
            assert_eq!(value.is_number(), mine.is_number(), "{what}: {key} is {mine}");
            continue;
        }
        let mine: Value =
            serde_json::from_str(&mine.to_string().replace(&project.display().to_string(), "$PROJECT")).unwrap();
        assert_eq!(*value, mine, "{what}: {key}");
    }
}

/// A session whose hooks of one dialect write each payload into a file of its own.
async fn record(dialect: &str, plays: Vec<Play>, prompt: &str) -> (World, Vec<Vec<u8>>) {
    let mut world = World::new();
    world.effort = Some("medium".to_owned());
    world.set_mode(Mode::BypassPermissions);
    let command = "n=$(ls in.* 2>/dev/null | wc -l); cat > in.$(printf %03d $n)";
    let log = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    let mut hooks = json!({
        "SessionStart": log, "UserPromptSubmit": log, "PreToolUse": log, "PostToolUse": log, "Stop": log,
    });
    if dialect == "claude-code" {
        hooks["PostToolUseFailure"] = log.clone();
        hooks["SessionEnd"] = log;
        world.claude(&json!({ "hooks": hooks }));
    } else {
        world.codex(&hooks);
    }
    let session = world.session(plays).await;
    session.prompt(prompt).await;
    session.close().await;
    let mut files: Vec<_> = fs::read_dir(&world.project)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_str().unwrap().starts_with("in."))
        .collect();
    files.sort();
    let payloads = files.iter().map(|f| fs::read(f).unwrap()).collect();
    (world, payloads)
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// The payload of an event and tool.
#[track_caller]
fn of<'a>(payloads: &'a [Value], event: &str, tool: Option<&str>) -> &'a Value {
    payloads
        .iter()
        .find(|p| p["hook_event_name"] == event && tool.is_none_or(|t| p["tool_name"] == t))
        .unwrap_or_else(|| panic!("no payload of {event} {tool:?} among {payloads:?}"))
}

#[tokio::test]
async fn claude_payloads_are_as_captured() {
    let plays = vec![
        call("Bash", json!({ "command": "echo hello > a.txt; cat a.txt", "description": "say hi" })),
        call("Bash", json!({ "command": "echo out; echo err >&2; exit 3", "description": "fails" })),
        call("Write", json!({ "file_path": "w.txt", "content": "one\ntwo\n" })),
        call("mcp__srv__echo", json!({ "x": "hi" })),
        text("FINAL"),
    ];
    let (world, raw) = record("claude-code", plays, "MAINPROMPT go").await;
    for bytes in &raw {
        assert_eq!(bytes.last(), Some(&b'\n'));
        assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 1);
        assert_eq!(parsed(bytes).to_string().as_bytes(), &bytes[..bytes.len() - 1], "compact, in order");
    }
    let payloads: Vec<Value> = raw.iter().map(|b| parsed(b)).collect();
    for (name, event, tool) in [
        ("SessionStart.startup", "SessionStart", None),
        ("UserPromptSubmit", "UserPromptSubmit", None),
        ("PreToolUse.Bash", "PreToolUse", Some("Bash")),
        ("PreToolUse.Write", "PreToolUse", Some("Write")),
        ("PreToolUse.mcp__srv__echo", "PreToolUse", Some("mcp__srv__echo")),
        ("PostToolUseFailure.Bash", "PostToolUseFailure", Some("Bash")),
        ("Stop", "Stop", None),
        ("SessionEnd.other", "SessionEnd", None),
    ] {
        same(name, &golden("claude-code", name), of(&payloads, event, tool), &world.project);
    }
    // The values of tools are the tools' own; here the keys and everything around them count.
    for (name, tool) in
        [("PostToolUse.Bash", "Bash"), ("PostToolUse.Write", "Write"), ("PostToolUse.mcp__srv__echo", "mcp__srv__echo")]
    {
        let mut expected = golden("claude-code", name);
        let found = of(&payloads, "PostToolUse", Some(tool));
        expected["tool_response"] = serde_json::from_str(
            &found["tool_response"].to_string().replace(&world.project.display().to_string(), "$PROJECT"),
        )
        .unwrap();
        same(name, &expected, found, &world.project);
    }
    let transcript = payloads[0]["transcript_path"].as_str().unwrap();
    assert!(Path::new(transcript).is_file());
    assert!(
        payloads.iter().all(|p| p["transcript_path"] == transcript && p["session_id"] == payloads[0]["session_id"])
    );
    let post = of(&payloads, "PostToolUse", Some("Bash"));
    assert_eq!(post["tool_use_id"], of(&payloads, "PreToolUse", Some("Bash"))["tool_use_id"]);
}

#[tokio::test]
async fn claude_payloads_about_the_session_are_as_captured() {
    let world = World::new();
    let session = world.session(vec![text("FINAL")]).await;
    session.prompt("go").await;
    let scene = session.scene();
    let path = world.project.join(".claude/settings.json");
    for (name, own) in [
        (
            "Notification.permission_prompt",
            Own::Notification { kind: "permission_prompt", message: "Claude needs your permission" },
        ),
        (
            "Notification.idle_prompt",
            Own::Notification { kind: "idle_prompt", message: "Claude is waiting for your input" },
        ),
        ("ConfigChange.project_settings", Own::ConfigChange { source: "project_settings", path: &path }),
    ] {
        let found = parsed(&payload(scene.scene(), own));
        same(name, &golden("claude-code", name), &found, &world.project);
    }
}

#[tokio::test]
async fn codex_payloads_are_as_captured() {
    let plays = vec![
        bash("echo tool-output"),
        call("Write", json!({ "file_path": "b.txt", "content": "hello\n" })),
        call("mcp__srv__echo", json!({ "x": "hi" })),
        text("f"),
    ];
    let (world, raw) = record("codex", plays, "PARENTPROMPT").await;
    for bytes in &raw {
        assert_eq!(parsed(bytes).to_string().as_bytes(), bytes, "compact, without a line feed");
    }
    let payloads: Vec<Value> = raw.iter().map(|b| parsed(b)).collect();
    for (name, event, tool) in [
        ("SessionStart", "SessionStart", None),
        ("UserPromptSubmit", "UserPromptSubmit", None),
        ("PreToolUse", "PreToolUse", Some("Bash")),
        ("PreToolUse.apply_patch", "PreToolUse", Some("apply_patch")),
        ("Stop", "Stop", None),
    ] {
        same(name, &golden("codex", name), of(&payloads, event, tool), &world.project);
    }
    let mut expected = golden("codex", "PreToolUse.mcp");
    let mcp = of(&payloads, "PreToolUse", Some("mcp__srv__echo"));
    expected["tool_input"] = mcp["tool_input"].clone();
    expected["permission_mode"] = mcp["permission_mode"].clone();
    same("PreToolUse.mcp", &expected, mcp, &world.project);
    let expected = golden("codex", "PostToolUse");
    let post = of(&payloads, "PostToolUse", Some("Bash"));
    same("PostToolUse", &expected, post, &world.project);
    let mut expected = golden("codex", "PostToolUse.apply_patch");
    let response = expected["tool_response"].as_str().unwrap().replace("<t>", "0");
    expected["tool_response"] = json!(response);
    same("PostToolUse.apply_patch", &expected, of(&payloads, "PostToolUse", Some("apply_patch")), &world.project);
    let transcript = payloads[0]["transcript_path"].as_str().unwrap();
    assert!(Path::new(transcript).is_file() && transcript.contains("/rollout-20"), "{transcript}");
}

#[tokio::test]
async fn any_text_reaches_a_hook_as_valid_json_with_every_character() {
    let said = "日本語 🙂 “q” \u{0} \\ end".to_owned() + &"x".repeat(200_000);
    let (_world, raw) = record("claude-code", vec![text(&said)], "hé").await;
    let payloads: Vec<Value> = raw.iter().map(|b| parsed(b)).collect();
    assert_eq!(of(&payloads, "Stop", None)["last_assistant_message"], said);
    assert_eq!(of(&payloads, "UserPromptSubmit", None)["prompt"], "hé");
    let prompt = raw.iter().find(|b| b.windows(3).any(|w| w == "hé".as_bytes())).unwrap();
    assert!(!String::from_utf8_lossy(prompt).contains("\\u00e9"), "not escaped");
}

#[tokio::test]
async fn file_paths_are_absolute_for_hooks() {
    let plays = vec![call("Write", json!({ "file_path": "sub/../b.txt", "content": "x" })), text("FINAL")];
    let (world, raw) = record("claude-code", plays, "go").await;
    let payloads: Vec<Value> = raw.iter().map(|b| parsed(b)).collect();
    let path = of(&payloads, "PreToolUse", None)["tool_input"]["file_path"].clone();
    assert_eq!(path, world.project.join("b.txt").display().to_string());
}

#[tokio::test]
async fn the_claude_environment_is_whole_without_otel() {
    let mut world = World::new();
    world.effort = Some("medium".to_owned());
    world.claude(&json!({
        "env": { "BAR": "2" },
        "hooks": {
            "SessionStart": [{ "hooks": [{ "type": "command", "command": "env > env.start; echo X=1 >> \"$CLAUDE_ENV_FILE\"" }] }],
            "PreToolUse": [{ "hooks": [{ "type": "command", "command": "env > env.pre; pwd > pwd.pre" }] }],
        }
    }));
    let session = world.session(vec![bash("true"), text("FINAL")]).await;
    session.prompt("go").await;
    let env = world.lines("env.pre");
    let project = world.project.display();
    for wanted in [
        format!("CLAUDE_PROJECT_DIR={project}"),
        "CLAUDECODE=1".to_owned(),
        "CLAUDE_CODE_ENTRYPOINT=sdk-cli".to_owned(),
        format!("CLAUDE_CODE_SESSION_ID={}", session.agent.session().id),
        "CLAUDE_CODE_CHILD_SESSION=1".to_owned(),
        "CLAUDE_CODE_SESSION_ATTENDED=0".to_owned(),
        format!("CLAUDE_PID={}", std::process::id()),
        "CLAUDE_EFFORT=medium".to_owned(),
        "BAR=2".to_owned(),
    ] {
        assert!(env.contains(&wanted), "{wanted} is missing in {env:?}");
    }
    assert!(env.iter().any(|l| l.starts_with("PATH=")));
    assert!(!env.iter().any(|l| l.starts_with("CLAUDE_ENV_FILE=") || l.starts_with("OTEL_")));
    assert!(world.lines("env.start").iter().any(|l| l.starts_with("CLAUDE_ENV_FILE=")));
    assert!(!world.lines("env.start").iter().any(|l| l.starts_with("CLAUDE_EFFORT=")));
    assert_eq!(world.lines("pwd.pre"), [world.project.display().to_string()]);
}
