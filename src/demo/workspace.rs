//! The tour's own folder: a workspace with hooks in it, an empty home, and a place for the log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sluice_harness::ids::SessionId;

use crate::fault::Fault;

/// What is written into the workspace.
const FILES: &[(&str, &str)] = &[
    (".claude/settings.json", include_str!("files/.claude/settings.json")),
    (".claude/hooks/context.sh", include_str!("files/.claude/hooks/context.sh")),
    (".claude/hooks/no-rm.sh", include_str!("files/.claude/hooks/no-rm.sh")),
    (".claude/hooks/rewrite.sh", include_str!("files/.claude/hooks/rewrite.sh")),
    (".claude/hooks/allow-summary.sh", include_str!("files/.claude/hooks/allow-summary.sh")),
    (".claude/hooks/summary-first.sh", include_str!("files/.claude/hooks/summary-first.sh")),
    (".codex/hooks.json", include_str!("files/.codex/hooks.json")),
    (".codex/hooks/no-force.sh", include_str!("files/.codex/hooks/no-force.sh")),
    ("run-tests.sh", include_str!("files/run-tests.sh")),
    ("important/data.txt", include_str!("files/important/data.txt")),
];

/// The tour's folders; all absolute.
pub(super) struct Folders {
    pub(super) root: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) home: PathBuf,
    /// What `XDG_STATE_HOME` must be for `sluice sessions` to find the log.
    pub(super) state: PathBuf,
    pub(super) sessions: PathBuf,
}

/// Makes the folders in `dir`, which must be new or empty, or in a fresh temporary folder.
pub(super) fn make(dir: Option<PathBuf>) -> Result<Folders, Fault> {
    let root = match dir {
        Some(dir) => given(&dir)?,
        None => {
            let id = SessionId::fresh();
            std::env::temp_dir().join(format!("sluice-demo-{id}"))
        }
    };
    lay_out(&root).map_err(|e| {
        Fault::environment(
            "demo-folder",
            format!("the demo's folder {} cannot be written: {e}", root.display()),
            "name another one with --dir",
        )
    })
}

fn given(dir: &Path) -> Result<PathBuf, Fault> {
    let absolute = std::path::absolute(dir)
        .map_err(|e| Fault::usage("demo-folder", format!("--dir {}: {e}", dir.display()), "name a folder"))?;
    let taken = match fs::read_dir(&absolute) {
        Ok(mut entries) => entries.next().is_some(),
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => false,
        Err(_) => true,
    };
    if taken {
        return Err(Fault::usage(
            "demo-folder",
            format!("--dir {} is not an empty folder", absolute.display()),
            "name a folder that is new or empty: the demo writes hooks into it and runs them",
        ));
    }
    Ok(absolute)
}

fn lay_out(root: &Path) -> io::Result<Folders> {
    let folders = Folders {
        root: root.to_owned(),
        workspace: root.join("workspace"),
        home: root.join("home"),
        state: root.join("state"),
        sessions: root.join("state/sluice/sessions"),
    };
    fs::create_dir_all(&folders.home)?;
    fs::create_dir_all(&folders.workspace)?;
    for (name, text) in FILES {
        let path = folders.workspace.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(folders)
}
