//! Discovery: which files, in which order, what is dropped, what is held back, and that all of it is said.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use sluice_bridges::claude_code::{self, Discovery};
use sluice_bridges::{BridgeConfig, ExtraSettings, Severity, Trust, TrustDecision, codex, find_workspace_root};
use sluice_providers::host_files::LocalHostFiles;

use crate::world::World;

async fn claude(config: &BridgeConfig) -> Discovery {
    claude_code::discover(config, &LocalHostFiles::new()).await
}

fn hooks(event: &str, command: &str) -> serde_json::Value {
    json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command }] }] } })
}

fn user_settings(world: &World, settings: &serde_json::Value) {
    let path = world.home.join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, settings.to_string()).unwrap();
}

fn commands(found: &Discovery) -> Vec<String> {
    found.handlers.iter().map(|h| h.label().to_owned()).collect()
}

#[tokio::test]
async fn layers_add_up_from_the_user_to_the_command_line() {
    let mut world = World::new();
    user_settings(&world, &hooks("Stop", "u"));
    world.claude(&hooks("Stop", "p"));
    world.file(".claude/settings.local.json", &hooks("Stop", "l").to_string());
    let text = hooks("Stop", "f").to_string();
    world.config.extra_settings = vec![ExtraSettings { origin: PathBuf::from("--settings"), text }];
    let found = claude(&world.config).await;
    assert_eq!(commands(&found), ["u", "p", "l", "f"]);
    world.config.setting_sources.project = false;
    world.config.setting_sources.local = false;
    assert_eq!(commands(&claude(&world.config).await), ["u", "f"]);
}

#[tokio::test]
async fn a_bad_entry_is_dropped_alone_and_named_with_its_place() {
    let world = World::new();
    world.claude(&json!({ "$schema": "x", "hooks": {
        "Stop": [{ "hooks": [{ "type": "command", "command": "mark stop" }] }],
        "stop": [{ "hooks": [{ "type": "command", "command": "never" }] }],
        "PreToolUse": [
            { "matcher": { "type": "always" }, "hooks": [{ "type": "command", "command": "mark bad" }] },
            { "hooks": [
                "text", { "type": "nope" }, { "type": "command" },
                { "type": "command", "command": "x", "timeout": "5" },
                { "type": "command", "command": "x", "timeout": 0 },
                { "type": "command", "command": "x", "args": "y" },
                { "type": "command", "command": "x", "onFailure": "deny" },
                { "type": "command", "command": "x", "shell": "fish" },
                { "type": "command", "command": "fine", "timeout": 0.5, "id": "z", "once": true },
            ] },
            { "matcher": "Bash" },
        ],
        "PreCompact": [{ "hooks": [{ "type": "command", "command": "later" }] }],
    } }));
    let found = claude(&world.config).await;
    assert_eq!(commands(&found), ["mark stop", "fine"]);
    let file = world.project.join(".claude/settings.json").display().to_string();
    let causes: Vec<String> = found.problems.iter().map(|p| p.cause.clone()).collect();
    for place in [
        "hooks.stop",
        "hooks.PreToolUse[0].matcher",
        "hooks.PreToolUse[1].hooks[0]",
        "hooks.PreToolUse[1].hooks[1].type",
        "hooks.PreToolUse[1].hooks[2].command",
        "hooks.PreToolUse[1].hooks[3].timeout",
        "hooks.PreToolUse[1].hooks[4].timeout",
        "hooks.PreToolUse[1].hooks[5].args",
        "hooks.PreToolUse[1].hooks[6].onFailure",
        "hooks.PreToolUse[1].hooks[7].shell",
        "hooks.PreToolUse[2]",
    ] {
        assert!(causes.iter().any(|c| c.contains(&format!("{file}: {place}:"))), "{place} in {causes:#?}");
    }
    let quiet: Vec<_> = found.problems.iter().filter(|p| p.cause.contains("PreCompact")).collect();
    assert!(quiet.iter().all(|p| p.severity == Severity::Info));
}

