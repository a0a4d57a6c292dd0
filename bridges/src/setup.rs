//! What the program tells a bridge about its surroundings, and how the workspace root is found.
//!
//! Plain data, read by discovery and by both bridges; nothing here touches a file except
//! [`find_workspace_root`], which only asks whether paths exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sluice_harness::seam::host_files::HostFiles;

use crate::core::config::OnFailure;

/// Whether what came with the repository may do more than tighten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustDecision {
    /// Its hooks wait; they are named, with the command that accepts them. So does all else that widens.
    #[default]
    HoldRepository,
    /// Its hooks run, for this run; variables, allow rules, modes and off switches still wait.
    TrustHooks,
    /// All of it counts, for this run.
    TrustAll,
}

/// Whether a person is there to be asked, for `CLAUDE_CODE_SESSION_ATTENDED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Attendance {
    /// A one-shot run.
    #[default]
    Headless,
    /// An editor.
    Attended,
}

/// Settings from the command line: the user's own, trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraSettings {
    /// How the source is named in messages: the file, or `--settings`.
    pub origin: PathBuf,
    /// The JSON text.
    pub text: String,
}

/// Which of the Claude dialect's files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingSources {
    /// The user's own.
    pub user: bool,
    /// The project's.
    pub project: bool,
    /// The project's local one.
    pub local: bool,
}

impl Default for SettingSources {
    fn default() -> Self {
        Self { user: true, project: true, local: true }
    }
}

/// What a bridge must know of the program it runs in.
#[derive(Debug, Clone)]
pub struct BridgeConfig {
    /// The user's home folder.
    pub home: PathBuf,
    /// `CLAUDE_CONFIG_DIR`, in place of `~/.claude`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`, in place of `~/.codex`.
    pub codex_home: Option<PathBuf>,
    /// The folder the session starts in; absolute.
    pub start_dir: PathBuf,
    /// The workspace root; absolute. See [`workspace_root`].
    pub workspace_root: PathBuf,
    /// Whether repository hooks may run.
    pub trust: TrustDecision,
    /// `hooks.on_failure`: what a failure does where the handler itself does not say.
    pub on_failure: OnFailure,
    /// Whether a person is there.
    pub attendance: Attendance,
    /// The program's process id, for `CLAUDE_PID`.
    pub pid: u32,
    /// `--settings`, in order.
    pub extra_settings: Vec<ExtraSettings>,
    /// `--setting-sources`.
    pub setting_sources: SettingSources,
    /// How many Stop blocks in a row the Claude dialect honours (`CLAUDE_CODE_STOP_HOOK_BLOCK_CAP`); 0 means no cap.
    pub stop_block_cap: u32,
    /// How many continuations by hooks one turn may have, in both dialects.
    pub continuation_cap: u32,
    /// The shell of the Codex dialect (see [`codex_shell`](crate::codex::codex_shell)).
    pub codex_shell: String,
    /// Variables of the program's own environment, to expand a command's words when a script is missing.
    pub inherited: BTreeMap<String, String>,
}

impl BridgeConfig {
    /// The configuration with every default.
    #[must_use]
    pub fn new(home: PathBuf, start_dir: PathBuf, workspace_root: PathBuf) -> Self {
        Self {
            home,
            claude_config_dir: None,
            codex_home: None,
            start_dir,
            workspace_root,
            trust: TrustDecision::default(),
            on_failure: OnFailure::default(),
            attendance: Attendance::default(),
            pid: std::process::id(),
            extra_settings: Vec::new(),
            setting_sources: SettingSources::default(),
            stop_block_cap: 8,
            continuation_cap: 25,
            codex_shell: "/bin/bash".to_owned(),
            inherited: BTreeMap::new(),
        }
    }

    /// The folder of the Claude dialect's own settings.
    #[must_use]
    pub fn claude_dir(&self) -> PathBuf {
        self.claude_config_dir.clone().unwrap_or_else(|| self.home.join(".claude"))
    }

    /// The folder of the Codex dialect's own settings.
    #[must_use]
    pub fn codex_dir(&self) -> PathBuf {
        self.codex_home.clone().unwrap_or_else(|| self.home.join(".codex"))
    }
}

/// What makes a folder the project folder of the Claude dialect, inside its `.claude`.
const PROJECT_MARKS: &[&str] = &["settings.json", "settings.local.json", "agents", "commands", "skills"];

/// The project folder: the nearest folder from `start_dir` upwards whose `.claude` holds settings, agents, commands or
/// skills; never above the root of its git work tree (a linked one counts as its own), and never the home folder
/// unless the session starts there. Without one it is `start_dir`.
#[must_use]
pub fn workspace_root(start_dir: &Path, home: &Path, exists: impl Fn(&Path) -> bool) -> PathBuf {
    for folder in start_dir.ancestors() {
        let is_home = folder == home && folder != start_dir;
        if !is_home && PROJECT_MARKS.iter().any(|mark| exists(&folder.join(".claude").join(mark))) {
            return folder.to_path_buf();
        }
        if is_home || exists(&folder.join(".git")) {
            break;
        }
    }
    start_dir.to_path_buf()
}

/// [`workspace_root`], asking the host's files.
pub async fn find_workspace_root(files: &dyn HostFiles, start_dir: &Path, home: &Path) -> PathBuf {
    let mut present = std::collections::BTreeSet::new();
    for folder in start_dir.ancestors() {
        for path in PROJECT_MARKS.iter().map(|m| folder.join(".claude").join(m)).chain([folder.join(".git")]) {
            if files.kind(&path).await.is_some() {
                present.insert(path);
            }
        }
    }
    workspace_root(start_dir, home, |path| present.contains(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(start: &str, present: &[&str]) -> String {
        workspace_root(Path::new(start), Path::new("/home/u"), |p| present.iter().any(|q| Path::new(q) == p))
            .display()
            .to_string()
    }

    #[test]
    fn the_nearest_folder_with_settings_is_the_workspace_root() {
        assert_eq!(root("/p/a/b", &["/p/.claude/settings.json", "/p/a/.claude/skills"]), "/p/a");
        assert_eq!(root("/p/a/b", &[]), "/p/a/b");
    }

    #[test]
    fn the_workspace_root_is_never_above_the_git_work_tree() {
        assert_eq!(root("/p/wt/sub", &["/p/.claude/settings.json", "/p/wt/.git"]), "/p/wt/sub");
        assert_eq!(root("/p/wt/sub", &["/p/wt/.claude/settings.json", "/p/wt/.git"]), "/p/wt");
    }

    #[test]
    fn the_home_folder_is_a_workspace_root_only_when_the_session_starts_there() {
        assert_eq!(root("/home/u/p", &["/home/u/.claude/settings.json"]), "/home/u/p");
        assert_eq!(root("/home/u", &["/home/u/.claude/settings.json"]), "/home/u");
    }
}
