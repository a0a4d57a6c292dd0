//! `sluice demo`: the tour. A written model, real hook scripts of both dialects, real commands, in a folder of its own.
//!
//! Everything it says happened is read back from the session log and from what the model was sent; a gate that did not
//! do its part fails the tour.

mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_bridges::core::record::{HookInvoked, HookResult};
use sluice_bridges::{BridgeConfig, TrustDecision};
use sluice_harness::agent::{Limits, RetryPolicy, TurnEnd, TurnReport};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Block, plain_text};
use sluice_harness::ids::Seq;
use sluice_harness::log::Logged;
use sluice_harness::log::event::{ContextAdded, PromptReceived, RewriteDispatch, ToolCall, ToolResult, UserMessage};
use sluice_harness::permission::Mode;
use sluice_harness::seam::live::Silent;
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};
use sluice_providers::script::ScriptModel;

use crate::compose::{self, Dialects, SessionPlan, SystemPrompt, Which};
use crate::fault::Fault;
use crate::mcp::McpPlan;
use crate::output::{Output, OutputState};
use crate::web::Web;

/// What `script:demo` plays: harmless in any folder.
pub(crate) const SCRIPT: &str = include_str!("demo/script.json");
const TOUR: &str = include_str!("demo/tour.json");
const PROMPT: &str = "Clean up, publish, run the tests and tell me how it went.";

/// Runs the tour and returns the exit code.
///
/// # Errors
/// When the folder cannot be made or the session cannot be opened.
pub(crate) async fn run(dir: Option<PathBuf>) -> Result<u8, Fault> {
    let dir = workspace::make(dir)?;
    let out = Output::stdout().map_err(|e| Fault::output(&e))?;
    let plan = plan(&dir)?;
    let session = compose::open(plan, |_| Ok(())).await?;
    out.line(format!("sluice demo, in {}", dir.workspace.display())).await;
    out.line(format!("\nprompt     {PROMPT}")).await;
    let report = session.agent.prompt(vec![Block::text(PROMPT)], &Cancel::new()).await;
    let events = session.agent.log().since(Seq(0));
    let log = session.agent.log().path();
    let id = session.agent.session().id.clone();
    for line in narrate(&events) {
        out.line(line).await;
    }
    session.close("other").await?;

    let checks = check(&dir, &events, &report);
    out.line("").await;
    for (what, held) in &checks {
        out.line(format!("{}  {what}", if *held { "ok  " } else { "FAIL" })).await;
    }
    out.line(format!("\nthe answer  {}", report.text)).await;
    out.line(format!("the log     {}", log.display())).await;
    out.line(format!("            XDG_STATE_HOME={} sluice sessions show {id}", dir.state.display())).await;
    let held = checks.iter().all(|(_, held)| *held);
    Ok(match out.finish().await {
        OutputState::Failed(fault) => return Err(Fault::output(&fault)),
        OutputState::Open | OutputState::Closed => u8::from(!held),
    })
}

fn plan(dir: &workspace::Folders) -> Result<SessionPlan, Fault> {
    let model = ScriptModel::from_text("tour", TOUR, &dir.root, None).map_err(Fault::internal)?;
    // The tour has a home of its own, so that nobody's own hooks run in it, and it accepts the hooks it has written.
    let mut bridges = BridgeConfig::new(dir.home.clone(), dir.workspace.clone(), dir.workspace.clone());
    bridges.trust = TrustDecision::TrustAll;
    bridges.inherited = std::env::vars().collect();
    Ok(SessionPlan {
        at_most: None,
        idle_notice: None,
        which: Which::New(dir.workspace.clone()),
        sessions: dir.sessions.clone(),
        additional_dirs: Vec::new(),
        model: Arc::new(model),
        key_variables: Vec::new(),
        web: Web::none(),
        mode: Some(Mode::Default),
        allowed: Vec::new(),
        disallowed: Vec::new(),
        dialects: Dialects { claude_code: true, codex: true },
        bridges,
        mcp: McpPlan::none(),
        sandbox: SandboxPolicy { mode: SandboxMode::WorkspaceWrite, ..SandboxPolicy::off() },
        limits: Limits::default(),
        retry: RetryPolicy::default(),
        system: SystemPrompt::default(),
        live: Arc::new(Silent),
        files_over: None,
    })
}

