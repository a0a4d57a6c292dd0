//! Permission order and rewrites: rules, modes, hooks of both dialects and answers join by strictness.

use serde_json::{Value, json};
use sluice_harness::ids::Seq;
use sluice_harness::log::event::ToolGate;
use sluice_harness::permission::{Behaviour, Mode, Rule};

use crate::settings::{call, command, decides, pre, says};
use crate::world::{Play, World, bash, text};

fn rule(world: &World, behaviour: Behaviour, text: &str) {
    world.store.add_rules("test", &world.project, behaviour, vec![Rule::parse(text).unwrap()]);
}

#[tokio::test]
async fn a_deny_rule_beats_any_hook_answer() {
    let rewritten = says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": { "command": "touch t" }
    } }));
    for handler in [decides("ask", "q"), decides("allow", "a"), rewritten, command("true")] {
        let world = World::new();
        rule(&world, Behaviour::Deny, "Bash(printf SECRET*)");
        let session = call(&world, &pre(std::slice::from_ref(&handler)), "printf SECRET9").await;
        assert!(session.results()[0].1, "{handler}: {:?}", session.results());
        assert!(!session.results()[0].0.starts_with("SECRET9") && !world.has("t"), "{handler}");
    }
}

#[tokio::test]
async fn a_rewrite_cannot_slip_past_a_deny_rule() {
    let world = World::new();
    rule(&world, Behaviour::Deny, "Bash(touch secret*)");
    let rewritten = says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": { "command": "touch secret" }
    } }));
    let session = call(&world, &pre(&[rewritten]), "true").await;
    assert!(!world.has("secret"));
    assert!(session.results()[0].1);
}

#[tokio::test]
async fn rules_and_hook_answers_join_by_strictness() {
    // Nobody can be asked here, so "prompt" shows as not run.
    let rows = [
        (None, ["prompt", "run", "prompt", "deny", "deny"]),
        (Some(Behaviour::Allow), ["run", "run", "prompt", "deny", "deny"]),
        (Some(Behaviour::Ask), ["prompt", "prompt", "prompt", "deny", "deny"]),
        (Some(Behaviour::Deny), ["deny", "deny", "deny", "deny", "deny"]),
    ];
    for (behaviour, row) in rows {
        let hooks = [
            command("true"),
            decides("allow", "a"),
            decides("ask", "q"),
            decides("deny", "d"),
            command("echo e >&2; exit 2"),
        ];
        for (handler, expected) in hooks.iter().zip(row) {
            let mut world = World::new();
            world.set_mode(Mode::Default);
            if let Some(behaviour) = behaviour {
                rule(&world, behaviour, "Bash(touch *)");
            }
            let session = call(&world, &pre(std::slice::from_ref(handler)), "touch t").await;
            assert_eq!(world.has("t"), expected == "run", "{behaviour:?} {handler}");
            let asked = session
                .agent
                .log()
                .since(Seq(0))
                .iter()
                .filter_map(|e| e.decode::<ToolGate>())
                .any(|g| g.stage == "approval");
            assert_eq!(asked, expected == "prompt", "{behaviour:?} {handler}: {:?}", session.results());
        }
    }
}

#[tokio::test]
async fn an_ask_with_nobody_there_is_denied_with_the_hooks_reason_in_every_mode() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
        let mut world = World::new();
        world.set_mode(mode);
        let session = call(&world, &pre(&[decides("ask", "needs a human")]), "touch t").await;
        assert!(!world.has("t"), "{mode}");
        assert!(session.results()[0].0.contains("needs a human"), "{mode}: {:?}", session.results());
    }
}

#[tokio::test]
async fn no_tool_starts_before_its_hooks_have_answered() {
    let world = World::new();
    world.claude(&pre(&[command("sleep 0.5; exit 2")]));
    let calls = ["a", "b", "c"].map(|n| ("Bash".to_owned(), json!({ "command": format!("touch {n}") })));
    let session = world.session(vec![Play::Calls(calls.to_vec()), text("FINAL")]).await;
    session.prompt("go").await;
    assert!(!world.has("a") && !world.has("b") && !world.has("c"));
    assert_eq!(session.results().len(), 3);
}

