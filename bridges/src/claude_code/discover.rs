//! Discovery: which settings files there are, in which order, and what each may do.
//!
//! The user's own file and the command line are the user's; the project's two files are repository content: their
//! hooks, environment and off switches wait for acceptance, their deny and ask rules count at once. A file that is
//! reached twice (the workspace is the home folder, perhaps through a link) counts once, as the user's.

use std::io;
use std::path::{Path, PathBuf};

use sluice_harness::seam::host_files::HostFiles;

use super::settings::{self, File, Origin};
use crate::core::config::{Handler, HandlerSet, Layer, Trust};
use crate::core::problem::{Problem, Severity};
use crate::setup::{BridgeConfig, TrustDecision};

/// The permission entries of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionEntry {
    /// The file they came from.
    pub origin: PathBuf,
    /// Which layer it is.
    pub layer: Layer,
    /// The folder that `/…` patterns are read from.
    pub anchor: PathBuf,
    /// Rule texts that allow; they count only when `trusted`.
    pub allow: Vec<String>,
    /// Rule texts that ask; they count in any case.
    pub ask: Vec<String>,
    /// Rule texts that deny; they count in any case.
    pub deny: Vec<String>,
    /// The mode the file wants; counts only when `trusted`.
    pub default_mode: Option<String>,
    /// Whether the file switches the mode `bypassPermissions` off; counts in any case.
    pub no_bypass: bool,
    /// Whether the file is the user's own or was accepted.
    pub trusted: bool,
}

/// One variable from a trusted file's `env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvEntry {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The file it came from.
    pub origin: PathBuf,
}

/// What discovery found.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// All handlers, in configuration order.
    pub handlers: HandlerSet,
    /// Permission entries by file, the user's first.
    pub permissions: Vec<PermissionEntry>,
    /// Variables of trusted files, later ones winning.
    pub env: Vec<EnvEntry>,
    /// What does not work as written.
    pub problems: Vec<Problem>,
}

/// Reads all settings files of the Claude dialect.
pub async fn discover(config: &BridgeConfig, files: &dyn HostFiles) -> Discovery {
    let mut found = Discovery::default();
    let mut read = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for origin in origins(config) {
        let text = match files.read(&origin.source).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if is_absent(&error) => continue,
            Err(error) => {
                found.problems.push(Problem::new(
                    Severity::Error,
                    "settings-unreadable",
                    format!("{} cannot be read ({error}), so its hooks and rules are off.", origin.source.display()),
                    "Check the file's permissions.",
                ));
                continue;
            }
        };
        let real = files.canonical(&origin.source).await.unwrap_or_else(|_| origin.source.clone());
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let file = settings::read(&origin, &text, &mut found.problems);
        read.push((origin, file));
    }
    for extra in &config.extra_settings {
        let origin = Origin { source: extra.origin.clone(), layer: Layer::Flag, trust: Trust::Owner };
        let file = settings::read(&origin, &extra.text, &mut found.problems);
        read.push((origin, file));
    }
    assemble(config, read, found)
}

/// The settings files that are read, in the order of layers; those of the command line are not among them.
#[must_use]
pub fn files(config: &BridgeConfig) -> Vec<(Layer, PathBuf)> {
    origins(config).into_iter().map(|origin| (origin.layer, origin.source)).collect()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn origins(config: &BridgeConfig) -> Vec<Origin> {
    let mut origins = Vec::new();
    let sources = config.setting_sources;
    if sources.user {
        let source = config.claude_dir().join("settings.json");
        origins.push(Origin { source, layer: Layer::User, trust: Trust::Owner });
    }
    // The home folder is no repository: what lies in it is the user's own.
    let own = config.workspace_root == config.home;
    let trust = match (own, config.trust) {
        (true, _) => Trust::Owner,
        (false, TrustDecision::TrustAll | TrustDecision::TrustHooks) => Trust::Accepted,
        (false, TrustDecision::HoldRepository) => Trust::HeldBack,
    };
    let folder = config.workspace_root.join(".claude");
    if sources.project {
        origins.push(Origin { source: folder.join("settings.json"), layer: Layer::Project, trust });
    }
    if sources.local {
        origins.push(Origin { source: folder.join("settings.local.json"), layer: Layer::Local, trust });
    }
    origins
}

fn assemble(config: &BridgeConfig, read: Vec<(Origin, File)>, mut found: Discovery) -> Discovery {
    // Accepted hooks alone do not make the rest of their file count.
    let may_widen = |trust| match trust {
        Trust::Owner => true,
        Trust::Accepted => config.trust == TrustDecision::TrustAll,
        Trust::HeldBack => false,
    };
    // The nearest trusted file that says anything decides.
    let switch = read
        .iter()
        .rev()
        .filter(|(origin, _)| may_widen(origin.trust))
        .find_map(|(origin, file)| file.disable_all.map(|off| (off, origin.source.clone())));
    let off = match switch {
        Some((true, source)) => Some(format!("disableAllHooks is true in {}", source.display())),
        Some((false, _)) | None => None,
    };
    let mut handlers: Vec<Handler> = Vec::new();
    for (origin, file) in read {
        let trusted = may_widen(origin.trust);
        let File { handlers: own, disable_all, allow, ask, deny, default_mode, no_bypass, env } = file;
        for mut handler in own {
            handler.off.clone_from(&off);
            if handler.trust == Trust::HeldBack && handler.off.is_none() {
                found.problems.push(held_back(&handler));
            }
            handlers.push(handler);
        }
        if trusted {
            let source = &origin.source;
            found.env.extend(env.into_iter().map(|(name, value)| EnvEntry { name, value, origin: source.clone() }));
        } else {
            let held = [
                ("`env`", !env.is_empty()),
                ("`disableAllHooks`", disable_all.is_some()),
                ("`permissions.defaultMode`", default_mode.is_some()),
            ];
            let held: Vec<&str> = held.into_iter().filter_map(|(name, there)| there.then_some(name)).collect();
            found.problems.extend(untrusted_widening(&origin.source, &held));
        }
        found.permissions.push(PermissionEntry {
            anchor: config.workspace_root.clone(),
            origin: origin.source,
            layer: origin.layer,
            allow,
            ask,
            deny,
            default_mode,
            no_bypass,
            trusted,
        });
    }
    found.handlers = HandlerSet::new(handlers);
    found
}

/// The line that names a held-back hook and how to accept it.
pub(crate) fn held_back(handler: &Handler) -> Problem {
    Problem::new(
        Severity::Warning,
        "hook-held-back",
        format!("{handler} came with the repository and is held back."),
        "Run again with --trust-hooks to accept them for one run.",
    )
}

/// The line that names what else of a file waits; `None` where nothing does.
fn untrusted_widening(source: &Path, held: &[&str]) -> Option<Problem> {
    let (last, before) = held.split_last()?;
    let named = if before.is_empty() { (*last).to_owned() } else { format!("{} and {last}", before.join(", ")) };
    let are = if before.is_empty() { "is" } else { "are" };
    Some(Problem::new(
        Severity::Warning,
        "settings-held-back",
        format!("{}: its {named} came with the repository and {are} held back.", source.display()),
        "Put what you want of it into your own settings, or accept all of the repository with --trust-workspace.",
    ))
}
