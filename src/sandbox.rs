//! A session's sandbox policy: made once, before the model says anything, from the configuration and this machine.
//!
//! Which caches of tools stay writable is the table in [`caches`]. The invariant: every folder is resolved here, while
//! nobody but the user can have put a link in its place; what a repository says of itself (where its git folder is) is
//! believed only when that place says so too.

mod caches;

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
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bashrc",
    ".zshenv",
    ".zshrc",
    ".zprofile",
    ".zlogin",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/git",
    ".gitconfig",
    ".local/bin",
];

/// The part of a policy that is the same for every session of this configuration.
pub(crate) fn policy(environment: &Environment, config: &Config) -> SandboxPolicy {
    let (mode, network) = (&config.sandbox_mode, &config.sandbox_network);
    let temporary: Vec<PathBuf> = [Path::new("/tmp"), Path::new("/var/tmp"), environment.temp()]
        .into_iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .filter(|folder| folder != Path::new("/"))
        .collect();
    let mut protected: Vec<PathBuf> = GUARDED_IN_HOME
        .iter()
        .filter_map(|name| Some(environment.home()?.join(name)))
        .chain(environment.xdg("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("sluice")))
        .chain(environment.xdg("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("sluice")))
        .chain(environment.variable("CLAUDE_CONFIG_DIR").map(PathBuf::from))
        .chain(environment.variable("CODEX_HOME").map(PathBuf::from))
        .map(|path| sluice_providers::files::real_path(&path))
        .collect();
    // A temporary folder is nobody's to divide.
    protected.retain(|path| path.is_absolute() && !temporary.iter().any(|folder| path.starts_with(folder)));
    let mut writable = temporary;
    writable.extend(caches::folders(environment).iter().filter_map(|folder| folder.canonicalize().ok()));
    SandboxPolicy {
        mode: mode.value,
        writable,
        protected,
        network: network.value,
        required: Required { mode: mode.origin != Origin::BuiltIn, network: network.origin != Origin::BuiltIn },
    }
}

/// The policy with the folders of one session. Blocks while it looks at them.
pub(crate) fn of_session(policy: SandboxPolicy, home: &Path, start_dir: &Path, folders: &[PathBuf]) -> SandboxPolicy {
    let mut policy = policy;
    let named = [start_dir].into_iter().chain(folders.iter().map(PathBuf::as_path));
    policy.writable.extend(named.filter_map(|folder| folder.canonicalize().ok()));
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
