//! What people report as broken elsewhere, at the level of the bridges: quoting, missing scripts, pipes, noise, exit
//! codes, caps, duplicates, records.

use std::time::Instant;

use serde_json::{Value, json};
use sluice_bridges::OnFailure;
use sluice_bridges::core::record::{HookInvoked, HookResult};
use sluice_harness::agent::TurnEnd;
use sluice_harness::content::Role;
use sluice_harness::ids::Seq;
use sluice_harness::permission::Mode;
use sluice_harness::seam::live::NoticeLevel;

use crate::settings::{call, command, pre, says};
use crate::world::{World, bash, text};

#[tokio::test]
async fn relative_commands_work_after_the_folder_changed_and_a_missing_script_is_no_decision() {
    let world = World::new();
    world.file(".claude/hooks/ok.sh", "cat > payload; exit 0\n");
    std::fs::create_dir_all(world.project.join("sub")).unwrap();
    world.claude(&pre(&[command("sh .claude/hooks/ok.sh")]));
    let session = world.session(vec![bash("touch ../t"), text("FINAL")]).await;
    session.agent.session().set_cwd(world.project.join("sub"));
    session.prompt("go").await;
    assert!(world.has("t"));
    let payload: Value = serde_json::from_str(&world.lines("payload")[0]).unwrap();
    assert_eq!(payload["cwd"], world.project.join("sub").display().to_string());

    for (missing, named) in [
        ("sh .claude/hooks/gone.sh", "gone.sh"),
        ("python3 .claude/hooks/gone.py", "gone.py"),
        ("/no/such/hook.sh", "/no/such/hook.sh"),
    ] {
        let mut world = World::new();
        let session = call(&world, &pre(&[command(missing)]), "touch t").await;
        assert!(world.has("t"), "{missing}");
        let said = session.said();
        assert!(said.contains("could not be started") && said.contains(named), "{missing}: {said}");
        world = World::new();
        world.config.on_failure = OnFailure::Block;
        let session = call(&world, &pre(&[command(missing)]), "touch t").await;
        assert!(!world.has("t"), "{missing}");
        assert!(session.results()[0].0.contains("hooks.on_failure"), "{:?}", session.results());
    }
}

#[tokio::test]
async fn a_script_that_ran_and_denied_is_never_taken_for_a_missing_one() {
    for denying in [
        "bash -o pipefail guard.sh",
        "bash -eo pipefail guard.sh",
        "bash +x guard.sh",
        "sh -ec 'echo no >&2; exit 2'",
        "PATH=$PATH:elsewhere bash found.sh",
        "python3 -W ignore guard.py",
        "python3 -Ic 'import sys; sys.exit(\"no\" and 2)'",
        "perl -we 'exit 2'",
        // It takes itself away, and its complaint does not speak of its file.
        "sh once.sh",
    ] {
        let world = World::new();
        for script in ["guard.sh", "elsewhere/found.sh"] {
            world.file(script, "echo no >&2; exit 2\n");
        }
        world.file("guard.py", "import sys\nsys.exit(2)\n");
        world.file("once.sh", "rm \"$0\"; echo no >&2; exit 2\n");
        let session = call(&world, &pre(&[command(denying)]), "touch t").await;
        assert!(!world.has("t"), "{denying}: {}", session.said());
    }
}

#[tokio::test]
async fn a_denial_between_terminal_codes_and_nothing_else_closes_the_gate() {
    let deny = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "deny",
        "permissionDecisionReason": "nope" } });
    for (before, after) in [("\u{1b}[1m", "\u{1b}[0m"), ("\u{1b}[", ""), ("\u{1b}]0;title ", "")] {
        let world = World::new();
        world.file("answer", &format!("{before}{deny}{after}"));
        let session = call(&world, &pre(&[command("cat answer")]), "touch t").await;
        assert!(!world.has("t"), "{before:?}: {}", session.said());
    }
}

