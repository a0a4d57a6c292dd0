//! The files and flags that name MCP servers, in the order of their precedence: `--mcp-config`, sluice's own `mcp.json`,
//! then Claude Code's three places (this folder's entry in `~/.claude.json`, the repository's `.mcp.json`, the user's
//! entry in `~/.claude.json`). Blocks while it reads.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sluice_bridges::{BridgeConfig, Problem, Severity, TrustDecision};

use super::choice::{Choice, Fate, Voice};
use super::{McpPlan, entry};
use crate::cli::SettingsArgument;
use crate::config::{Config, Environment};
use crate::fault::{Fault, words};

/// What is looked at.
pub(crate) struct Sources<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) config: &'a Config,
    /// Folders, trust and which settings files are read.
    pub(crate) bridges: &'a BridgeConfig,
    /// `--mcp-config`, in order.
    pub(crate) given: &'a [SettingsArgument],
}

/// Reads them all.
///
/// # Errors
/// When what a flag names cannot be read as a whole: it was meant for this run.
pub(crate) fn read(sources: &Sources<'_>) -> Result<McpPlan, Fault> {
    let Sources { environment, config, bridges, given } = *sources;
    let mut plan =
        McpPlan { startup: config.mcp_startup_timeout.value, call: config.mcp_call_timeout.value, ..McpPlan::none() };
    for argument in given {
        let (origin, FirstOfEach { members: servers, twice }) = flag(environment, argument)?;
        plan.problems.extend(twice.iter().map(|name| named_twice(&origin, name)));
        plan.take(environment, &origin, &servers, |_| Fate::Accepted);
    }
    if let Some(folder) = environment.xdg("XDG_CONFIG_HOME", ".config") {
        let path = folder.join("sluice").join("mcp.json");
        if let Some(servers) = plan.file(&path).and_then(|file| plan.servers_in(&path, &file, Needed::Yes)) {
            plan.take(environment, &path.display().to_string(), &servers, |_| Fate::Accepted);
        }
    }

    let account = match &bridges.claude_config_dir {
        Some(folder) => folder.join(".claude.json"),
        None => bridges.home.join(".claude.json"),
    };
    let own = if bridges.setting_sources.user { plan.file(&account) } else { None };
    let here = own.as_ref().and_then(|own| {
        let projects = own.get("projects")?;
        [&bridges.workspace_root, &bridges.start_dir].into_iter().find_map(|dir| projects.get(dir.to_str()?))
    });
    if let Some(servers) = here.and_then(|here| plan.servers_in(&account, here, Needed::No)) {
        plan.take(environment, &account.display().to_string(), &servers, |_| Fate::Accepted);
    }
    if bridges.setting_sources.project {
        let choice = choice(bridges, here);
        repository(&mut plan, sources, &choice);
    }
    if let Some(servers) = own.as_ref().and_then(|own| plan.servers_in(&account, own, Needed::No)) {
        plan.take(environment, &account.display().to_string(), &servers, |_| Fate::Accepted);
    }
    Ok(plan)
}

/// The repository's `.mcp.json`: held back until it is accepted.
fn repository(plan: &mut McpPlan, sources: &Sources<'_>, choice: &Choice) {
    let Sources { environment, bridges, .. } = *sources;
    let path = bridges.workspace_root.join(".mcp.json");
    let Some(servers) = plan.file(&path).and_then(|file| plan.servers_in(&path, &file, Needed::Yes)) else { return };
    // The home folder is no repository: what lies in it is the user's own.
    let trusted = bridges.trust == TrustDecision::TrustAll || bridges.workspace_root == bridges.home;
    let fate = |name: &str| match choice.fate(name) {
        Fate::Open if trusted => Fate::Accepted,
        fate => fate,
    };
    let held: Vec<String> =
        servers.keys().filter(|name| fate(name) == Fate::Open).map(|name| format!("`{name}`")).collect();
    if !held.is_empty() {
        plan.problems.push(Problem::new(
            Severity::Warning,
            "mcp-servers-held-back",
            format!(
                "{} came with the repository, and its MCP servers are held back: {}.",
                path.display(),
                held.join(", ")
            ),
            "Run again with --trust-workspace to accept all that the repository brings for one run, or name the file \
             with --mcp-config.",
        ));
    }
    plan.take(environment, &path.display().to_string(), &servers, fate);
}

/// Reads a file that is one: a FIFO or a device in its place could be waited for without end.
fn regular(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    std::fs::read(path)
}

fn choice(bridges: &BridgeConfig, here: Option<&Value>) -> Choice {
    let mut choice = Choice::default();
    // What is wrong with these files is said by those who read their hooks.
    let mut hear_file = |path: PathBuf, voice| {
        let bytes = regular(&path).unwrap_or_default();
        if let Ok(settings) = serde_json::from_str(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}')) {
            choice.hear(&settings, voice);
        }
    };
    let project = if bridges.workspace_root == bridges.home { Voice::Own } else { Voice::Repository };
    let folder = bridges.workspace_root.join(".claude");
    if bridges.setting_sources.user {
        hear_file(bridges.claude_dir().join("settings.json"), Voice::Own);
    }
    hear_file(folder.join("settings.json"), project);
    if bridges.setting_sources.local {
        hear_file(folder.join("settings.local.json"), project);
    }
    for extra in &bridges.extra_settings {
        if let Ok(settings) = serde_json::from_str(extra.text.trim_start_matches('\u{feff}')) {
            choice.hear(&settings, Voice::Own);
        }
    }
    if let Some(here) = here {
        choice.hear(here, Voice::Own);
    }
    choice
}