#[tokio::test]
async fn a_file_that_cannot_be_parsed_is_an_error_and_the_others_work() {
    let world = World::new();
    user_settings(&world, &hooks("Stop", "u"));
    for text in ["", "// comment\n{}", "{\"hooks\": {},}", "[]"] {
        world.file(".claude/settings.json", text);
        let found = claude(&world.config).await;
        assert_eq!(commands(&found), ["u"], "{text}");
        assert!(
            found.problems.iter().any(|p| p.code == "settings-unreadable" && p.severity == Severity::Error),
            "{text}"
        );
    }
    world.file(".claude/settings.json", &format!("\u{feff}{}", hooks("Stop", "bom")));
    assert_eq!(commands(&claude(&world.config).await), ["u", "bom"]);
}

#[tokio::test]
async fn repository_hooks_are_held_back_and_named_with_the_command_that_accepts_them() {
    let mut world = World::new();
    world.config.trust = TrustDecision::HoldRepository;
    world.claude(&json!({
        "disableAllHooks": true,
        "env": { "EVIL": "1" },
        "permissions": { "allow": ["Bash(*)"], "deny": ["Bash(rm *)"] },
        "hooks": { "SessionStart": [{ "hooks": [{ "type": "command", "command": "mark start" }] }] },
    }));
    user_settings(&world, &hooks("Stop", "mine"));
    let found = claude(&world.config).await;
    let trust: Vec<_> = found.handlers.iter().map(|h| (h.label().to_owned(), h.trust, h.off.clone())).collect();
    assert_eq!(trust, [("mine".to_owned(), Trust::Owner, None), ("mark start".to_owned(), Trust::HeldBack, None),]);
    let held: Vec<_> = found.problems.iter().filter(|p| p.code == "hook-held-back").collect();
    assert_eq!(held.len(), 1);
    assert!(held[0].cause.contains("mark start") && held[0].cause.contains("hooks.SessionStart[0].hooks[0]"));
    assert!(held[0].remedy.contains("--trust-hooks"));
    assert!(found.env.is_empty());
    let project = found.permissions.iter().find(|p| !p.trusted).unwrap();
    assert_eq!(
        (project.deny.clone(), project.allow.clone()),
        (vec!["Bash(rm *)".to_owned()], vec!["Bash(*)".to_owned()])
    );

    world.config.trust = TrustDecision::TrustHooks;
    let found = claude(&world.config).await;
    assert!(found.handlers.iter().all(|h| h.off.is_none() && h.trust != Trust::HeldBack), "accepted hooks run");
    assert!(found.env.is_empty() && found.permissions.iter().any(|p| !p.trusted), "the rest of the file still waits");

    world.config.trust = TrustDecision::TrustAll;
    let found = claude(&world.config).await;
    assert!(found.handlers.iter().all(|h| h.off.is_some()), "an accepted off switch counts");
    assert_eq!(found.env.len(), 1);
}

#[tokio::test]
async fn the_nearest_off_switch_decides() {
    let world = World::new();
    user_settings(&world, &json!({ "disableAllHooks": true, "hooks": hooks("Stop", "u")["hooks"] }));
    let found = claude(&world.config).await;
    assert!(found.handlers.iter().all(|h| h.off.is_some()));
    world.claude(&json!({ "disableAllHooks": false, "hooks": hooks("Stop", "p")["hooks"] }));
    let found = claude(&world.config).await;
    assert!(found.handlers.iter().all(|h| h.off.is_none()));
}

#[tokio::test]
async fn a_workspace_that_is_the_home_folder_counts_each_file_once_also_through_a_link() {
    let world = World::new();
    user_settings(&world, &hooks("Stop", "mark stop"));
    let mut config = world.config.clone();
    config.trust = TrustDecision::HoldRepository;
    config.start_dir.clone_from(&world.home);
    config.workspace_root.clone_from(&world.home);
    let found = claude(&config).await;
    assert_eq!(commands(&found), ["mark stop"]);
    assert!(found.handlers.iter().all(|h| h.trust == Trust::Owner));
    let link = world.project.join("link");
    std::os::unix::fs::symlink(&world.home, &link).unwrap();
    config.start_dir.clone_from(&link);
    config.workspace_root = link;
    let found = claude(&config).await;
    assert_eq!(commands(&found), ["mark stop"]);
    assert!(found.handlers.iter().all(|h| h.trust == Trust::Owner));
}