#[tokio::test]
async fn a_text_in_which_no_object_can_be_found_closes_a_gate_soon() {
    let world = World::new();
    let noisy = "head -c 2000000 /dev/zero | tr '\\0' '['; echo '{\"decision\":\"block\"}'";
    let session = call(&world, &pre(&[command(noisy)]), "touch t").await;
    assert!(!world.has("t"));
    assert!(session.results()[0].0.contains("its decision is unknown"), "{:?}", session.results());
}

#[tokio::test]
async fn quoted_uses_of_the_project_folder_work_anywhere_and_an_unquoted_one_is_explained() {
    let mut world = World::new();
    let odd = world.project.join("My Drive (me)/it's $x");
    std::fs::create_dir_all(odd.join(".claude/hooks")).unwrap();
    world.project.clone_from(&odd);
    world.config.start_dir.clone_from(&odd);
    world.config.workspace_root = odd;
    world.script(".claude/hooks/h.sh", "#!/bin/sh\necho \"mark $1\" >> \"$CLAUDE_PROJECT_DIR/marks\"\n");
    let settings = pre(&[
        command("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/h.sh"),
        command("\"${CLAUDE_PROJECT_DIR}/.claude/hooks/h.sh\" --x"),
        json!({ "type": "command", "command": "${CLAUDE_PROJECT_DIR}/.claude/hooks/h.sh", "args": ["a b"] }),
        command("$CLAUDE_PROJECT_DIR/.claude/hooks/h.sh"),
    ]);
    let session = call(&world, &settings, "true").await;
    let mut marks = world.lines("marks");
    marks.sort();
    assert_eq!(marks, ["mark ", "mark --x", "mark a b"]);
    let said = session.said();
    assert!(said.contains("has spaces") && said.contains("$CLAUDE_PROJECT_DIR/.claude/hooks/h.sh"), "{said}");
}

#[tokio::test]
async fn twelve_hooks_in_parallel_each_get_their_end_of_input() {
    let world = World::new();
    let handlers: Vec<Value> = (0..12).map(|n| command(&format!("cat >/dev/null; echo ok >> marks # {n}"))).collect();
    let begun = Instant::now();
    call(&world, &pre(&handlers), "true").await;
    assert_eq!(world.lines("marks").len(), 12);
    assert!(begun.elapsed().as_secs() < 10);
}

#[tokio::test]
async fn a_closed_stdin_is_no_error() {
    let world = World::new();
    let deny = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "nope"
    } });
    let line = format!("exec <&-; echo '{deny}'");
    let big = format!("true # {}", "x".repeat(200_000));
    let session = call(&world, &pre(&[command(&line)]), &big).await;
    assert_eq!(session.results()[0].0, "PreToolUse:Bash hook error: nope");
    assert_eq!(session.said(), "");
}

#[tokio::test]
async fn a_hook_is_done_when_its_process_is_done() {
    let world = World::new();
    let begun = Instant::now();
    call(&world, &pre(&[command("(sleep 20) & echo '{}'; exit 0")]), "touch t").await;
    assert!(world.has("t"));
    assert!(begun.elapsed().as_secs() < 10);
}

#[tokio::test]
async fn declared_limits_are_enforced_whatever_the_script_does() {
    for line in ["sleep 60", "trap '' TERM; sleep 60", "while :; do :; done"] {
        let world = World::new();
        let handler = json!({ "type": "command", "command": line, "timeout": 0.5 });
        let begun = Instant::now();
        let session = call(&world, &pre(&[handler]), "touch t").await;
        assert!(world.has("t"), "{line}");
        assert!(begun.elapsed().as_secs() < 10, "{line}");
        assert!(session.said().contains("0.5 s"), "{line}: {}", session.said());
    }
    let world = World::new();
    call(&world, &pre(&[json!({ "type": "command", "command": "true", "timeout": 100_000_000 })]), "touch t").await;
    assert!(world.has("t"));
}

