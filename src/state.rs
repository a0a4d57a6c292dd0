//! Where sessions are kept: `$XDG_STATE_HOME/sluice`, private to its owner.
//!
//! A home folder that cannot be written to is no reason not to run: the state then goes to a private folder for
//! temporary files, and that is said. The invariant: a folder that somebody else owns or may write to is never used.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use sluice_harness::ids::SessionId;
use sluice_harness::log::list;

use crate::config::Environment;
use crate::fault::{Fault, words};

/// Where state is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// Where new sessions go.
    root: PathBuf,
    /// Where there may be more sessions, from times when the other place could not be used.
    also: Option<PathBuf>,
}

/// A session that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundSession {
    /// Its id.
    pub(crate) id: SessionId,
    /// The folder of logs that holds it.
    pub(crate) dir: PathBuf,
    /// Its log.
    pub(crate) path: PathBuf,
}

impl State {
    /// Makes the folders where they are missing; with a line for the user when it had to be another place.
    ///
    /// # Errors
    /// When there is no place at all.
    pub(crate) fn open(environment: &Environment) -> Result<(Self, Option<String>), Fault> {
        let (preferred, fallback) = places(environment);
        let why = match &preferred {
            Some(root) => match prepare(root, Links::Follow) {
                Ok(()) => {
                    let also = usable(&fallback).then_some(fallback);
                    return Ok((Self { root: root.clone(), also }, None));
                }
                Err(error) => format!("{} cannot be used ({})", root.display(), words(&error)),
            },
            None => "there is no home folder".to_owned(),
        };
        prepare(&fallback, Links::Refuse).map_err(|error| {
            Fault::environment(
                "state-folder",
                format!("there is no place for session logs: {why}, nor {} ({})", fallback.display(), words(&error)),
                "set XDG_STATE_HOME to a folder that you can write to",
            )
        })?;
        let warning = format!(
            "{why}; sessions are kept in {} and may not last; set XDG_STATE_HOME to choose another place",
            fallback.display()
        );
        let also = preferred.filter(|root| root.is_dir());
        Ok((Self { root: fallback, also }, Some(warning)))
    }

    /// The same places, to look at: nothing is made and nothing is said.
    pub(crate) fn look(environment: &Environment) -> Self {
        let (preferred, fallback) = places(environment);
        match preferred {
            Some(root) => {
                let also = usable(&fallback).then_some(fallback);
                Self { root, also }
            }
            None => Self { root: fallback, also: None },
        }
    }

    /// Where the logs of new sessions go.
    pub(crate) fn sessions_dir(&self) -> PathBuf {
        sessions(&self.root)
    }

    /// Every folder that may hold logs, that of new sessions first.
    pub(crate) fn session_dirs(&self) -> Vec<PathBuf> {
        std::iter::once(&self.root).chain(&self.also).map(|root| sessions(root)).collect()
    }

    /// A session by its id, or by how its id begins.
    ///
    /// # Errors
    /// When none begins so, or several do.
    pub(crate) fn find(&self, id: &str) -> Result<FoundSession, Fault> {
        let mut found: Vec<FoundSession> = Vec::new();
        for session in self.session_dirs().iter().flat_map(|dir| logs(dir)) {
            if session.id.as_str() == id {
                return Ok(session);
            }
            if !id.is_empty() && session.id.as_str().starts_with(id) {
                found.push(session);
            }
        }
        if found.len() > 1 {
            found.sort_by(|a, b| b.id.cmp(&a.id));
            let shown: Vec<&str> = found.iter().take(3).map(|session| session.id.as_str()).collect();
            let more = if found.len() > shown.len() { ", …" } else { "" };
            return Err(Fault::usage(
                "session-ambiguous",
                format!("{} sessions have an id that begins with `{id}`: {}{more}", found.len(), shown.join(", ")),
                "give more of the id",
            ));
        }
        found.pop().ok_or_else(|| {
            Fault::usage(
                "session-missing",
                format!("there is no session `{id}` in {}", self.sessions_dir().display()),
                "`sluice sessions list` names those there are",
            )
        })
    }

