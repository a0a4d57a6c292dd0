//! Modes, order and the store.

use std::path::{Path, PathBuf};

use super::super::{Behaviour, Judgement, Mode, Rule};
use super::{cases, judge, store, texts, word};
use crate::point::tools::DeniedBy;

#[test]
fn commands_that_only_read_go_on_unasked() {
    let store = store(Mode::Default, &[]);
    for command in texts(&cases("read-only.json"), "unasked") {
        assert_eq!(word(&judge(&store, "Bash", command)), "run", "{command:?}");
    }
}

#[test]
fn whatever_else_a_shell_line_may_be_is_asked() {
    let store = store(Mode::Default, &[]);
    for command in texts(&cases("read-only.json"), "asked") {
        assert_eq!(word(&judge(&store, "Bash", command)), "ask-mode", "{command:?}");
    }
}

#[test]
fn a_program_of_the_list_with_hostile_surroundings_is_never_unasked() {
    let store = store(Mode::Default, &[]);
    for program in ["ls", "cat a", "git status", "find .", "rg x"] {
        for (before, after) in [
            ("", ";rm b"),
            ("", "\nrm b"),
            ("", "|sh"),
            ("", "&rm b"),
            ("rm b;", ""),
            ("A=1 ", ""),
            ("", " >f"),
            ("", " $X"),
            ("", " `rm b`"),
            ("", " $(rm b)"),
            ("", " '"),
            ("", " \""),
            ("", " \\"),
            ("! ", ""),
            ("", " {a,b}"),
            ("", " ~"),
            ("", " /etc/passwd"),
            ("", " ../x"),
            ("", "\u{0}"),
            ("", "\r"),
            ("\u{feff}", ""),
            ("", " <(rm b)"),
            ("", " ${A}"),
            ("", " $((1))"),
            ("$(rm b) ", ""),
            ("(", ""),
            ("", ")"),
            ("{ ", "; rm b; }"),
            ("if ", "; then rm b; fi"),
            ("x=(", ")"),
            ("", " <<E\nrm b\nE"),
        ] {
            let line = format!("{before}{program}{after}");
            assert_eq!(word(&judge(&store, "Bash", &line)), "ask-mode", "{line:?}");
        }
    }
}

#[test]
fn deep_or_endless_lines_are_asked_and_come_to_an_end() {
    let store = store(Mode::Default, &[(Behaviour::Deny, "Bash(rm *)")]);
    for opening in ["(", "$(", "${", "`", "\"$(", "<(", "{ ", "$((", "${x:-", "a=(", "sh -c '", "eval eval ", "sudo "] {
        let line = opening.repeat(5_000);
        assert_ne!(word(&judge(&store, "Bash", &line)), "run", "{opening}");
    }
    let line = format!("echo {} && rm x", "a ".repeat(200_000));
    assert_eq!(word(&judge(&store, "Bash", &line)), "deny-rule");
    let line = format!("{}rm x{}", "$(".repeat(100), ")".repeat(100));
    assert_eq!(word(&judge(&store, "Bash", &line)), "deny-rule");
}

#[test]
fn a_protected_file_is_not_reached_through_the_read_only_list() {
    let store = store(Mode::Default, &[(Behaviour::Deny, "Read(./secrets/**)"), (Behaviour::Ask, "Read(.env)")]);
    for (command, expected) in [
        ("cat secrets/a", "deny-rule"),
        ("cat s*/a", "ask-mode"),
        ("grep -r x .", "ask-mode"),
        ("rg x", "ask-mode"),
        ("cat .env", "ask-rule"),
        ("cat README.md", "run"),
        ("ls", "run"),
    ] {
        assert_eq!(word(&judge(&store, "Bash", command)), expected, "{command}");
    }
}

#[test]
fn per3_rule_decides_before_the_mode() {
    for (rule, expected) in [
        (None, "ask-mode"),
        (Some(Behaviour::Allow), "run"),
        (Some(Behaviour::Ask), "ask-rule"),
        (Some(Behaviour::Deny), "deny-rule"),
    ] {
        let rules: Vec<_> = rule.map(|behaviour| (behaviour, "Bash(make *)")).into_iter().collect();
        assert_eq!(word(&judge(&store(Mode::Default, &rules), "Bash", "make x")), expected, "{rule:?}");
    }
}

#[test]
fn per1_per2_deny_beats_ask_beats_allow_in_every_mode() {
    let (deny, ask, allow) = (
        (Behaviour::Deny, "Bash(printf SECRET*)"),
        (Behaviour::Ask, "Bash(printf *)"),
        (Behaviour::Allow, "Bash(printf *)"),
    );
    for mode in Mode::ALL {
        let all = store(mode, &[allow, ask, deny]);
        assert_eq!(word(&judge(&all, "Bash", "printf SECRET9")), "deny-rule", "{mode}");
        let asked = if mode == Mode::DontAsk { "deny-mode" } else { "ask-rule" };
        assert_eq!(word(&judge(&all, "Bash", "printf other")), asked, "{mode}");
    }
}