#[tokio::test]
async fn a_deny_behind_a_banner_closes_the_gate_and_the_banner_is_quoted() {
    let deny = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "R1"
    } });
    let allow = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "allow" } });
    let world = World::new();
    let session = call(&world, &pre(&[command(&format!("echo 'Good morning ☀'; echo '{deny}'"))]), "touch t").await;
    assert!(!world.has("t"));
    assert_eq!(session.results()[0].0, "PreToolUse:Bash hook error: R1");
    assert!(session.said().contains("Good morning"), "{}", session.said());

    // Nothing else in such output counts: an allow opens nothing.
    let mut world = World::new();
    world.set_mode(Mode::Default);
    let session = call(&world, &pre(&[command(&format!("echo hello; echo '{allow}'"))]), "touch t").await;
    assert!(!world.has("t"), "{:?}", session.results());

    // A whole object and nothing more is never noise, also when it carries one inside (a hook that echoes its stdin).
    let world = World::new();
    let line = format!("echo x '{deny}'");
    let session = call(&world, &pre(&[command("cat")]), &line).await;
    assert!(session.results()[0].0.starts_with("x "), "{:?}", session.results());
}

#[tokio::test]
async fn each_exit_code_but_two_is_one_clear_warning() {
    for (line, named) in [
        ("echo 'policy says no' >&2; exit 1", "code 1"),
        ("exit 3", "code 3"),
        ("exit 255", "code 255"),
        ("kill -SEGV $$", "signal 11"),
        ("kill -KILL $$", "signal 9"),
        ("./noexec", "could not be started"),
        ("./interp", "could not be started"),
    ] {
        let world = World::new();
        world.file("noexec", "x");
        world.script("interp", "#!/no/such/interpreter\n");
        let session = call(&world, &pre(&[command(line)]), "touch t").await;
        assert!(world.has("t"), "{line}");
        let warnings: Vec<_> =
            session.notices().into_iter().filter(|n| n.level == NoticeLevel::Warning).map(|n| n.text).collect();
        assert_eq!(warnings.len(), 1, "{line}: {warnings:?}");
        assert!(warnings[0].contains(named), "{line}: {warnings:?}");
        if line.contains("policy") {
            assert!(warnings[0].contains("policy says no") && warnings[0].contains("only exit code 2 blocks"));
        }
        assert!(!session.results()[0].1, "{line}");
    }
}

#[tokio::test]
async fn exit_two_with_empty_stderr_names_the_hook_and_adds_its_stdout() {
    let world = World::new();
    let line = "echo 'use make test'; exit 2";
    let session = call(&world, &pre(&[command(line)]), "touch t").await;
    assert_eq!(
        session.results()[0].0,
        format!("PreToolUse:Bash hook error: [{line}]: No stderr output\nuse make test")
    );
}

#[tokio::test]
async fn exit_two_blocks_whatever_stdout_holds() {
    for (output, reason) in [
        (
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"J"}}"#,
            "J",
        ),
        (r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#, "S"),
        (r#"{"hookSpecificOutput":"#, "S"),
    ] {
        let world = World::new();
        let session = call(&world, &pre(&[command(&format!("echo '{output}'; echo S >&2; exit 2"))]), "touch t").await;
        assert!(!world.has("t"));
        assert!(session.results()[0].0.trim_end().ends_with(reason), "{output}: {:?}", session.results());
    }
}

#[tokio::test]
async fn broken_text_is_replaced_and_never_fatal() {
    let world = World::new();
    let session = call(&world, &pre(&[command("printf 'bad \\377\\376 end' >&2; exit 2")]), "touch t").await;
    assert!(session.results()[0].0.ends_with("bad \u{fffd}\u{fffd} end"), "{:?}", session.results());
    let lone = r#"printf '%s' '{"decision":"block","reason":"a\ud800b"}'"#;
    let world = World::new();
    let session = call(&world, &pre(&[command(lone)]), "touch t").await;
    assert_eq!(session.results()[0].0, "PreToolUse:Bash hook error: a\u{fffd}b");
}