    /// The session of a folder that was used last, if there is one. Blocks while it reads the logs.
    pub(crate) fn last_in(&self, folder: &Path) -> Option<FoundSession> {
        let mut newest: Option<(String, FoundSession)> = None;
        for dir in self.session_dirs() {
            for (path, summary) in list(&dir) {
                let Ok(summary) = summary else { continue };
                let newer = newest.as_ref().is_none_or(|(updated, _)| *updated < summary.updated);
                if newer && summary.cwd == folder {
                    newest = Some((summary.updated, FoundSession { id: summary.id, dir: dir.clone(), path }));
                }
            }
        }
        newest.map(|(_, session)| session)
    }
}

fn sessions(root: &Path) -> PathBuf {
    root.join("sessions")
}

/// The place that is wanted, and the one where temporary files go.
fn places(environment: &Environment) -> (Option<PathBuf>, PathBuf) {
    let preferred = environment.xdg("XDG_STATE_HOME", ".local/state").map(|dir| dir.join("sluice"));
    let user = rustix::process::geteuid().as_raw();
    (preferred, environment.temp().join(format!("sluice-{user}")))
}

/// Whether a folder may be a link to one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// It may: below the home folder, links are the user's own.
    Follow,
    /// It may not: among temporary files, anybody could have made it.
    Refuse,
}

/// Makes a private folder with a place for logs, and makes sure that they can be written.
fn prepare(root: &Path, links: Links) -> io::Result<()> {
    for dir in [root.to_path_buf(), sessions(root)] {
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        if links == Links::Refuse && dir.symlink_metadata()?.is_symlink() {
            return Err(io::Error::other("it is a link"));
        }
        let target = dir.metadata()?;
        if target.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("somebody else owns it"));
        }
        if target.mode() & 0o077 != 0 {
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700))?;
        }
        let wanted = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(CWD, &dir, wanted, AtFlags::EACCESS)?;
    }
    Ok(())
}

/// Whether a folder for temporary files may be looked into: it is ours alone.
fn usable(root: &Path) -> bool {
    root.symlink_metadata().is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
    })
}

