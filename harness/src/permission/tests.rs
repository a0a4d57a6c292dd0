//! Judgements by table: rules, modes, the read-only list and lines that must never go on unasked.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod judgements;
mod plugin;
mod rules;

use std::path::{Path, PathBuf};

use super::{Behaviour, Judgement, Mode, PermissionStore, Place, Rule};
use crate::json::{Json, JsonObject};
use crate::point::tools::{AskOrigin, DeniedBy};
use crate::tool::{Access, CallFacts, Effect};

/// A call as a tool would describe it: of `Bash` when `what` is a command, else of a file.
pub(super) fn facts_of(tool: &str, what: &str) -> CallFacts {
    let path = |access| vec![(PathBuf::from(what), access)];
    match tool {
        "Bash" => CallFacts { command: Some(what.to_owned()), ..CallFacts::default() },
        "Read" | "Glob" | "Grep" => {
            CallFacts { paths: path(Access::Read), effect: Effect::Reads, ..CallFacts::default() }
        }
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => {
            CallFacts { paths: path(Access::Write), effect: Effect::Edits, ..CallFacts::default() }
        }
        "TodoWrite" | "ExitPlanMode" => CallFacts { effect: Effect::Session, ..CallFacts::default() },
        _ => CallFacts::default(),
    }
}

/// A store in the project `/p`, with `(behaviour, rule)` pairs.
pub(super) fn store(mode: Mode, rules: &[(Behaviour, &str)]) -> PermissionStore {
    let store = PermissionStore::new(mode);
    for (behaviour, rule) in rules {
        store.add_rules("test settings", Path::new("/p"), *behaviour, vec![Rule::parse(rule).unwrap()]);
    }
    store
}

/// Judges in `/p`, with `/more/extra` added to the workspace and `/home/me` as home.
pub(super) fn judge(store: &PermissionStore, tool: &str, what: &str) -> Judgement {
    let mut input = JsonObject::new();
    for key in ["url", "subagent_type", "skill"] {
        input.put(key, what).unwrap();
    }
    judge_input(store, tool, what, &input.to_json())
}

fn judge_input(store: &PermissionStore, tool: &str, what: &str, input: &Json) -> Judgement {
    let workspace = [PathBuf::from("/p"), PathBuf::from("/more/extra")];
    let place = Place::new(Some(Path::new("/home/me")), &workspace, Path::new("/p"), Path::new("/state/s1"));
    store.judge(tool, &facts_of(tool, what), input, &place)
}

/// The judgement in one word: `run`, `ask-mode`, `ask-rule`, `ask-plan`, `deny-rule`, `deny-mode`.
pub(super) fn word(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement::Allow { .. } => "run",
        Judgement::Ask { origin: AskOrigin::Mode, .. } => "ask-mode",
        Judgement::Ask { origin: AskOrigin::Rule, .. } => "ask-rule",
        Judgement::Ask { origin: AskOrigin::Plan, .. } => "ask-plan",
        Judgement::Ask { origin: AskOrigin::Hook, .. } => "ask-hook",
        Judgement::Ask { origin: AskOrigin::Escalation, .. } => "ask-escalation",
        Judgement::Deny { by: DeniedBy::Rule, .. } => "deny-rule",
        Judgement::Deny { by: DeniedBy::Mode, .. } => "deny-mode",
        Judgement::Deny { .. } => "deny-other",
    }
}

/// A file of cases.
pub(super) fn cases(name: &str) -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/permission").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The strings of a list in a case.
pub(super) fn texts<'a>(case: &'a serde_json::Value, key: &str) -> Vec<&'a str> {
    case.get(key).and_then(|v| v.as_array()).into_iter().flatten().map(|v| v.as_str().unwrap()).collect()
}
