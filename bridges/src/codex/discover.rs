//! Discovery of the Codex dialect: `hooks.json` of the user and of every `.codex` from the repository's root down.
//!
//! As strict as the reference: a broken file is unreadable as a whole, named, and no other file suffers. What came
//! with the repository waits for acceptance; in a linked work tree it is the main checkout's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use sluice_harness::seam::host_files::{HostFiles, PathKind};

use crate::claude_code::discover::held_back;
use crate::core::config::{Action, Dialect, Event, Handler, HandlerSet, Layer, Trust, Waiting};
use crate::core::matcher::{Matcher, hint};
use crate::core::problem::{Problem, Severity};
use crate::setup::{BridgeConfig, TrustDecision};

/// The order of events within a file.
const ORDER: &[Event] = &[
    Event::PreToolUse,
    Event::PostToolUse,
    Event::SessionStart,
    Event::SessionEnd,
    Event::UserPromptSubmit,
    Event::Stop,
];

/// Events of the dialect that this build does not fire.
const NOT_FIRED: &[&str] = &[
    "PreModelRequest",
    "PostModelRequest",
    "PermissionRequest",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
    "SubagentStart",
    "SubagentStop",
    "Interrupt",
];

/// What discovery found.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// All handlers, in configuration order.
    pub handlers: HandlerSet,
    /// What does not work as written.
    pub problems: Vec<Problem>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    hooks: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    hooks: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Entry {
    Command {
        command: String,
        #[serde(default)]
        timeout: Option<u64>,
        #[serde(default)]
        r#async: bool,
    },
    McpTool {
        server: String,
        tool: String,
        #[serde(default)]
        timeout: Option<u64>,
    },
    Prompt {},
    Agent {},
}

/// Reads all hooks files of the dialect.
pub async fn discover(config: &BridgeConfig, files: &dyn HostFiles) -> Discovery {
    let mut problems = Vec::new();
    let mut handlers = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for (folder, layer, trust) in folders(config, files).await {
        notice_toml(files, &folder.join("config.toml"), &mut problems).await;
        let source = folder.join("hooks.json");
        let bytes = match files.read(&source).await {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            Err(error) => {
                problems.push(unreadable(&source, &error.to_string()));
                continue;
            }
        };
        let real = files.canonical(&source).await.unwrap_or_else(|_| source.clone());
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        match read_file(&source, layer, trust, &String::from_utf8_lossy(&bytes), &mut problems) {
            Ok(mut own) => handlers.append(&mut own),
            Err(why) => problems.push(unreadable(&source, &why)),
        }
    }
    for handler in &handlers {
        if handler.trust == Trust::HeldBack && handler.off.is_none() {
            problems.push(held_back(handler));
        }
    }
    Discovery { handlers: HandlerSet::new(handlers), problems }
}

/// The hooks files that are read, in configuration order.
pub async fn files(config: &BridgeConfig, files: &dyn HostFiles) -> Vec<(Layer, PathBuf)> {
    folders(config, files).await.into_iter().map(|(folder, layer, _)| (layer, folder.join("hooks.json"))).collect()
}

fn unreadable(source: &Path, why: &str) -> Problem {
    Problem::new(
        Severity::Error,
        "hooks-file-unreadable",
        format!("failed to parse hooks config {}: {why}, so its hooks are off.", source.display()),
        "Correct that; the file is one JSON object with `hooks` and nothing else but `description`.",
    )
}

/// The folders in configuration order: the user's, then the repository's from its root down to the start folder.
async fn folders(config: &BridgeConfig, files: &dyn HostFiles) -> Vec<(PathBuf, Layer, Trust)> {
    let mut folders = vec![(config.codex_dir(), Layer::User, Trust::Owner)];
    let trust = match config.trust {
        TrustDecision::TrustAll | TrustDecision::TrustHooks => Trust::Accepted,
        TrustDecision::HoldRepository => Trust::HeldBack,
    };
    let start = &config.start_dir;
    let mut root = None;
    for folder in start.ancestors() {
        let mark = folder.join(".git");
        match files.kind(&mark).await {
            Some(PathKind::File) => {
                let main = main_checkout(files, &mark).await.unwrap_or_else(|| folder.to_path_buf());
                root = Some((folder.to_path_buf(), main));
                break;
            }
            Some(PathKind::Folder | PathKind::Other) => {
                root = Some((folder.to_path_buf(), folder.to_path_buf()));
                break;
            }
            None => {}
        }
    }
    let Some((tree, main)) = root else {
        folders.push((start.join(".codex"), Layer::Project, trust_of(start, config, trust)));
        return folders;
    };
    let below = start.strip_prefix(&tree).unwrap_or(Path::new(""));
    let mut folder = main;
    folders.push((folder.join(".codex"), Layer::Project, trust_of(&folder, config, trust)));
    for part in below.components() {
        folder.push(part);
        folders.push((folder.join(".codex"), Layer::Project, trust_of(&folder, config, trust)));
    }
    folders
}

