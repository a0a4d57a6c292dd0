//! `hooks list`: every configured handler of both dialects for this folder, and why each would or would not run.
//!
//! Discovery is the bridges' own, so that the list cannot disagree with what happens. Nothing is run. The invariant: a
//! handler that would not run is listed with the reason, never left out.

use std::io::{self, BufWriter, Write};

use serde::Serialize;
use sluice_bridges::core::config::{Action, Waiting};
use sluice_bridges::{BridgeConfig, Dialect, Handler, Problem, Trust, claude_code, codex, find_workspace_root};
use sluice_harness::seam::host_files::HostFiles;
use sluice_providers::host_files::LocalHostFiles;

use crate::cli::{HooksListPlan, ListFormat};
use crate::config::{Config, Environment, load};
use crate::fault::Fault;

/// Lists the handlers that a session in the current folder would have.
///
/// # Errors
/// When the configuration is wrong, or stdout cannot be written to.
pub(crate) async fn run(environment: Environment, plan: HooksListPlan) -> Result<(), Fault> {
    let home = environment.home().unwrap_or_else(|| environment.temp()).to_owned();
    let start_dir = environment.cwd().to_owned();
    let files = LocalHostFiles::new();
    let root = find_workspace_root(&files, &start_dir, &home).await;
    let config = load(&environment, &root, &[])?;
    let moved = |variable: &str| environment.variable(variable).map(|dir| start_dir.join(dir));
    let bridge = BridgeConfig {
        claude_config_dir: moved("CLAUDE_CONFIG_DIR"),
        codex_home: moved("CODEX_HOME"),
        ..BridgeConfig::new(home, start_dir.clone(), root)
    };
    let (mut out, mut err) = (BufWriter::new(io::stdout()), io::stderr());
    list(&plan, &config, &bridge, &files, &mut out, &mut err).await
}

