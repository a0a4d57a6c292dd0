//! From the command line and the configuration to what a session is opened with.
//!
//! The one place where the two meet, so that `run` and every session of `acp` are made the same way. Blocks while it
//! reads files; called before a session exists, so nothing waits for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_bridges::{Attendance, BridgeConfig, ExtraSettings, workspace_root};
use sluice_harness::seam::live::LiveSink;

use crate::cli::{Begin, HookUse, SessionPlan as Flags, SettingsArgument};
use crate::compose::{Dialects, SessionPlan, SystemPrompt, Which};
use crate::config::{self, Config, Environment};
use crate::fault::{Fault, words};
use crate::mcp;
use crate::models;
use crate::run::AnswerSchema;
use crate::state::State;
use crate::web;

/// A session's plan, and what the user should be told once.
pub(crate) struct Planned {
    pub(crate) plan: SessionPlan,
    pub(crate) config: Config,
    /// One line each.
    pub(crate) notes: Vec<String>,
}

/// What the flags say about where a session works.
pub(crate) fn folder(environment: &Environment, flags: &Flags) -> PathBuf {
    match &flags.cwd {
        Some(cwd) => absolute(environment, cwd),
        None => environment.cwd().to_owned(),
    }
}

fn absolute(environment: &Environment, path: &Path) -> PathBuf {
    sluice_harness::scene::lexical(&environment.cwd().join(path))
}

/// Plans a session in `folder`.
///
/// # Errors
/// Whatever is wrong with the configuration, the model, the state folder or the session that is to go on.
pub(crate) fn session(
    environment: &Environment,
    flags: &Flags,
    begin: &Begin,
    folder: &Path,
    attendance: Attendance,
    live: Arc<dyn LiveSink>,
) -> Result<Planned, Fault> {
    if environment.variable("PATH").is_none_or(str::is_empty) {
        return Err(Fault::environment(
            "path-unset",
            "the variable PATH is not set, so neither commands nor hooks would find their programs",
            "set it, such as PATH=/usr/local/bin:/usr/bin:/bin",
        ));
    }
    let (state, warning) = State::open(environment)?;
    let mut notes = Vec::new();
    let (which, folder, sessions) = match begin {
        Begin::Fresh => (Which::New(folder.to_owned()), folder.to_owned(), state.sessions_dir()),
        Begin::Continue => {
            let found = state.last_in(folder).ok_or_else(|| {
                Fault::usage(
                    "nothing-to-continue",
                    format!("there is no earlier session in {}", folder.display()),
                    "leave out --continue to begin one",
                )
            })?;
            (Which::Resume(found.id), folder.to_owned(), found.dir)
        }
        Begin::Resume(id) => {
            let found = state.find(id)?;
            let own = sluice_harness::log::inspect(&found.path)?.header.cwd;
            if flags.cwd.is_some() && own != folder {
                let own = own.display();
                notes.push(format!("--cwd does not count: the session goes on where it began, in {own}"));
            }
            let folder = own;
            (Which::Resume(found.id), folder, found.dir)
        }
    };
    let home = environment.home().map_or_else(|| environment.temp().to_owned(), Path::to_owned);
    let root = workspace_root(&folder, &home, |path| path.exists());
    let config = config::load(environment, &root, &flags.overrides)?;
    let resolved = models::resolve(&config, environment, crate::demo::SCRIPT)?;
    let web = web::providers(&config, environment)?;
    let mut key_variables = resolved.key_variables;
    key_variables.extend(web.key_variables.iter().cloned());

    let mut bridges = BridgeConfig::new(home, folder, root);
    bridges.claude_config_dir =
        environment.variable("CLAUDE_CONFIG_DIR").map(|dir| absolute(environment, Path::new(dir)));
    bridges.codex_home = environment.variable("CODEX_HOME").map(|dir| absolute(environment, Path::new(dir)));
    let (HookUse::On(trust) | HookUse::Off(trust)) = flags.hooks;
    bridges.trust = trust;
    bridges.on_failure = config.hooks_on_failure.value;
    bridges.attendance = attendance;
    bridges.extra_settings = extra_settings(environment, &flags.settings)?;
    bridges.setting_sources = flags.setting_sources;
    bridges.continuation_cap = config.max_continuations.value;
    bridges.inherited = environment.variables().clone();
    if let Some(cap) = environment.variable("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP") {
        bridges.stop_block_cap = cap.parse().map_err(|_| {
            Fault::config(
                "config-variable",
                format!("the variable CLAUDE_CODE_STOP_HOOK_BLOCK_CAP is {cap:?}, which is no whole number"),
                "set it to a number of blocks, or 0 for no cap",
            )
        })?;
    }
    let hooks_on = matches!(flags.hooks, HookUse::On(_));
    let mcp = mcp::read(&mcp::Sources { environment, config: &config, bridges: &bridges, given: &flags.mcp })?;
    notes.extend(config.notices.iter().cloned());
    notes.extend(warning);
    notes.extend(resolved.note.into_iter().flatten());
    let mode = (config.permission_mode.origin != config::Origin::BuiltIn).then_some(config.permission_mode.value);
    // What the user says in this run is beyond a repository's reach.
    let said = matches!(config.permission_mode.origin, config::Origin::Variable(_) | config::Origin::Flag(_));
    let at_most = config.repository_mode.as_ref().filter(|_| !said).map(|setting| setting.value);
    let plan = SessionPlan {
        at_most,
        which,
        sessions,
        additional_dirs: flags.add_dirs.iter().map(|dir| absolute(environment, dir)).collect(),
        model: resolved.model,
        key_variables,
        web,
        mode,
        allowed: flags.allow.clone(),
        disallowed: flags.deny.clone(),
        dialects: Dialects {
            claude_code: hooks_on && config.claude_code_hooks.value,
            codex: hooks_on && config.codex_hooks.value,
        },
        bridges,
        idle_notice: (attendance == Attendance::Attended).then_some(config.idle_notice.value),
        mcp,
        sandbox: crate::sandbox::policy(environment, &config),
        limits: config.limits(flags),
        retry: config.retry(),
        system: SystemPrompt { instead: flags.system_prompt.clone(), append: flags.append_system_prompt.clone() },
        live,
        files_over: None,
    };
    Ok(Planned { plan, config, notes })
}