#[tokio::test]
async fn large_output_is_pumped_with_a_bound() {
    let world = World::new();
    world.claude(&json!({ "hooks": { "PostToolUse": [{ "hooks": [
        command("yes e | head -c 20000000 >&2; yes o | head -c 50000000; cat >/dev/null")
    ] }] } }));
    let session = world.session(vec![bash("yes | head -c 900000"), text("FINAL")]).await;
    let begun = Instant::now();
    session.prompt("go").await;
    assert!(begun.elapsed().as_secs() < 50);
    let result: HookResult = session.agent.log().last().unwrap();
    assert!(result.stdout.chars().count() <= 501 && result.stdout.ends_with('…'));
    assert_eq!((result.stdout_bytes, result.stderr_bytes), (Some(50_000_000), Some(20_000_000)));
    assert_eq!(result.decision, "none", "plain stdout is no context here");
}

#[tokio::test]
async fn what_our_own_bound_cuts_off_never_opens_a_gate() {
    let world = World::new();
    let session = call(&world, &pre(&[command("yes o | head -c 12000000")]), "touch t").await;
    assert!(!world.has("t"));
    assert!(session.results()[0].0.contains("its decision is unknown"), "{:?}", session.results());
}

#[tokio::test]
async fn continue_false_ends_the_turn_and_the_call_still_runs() {
    let world = World::new();
    let stop = says(&json!({ "continue": false, "stopReason": "budget" }));
    world.claude(&pre(std::slice::from_ref(&stop)));
    let session = world.session(vec![bash("touch t"), text("FINAL")]).await;
    let report = session.prompt("go").await;
    assert!(world.has("t"));
    assert_eq!(session.requests(), 1);
    let TurnEnd::Stopped { cause } = report.end else { panic!("{:?}", report.end) };
    assert_eq!((cause.by.as_str(), cause.reason.as_deref()), ("PreToolUse:Bash", Some("budget")));

    let world = World::new();
    world.claude(&json!({ "hooks": { "UserPromptSubmit": [{ "hooks": [stop] }] } }));
    let session = world.session(vec![text("FINAL")]).await;
    let report = session.prompt("go").await;
    assert_eq!(session.requests(), 0);
    let TurnEnd::Rejected { text, .. } = report.end else { panic!("{:?}", report.end) };
    assert_eq!(text, "Operation stopped by hook: budget");
}

#[tokio::test]
async fn plain_text_is_context_at_the_start_and_with_a_prompt_and_nowhere_else() {
    let world = World::new();
    world.claude(&json!({ "hooks": {
        "SessionStart": [{ "hooks": [command("echo notes")] }],
        "UserPromptSubmit": [{ "hooks": [command("echo 'today is Tuesday'")] }],
        "PreToolUse": [{ "hooks": [command("echo noise")] }],
    } }));
    let session = world.session(vec![bash("true"), text("FINAL")]).await;
    session.prompt("go").await;
    assert_eq!(
        session.seen(Role::System),
        ["SessionStart:startup hook success: notes", "UserPromptSubmit hook success: today is Tuesday",]
    );
}

#[tokio::test]
async fn blocks_of_the_end_in_a_row_are_capped_and_the_warning_names_the_hook() {
    for (cap, requests) in [(8, 9), (2, 3)] {
        let mut world = World::new();
        world.config.stop_block_cap = cap;
        world.claude(&json!({ "hooks": { "Stop": [{ "hooks": [command("echo 'not yet' >&2; exit 2")] }] } }));
        let session = world.session(vec![text("ok")]).await;
        session.prompt("go").await;
        assert_eq!(session.requests(), requests);
        assert!(session.said().contains("echo 'not yet' >&2; exit 2"), "{}", session.said());
    }
    let mut world = World::new();
    world.config.stop_block_cap = 0;
    world.config.continuation_cap = 12;
    world.claude(&json!({ "hooks": { "Stop": [{ "hooks": [command("exit 2")] }] } }));
    let session = world.session(vec![text("ok")]).await;
    session.prompt("go").await;
    assert_eq!(session.requests(), 13);
}

