//! The flags of a session as a plan: what `run` does and what `acp` takes as defaults.
//!
//! The values that configuration also knows become [`Entry`]s, so that one place decides which layer wins.

use std::path::PathBuf;
use std::time::Duration;

use sluice_bridges::{SettingSources, TrustDecision};
use sluice_harness::permission::{Mode, Rule};

use super::args::{SessionFlags, Switch};
use super::rules::rules;
use crate::config::{Entry, Origin};
use crate::fault::Fault;

/// What a session is made with, as far as the command line says.
#[derive(Debug, Clone)]
pub(crate) struct SessionPlan {
    /// The top layer of the configuration.
    pub(crate) overrides: Vec<(Entry, Origin)>,
    /// Rules that allow.
    pub(crate) allow: Vec<Rule>,
    /// Rules that deny.
    pub(crate) deny: Vec<Rule>,
    /// At most so many model requests, said as `max_turns`.
    pub(crate) max_turns: Option<u32>,
    /// The same, said as `max_steps`.
    pub(crate) max_steps: Option<u32>,
    /// How long a turn may take.
    pub(crate) timeout: Option<Duration>,
    /// The folder to work in; as written.
    pub(crate) cwd: Option<PathBuf>,
    /// More folders; as written.
    pub(crate) add_dirs: Vec<PathBuf>,
    /// In place of the built-in system prompt.
    pub(crate) system_prompt: Option<String>,
    /// After the system prompt.
    pub(crate) append_system_prompt: Option<String>,
    /// The user's own settings, in order.
    pub(crate) settings: Vec<SettingsArgument>,
    /// Which settings files are read.
    pub(crate) setting_sources: SettingSources,
    /// Whether hooks run, and whose.
    pub(crate) hooks: HookUse,
    /// MCP servers of the user's own, in order.
    pub(crate) mcp: Vec<SettingsArgument>,
    /// Diagnostics.
    pub(crate) diagnostics: Diagnostics,
}

/// An argument of `--settings`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingsArgument {
    /// The JSON itself.
    Json(String),
    /// A file; as written.
    File(PathBuf),
}

/// Whether hooks run, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookUse {
    /// None runs; the rest of what the repository brings is as it says.
    Off(TrustDecision),
    /// They run; the repository's as it says.
    On(TrustDecision),
}

/// Where diagnostics go, and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Diagnostics {
    /// A file for them; as written.
    pub(crate) log_file: Option<PathBuf>,
    /// How often `-v` was given.
    pub(crate) verbosity: u8,
}

/// The plan of these flags.
pub(super) fn plan(flags: SessionFlags) -> Result<SessionPlan, Fault> {
    let mut overrides = Vec::new();
    if let Some(model) = flags.model {
        if model.trim().is_empty() {
            let remedy = "name one, such as script:demo or deepseek/deepseek-chat";
            return Err(Fault::usage("model-empty", "--model names no model", remedy));
        }
        overrides.push((Entry::Model(model), Origin::Flag("--model")));
    }
    if let Some(word) = flags.permission_mode {
        let mode: Mode =
            word.parse().map_err(|error| Fault::usage("permission-mode", format!("--permission-mode: {error}"), ""))?;
        overrides.push((Entry::PermissionMode(mode), Origin::Flag("--permission-mode")));
    }
    if let Some(limit) = flags.max_output_tokens {
        overrides.push((Entry::MaxOutputTokens(limit), Origin::Flag("--max-output-tokens")));
    }
    if let Some(mode) = flags.sandbox {
        overrides.push((Entry::SandboxMode(mode), Origin::Flag("--sandbox")));
    }
    if let Some(switch) = flags.network {
        overrides.push((Entry::SandboxNetwork(switch == Switch::On), Origin::Flag("--network")));
    }
    let trust = match (flags.trust_workspace, flags.trust_hooks) {
        (true, _) => TrustDecision::TrustAll,
        (false, true) => TrustDecision::TrustHooks,
        (false, false) => TrustDecision::HoldRepository,
    };
    let hooks = if flags.no_hooks { HookUse::Off(trust) } else { HookUse::On(trust) };
    Ok(SessionPlan {
        overrides,
        allow: rules("--allowed-tools", &flags.allowed_tools)?,
        deny: rules("--disallowed-tools", &flags.disallowed_tools)?,
        max_turns: flags.max_turns,
        max_steps: flags.max_steps,
        timeout: flags.timeout,
        cwd: flags.cwd,
        add_dirs: flags.add_dir,
        system_prompt: flags.system_prompt,
        append_system_prompt: flags.append_system_prompt,
        settings: flags.settings.into_iter().map(settings).collect::<Result<_, _>>()?,
        setting_sources: flags.setting_sources.as_deref().map(sources).transpose()?.unwrap_or_default(),
        hooks,
        mcp: flags.mcp_config.into_iter().map(mcp_config).collect::<Result<_, _>>()?,
        diagnostics: Diagnostics { log_file: flags.log_file, verbosity: flags.verbose },
    })
}

fn settings(argument: String) -> Result<SettingsArgument, Fault> {
    let text = argument.trim_start();
    if text.is_empty() {
        let remedy = "give a file, or JSON such as '{\"hooks\": {}}'";
        return Err(Fault::usage("settings-empty", "--settings names nothing", remedy));
    }
    no_list("--settings", text, "write it as '{\"hooks\": {}}'")?;
    Ok(text_or_file(argument))
}

fn mcp_config(argument: String) -> Result<SettingsArgument, Fault> {
    if argument.trim().is_empty() {
        let remedy = "give a file, or JSON such as '{\"mcpServers\": {}}'";
        return Err(Fault::usage("mcp-config-empty", "--mcp-config names nothing", remedy));
    }
    no_list("--mcp-config", &argument, "write it as '{\"mcpServers\": {\"name\": {\"command\": \"…\"}}}'")?;
    Ok(text_or_file(argument))
}

/// Refuses JSON that is a list: no file is meant by it.
fn no_list(flag: &str, argument: &str, remedy: &str) -> Result<(), Fault> {
    match serde_json::from_str(argument) {
        Ok(serde_json::Value::Array(_)) => {
            let cause = format!("the JSON given with {flag} must be an object, not a list");
            Err(Fault::usage("flag-json", cause, remedy))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// JSON where it looks like an object, else a file.
pub(super) fn text_or_file(argument: String) -> SettingsArgument {
    if argument.trim_start().starts_with('{') {
        SettingsArgument::Json(argument)
    } else {
        SettingsArgument::File(argument.into())
    }
}

fn sources(list: &str) -> Result<SettingSources, Fault> {
    let mut sources = SettingSources { user: false, project: false, local: false };
    for word in list.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()) {
        match word {
            "user" => sources.user = true,
            "project" => sources.project = true,
            "local" => sources.local = true,
            other => {
                return Err(Fault::usage(
                    "setting-sources",
                    format!("--setting-sources: `{other}` is no source of settings"),
                    "use some of user, project and local, separated by commas",
                ));
            }
        }
    }
    Ok(sources)
}