/// Lists the handlers on `out`, and on `err` what is wrong with the files.
async fn list(
    plan: &HooksListPlan,
    config: &Config,
    bridge: &BridgeConfig,
    files: &dyn HostFiles,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Fault> {
    let claude_code = claude_code::discover(bridge, files).await;
    let codex = codex::discover(bridge, files).await;
    let handlers = claude_code.handlers.iter().chain(codex.handlers.iter());
    let rows: Vec<Row> = handlers
        .filter(|handler| plan.event.is_none_or(|event| handler.event == event))
        .map(|handler| Row::of(handler, config))
        .collect();
    match plan.format {
        ListFormat::Human => human(&rows, plan, out),
        ListFormat::Json => json(&rows, out),
    }
    .and_then(|()| out.flush())
    .map_err(|error| Fault::output(&error))?;
    problems(claude_code.problems.iter().chain(&codex.problems), err);
    Ok(())
}

/// A handler as it is listed; the names are those of the JSON lines.
#[derive(Debug, Serialize)]
struct Row {
    dialect: &'static str,
    event: &'static str,
    matcher: Option<String>,
    r#if: Option<String>,
    r#type: String,
    command: String,
    args: Vec<String>,
    /// In seconds.
    timeout: f64,
    /// Whether the handler says so itself, or it is the dialect's default.
    timeout_declared: bool,
    waits: bool,
    source: String,
    json_path: String,
    layer: &'static str,
    trust: &'static str,
    runs: bool,
    why_not: Option<String>,
}

impl Row {
    fn of(handler: &Handler, config: &Config) -> Self {
        let (kind, args) = match &handler.action {
            Action::Shell { .. } => ("command", Vec::new()),
            Action::Exec { args, .. } => ("command", args.clone()),
            Action::Unsupported { kind, .. } => (kind.as_str(), Vec::new()),
        };
        let why_not = why_not(handler, config);
        let limit = handler.timeout.unwrap_or_else(|| match handler.dialect {
            Dialect::ClaudeCode => claude_code::default_timeout(handler.event),
            Dialect::Codex => codex::default_timeout(),
        });
        Self {
            dialect: handler.dialect.word(),
            event: handler.event.word(),
            matcher: handler.matcher.text().map(str::to_owned),
            r#if: handler.condition.clone(),
            r#type: kind.to_owned(),
            command: handler.label().to_owned(),
            args,
            timeout: limit.as_secs_f64(),
            timeout_declared: handler.timeout.is_some(),
            waits: match handler.waiting {
                Waiting::Awaited | Waiting::AwaitedLenient => true,
                Waiting::Async => false,
            },
            source: handler.source.display().to_string(),
            json_path: handler.json_path.clone(),
            layer: handler.layer.word(),
            trust: match handler.trust {
                Trust::Owner => "owner",
                Trust::Accepted => "accepted",
                Trust::HeldBack => "held-back",
            },
            runs: why_not.is_none(),
            why_not,
        }
    }
}

/// Why a handler would not run, whatever happens; all that hold.
fn why_not(handler: &Handler, config: &Config) -> Option<String> {
    let mut all = Vec::new();
    let (switch, key) = match handler.dialect {
        Dialect::ClaudeCode => (&config.claude_code_hooks, "hooks.claude_code"),
        Dialect::Codex => (&config.codex_hooks, "hooks.codex"),
    };
    if !switch.value {
        all.push(format!("{key} is false ({})", switch.origin));
    }
    if let Some(off) = &handler.off {
        all.push(off.clone());
    }
    if let Action::Unsupported { kind, .. } = &handler.action {
        all.push(format!("hooks of the type `{kind}` are not supported yet"));
    }
    match handler.trust {
        Trust::Owner | Trust::Accepted => {}
        Trust::HeldBack => {
            all.push("it came with the repository and is not accepted; --trust-hooks accepts it for one run".to_owned())
        }
    }
    (!all.is_empty()).then(|| all.join("; and "))
}

fn human(rows: &[Row], plan: &HooksListPlan, out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return match plan.event {
            Some(event) => writeln!(out, "no hooks are configured here for {}", event.word()),
            None => writeln!(out, "no hooks are configured here"),
        };
    }
    for row in rows {
        let mut head = format!("{} {}", row.dialect, row.event);
        for (word, value) in [("matcher", &row.matcher), ("if", &row.r#if)] {
            if let Some(value) = value {
                head.push_str(&format!("  {word} {value}"));
            }
        }
        line(out, "", &head)?;
        let command = std::iter::once(&row.command).chain(&row.args).map(String::as_str).collect::<Vec<_>>().join(" ");
        line(out, &format!("  {:8} ", row.r#type), &command)?;
        let whose = if row.timeout_declared { "" } else { " (the dialect's default)" };
        let waits = if row.waits { "" } else { ", not waited for" };
        line(out, "  timeout  ", &format!("{} s{whose}{waits}", row.timeout))?;
        line(out, "  from     ", &format!("{}: {} ({})", row.source, row.json_path, row.layer))?;
        line(out, "  trust    ", row.trust)?;
        if let Some(why) = &row.why_not {
            line(out, "  does not run: ", why)?;
        }
    }
    Ok(())
}

/// A line whose text comes from a file: without control characters.
fn line(out: &mut dyn Write, head: &str, text: &str) -> io::Result<()> {
    let text: String = text.replace('\n', " ⏎ ").chars().filter(|c| !c.is_control()).collect();
    writeln!(out, "{head}{text}")
}

fn json(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    for row in rows {
        writeln!(out, "{}", serde_json::to_string(row)?)?;
    }
    Ok(())
}

fn problems<'a>(problems: impl Iterator<Item = &'a Problem>, err: &mut dyn Write) {
    // A held-back hook has its own row, which says so.
    for problem in problems.filter(|problem| problem.code != "hook-held-back") {
        // Whoever closed stderr does not want to know.
        let _ = line(err, "sluice: ", &problem.to_string());
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a failed test may panic"
    )]

    use expect_test::{Expect, expect};
    use sluice_bridges::Event;
    use tempfile::TempDir;

    use super::*;

    const USER: (&str, &str) = (
        "home/.claude/settings.json",
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mark u","timeout":2.5}]}],
            "PreToolUse":[{"matcher":"Bash","hooks":[{"type":"http","url":"http://x"}]}]}}"#,
    );
    const PROJECT: (&str, &str) = (
        "repo/.claude/settings.json",
        r#"{"hooks":{"PreToolUse":[{"matcher":"Edit|Write","hooks":[{"type":"command","command":"check\nmore","if":"Edit(src/**)"}]}]}}"#,
    );
    const CODEX: (&str, &str) = (
        "home/.codex/hooks.json",
        r#"{"hooks":{"PreToolUse":[{"matcher":"^Bash$","hooks":[{"type":"command","command":"mark c","timeout":5}]}]}}"#,
    );
    const NO_CODEX: (&str, &str) = ("home/.config/sluice/config.toml", "[hooks]\ncodex = false\n");

    /// What is printed to stdout and stderr with these files.
    fn listed(files: &[(&str, &str)], plan: &HooksListPlan) -> (String, String) {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("repo/.git")).unwrap();
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let repo = root.join("repo");
        let config = load(&Environment::made_up(&root, &[]), &repo, &[]).unwrap();
        let bridge = BridgeConfig::new(root.join("home"), repo.clone(), repo);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        runtime.block_on(list(plan, &config, &bridge, &LocalHostFiles::new(), &mut out, &mut err)).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&root.display().to_string(), "");
        (text(out), text(err))
    }

    fn check(files: &[(&str, &str)], plan: &HooksListPlan, expected: Expect) {
        expected.assert_eq(&listed(files, plan).0);
    }

    const ALL: HooksListPlan = HooksListPlan { event: None, format: ListFormat::Human };

    #[test]
    fn every_handler_of_both_dialects_is_listed_with_why_it_would_not_run() {
        check(
            &[USER, PROJECT, CODEX, NO_CODEX],
            &ALL,
            expect![[r#"
                claude-code Stop
                  command  mark u
                  timeout  2.5 s
                  from     /home/.claude/settings.json: hooks.Stop[0].hooks[0] (user)
                  trust    owner
                claude-code PreToolUse  matcher Bash
                  http     http://x
                  timeout  600 s (the dialect's default)
                  from     /home/.claude/settings.json: hooks.PreToolUse[0].hooks[0] (user)
                  trust    owner
                  does not run: hooks of the type `http` are not supported yet
                claude-code PreToolUse  matcher Edit|Write  if Edit(src/**)
                  command  check ⏎ more
                  timeout  600 s (the dialect's default)
                  from     /repo/.claude/settings.json: hooks.PreToolUse[0].hooks[0] (project)
                  trust    held-back
                  does not run: it came with the repository and is not accepted; --trust-hooks accepts it for one run
                codex PreToolUse  matcher ^Bash$
                  command  mark c
                  timeout  5 s
                  from     /home/.codex/hooks.json: hooks.PreToolUse[0].hooks[0] (user)
                  trust    owner
                  does not run: hooks.codex is false (/home/.config/sluice/config.toml line 2)
            "#]],
        );
    }

    #[test]
    fn only_one_event_may_be_asked_for() {
        let stop = HooksListPlan { event: Some(Event::Stop), ..ALL };
        check(
            &[USER, PROJECT, CODEX],
            &stop,
            expect![[r#"
            claude-code Stop
              command  mark u
              timeout  2.5 s
              from     /home/.claude/settings.json: hooks.Stop[0].hooks[0] (user)
              trust    owner
        "#]],
        );
        check(
            &[PROJECT],
            &stop,
            expect![[r#"
            no hooks are configured here for Stop
        "#]],
        );
    }

    #[test]
    fn without_hooks_the_list_says_so() {
        check(
            &[],
            &ALL,
            expect![[r#"
            no hooks are configured here
        "#]],
        );
        check(&[], &HooksListPlan { format: ListFormat::Json, ..ALL }, expect![[r#""#]]);
    }

    #[test]
    fn json_has_one_object_a_line() {
        check(
            &[PROJECT, CODEX],
            &HooksListPlan { format: ListFormat::Json, ..ALL },
            expect![[r#"
                {"dialect":"claude-code","event":"PreToolUse","matcher":"Edit|Write","if":"Edit(src/**)","type":"command","command":"check\nmore","args":[],"timeout":600.0,"timeout_declared":false,"waits":true,"source":"/repo/.claude/settings.json","json_path":"hooks.PreToolUse[0].hooks[0]","layer":"project","trust":"held-back","runs":false,"why_not":"it came with the repository and is not accepted; --trust-hooks accepts it for one run"}
                {"dialect":"codex","event":"PreToolUse","matcher":"^Bash$","if":null,"type":"command","command":"mark c","args":[],"timeout":5.0,"timeout_declared":true,"waits":true,"source":"/home/.codex/hooks.json","json_path":"hooks.PreToolUse[0].hooks[0]","layer":"user","trust":"owner","runs":true,"why_not":null}
            "#]],
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_on_stderr_and_the_rest_is_listed() {
        let broken = ("repo/.claude/settings.json", "{");
        let (out, err) = listed(&[USER, broken], &ALL);
        assert!(out.contains("mark u"), "{out}");
        assert!(err.starts_with("sluice: ") && err.contains("/repo/.claude/settings.json"), "{err}");
    }
}
