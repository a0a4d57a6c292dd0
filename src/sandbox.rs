//! A session's sandbox policy: made once, before the model says anything, from the configuration and this machine.
//!
//! Which caches of tools stay writable is the table in [`caches`], which links lead to them in [`links`]. The invariant:
//! every folder is resolved here, by links alone that nobody but the user can have put in its place; what a repository says of itself (where its git folder is) is
//! believed only when that place says so too.

mod caches;
mod links;

use std::path::{Path, PathBuf};

use sluice_bridges::{Problem, Severity};
use sluice_harness::seam::sandbox::{Required, SandboxMode, SandboxPolicy};

use crate::config::{Config, Environment, Origin};

/// In the home folder: what decides who gets in, and what runs unasked later.
const GUARDED_IN_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".claude",
    ".claude.json",
    ".codex",
    ".profile",
    ".login",
    ".logout",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".bashrc",
    ".zshenv",
    ".zshrc",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".config/autostart",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".gitconfig",
    ".local/bin",
    ".local/share/systemd",
    ".local/share/dbus-1",
    ".cargo/bin",
    ".cargo/env",
    ".bun/bin",
    ".deno/bin",
    "go/bin",
    "bin",
];

/// The same below the folder that `XDG_CONFIG_HOME` names.
const GUARDED_IN_CONFIG: &[&str] = &["autostart", "environment.d", "fish", "git", "systemd", "sluice"];

/// The part of a policy that is the same for every session of this configuration.
pub(crate) fn policy(environment: &Environment, config: &Config) -> SandboxPolicy {
    let (mode, network) = (&config.sandbox_mode, &config.sandbox_network);
    let (writable, protected) = folders(environment);
    SandboxPolicy {
        mode: mode.value,
        writable,
        protected,
        network: network.value,
        required: Required { mode: mode.origin != Origin::BuiltIn, network: network.origin != Origin::BuiltIn },
    }
}

/// What is writable whatever the workspace is, and what stays as it is also below that.
fn folders(environment: &Environment) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let named = [Path::new("/tmp"), Path::new("/var/tmp"), environment.temp()];
    let leads_to: Vec<PathBuf> = named.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let home = environment.home().and_then(|home| home.canonicalize().ok());
    let home = home.filter(|home| !leads_to.iter().any(|folder| home.starts_with(folder)));
    let real = |folder: &Path| links::real(folder, |holder| links::is_beyond_commands(holder, home.as_deref()));
    let mut writable: Vec<PathBuf> =
        named.iter().filter_map(|folder| real(folder)).filter(|folder| folder != Path::new("/")).collect();
    let config = environment.xdg("XDG_CONFIG_HOME", ".config");
    let below = |folder: Option<PathBuf>, names: &'static [&'static str]| {
        folder.into_iter().flat_map(move |folder| names.iter().map(move |name| folder.join(name)))
    };
    let mut protected: Vec<PathBuf> = below(environment.home().map(Path::to_owned), GUARDED_IN_HOME)
        .chain(below(config, GUARDED_IN_CONFIG))
        .chain(below(environment.xdg("XDG_DATA_HOME", ".local/share"), &["systemd", "dbus-1"]))
        .chain(below(environment.xdg("XDG_STATE_HOME", ".local/state"), &["sluice"]))
        .chain(environment.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from))
        .chain(environment.variable("CODEX_HOME").map(PathBuf::from))
        .map(|path| sluice_providers::files::real_path(&path))
        .collect();
    // A temporary folder is nobody's to divide.
    protected.retain(|path| path.is_absolute() && !writable.iter().any(|folder| path.starts_with(folder)));
    writable.extend(caches::folders(environment).iter().filter_map(|folder| real(folder)));
    (writable, protected)
}

/// The policy with the folders of one session. Blocks while it looks at them.
pub(crate) fn of_session(policy: SandboxPolicy, home: &Path, start_dir: &Path, folders: &[PathBuf]) -> SandboxPolicy {
    let mut policy = policy;
    policy.writable.extend(start_dir.canonicalize().ok());
    // A link to a further folder may be where commands make links: then it is nobody's word.
    let known = policy.writable.clone();
    let believed = |folder: &Path| links::real(folder, |holder| !known.iter().any(|known| holder.starts_with(known)));
    policy.writable.extend(folders.iter().filter_map(|folder| believed(folder)));
    policy.writable.extend(git_folders(home, start_dir));
    policy
}

/// What the kernel cannot enforce, for the user to know: once a session.
pub(crate) fn unenforced(policy: &SandboxPolicy) -> Option<Problem> {
    let gaps = sluice_providers::sandbox::gaps(policy);
    if gaps.is_empty() {
        return None;
    }
    let forbidden = gaps.iter().any(|gap| gap.forbids);
    let list: Vec<&str> = gaps.iter().map(|gap| gap.what).collect();
    let list = list.join("; ");
    Some(if forbidden {
        Problem::new(
            Severity::Error,
            "sandbox-unavailable",
            format!(
                "the sandbox that was asked for cannot be enforced here, so no command runs. Not held back would be: {list}."
            ),
            "Use a kernel that can, or leave out --sandbox and --network (and the keys of [sandbox]).",
        )
    } else {
        Problem::new(
            Severity::Warning,
            "sandbox-partial",
            format!("commands of the model are not held back from: {list}."),
            "With --sandbox workspace-write nothing runs where the sandbox cannot be enforced; see docs/sandbox.md.",
        )
    })
}

/// The git folders of the work tree that a folder lies in: `.git`, or for a linked work tree its own and the common one.
fn git_folders(home: &Path, start_dir: &Path) -> Vec<PathBuf> {
    let Ok(start) = start_dir.canonicalize() else { return Vec::new() };
    let home = home.canonicalize().ok();
    let above = start.ancestors().take_while(|folder| **folder == *start || Some(*folder) != home.as_deref());
    let Some(dot) = above.map(|folder| folder.join(".git")).find(|dot| dot.symlink_metadata().is_ok()) else {
        return Vec::new();
    };
    match dot.symlink_metadata() {
        Ok(meta) if meta.is_dir() => vec![dot],
        Ok(meta) if meta.is_file() => linked(&dot).unwrap_or_default(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The folders that the `.git` file of a linked work tree names, if they name it back.
fn linked(dot: &Path) -> Option<Vec<PathBuf>> {
    let text = std::fs::read_to_string(dot).ok()?;
    let named = text.lines().next()?.strip_prefix("gitdir:")?.trim();
    let own = dot.parent()?.join(named).canonicalize().ok()?;
    let back = std::fs::read_to_string(own.join("gitdir")).ok()?;
    if own.join(back.trim()).canonicalize().ok()? != *dot {
        return None;
    }
    let common = std::fs::read_to_string(own.join("commondir")).ok()?;
    let common = own.join(common.trim()).canonicalize().ok()?;
    // Git keeps it so; anything else is no work tree of that repository.
    (own.parent()? == common.join("worktrees")).then(|| vec![common])
}

/// Whether commands are held back from files because the user said so, so that the file tools are too.
pub(crate) fn fences_files(policy: &SandboxPolicy) -> bool {
    policy.required.mode && policy.mode != SandboxMode::Off
}

#[cfg(test)]
mod tests;