#[tokio::test]
async fn stop_hook_active_is_true_only_after_a_block_of_the_same_prompt() {
    let world = World::new();
    let line = r#"a=$(grep -o '"stop_hook_active":[a-z]*' | cut -d: -f2); echo $a >> s; [ $a = true ] || { echo go >&2; exit 2; }"#;
    world.claude(&json!({ "hooks": { "Stop": [{ "hooks": [command(line)] }] } }));
    let session = world.session(vec![text("ok")]).await;
    session.prompt("one").await;
    session.prompt("two").await;
    assert_eq!(world.lines("s"), ["false", "true", "false", "true"]);
    let went: Vec<_> = session.seen(Role::User).into_iter().filter(|t| t.contains("Stop hook feedback:")).collect();
    assert_eq!(went.len(), 2);
    assert!(went[0].starts_with("<system-reminder>\n") && went[0].ends_with("\n</system-reminder>"));
}

#[tokio::test]
async fn the_same_handler_of_several_files_runs_once() {
    let world = World::new();
    let user = world.home.join(".claude/settings.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    let group = |matcher: &str, line: &str| json!({ "hooks": { "PreToolUse": [{ "matcher": matcher, "hooks": [command(line)] }] } });
    std::fs::write(user, group("Bash", "echo x >> marks").to_string()).unwrap();
    world.file(".claude/settings.local.json", &group("Ba.*", "echo x >> marks").to_string());
    let session = call(&world, &group("*", "echo x >> marks"), "true").await;
    assert_eq!(world.lines("marks"), ["x"]);
    drop(session);
    let world = World::new();
    call(&world, &pre(&[command("echo x >> marks"), command("echo x >> marks ")]), "true").await;
    assert_eq!(world.lines("marks").len(), 2);
}

#[tokio::test]
async fn one_block_does_not_stop_the_others_and_texts_merge_in_configuration_order() {
    let world = World::new();
    let ctx = |text: &str, decision: Option<&str>, wait: &str| {
        let mut specific = json!({ "hookEventName": "PreToolUse", "additionalContext": text });
        if let Some(decision) = decision {
            specific["permissionDecision"] = json!(decision);
        }
        let output = json!({ "hookSpecificOutput": specific });
        command(&format!("sleep {wait}; echo {text} >> marks; echo '{output}'"))
    };
    let handlers = [
        ctx("c1", None, "1"),
        command("sleep 1; echo c2 >> marks; echo B >&2; exit 2"),
        ctx("c3", Some("allow"), "0.6"),
        ctx("c4", Some("ask"), "0.3"),
    ];
    let begun = Instant::now();
    let session = call(&world, &pre(&handlers), "touch t").await;
    assert!(begun.elapsed().as_millis() < 2500);
    assert_eq!(world.lines("marks").len(), 4);
    assert!(session.results()[0].0.contains("]: B"));
    assert_eq!(session.seen(Role::System), ["PreToolUse:Bash hook additional context: c1\nc3\nc4"]);
}

#[tokio::test]
async fn failed_calls_have_the_failure_event_alone_and_its_context_reaches_the_model() {
    let world = World::new();
    let context =
        says(&json!({ "hookSpecificOutput": { "hookEventName": "PostToolUseFailure", "additionalContext": "LOOK" } }));
    world.claude(&json!({ "hooks": {
        "PostToolUse": [{ "hooks": [command("cat >> good")] }],
        "PostToolUseFailure": [{ "hooks": [command("cat >> bad"), context] }],
    } }));
    let session = world.session(vec![bash("true"), bash("echo oops >&2; exit 7"), text("FINAL")]).await;
    session.prompt("go").await;
    assert_eq!((world.lines("good").len(), world.lines("bad").len()), (1, 1));
    let payload: Value = serde_json::from_str(&world.lines("bad")[0]).unwrap();
    assert_eq!(payload["error"], "Exit code 7\noops");
    assert_eq!(session.seen(Role::System), ["PostToolUseFailure:Bash hook additional context: LOOK"]);
    assert_eq!(session.said(), "");
}

#[tokio::test]
async fn records_stand_in_configuration_order_around_the_processes_and_are_paired() {
    let world = World::new();
    let session = call(&world, &pre(&[command("sleep 0.3; exit 0"), command("exit 2")]), "true").await;
    let events = session.agent.log().since(Seq(0));
    let kinds: Vec<String> = events.iter().map(|e| e.kind.to_string()).filter(|k| k.starts_with("hook/")).collect();
    assert_eq!(kinds, ["hook/invoked", "hook/invoked", "hook/result", "hook/result"]);
    let invoked: Vec<HookInvoked> = events.iter().filter_map(|e| e.decode()).collect();
    let results: Vec<HookResult> = events.iter().filter_map(|e| e.decode()).collect();
    assert_eq!(invoked[0].command, "sleep 0.3; exit 0");
    assert!(invoked.iter().zip(&results).all(|(i, r)| i.run_id == r.run_id && i.call_id.is_some() && i.turn.is_some()));
    assert_ne!(invoked[0].run_id, invoked[1].run_id);
    assert_eq!((results[0].decision.as_str(), results[1].decision.as_str()), ("none", "deny"));
    assert!(invoked[0].handler.ends_with("settings.json#hooks.PreToolUse[0].hooks[0]"), "{}", invoked[0].handler);
}

#[tokio::test]
async fn a_handler_that_cannot_be_run_is_a_question_and_is_named_at_load() {
    let world = World::new();
    let session = call(&world, &pre(&[json!({ "type": "http", "url": "http://127.0.0.1:1/x" })]), "touch t").await;
    assert!(!world.has("t"));
    assert!(session.results()[0].0.contains("cannot be run here"), "{:?}", session.results());
    assert!(session.problems.iter().any(|p| p.code == "hook-type-unsupported"));
}

#[tokio::test]
async fn a_held_back_hook_does_not_run() {
    let mut world = World::new();
    world.config.trust = sluice_bridges::TrustDecision::HoldRepository;
    let session = call(&world, &pre(&[command("echo x >> marks; exit 2")]), "touch t").await;
    assert!(world.has("t") && !world.has("marks"));
    assert!(session.problems.iter().any(|p| p.code == "hook-held-back"));
}

#[tokio::test]
async fn what_nobody_waits_for_never_delays_and_ends_with_the_session() {
    let world = World::new();
    let handler = json!({ "type": "command", "command": "echo $$ > pid; sleep 60", "async": true });
    let begun = Instant::now();
    let session = call(&world, &pre(&[handler]), "while [ ! -s pid ]; do sleep 0.05; done; touch t").await;
    assert!(world.has("t"));
    session.close().await;
    assert!(begun.elapsed().as_secs() < 30);
}

#[tokio::test]
async fn hooks_at_the_end_of_a_session_run_before_it_is_over() {
    let world = World::new();
    world.claude(&json!({ "hooks": { "SessionEnd": [{ "matcher": "other", "hooks": [
        { "type": "command", "command": "sleep 2; cat > end", "timeout": 20 }
    ] }] } }));
    let session = world.session(vec![text("FINAL")]).await;
    session.prompt("go").await;
    session.close().await;
    let payload: Value = serde_json::from_str(&world.lines("end")[0]).unwrap();
    assert_eq!(payload["reason"], "other");
}
