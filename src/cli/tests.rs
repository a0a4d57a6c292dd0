//! The command line as people write it, and the plan it becomes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed test may panic"
)]

use clap::CommandFactory as _;
use sluice_bridges::{SettingSources, TrustDecision};
use sluice_harness::permission::Mode;

use super::*;
use crate::config::{Entry, Origin};

fn parsed(line: &[&str]) -> Result<Command, NoPlan> {
    parse(std::iter::once("sluice").chain(line.iter().copied()).map(OsString::from))
}

#[track_caller]
fn run(line: &[&str]) -> RunPlan {
    match parsed(line) {
        Ok(Command::Run(plan)) => *plan,
        other => panic!("{line:?}: {other:?}"),
    }
}

#[track_caller]
fn fault(line: &[&str]) -> Fault {
    match parsed(line) {
        Err(NoPlan::Fault(fault)) => fault,
        other => panic!("{line:?}: {other:?}"),
    }
}

/// What clap says, and its exit code.
#[track_caller]
fn words(line: &[&str]) -> (String, i32) {
    match parsed(line) {
        Err(NoPlan::Words(error)) => (error.to_string(), error.exit_code()),
        other => panic!("{line:?}: {other:?}"),
    }
}

fn rules(list: &[sluice_harness::permission::Rule]) -> Vec<&str> {
    list.iter().map(sluice_harness::permission::Rule::text).collect()
}

#[test]
fn the_declaration_of_the_command_line_is_sound() {
    args::Cli::command().debug_assert();
}

#[test]
fn the_list_of_commands_is_the_one_that_is_declared() {
    let mut declared: Vec<String> = args::Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
    declared.push("help".to_owned());
    assert_eq!(declared, args::COMMANDS);
}