#[test]
fn each_mode_treats_each_kind_of_call_in_its_own_way() {
    // Columns: default, acceptEdits, plan, dontAsk, bypassPermissions.
    for (tool, what, expected) in [
        ("Read", "/p/a", ["run", "run", "run", "run", "run"]),
        ("Read", "/state/s1/long.txt", ["run", "run", "run", "run", "run"]),
        ("Read", "/etc/passwd", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("Read", "/p/../etc/passwd", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("Read", "/pp/a", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("Grep", "/p", ["run", "run", "run", "run", "run"]),
        ("Write", "/p/a", ["ask-mode", "run", "ask-plan", "deny-mode", "run"]),
        ("Edit", "/more/extra/a", ["ask-mode", "run", "ask-plan", "deny-mode", "run"]),
        ("Edit", "/home/me/a", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("Edit", "/p/.git/hooks/pre-commit", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("Edit", "/p/.claude/settings.json", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("Edit", "/state/s1/log", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("Bash", "ls", ["run", "run", "run", "run", "run"]),
        ("Bash", "touch a", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
        ("TodoWrite", "", ["run", "run", "run", "run", "run"]),
        ("ExitPlanMode", "", ["run", "run", "ask-plan", "run", "run"]),
        ("mcp__srv__echo", "", ["ask-mode", "ask-mode", "ask-plan", "deny-mode", "run"]),
    ] {
        for (mode, expected) in Mode::ALL.into_iter().zip(expected) {
            assert_eq!(word(&judge(&store(mode, &[]), tool, what)), expected, "{tool} {what} in {mode}");
        }
    }
}

#[test]
fn plan_mode_is_not_left_by_an_allow_rule_for_edits() {
    let rules = [(Behaviour::Allow, "Edit"), (Behaviour::Allow, "Bash(make *)"), (Behaviour::Allow, "Read(//etc/**)")];
    let store = store(Mode::Plan, &rules);
    assert_eq!(word(&judge(&store, "Edit", "/p/a")), "ask-plan");
    assert_eq!(word(&judge(&store, "Bash", "make x")), "ask-plan");
    assert_eq!(word(&judge(&store, "Read", "/etc/hosts")), "run");
}

#[test]
fn a_denial_has_the_words_that_scripts_look_for() {
    let store = store(
        Mode::Default,
        &[(Behaviour::Deny, "Bash(rm *)"), (Behaviour::Deny, "mcp__srv"), (Behaviour::Ask, "Bash(git push*)")],
    );
    let denied = Judgement::Deny {
        reason: "Permission to use Bash with command rm b has been denied.".to_owned(),
        by: DeniedBy::Rule,
    };
    assert_eq!(judge(&store, "Bash", "rm b"), denied);
    let denied =
        Judgement::Deny { reason: "Permission to use mcp__srv__x has been denied.".to_owned(), by: DeniedBy::Rule };
    assert_eq!(judge(&store, "mcp__srv__x", ""), denied);
    let Judgement::Ask { reason, .. } = judge(&store, "Bash", "git push") else { panic!("not asked") };
    assert_eq!(reason.as_deref(), Some("Permission to use Bash was requested but has not been granted."));
}

#[test]
fn cfg5_rules_of_all_sources_add_up_and_go_by_source() {
    let store = store(Mode::BypassPermissions, &[]);
    let deny = |rule: &str| vec![Rule::parse(rule).unwrap()];
    for (origin, rule) in [("user", "Bash(aa*)"), ("project", "Bash(bb*)"), ("local", "Bash(cc*)")] {
        store.add_rules(origin, Path::new("/p"), Behaviour::Deny, deny(rule));
        store.add_rules(origin, Path::new("/p"), Behaviour::Deny, deny(rule));
    }
    assert_eq!(store.snapshot().len(), 3);
    for command in ["aa", "bb", "cc"] {
        assert_eq!(word(&judge(&store, "Bash", command)), "deny-rule", "{command}");
    }
    store.replace_origin("project", Path::new("/p"), vec![(Behaviour::Ask, Rule::parse("Bash(bb*)").unwrap())]);
    assert_eq!(word(&judge(&store, "Bash", "bb")), "ask-rule");
    store.remove_rules("user", Behaviour::Deny, &deny("Bash(aa*)"));
    store.replace_rules("local", Path::new("/p"), Behaviour::Deny, deny("Bash(dd)"));
    for (command, expected) in [("aa", "run"), ("cc", "run"), ("dd", "deny-rule")] {
        assert_eq!(word(&judge(&store, "Bash", command)), expected, "{command}");
    }
}

#[test]
fn an_added_folder_is_workspace_until_it_is_taken_back() {
    let store = store(Mode::Default, &[]);
    store.add_directory("/q".into());
    assert_eq!(word(&judge(&store, "Read", "/q/a")), "run");
    assert_eq!(word(&judge(&store, "Bash", "cat /q/a")), "run");
    store.remove_directory(Path::new("/q"));
    assert_eq!(word(&judge(&store, "Read", "/q/a")), "ask-mode");
}

#[test]
fn modes_are_read_and_written_in_the_words_of_settings() {
    for mode in Mode::ALL {
        assert_eq!(mode.word().parse(), Ok(mode));
        assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
    }
    assert_eq!("manual".parse(), Ok(Mode::Default));
    assert_eq!(serde_json::from_str::<Mode>("\"manual\"").unwrap(), Mode::Default);
    assert!("yolo".parse::<Mode>().unwrap_err().to_string().contains("acceptEdits"));
}

/// Links as a test has them: `/p/door` leads to `/p/secrets`, `/p/out` to `/etc`, `/p/hooks` to `/p/.git/hooks`.
fn links(path: &Path) -> PathBuf {
    let path = crate::scene::lexical(path);
    for (link, to) in [("/p/door", "/p/secrets"), ("/p/out", "/etc"), ("/p/hooks", "/p/.git/hooks")] {
        if let Ok(below) = path.strip_prefix(link) {
            return Path::new(to).join(below);
        }
    }
    path
}

#[test]
fn a_path_through_a_link_is_judged_by_where_it_leads_too() {
    let rules = [(Behaviour::Deny, "Read(./secrets/**)"), (Behaviour::Deny, "Edit(./secrets/**)")];
    let denying = store(Mode::BypassPermissions, &rules).following(links);
    let editing = store(Mode::AcceptEdits, &[]).following(links);
    let allowing = store(Mode::Default, &[(Behaviour::Allow, "Edit(./**)")]).following(links);
    let reading = store(Mode::Default, &[]).following(links);
    for (store, tool, what, expected) in [
        (&denying, "Read", "/p/door/k", "deny-rule"),
        (&denying, "Write", "/p/door/k", "deny-rule"),
        (&denying, "Grep", "/p/door", "deny-rule"),
        (&denying, "Bash", "cat door/k", "deny-rule"),
        (&denying, "Bash", "sh -c ': > door/k'", "deny-rule"),
        (&denying, "Read", "/p/a", "run"),
        (&editing, "Write", "/p/a", "run"),
        (&editing, "Write", "/p/out/passwd", "ask-mode"),
        (&editing, "Write", "/p/hooks/pre-commit", "ask-mode"),
        (&allowing, "Write", "/p/a", "run"),
        (&allowing, "Write", "/p/out/passwd", "ask-mode"),
        (&reading, "Read", "/p/door/k", "run"),
        (&reading, "Read", "/p/out/passwd", "ask-mode"),
        (&reading, "Bash", "cat door/k", "run"),
        (&reading, "Bash", "cat out/passwd", "ask-mode"),
        (&reading, "Bash", "cd out && cat passwd", "ask-mode"),
    ] {
        assert_eq!(word(&judge(store, tool, what)), expected, "{tool} {what}");
    }
}

#[test]
fn a_shell_line_that_names_a_guarded_file_in_another_way_is_denied() {
    let rules = [(Behaviour::Deny, "Read(./secrets/**)"), (Behaviour::Deny, "Edit(./secrets/**)")];
    let store = store(Mode::BypassPermissions, &rules);
    for line in [
        "cat $PWD/secrets/k",
        "cat \"${PWD}/secrets/k\"",
        "cat <>secrets/k",
        "paste secrets/k",
        "iconv secrets/k",
        "gzip -c secrets/k",
        "perl -pi -e s/a/b/ secrets/k",
        "sh -c ': > secrets/k'",
        "eval 'echo > secrets/k'",
        "echo x > $PWD/secrets/k",
    ] {
        assert_eq!(word(&judge(&store, "Bash", line)), "deny-rule", "{line}");
    }
}

#[test]
fn a_denied_program_is_seen_behind_wrappers_and_in_names_that_are_half_computed() {
    let store = store(Mode::BypassPermissions, &[(Behaviour::Deny, "Bash(rm *)")]);
    for line in [
        "r$@m x",
        "r${y}m x",
        "r$()m x",
        "r``m x",
        "a=r; ${a}m x",
        "/bin/r? x",
        "/bin/[r]m x",
        "env - rm x",
        "setpriv --nnp rm x",
        "prlimit --nproc=9 rm x",
        "runuser -u me -- rm x",
        "x86_64 rm x",
        "ssh-agent rm x",
    ] {
        assert_eq!(word(&judge(&store, "Bash", line)), "deny-rule", "{line}");
    }
    for line in ["$HOME/bin/tool x", "./run*.sh x", "${CC}c x", "$EDITOR x", "echo r*m"] {
        assert_eq!(word(&judge(&store, "Bash", line)), "run", "{line}");
    }
}
