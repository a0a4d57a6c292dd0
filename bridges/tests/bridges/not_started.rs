//! Gates whose hooks the machine cannot start: they are closed, whatever `hooks.on_failure` and `onFailure` say.

use serde_json::{Value, json};
use sluice_harness::permission::Mode;

use crate::settings::{call, command, decides, pre, says};
use crate::world::{Session, World, bash, text};

/// A line that no system takes as an argument.
const UNSTARTABLE: &str = "exit 0 # \0";

fn codex_pre() -> Value {
    json!({ "PreToolUse": [{ "hooks": [command("exit 0")] }] })
}

/// One call, made after the start folder was taken away.
async fn without_folder(world: &World) -> Session {
    let session = world.session(vec![bash("touch ../t"), text("FINAL")]).await;
    let away = world.project.with_file_name("away");
    std::fs::rename(&world.project, &away).unwrap();
    session.agent.session().set_cwd(away);
    session.prompt("go").await;
    session
}

#[tokio::test]
async fn a_call_is_denied_when_its_hook_has_no_folder_to_start_in() {
    let lenient = json!({ "type": "command", "command": "exit 0", "onFailure": "continue" });
    for (claude, codex) in [(Some(command("exit 0")), None), (Some(lenient), None), (None, Some(codex_pre()))] {
        let world = World::new();
        if let Some(handler) = &claude {
            world.claude(&pre(std::slice::from_ref(handler)));
        }
        if let Some(hooks) = &codex {
            world.codex(hooks);
        }
        let session = without_folder(&world).await;
        assert!(!world.project.with_file_name("t").exists(), "{claude:?} {codex:?}");
        let said = &session.results()[0].0;
        for part in ["exit 0", "could not be started", "cannot be entered", "its decision is unknown"] {
            assert!(said.contains(part), "{claude:?} {codex:?}: {said}");
        }
    }
    // What no gate is goes on: the control.
    let world = World::new();
    world.claude(&json!({ "hooks": { "PostToolUse": [{ "hooks": [command("exit 2")] }] } }));
    without_folder(&world).await;
    assert!(world.project.with_file_name("t").exists());
}

#[tokio::test]
async fn a_prompt_is_rejected_when_its_hook_cannot_be_started() {
    for dialect in ["claude-code", "codex"] {
        let world = World::new();
        let hooks = json!({ "UserPromptSubmit": [{ "hooks": [command(UNSTARTABLE)] }] });
        if dialect == "codex" {
            world.codex(&hooks);
        } else {
            world.claude(&json!({ "hooks": hooks }));
        }
        let session = world.session(vec![text("FINAL")]).await;
        let report = session.prompt("go").await;
        assert_eq!(session.requests(), 0, "{dialect}");
        let end = format!("{:?} {}", report.end, session.said());
        assert!(end.contains("could not be started"), "{dialect}: {end}");
    }
}

#[tokio::test]
async fn an_allowance_of_another_hook_does_not_open_what_a_hook_that_cannot_be_started_guards() {
    let world = World::new();
    let session = call(&world, &pre(&[decides("allow", "a"), command(UNSTARTABLE)]), "touch t").await;
    assert!(!world.has("t"));
    assert!(session.results()[0].0.contains("could not be started"), "{:?}", session.results());

    let mut world = World::new();
    world.set_mode(Mode::Default);
    let allow = says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" }
    } }));
    let settings = json!({ "hooks": { "PermissionRequest": [{ "hooks": [allow, command(UNSTARTABLE)] }] } });
    let session = call(&world, &settings, "touch t").await;
    assert!(!world.has("t"));
    assert!(session.results()[0].0.contains("could not be started"), "{:?}", session.results());
}