/// The logs of a folder by their names.
fn logs(dir: &Path) -> Vec<FoundSession> {
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    let of_path = |path: PathBuf| {
        let id = path.file_stem()?.to_str()?.to_owned();
        let is_log = path.extension().is_some_and(|extension| extension == "jsonl");
        is_log.then(|| FoundSession { id: SessionId::new(id), dir: dir.to_path_buf(), path })
    };
    entries.filter_map(|entry| of_path(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed test may panic")]

    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    fn folder() -> TempDir {
        let folder = TempDir::new().unwrap();
        for name in ["home", "work", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        folder
    }

    fn fallback(folder: &TempDir) -> PathBuf {
        folder.path().join("tmp").join(format!("sluice-{}", rustix::process::geteuid().as_raw()))
    }

    /// A log with nothing but its header.
    fn log(dir: &Path, id: &str, cwd: &str, created: &str) {
        std::fs::create_dir_all(dir).unwrap();
        let header = format!(
            "{{\"type\":\"session\",\"version\":0,\"id\":\"{id}\",\"created_at\":\"{created}\",\"cwd\":\"{cwd}\"}}\n"
        );
        std::fs::write(dir.join(format!("{id}.jsonl")), header).unwrap();
    }

    #[test]
    fn the_folder_is_made_private_below_the_home_folder() {
        let folder = folder();
        let (state, warning) = State::open(&Environment::made_up(folder.path(), &[])).unwrap();
        assert_eq!(state.root, folder.path().join("home/.local/state/sluice"));
        assert_eq!((mode(&state.root), mode(&state.sessions_dir())), (0o700, 0o700));
        assert_eq!(warning, None);
    }

    #[test]
    fn xdg_state_home_moves_it_and_loose_permissions_are_tightened() {
        let folder = folder();
        let root = folder.path().join("s/sluice");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
        let named = folder.path().join("s").display().to_string();
        let (state, _) = State::open(&Environment::made_up(folder.path(), &[("XDG_STATE_HOME", &named)])).unwrap();
        assert_eq!((state.root.as_path(), mode(&state.root)), (root.as_path(), 0o700));
    }

    #[test]
    fn a_home_that_cannot_be_used_is_a_warning_and_a_private_temporary_folder() {
        let folder = folder();
        std::fs::write(folder.path().join("home/.local"), "in the way").unwrap();
        let (state, warning) = State::open(&Environment::made_up(folder.path(), &[])).unwrap();
        assert_eq!(state.root, fallback(&folder));
        assert_eq!(mode(&state.root), 0o700);
        assert!(warning.unwrap().contains(".local/state/sluice cannot be used (not a directory)"));

        let (state, warning) = State::open(&Environment::made_up(folder.path(), &[]).homeless()).unwrap();
        assert_eq!(state.root, fallback(&folder));
        assert!(warning.unwrap().starts_with("there is no home folder; "));
    }

    #[test]
    fn without_any_place_the_fault_says_what_to_set() {
        let folder = folder();
        std::fs::write(folder.path().join("home/.local"), "in the way").unwrap();
        symlink(folder.path().join("work"), fallback(&folder)).unwrap();
        let fault = State::open(&Environment::made_up(folder.path(), &[])).unwrap_err();
        assert_eq!((fault.code, fault.exit_code()), ("state-folder", 2));
        assert!(fault.remedy.contains("XDG_STATE_HOME"));
        assert!(fault.cause.ends_with("(it is a link)"), "{}", fault.cause);
    }

    #[test]
    fn looking_makes_nothing_and_follows_no_link_to_elsewhere() {
        let folder = folder();
        symlink(folder.path().join("work"), fallback(&folder)).unwrap();
        let state = State::look(&Environment::made_up(folder.path(), &[]));
        assert_eq!(state.session_dirs(), [folder.path().join("home/.local/state/sluice/sessions")]);
        assert!(!folder.path().join("home/.local").exists());
    }

    #[test]
    fn a_session_is_found_by_its_id_or_a_beginning_that_only_it_has() {
        let folder = folder();
        let (state, _) = State::open(&Environment::made_up(folder.path(), &[])).unwrap();
        for id in ["0199-aa", "0199-ab", "0200"] {
            log(&state.sessions_dir(), id, "/p", "2026-11-29T00:00:00Z");
        }
        log(&sessions(&fallback(&folder)), "0300", "/p", "2026-11-29T00:00:00Z");
        std::fs::set_permissions(fallback(&folder), std::fs::Permissions::from_mode(0o700)).unwrap();
        let (state, _) = State::open(&Environment::made_up(folder.path(), &[])).unwrap();
        assert_eq!(state.find("0199-aa").unwrap().id.as_str(), "0199-aa");
        assert_eq!(state.find("02").unwrap().path, state.sessions_dir().join("0200.jsonl"));
        assert_eq!(state.find("03").unwrap().dir, sessions(&fallback(&folder)));
        let several = state.find("0199").unwrap_err();
        assert_eq!(several.cause, "2 sessions have an id that begins with `0199`: 0199-ab, 0199-aa");
        assert_eq!(state.find("9").unwrap_err().code, "session-missing");
        assert_eq!(state.find("").unwrap_err().code, "session-missing");
    }

    #[test]
    fn the_last_session_of_a_folder_is_the_one_that_was_used_last_there() {
        let folder = folder();
        let (state, _) = State::open(&Environment::made_up(folder.path(), &[])).unwrap();
        log(&state.sessions_dir(), "a", "/p", "2026-11-29T00:00:01Z");
        log(&state.sessions_dir(), "b", "/p", "2026-11-29T00:00:02Z");
        log(&state.sessions_dir(), "c", "/q", "2026-11-29T00:00:03Z");
        std::fs::write(state.sessions_dir().join("d.jsonl"), "damaged").unwrap();
        assert_eq!(state.last_in(Path::new("/p")).unwrap().id.as_str(), "b");
        assert_eq!(state.last_in(Path::new("/r")), None);
    }
}