/// The home folder is no repository: what lies in it is the user's own.
fn trust_of(folder: &Path, config: &BridgeConfig, repository: Trust) -> Trust {
    if folder == config.home { Trust::Owner } else { repository }
}

/// The main checkout of a linked work tree, from its `.git` file.
async fn main_checkout(files: &dyn HostFiles, mark: &Path) -> Option<PathBuf> {
    let text = files.read(mark).await.ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let git_dir = PathBuf::from(text.trim().strip_prefix("gitdir:")?.trim());
    let worktrees = git_dir.parent()?;
    if worktrees.file_name()? != "worktrees" {
        return None;
    }
    Some(worktrees.parent()?.parent()?.to_path_buf())
}

async fn notice_toml(files: &dyn HostFiles, path: &Path, problems: &mut Vec<Problem>) {
    let Ok(bytes) = files.read(path).await else { return };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let names = |line: &str| {
        let line = line.trim_start();
        line.starts_with("[hooks]")
            || line.starts_with("[[hooks.")
            || (line.starts_with("[hooks.") && !line.starts_with("[hooks.state"))
    };
    if text.lines().any(names) {
        problems.push(Problem::new(
            Severity::Warning,
            "hooks-toml-not-read",
            format!("{}: its [hooks] table is not read here yet, so those hooks do not run.", path.display()),
            "Move them to hooks.json beside it.",
        ));
    }
    if text.lines().any(|line| line.trim_start().starts_with("[hooks.state")) {
        problems.push(Problem::new(
            Severity::Info,
            "hooks-state-not-read",
            format!("{}: [hooks.state] is not read here yet.", path.display()),
            "Remove a hook from hooks.json to turn it off.",
        ));
    }
}