#[test]
fn every_command_has_help_with_an_example() {
    let lines: &[&[&str]] = &[
        &[],
        &["acp"],
        &["run"],
        &["demo"],
        &["sessions"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["models"],
        &["hooks"],
        &["hooks", "list"],
    ];
    for line in lines {
        let (text, exit) = words(&[line, ["--help"].as_slice()].concat());
        assert_eq!(exit, 0, "{line:?}");
        let example = text.split("Example").nth(1).unwrap_or_default();
        assert!(example.contains("  sluice ") || example.contains("| sluice "), "{line:?}: {text}");
        assert!(!text.contains('\u{1b}'), "{line:?}");
    }
}

#[test]
fn print_alias_may_stand_anywhere_before_the_end_of_flags() {
    for line in [
        &["-p", "hi"][..],
        &["hi", "-p"],
        &["--model", "script:demo", "-p", "hi"],
        &["-p", "--model", "script:demo", "hi"],
        &["--output-format", "json", "hi", "-p"],
        &["-pv", "hi"],
        &["-p", "--", "hi"],
        &["run", "hi"],
        &["run", "-p", "hi"],
        &["run", "hi", "-p"],
    ] {
        assert_eq!(run(line).prompt, PromptSource::Argument("hi".into()), "{line:?}");
    }
    assert_eq!(run(&["-p", "--", "-p"]).prompt, PromptSource::Argument("-p".into()));
    assert_eq!(run(&["run", "--", "--help"]).prompt, PromptSource::Argument("--help".into()));
    assert_eq!(fault(&["hi", "--", "-p"]).code, "command-unknown");
    assert_eq!(fault(&["hi"]).code, "command-unknown");
    assert_eq!(words(&["acp", "-p"]).1, 2);
}

#[test]
fn the_prompt_comes_from_one_place() {
    assert_eq!(run(&["run"]).prompt, PromptSource::Unnamed);
    assert_eq!(run(&["run", "-"]).prompt, PromptSource::Stdin);
    assert_eq!(run(&["run", "hi", "-"]).prompt, PromptSource::ArgumentAndStdin("hi".into()));
    assert_eq!(run(&["-p", "-", "hi"]).prompt, PromptSource::ArgumentAndStdin("hi".into()));
    assert_eq!(fault(&["run", "fix", "it"]).code, "prompt-twice");
    assert_eq!(run(&["run", "--input-format", "stream-json"]).prompt, PromptSource::StreamJson);
    assert_eq!(run(&["run", "-", "--input-format", "stream-json"]).prompt, PromptSource::StreamJson);
    assert_eq!(fault(&["run", "hi", "--input-format", "stream-json"]).code, "prompt-twice");
    assert_eq!(fault(&["run", " \n"]).code, "prompt-empty");
    assert_eq!(fault(&["-p", ""]).exit_code(), 2);
}

#[test]
fn flags_become_a_typed_plan() {
    let plan = run(&[
        "-p",
        "hi",
        "--model",
        "a/b",
        "--permission-mode",
        "manual",
        "--allowedTools",
        "Bash(git *)",
        "Edit,Write",
        "--disallowed-tools",
        "Bash(rm *)",
        "--max-turns",
        "3",
        "--max-steps",
        "4",
        "--timeout",
        "0.5",
        "--max-output-tokens",
        "100",
        "--cwd",
        "/p",
        "--add-dir",
        "/a",
        "--add-dir",
        "b",
        "--system-prompt",
        "S",
        "--append-system-prompt",
        "A",
        "--settings",
        " {\"hooks\":{}}",
        "--settings",
        "own.json",
        "--setting-sources",
        "user,local",
        "--trust-hooks",
        "--log-file",
        "l",
        "-vv",
        "--output-format",
        "stream-json",
        "--include-hook-events",
        "--resume",
        "0199",
        "--fail-on-denial",
    ]);
    let session = plan.session;
    assert_eq!(
        session.overrides,
        [
            (Entry::Model("a/b".into()), Origin::Flag("--model")),
            (Entry::PermissionMode(Mode::Default), Origin::Flag("--permission-mode")),
            (Entry::MaxOutputTokens(100), Origin::Flag("--max-output-tokens")),
        ]
    );
    assert_eq!(rules(&session.allow), ["Bash(git *)", "Edit", "Write"]);
    assert_eq!(rules(&session.deny), ["Bash(rm *)"]);
    assert_eq!((session.max_turns, session.max_steps), (Some(3), Some(4)));
    assert_eq!(session.timeout, Some(std::time::Duration::from_millis(500)));
    assert_eq!(session.cwd, Some("/p".into()));
    assert_eq!(session.add_dirs, [PathBuf::from("/a"), PathBuf::from("b")]);
    assert_eq!(session.system_prompt.as_deref(), Some("S"));
    assert_eq!(session.append_system_prompt.as_deref(), Some("A"));
    assert_eq!(
        session.settings,
        [SettingsArgument::Json(" {\"hooks\":{}}".into()), SettingsArgument::File("own.json".into())]
    );
    assert_eq!(session.setting_sources, SettingSources { user: true, project: false, local: true });
    assert_eq!(session.hooks, HookUse::On(TrustDecision::TrustHooks));
    assert_eq!(session.mcp, []);
    assert_eq!(session.diagnostics, Diagnostics { log_file: Some("l".into()), verbosity: 2 });
    assert_eq!(plan.output, OutputFormat::StreamJson);
    assert_eq!(plan.hook_events, HookEvents::Include);
    assert_eq!(plan.begin, Begin::Resume("0199".into()));
    assert_eq!(plan.denials, DenialPolicy::Fail);
}

#[test]
fn without_flags_nothing_is_overridden() {
    let plan = run(&["run", "hi"]);
    assert!(plan.session.overrides.is_empty());
    assert_eq!(plan.session.hooks, HookUse::On(TrustDecision::HoldRepository));
    assert_eq!(plan.session.setting_sources, SettingSources::default());
    assert_eq!((plan.output, plan.hook_events, plan.begin), (OutputFormat::Text, HookEvents::Leave, Begin::Fresh));
    assert_eq!(plan.denials, DenialPolicy::Tolerate);
}

#[test]
fn acp_takes_the_session_flags_and_a_wire_trace() {
    let Ok(Command::Acp(plan)) = parsed(&["acp", "--no-hooks", "--trace-wire", "w", "--model", "script:demo"]) else {
        panic!("no plan")
    };
    assert_eq!(plan.session.hooks, HookUse::Off(TrustDecision::HoldRepository));
    assert_eq!(plan.trace_wire, Some("w".into()));
}

#[test]
fn the_looking_commands_are_read() {
    assert!(matches!(parsed(&["sessions", "list", "--json"]), Ok(Command::SessionsList(ListFormat::Json))));
    assert!(matches!(parsed(&["sessions", "show", "x"]), Ok(Command::SessionsShow(p)) if p.id == "x"));
    assert!(
        matches!(parsed(&["hooks", "list", "--event", "Stop"]), Ok(Command::HooksList(p)) if p.event == Some(Event::Stop))
    );
    assert!(matches!(parsed(&["demo", "--dir", "d"]), Ok(Command::Demo(p)) if p.dir == Some("d".into())));
}

#[test]
fn all_of_the_repository_is_accepted_with_its_hooks_or_without_them() {
    let trusting =
        run(&["run", "hi", "--trust-workspace", "--mcp-config", "a.json", "--mcp-config", "{\"mcpServers\":{}}"]);
    assert_eq!(trusting.session.hooks, HookUse::On(TrustDecision::TrustAll));
    assert_eq!(
        trusting.session.mcp,
        [SettingsArgument::File("a.json".into()), SettingsArgument::Json("{\"mcpServers\":{}}".into())]
    );
    let without = run(&["run", "hi", "--trust-workspace", "--no-hooks"]);
    assert_eq!(without.session.hooks, HookUse::Off(TrustDecision::TrustAll));
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    for (line, named) in [
        (&["run", "hi", "--sandbox", "loose"][..], "--sandbox"),
        (&["run", "hi", "--network", "maybe"], "--network"),
        (&["run", "hi", "--fork"], "--fork"),
        (&["run", "hi", "--trace-wire", "f"], "--trace-wire"),
        (&["hooks", "check"], "check"),
        (&["sessions", "rm", "x"], "rm"),
        (&["run", "hi", "--output-format", "yaml"], "yaml"),
        (&["run", "hi", "--max-turns", "0"], "--max-turns"),
        (&["run", "hi", "--timeout", "0"], "--timeout"),
        (&["run", "hi", "--timeout", "-1"], "-1"),
        (&["run", "hi", "--timeout", "nan"], "--timeout"),
        (&["run", "hi", "--continue", "--resume", "x"], "--resume"),
        (&["run", "hi", "--no-hooks", "--trust-hooks"], "--trust-hooks"),
    ] {
        let (text, exit) = words(line);
        assert_eq!(exit, 2, "{line:?}");
        assert!(text.contains(named), "{line:?}: {text}");
    }
}

#[test]
fn a_wrong_value_is_one_sentence_and_a_remedy() {
    for (line, said) in [
        (
            &["run", "hi", "--permission-mode", "yolo"][..],
            "sluice: --permission-mode: `yolo` is no permission mode; use one of default, acceptEdits, plan, dontAsk, \
             bypassPermissions",
        ),
        (
            &["run", "hi", "--setting-sources", "user,global"],
            "sluice: --setting-sources: `global` is no source of settings\n  use some of user, project and local, \
             separated by commas",
        ),
        (
            &["hooks", "list", "--event", "PreTool"],
            "sluice: `PreTool` is no hook event that this build fires\n  use one of SessionStart, UserPromptSubmit, \
             PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure, Stop, SessionEnd, Notification, \
             ConfigChange",
        ),
        (
            &["doctor"],
            "sluice: `doctor` is no command\n  to run it as a prompt: sluice run \"doctor\"\n  to see the commands: \
             sluice --help",
        ),
        (
            &["hooks", "list", "--event", "PretoolUse"],
            "sluice: `PretoolUse` is no hook event that this build fires; did you mean PreToolUse?\n  use one of \
             SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, PostToolUseFailure, Stop, \
             SessionEnd, Notification, ConfigChange",
        ),
    ] {
        assert_eq!(fault(line).to_string(), said);
        assert_eq!(fault(line).exit_code(), 2);
    }
}