#[tokio::test]
async fn a_matcher_that_names_a_whole_server_gets_a_hint_and_a_bad_pattern_a_warning() {
    let world = World::new();
    world.claude(&json!({ "hooks": { "PreToolUse": [
        { "matcher": "mcp__box", "hooks": [{ "type": "command", "command": "a" }] },
        { "matcher": "mcp__box__.*", "hooks": [{ "type": "command", "command": "b" }] },
        { "matcher": "(?i)bash", "hooks": [{ "type": "command", "command": "c" }] },
    ] } }));
    let found = claude(&world.config).await;
    assert_eq!(found.problems.len(), 2, "{:#?}", found.problems);
    assert!(found.problems[0].remedy.contains("`mcp__box__.*`"));
    assert!(found.problems[1].cause.contains("hooks.PreToolUse[2].matcher"));
}

#[tokio::test]
async fn a_matcher_that_no_tool_fits_gets_a_hint_in_both_dialects() {
    let world = World::new();
    let group = |matcher: &str| json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": "a" }] });
    world.claude(&json!({ "hooks": {
        "PreToolUse": [group("bash"), group("Bash(rm *)"), group("Bash")],
        "Notification": [group("bash")],
    } }));
    world.codex(&json!({ "PostToolUse": [group("Bash"), group("Edit,Bash")] }));
    let hints = |problems: Vec<sluice_bridges::Problem>| -> Vec<String> {
        assert!(problems.iter().all(|p| p.code == "hook-matcher-hint"), "{problems:#?}");
        problems.iter().map(|p| format!("{} {}", p.cause.split(": ").nth(1).unwrap(), p.remedy)).collect()
    };
    assert_eq!(
        hints(claude(&world.config).await.problems),
        [
            "hooks.PreToolUse[0].matcher Names are exact and case-sensitive: write `Bash`.",
            "hooks.PreToolUse[1].matcher A matcher is about a tool's name alone: write `Bash`, and look at the input in \
             the hook.",
        ]
    );
    assert_eq!(
        hints(codex_of(&world.config).await.problems),
        ["hooks.PostToolUse[1].matcher Separate names with `|`, as in `Edit|Bash`."]
    );
}

#[tokio::test]
async fn a_bad_entry_of_a_codex_file_is_named_with_its_place() {
    let world = World::new();
    let entry = json!({ "type": "command", "command": "a" });
    for (hooks, place) in [
        (json!({ "Stop": [{ "hooks": [entry, { "type": "comand", "command": "b" }] }] }), "hooks.Stop[0].hooks[1]: "),
        (json!({ "Stop": [{ "hooks": [entry] }, { "hooks": [entry], "matcher": 1 }] }), "hooks.Stop[1]: "),
        (json!({ "Stop": { "hooks": [entry] } }), "hooks.Stop: it is no list"),
    ] {
        world.codex(&hooks);
        let found = codex_of(&world.config).await;
        assert!(found.handlers.is_empty());
        assert!(found.problems[0].cause.contains(place), "{place} in {:?}", found.problems);
    }
}

#[tokio::test]
async fn the_workspace_root_is_found_from_a_nested_folder_and_stops_at_the_work_tree() {
    let world = World::new();
    world.claude(&json!({}));
    fs::create_dir_all(world.project.join("a/b")).unwrap();
    let files = LocalHostFiles::new();
    let found = find_workspace_root(&files, &world.project.join("a/b"), &world.home).await;
    assert_eq!(found, world.project);
    world.file("a/.git", "gitdir: /nowhere/.git/worktrees/a\n");
    let found = find_workspace_root(&files, &world.project.join("a/b"), &world.home).await;
    assert_eq!(found, world.project.join("a/b"));
}

async fn codex_of(config: &BridgeConfig) -> codex::Discovery {
    codex::discover(config, &LocalHostFiles::new()).await
}

fn codex_file(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join(".codex")).unwrap();
    fs::write(folder.join(".codex/hooks.json"), text).unwrap();
}