/// What a flag names, as a whole.
fn flag(environment: &Environment, given: &SettingsArgument) -> Result<(String, FirstOfEach), Fault> {
    let (origin, text) = match given {
        SettingsArgument::Json(text) => ("the JSON given with --mcp-config".to_owned(), text.clone()),
        SettingsArgument::File(path) => {
            let path = environment.cwd().join(path);
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Fault::config(
                    "mcp-config",
                    format!("the file {} (--mcp-config) cannot be read: {}", path.display(), words(&error)),
                    "check the path, or give the JSON itself",
                )
            })?;
            (path.display().to_string(), text)
        }
    };
    let remedy = "write it as {\"mcpServers\": {\"name\": {\"command\": \"…\"}}}; comments are not allowed";
    let wrong = |why: String| Fault::config("mcp-config", format!("{origin} cannot be used: {why}"), remedy);
    let file: Value =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| wrong(error.to_string()))?;
    match file.get("mcpServers") {
        Some(Value::Object(servers)) => match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
            Ok(Named { servers }) => Ok((origin, servers)),
            Err(_) => Ok((origin, FirstOfEach { members: servers.clone(), twice: Vec::new() })),
        },
        Some(_) => Err(wrong("`mcpServers` is no object".to_owned())),
        None => Err(wrong("it has no `mcpServers`".to_owned())),
    }
}

/// Whether a file is there for its servers alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Yes,
    No,
}

impl McpPlan {
    /// A file's JSON; `None` when it is not there, or cannot be used, which is then said.
    fn file(&mut self, path: &Path) -> Option<Value> {
        let why = match regular(path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
                    Ok(Value::Object(members)) => return Some(Value::Object(members)),
                    Ok(_) => "it is no JSON object".to_owned(),
                    Err(error) => format!("it is no JSON: {error}"),
                }
            }
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return None;
            }
            Err(error) => format!("it cannot be read: {}", words(&error)),
        };
        self.problems.push(unusable(path, &why));
        None
    }

    fn servers_in(&mut self, path: &Path, file: &Value, needed: Needed) -> Option<Map<String, Value>> {
        match (file.get("mcpServers"), needed) {
            (Some(Value::Object(servers)), _) => return Some(servers.clone()),
            (Some(_), _) => self.problems.push(unusable(path, "`mcpServers` is no object")),
            (None, Needed::Yes) => self.problems.push(unusable(path, "it has no `mcpServers`")),
            (None, Needed::No) => {}
        }
        None
    }

    /// Takes the entries that are accepted.
    fn take(
        &mut self,
        environment: &Environment,
        origin: &str,
        servers: &Map<String, Value>,
        fate: impl Fn(&str) -> Fate,
    ) {
        let variable = |name: &str| environment.variables().get(name).map(String::as_str);
        for (name, entry) in servers {
            match fate(name) {
                Fate::Accepted => {}
                Fate::Off | Fate::Open => continue,
            }
            let mut unknown = Vec::new();
            match entry::read(entry, &variable, &mut unknown) {
                Ok(target) => self.add(name.clone(), origin, target),
                Err(why) => self.problems.push(entry::dropped(origin, name, &why)),
            }
            if !unknown.is_empty() {
                self.problems.push(Problem::new(
                    Severity::Info,
                    "mcp-entry-field-unknown",
                    format!(
                        "The MCP server `{name}` in {origin} has fields that do nothing here: {}.",
                        unknown.join(", ")
                    ),
                    "The rest of the entry counts.",
                ));
            }
        }
    }
}

fn named_twice(origin: &str, name: &str) -> Problem {
    Problem::new(
        Severity::Warning,
        "mcp-server-shadowed",
        format!("The MCP server `{name}` is twice in {origin}; the second is not used."),
        "Give it another name, or take one of the two out.",
    )
}

/// The servers of a text, which may name one more than once.
#[derive(serde::Deserialize)]
struct Named {
    #[serde(rename = "mcpServers")]
    servers: FirstOfEach,
}

/// An object of which the first member of a name counts, and the names that it has twice.
struct FirstOfEach {
    members: Map<String, Value>,
    twice: Vec<String>,
}

impl<'de> serde::Deserialize<'de> for FirstOfEach {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = FirstOfEach;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut access: A) -> Result<FirstOfEach, A::Error> {
                let mut found = FirstOfEach { members: Map::new(), twice: Vec::new() };
                while let Some((name, value)) = access.next_entry::<String, Value>()? {
                    if !found.members.contains_key(&name) {
                        found.members.insert(name, value);
                    } else if !found.twice.contains(&name) {
                        found.twice.push(name);
                    }
                }
                Ok(found)
            }
        }
        reader.deserialize_map(Members)
    }
}

fn unusable(path: &Path, why: &str) -> Problem {
    Problem::new(
        Severity::Error,
        "mcp-file-unusable",
        format!("{} names MCP servers and cannot be used: {why}.", path.display()),
        "Correct it; comments are not allowed.",
    )
}