#[tokio::test]
async fn one_rewrite_among_silent_and_allowing_hooks_is_applied_in_any_order() {
    let new = says(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": { "command": "echo new" }
    } }));
    let three = [command("true"), decides("allow", "a"), new];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut world = World::new();
        world.set_mode(Mode::Default);
        let handlers: Vec<Value> = order.iter().map(|n| three[*n].clone()).collect();
        let mut settings = pre(&handlers);
        settings["hooks"]["PostToolUse"] = json!([{ "hooks": [command("cat >> post")] }]);
        let session = call(&world, &settings, "echo old").await;
        assert_eq!(session.results(), [("new".to_owned(), false)], "{order:?}");
        let posts = world.lines("post");
        assert_eq!(posts.len(), 1);
        let payload: Value = serde_json::from_str(&posts[0]).unwrap();
        assert_eq!(payload["tool_input"]["command"], "echo new");
        assert_eq!(payload["tool_use_id"], "toolu_0001");
    }
}

#[tokio::test]
async fn two_different_rewrites_are_a_warning_and_the_first_in_configuration_order_wins() {
    let to = |line: &str, wait: &str| {
        let output = json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": { "command": line }
        } });
        command(&format!("sleep {wait}; echo '{output}'"))
    };
    let world = World::new();
    let session = call(&world, &pre(&[to("echo first", "0.3"), to("echo second", "0")]), "echo old").await;
    assert_eq!(session.results()[0].0, "first");
    assert!(session.said().contains("rewrite the same input differently"), "{}", session.said());
}

#[tokio::test]
async fn both_dialects_run_their_own_hooks_and_the_stricter_answer_counts() {
    let world = World::new();
    world.codex(&json!({ "PreToolUse": [{ "hooks": [command("echo x >> codex; echo NO >&2; exit 2")] }] }));
    let session = call(&world, &pre(&[command("echo x >> claude"), decides("allow", "a")]), "touch t").await;
    assert!(!world.has("t"));
    assert_eq!((world.lines("claude").len(), world.lines("codex").len()), (1, 1));
    assert_eq!(session.results()[0].0, "Command blocked by PreToolUse hook: NO. Command: touch t");
}

#[tokio::test]
async fn permission_request_hooks_are_consulted_before_anything_is_denied() {
    let answer = |decision: &Value| {
        says(&json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } }))
    };
    let allow = answer(&json!({ "behavior": "allow" }));
    let deny = answer(&json!({ "behavior": "deny", "message": "not today", "interrupt": true }));
    for (handlers, ran, reason) in [
        (vec![allow.clone()], true, None),
        (vec![deny.clone()], false, Some("not today")),
        (vec![allow.clone(), deny], false, Some("not today")),
        (vec![command("true")], false, Some("needs a human")),
    ] {
        let world = World::new();
        let mut settings = pre(&[decides("ask", "needs a human")]);
        let mut all = vec![command("cat >> pr.jsonl")];
        all.extend(handlers);
        settings["hooks"]["PermissionRequest"] = json!([{ "matcher": "Bash", "hooks": all }]);
        let session = call(&world, &settings, "touch t").await;
        assert_eq!(world.has("t"), ran);
        let records = world.lines("pr.jsonl");
        assert_eq!(records.len(), 1);
        let payload: Value = serde_json::from_str(&records[0]).unwrap();
        assert_eq!(payload["tool_input"]["command"], "touch t");
        let keys: Vec<&String> = payload.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "session_id",
                "transcript_path",
                "cwd",
                "prompt_id",
                "permission_mode",
                "hook_event_name",
                "tool_name",
                "tool_input",
                "permission_suggestions",
            ]
        );
        if let Some(reason) = reason {
            assert!(session.results()[0].0.contains(reason), "{:?}", session.results());
        }
    }
    // A deny rule asks nobody.
    let world = World::new();
    rule(&world, Behaviour::Deny, "Bash(touch *)");
    let settings = json!({ "hooks": { "PermissionRequest": [{ "hooks": [allow] }] } });
    call(&world, &settings, "touch t").await;
    assert!(!world.has("t"));
}

#[tokio::test]
async fn a_permission_update_counts_for_the_session_and_an_unwritten_one_is_said() {
    let mut world = World::new();
    world.set_mode(Mode::Default);
    let update = json!({
        "type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{ "toolName": "Bash", "ruleContent": "touch:*" }],
    });
    let once = says(&json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": {
        "behavior": "allow", "updatedPermissions": [update]
    } } }));
    let once = command(&format!("[ -e once ] && exit 0; touch once; {}", once["command"].as_str().unwrap()));
    world.claude(&json!({ "hooks": { "PermissionRequest": [{ "hooks": [once] }] } }));
    let session = world.session(vec![bash("touch a"), bash("touch b"), text("FINAL")]).await;
    session.prompt("go").await;
    assert!(world.has("a") && world.has("b"));
    assert!(session.said().contains("not written to localSettings"), "{}", session.said());
}