#[tokio::test]
async fn codex_files_are_the_users_and_every_folder_from_the_repository_root_down() {
    let world = World::new();
    fs::create_dir_all(world.project.join(".git")).unwrap();
    let sub = world.project.join("a");
    fs::create_dir_all(&sub).unwrap();
    codex_file(&world.home, &hooks("Stop", "user").to_string());
    codex_file(&world.project, &hooks("Stop", "root").to_string());
    codex_file(&sub, &hooks("Stop", "sub").to_string());
    codex_file(world.project.parent().unwrap(), &hooks("Stop", "above").to_string());
    let mut config = world.config.clone();
    config.start_dir = sub;
    let found = codex_of(&config).await;
    let labels: Vec<_> = found.handlers.iter().map(|h| h.label().to_owned()).collect();
    assert_eq!(labels, ["user", "root", "sub"]);
    config.trust = TrustDecision::HoldRepository;
    let found = codex_of(&config).await;
    assert_eq!(found.handlers.held_back().count(), 2);
    assert_eq!(found.problems.iter().filter(|p| p.remedy.contains("--trust-hooks")).count(), 2);
}

#[tokio::test]
async fn in_a_linked_work_tree_the_main_checkouts_codex_hooks_are_read() {
    let world = World::new();
    let main = world.project.join("main");
    let tree = world.project.join("wt");
    fs::create_dir_all(main.join(".git/worktrees/wt")).unwrap();
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join(".git"), format!("gitdir: {}\n", main.join(".git/worktrees/wt").display())).unwrap();
    codex_file(&main, &hooks("PreToolUse", "pre").to_string());
    codex_file(&tree, &hooks("PreToolUse", "other").to_string());
    let mut config = world.config.clone();
    config.start_dir = tree.join("sub");
    let found = codex_of(&config).await;
    let labels: Vec<_> = found.handlers.iter().map(|h| h.label().to_owned()).collect();
    assert_eq!(labels, ["pre"]);
}

#[tokio::test]
async fn a_broken_codex_file_is_unreadable_as_a_whole() {
    let world = World::new();
    let group = |handler: serde_json::Value| json!({ "hooks": { "Stop": [{ "hooks": [handler] }] } }).to_string();
    for text in [
        String::new(),
        "{\"hooks\": null}".to_owned(),
        "{\"disableAllHooks\": true}".to_owned(),
        "{\"Stop\": []}".to_owned(),
        "\u{feff}{}".to_owned(),
        group(json!({ "type": "http", "url": "x" })),
        group(json!({ "type": "command", "command": "x", "timeout": -1 })),
        group(json!({ "type": "command", "command": "x", "timeout": 0.5 })),
        group(json!({ "type": "command" })),
    ] {
        codex_file(&world.home, &text);
        let found = codex_of(&world.config).await;
        assert!(found.handlers.is_empty(), "{text}");
        assert!(found.problems.iter().any(|p| p.code == "hooks-file-unreadable"), "{text}");
    }
}

#[tokio::test]
async fn what_codex_ignores_is_ignored_and_what_it_skips_is_said() {
    let world = World::new();
    codex_file(
        &world.home,
        &json!({ "description": "d", "hooks": {
        "NoSuchEvent": 5,
        "PreToolUse": [
            { "type": "command", "command": "not in a group" },
            { "matcher": "[", "hooks": [{ "type": "command", "command": "never" }] },
            { "matcher": "Bash", "extra": 1, "hooks": [
                { "type": "command", "command": "kept", "timeout": 0, "timeoutSec": 9, "if": "x" },
                { "type": "command", "command": " " },
                { "type": "prompt", "prompt": "x" },
            ] },
        ],
    } })
        .to_string(),
    );
    let found = codex_of(&world.config).await;
    let labels: Vec<_> = found.handlers.iter().map(|h| (h.label().to_owned(), h.timeout)).collect();
    assert_eq!(labels, [("never".to_owned(), None), ("kept".to_owned(), Some(std::time::Duration::from_secs(1)))]);
    let causes: String = found.problems.iter().map(|p| format!("{}\n", p.cause)).collect();
    for said in ["invalid matcher \"[\"", "skipping empty hook command", "prompt hooks are not supported"] {
        assert!(causes.contains(said), "{said} in {causes}");
    }
    for empty in ["{}", "[]"] {
        codex_file(&world.home, empty);
        let found = codex_of(&world.config).await;
        assert!(found.handlers.is_empty() && found.problems.is_empty(), "{empty}");
    }
    fs::write(world.home.join(".codex/config.toml"), "[[hooks.Stop]]\n").unwrap();
    assert_eq!(codex_of(&world.config).await.problems[0].code, "hooks-toml-not-read");
}