fn read_file(
    source: &Path,
    layer: Layer,
    trust: Trust,
    text: &str,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Handler>, String> {
    let file: File = match serde_json::from_str::<Value>(text).map_err(|e| e.to_string())? {
        Value::Array(items) if items.is_empty() => return Ok(Vec::new()),
        value @ Value::Object(_) => serde_json::from_value(value).map_err(|e| e.to_string())?,
        _ => return Err("it is no JSON object".to_owned()),
    };
    let mut by_event: BTreeMap<Event, Vec<Group>> = BTreeMap::new();
    for (name, groups) in file.hooks {
        let known = Event::of(&name).filter(|e| ORDER.contains(e));
        if known.is_none() && !NOT_FIRED.contains(&name.as_str()) {
            problems.push(Problem::new(
                Severity::Warning,
                "hook-event-unknown",
                format!("{}: hooks.{name}: there is no such event, so its hooks do not run.", source.display()),
                "Check the spelling; names are case-sensitive.",
            ));
            continue;
        }
        let groups = read_groups(&name, groups)?;
        if NOT_FIRED.contains(&name.as_str()) && groups.iter().any(|g| !g.hooks.is_empty()) {
            problems.push(Problem::new(
                Severity::Info,
                "hook-event-not-fired",
                format!(
                    "{}: hooks.{name}: this event is not fired here yet, so its hooks do not run.",
                    source.display()
                ),
                "Nothing to do; they load and stay off.",
            ));
            continue;
        }
        if let Some(event) = known {
            by_event.insert(event, groups);
        }
    }
    let mut handlers = Vec::new();
    for event in ORDER {
        for (at, group) in by_event.remove(event).unwrap_or_default().into_iter().enumerate() {
            let path = format!("hooks.{}[{at}]", event.word());
            let (matcher, fault) = Matcher::codex(group.matcher.as_deref());
            let well_formed = fault.is_none();
            if let Some(fault) = fault.filter(|_| event.has_subject()) {
                problems.push(Problem::new(
                    Severity::Warning,
                    "hook-matcher-invalid",
                    format!(
                        "invalid matcher {:?} in {}: {path}: {fault}.",
                        group.matcher.unwrap_or_default(),
                        source.display()
                    ),
                    "Write names separated by `|`, or a regular expression without look-around.",
                ));
            }
            if let Some((what, remedy)) = hint(&matcher).filter(|_| event.is_about_a_call() && well_formed) {
                let cause = format!("{}: {path}.matcher: {what}.", source.display());
                problems.push(Problem::new(Severity::Info, "hook-matcher-hint", cause, remedy));
            }
            for (at, entry) in group.hooks.into_iter().enumerate() {
                let path = format!("{path}.hooks[{at}]");
                let place = Place { source, layer, trust, event: *event, path: &path, matcher: &matcher };
                handlers.extend(place.handler(entry, problems));
            }
        }
    }
    Ok(handlers)
}

/// The groups of an event; the first thing wrong in one is named with its place.
fn read_groups(event: &str, groups: Value) -> Result<Vec<Group>, String> {
    let Value::Array(groups) = groups else { return Err(format!("hooks.{event}: it is no list")) };
    let mut read = Vec::with_capacity(groups.len());
    for (at, group) in groups.into_iter().enumerate() {
        let path = format!("hooks.{event}[{at}]");
        if let Some(Value::Array(entries)) = group.get("hooks") {
            for (at, entry) in entries.iter().enumerate() {
                Entry::deserialize(entry).map_err(|e| format!("{path}.hooks[{at}]: {e}"))?;
            }
        }
        read.push(serde_json::from_value(group).map_err(|e| format!("{path}: {e}"))?);
    }
    Ok(read)
}

struct Place<'a> {
    source: &'a Path,
    layer: Layer,
    trust: Trust,
    event: Event,
    path: &'a str,
    matcher: &'a Matcher,
}

impl Place<'_> {
    fn handler(&self, entry: Entry, problems: &mut Vec<Problem>) -> Option<Handler> {
        let mut skip = |code, what: String, remedy: &str| {
            let cause = format!("{what} in {}: {}.", self.source.display(), self.path);
            problems.push(Problem::new(Severity::Warning, code, cause, remedy));
        };
        match entry {
            Entry::Command { command, .. } if command.trim().is_empty() => {
                skip("hook-entry-invalid", "skipping empty hook command".to_owned(), "Write a command.");
                None
            }
            Entry::Command { command, timeout, r#async } => {
                let waiting = if r#async { Waiting::Async } else { Waiting::Awaited };
                Some(self.made(Action::Shell { command }, timeout, waiting))
            }
            Entry::McpTool { server, tool, timeout } => {
                let consequence = match self.event {
                    Event::PreToolUse => "Each call it would see is asked instead; use a command hook, or remove it.",
                    _ => "It is said each time it would run; use a command hook, or remove it.",
                };
                skip("hook-type-unsupported", "mcp_tool hooks cannot be run here yet".to_owned(), consequence);
                let action = Action::Unsupported { kind: "mcp_tool".to_owned(), label: format!("{server}/{tool}") };
                Some(self.made(action, timeout, Waiting::Awaited))
            }
            Entry::Prompt {} => {
                let what = "skipping prompt hook: prompt hooks are not supported yet".to_owned();
                skip("hook-type-unsupported", what, "Use a command hook.");
                None
            }
            Entry::Agent {} => {
                let what = "skipping agent hook: agent hooks are not supported yet".to_owned();
                skip("hook-type-unsupported", what, "Use a command hook.");
                None
            }
        }
    }

    fn made(&self, action: Action, timeout: Option<u64>, waiting: Waiting) -> Handler {
        Handler {
            dialect: Dialect::Codex,
            event: self.event,
            source: self.source.to_path_buf(),
            json_path: self.path.to_owned(),
            layer: self.layer,
            matcher: self.matcher.clone(),
            condition: None,
            action,
            timeout: timeout.map(|s| Duration::from_secs(s.max(1))),
            on_failure: None,
            waiting,
            trust: self.trust,
            off: None,
        }
    }
}