/// The session as a story, from its log alone.
fn narrate(events: &[Arc<Logged>]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut invoked: Vec<HookInvoked> = Vec::new();
    for event in events {
        if let Some(hook) = event.decode::<HookInvoked>() {
            invoked.push(hook);
        } else if let Some(result) = event.decode::<HookResult>() {
            let Some(hook) = invoked.iter().find(|h| h.run_id == result.run_id) else { continue };
            if result.decision != "none" {
                lines.push(format!("  gate     {} {} hook: {}", hook.dialect, hook.event, result.decision));
            }
        } else if let Some(context) = event.decode::<ContextAdded>() {
            lines.push(format!("  context  {}", one_line(&context.text)));
        } else if let Some(call) = event.decode::<ToolCall>() {
            let input = call.input.as_ref();
            let what = input.and_then(|i| i.str_at("command").or_else(|| i.str_at("file_path"))).unwrap_or_default();
            lines.push(format!("\n{:<10} {what}", call.name));
        } else if let Some(rewrite) = event.decode::<RewriteDispatch>() {
            lines.push(format!("  runs     {}", rewrite.input.str_at("command").unwrap_or_default()));
        } else if let Some(result) = event.decode::<ToolResult>() {
            let word = if result.denied_by.is_some() { "denied" } else { "result" };
            lines.push(format!("  {word:<8} {}", one_line(&plain_text(&result.content))));
        } else if let Some(message) = event.decode::<UserMessage>()
            && message.source != "user"
        {
            lines.push(format!("\ngoes on    {}", one_line(what_a_hook_said(&plain_text(&message.content)))));
        }
    }
    lines
}

/// A hook's words without the reminder around them, which is for the model.
fn what_a_hook_said(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<system-reminder>").and_then(|rest| rest.strip_suffix("</system-reminder>"));
    // The first line of a reminder says where it comes from.
    inner.and_then(|inner| inner.trim().split_once('\n')).map_or(text, |(_, said)| said)
}

fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.char_indices().nth(120) {
        Some((at, _)) => format!("{}…", joined.get(..at).unwrap_or_default()),
        None => joined,
    }
}

/// What the tour promises, each held against the log, the files and the requests.
fn check(dir: &workspace::Folders, events: &[Arc<Logged>], report: &TurnReport) -> Vec<(String, bool)> {
    let denied_by = |dialect: &str| {
        let invoked: Vec<HookInvoked> = events.iter().filter_map(|e| e.decode()).collect();
        events.iter().filter_map(|e| e.decode::<HookResult>()).any(|r| {
            matches!(r.decision.as_str(), "deny" | "block")
                && invoked.iter().any(|h| h.run_id == r.run_id && h.dialect == dialect)
        })
    };
    let first_request = std::fs::read_to_string(dir.root.join("requests.jsonl")).unwrap_or_default();
    let request_has_context = first_request.lines().next().is_some_and(|l| l.contains("maple-7"));
    let prompt_has_context = events
        .iter()
        .find_map(|e| e.decode::<PromptReceived>())
        .is_some_and(|p| plain_text(&p.content).contains("maple-7"));
    let result = |needle: &str| {
        events.iter().filter_map(|e| e.decode::<ToolResult>()).any(|r| plain_text(&r.content).contains(needle))
    };
    let went_on = events.iter().filter_map(|e| e.decode::<UserMessage>()).filter(|m| m.source != "user").count();
    let rewrites = events.iter().filter_map(|e| e.decode::<RewriteDispatch>()).count();
    let kept = exists(&dir.workspace, "important/data.txt");
    vec![
        (
            "a Claude Code hook denied `rm -rf ./important`, and the folder is still there".to_owned(),
            denied_by("claude-code") && kept,
        ),
        (
            "a Codex hook denied `git push --force`".to_owned(),
            denied_by("codex") && result("force pushes need a person"),
        ),
        (
            "a hook's context is in the next model request, and not in the prompt".to_owned(),
            request_has_context && !prompt_has_context,
        ),
        (
            "a hook rewrote `make test`, and what it wrote is what ran".to_owned(),
            rewrites == 1 && result("all 3 tests passed"),
        ),
        ("a Stop hook made the agent go on once".to_owned(), went_on == 1 && exists(&dir.workspace, "SUMMARY.md")),
        ("the turn completed".to_owned(), matches!(report.end, TurnEnd::Completed { .. })),
    ]
}

fn exists(root: &Path, name: &str) -> bool {
    root.join(name).is_file()
}