/// Whether the model that the configuration names for the start folder takes images; a configuration that cannot be
/// read says so when a session is opened.
pub(crate) fn takes_images(environment: &Environment, flags: &Flags) -> bool {
    let home = environment.home().map_or_else(|| environment.temp().to_owned(), Path::to_owned);
    let root = workspace_root(&folder(environment, flags), &home, |path| path.exists());
    config::load(environment, &root, &flags.overrides).is_ok_and(|config| models::named_takes_images(&config))
}

fn extra_settings(environment: &Environment, given: &[SettingsArgument]) -> Result<Vec<ExtraSettings>, Fault> {
    given
        .iter()
        .map(|argument| match argument {
            SettingsArgument::Json(text) => {
                let origin = PathBuf::from("--settings");
                readable("the JSON given with --settings", text)?;
                Ok(ExtraSettings { origin, text: text.clone() })
            }
            SettingsArgument::File(path) => {
                let path = absolute(environment, path);
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    Fault::config(
                        "settings-unreadable",
                        format!("the settings file {} (--settings) cannot be read: {}", path.display(), words(&error)),
                        "check the path, or give the JSON itself",
                    )
                })?;
                readable(&format!("the settings file {} (--settings)", path.display()), &text)?;
                Ok(ExtraSettings { origin: path, text })
            }
        })
        .collect()
}

/// What was named for this run must count: without its gates nothing runs.
fn readable(what: &str, text: &str) -> Result<(), Fault> {
    let wrong = |why: String| {
        Fault::config(
            "settings-unreadable",
            format!("{what} is no JSON object: {why}"),
            "correct it; comments are not allowed",
        )
    };
    match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(serde_json::Value::Object(_)) => Ok(()),
        Ok(_) => Err(wrong("it is another JSON value".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// The schema that the final answer must fit.
///
/// # Errors
/// When the file cannot be read, or what it says is no schema.
pub(crate) fn answer_schema(environment: &Environment, given: &SettingsArgument) -> Result<AnswerSchema, Fault> {
    match given {
        SettingsArgument::Json(text) => AnswerSchema::compile("on the command line", text),
        SettingsArgument::File(path) => {
            let path = absolute(environment, path);
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Fault::usage(
                    "json-schema",
                    format!("the schema {} (--json-schema) cannot be read: {}", path.display(), words(&error)),
                    "check the path, or give the JSON itself",
                )
            })?;
            AnswerSchema::compile(&path.display().to_string(), &text)
        }
    }
}
