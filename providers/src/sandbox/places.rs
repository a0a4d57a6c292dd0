//! The folders that a policy means, as they are on this machine at this moment.
//!
//! The invariant: a grant is given for a real path alone. A symbolic link is never followed to a grant, so that whoever
//! may write one folder cannot turn it into a door to another.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, CWD, Mode, OFlags, ResolveFlags};
use sluice_harness::seam::process::Confinement;
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};

/// What every process may write: devices without a memory, and its own terminal.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What may be written as well where anything of the machine may: without these nothing can make a terminal, as test
/// suites and `script` do. Those of others are there too, which is why a command that may only read has none.
pub(super) const TERMINALS: &[&str] = &["/dev/ptmx", "/dev/pts"];

/// Opens a path for a grant; `None` when it is not there or a link is on the way.
pub(super) fn open(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()
}

/// What may be read: everything but the homes of others, and what was named as writable wherever it is.
pub(super) fn readable(policy: &SandboxPolicy) -> Vec<PathBuf> {
    let mut paths = around(Path::new("/"), &homes_of_others(Path::new("/")));
    paths.extend(policy.writable.iter().cloned());
    paths
}

/// What may be written beside [`DEVICES`].
pub(super) fn writable(confinement: &Confinement) -> Vec<PathBuf> {
    let policy = &confinement.policy;
    let mut paths = confinement.files.clone();
    if policy.mode == SandboxMode::WorkspaceWrite {
        paths.extend(policy.writable.iter().flat_map(|folder| around(folder, &policy.protected)));
        paths.push(PathBuf::from("/dev/shm"));
    }
    paths
}

/// The homes that belong to somebody else and that the file system alone would let us into.
fn homes_of_others(root: &Path) -> Vec<PathBuf> {
    let us = rustix::process::getuid().as_raw();
    let own = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    // Both may be links to where the homes are, as may a single home; what is granted has no link in it.
    let mut homes: Vec<PathBuf> = root.join("root").canonicalize().into_iter().collect();
    if let Ok(entries) = root.join("home").canonicalize().and_then(fs::read_dir) {
        homes.extend(entries.flatten().filter_map(|entry| entry.path().canonicalize().ok()));
    }
    homes.retain(|home| {
        let Ok(meta) = fs::symlink_metadata(home) else { return false };
        let ours = meta.uid() == us || own.as_deref().is_some_and(|own| own.starts_with(home));
        let open = [Access::EXEC_OK, Access::READ_OK].iter().any(|how| rustix::fs::access(home, *how).is_ok());
        meta.is_dir() && !ours && open
    });
    homes
}

/// A folder without what is left out below it: itself where that is nothing, else those of its entries that are not on
/// the way there, and so on down.
fn around(folder: &Path, left_out: &[PathBuf]) -> Vec<PathBuf> {
    if left_out.iter().any(|path| folder.starts_with(path)) {
        return Vec::new();
    }
    if !left_out.iter().any(|path| path.starts_with(folder)) {
        return vec![folder.to_owned()];
    }
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries
        .flatten()
        // What a link leads to is granted under its own name, or not at all.
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .flat_map(|entry| around(&entry.path(), left_out))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    #[test]
    fn a_folder_is_granted_whole_or_around_what_is_left_out() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["a/x", "a/y/z", "b", "c"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        let granted = |left_out: &[&str]| {
            let left_out: Vec<_> = left_out.iter().map(|path| root.join(path)).collect();
            let mut paths: Vec<_> = around(&root, &left_out)
                .iter()
                .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
                .collect();
            paths.sort();
            paths.join(" ")
        };
        assert_eq!(granted(&[]), "");
        assert_eq!(granted(&["b"]), "a c");
        assert_eq!(granted(&["a/y"]), "a/x b c");
        assert_eq!(granted(&["a/y/z", "b"]), "a/x c");
        // What is not there yet cannot be made either.
        assert_eq!(granted(&["a/new/er"]), "a/x a/y b c");
        assert_eq!(around(&root.join("a"), std::slice::from_ref(&root)), Vec::<PathBuf>::new());
    }

    #[test]
    fn the_homes_of_others_are_found_where_links_lead() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("var/home/other")).unwrap();
        fs::create_dir_all(root.join("data/moved")).unwrap();
        std::os::unix::fs::symlink("var/home", root.join("home")).unwrap();
        std::os::unix::fs::symlink("../../data/moved", root.join("var/home/moved")).unwrap();
        let us = rustix::process::getuid().as_raw();
        assert_eq!(homes_of_others(&root), Vec::<PathBuf>::new(), "our own are ours");
        for folder in ["var/home/other", "data/moved"] {
            if std::os::unix::fs::chown(root.join(folder), Some(us + 4321), None).is_err() {
                println!("skipped: only root gives folders away");
                return;
            }
        }
        let mut homes = homes_of_others(&root);
        homes.sort();
        assert_eq!(homes, [root.join("data/moved"), root.join("var/home/other")]);
    }

    #[test]
    fn a_path_with_a_link_on_the_way_is_not_opened() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        assert!(open(&root.join("real/deep")).is_some());
        assert!(open(&root.join("link")).is_none());
        assert!(open(&root.join("link/deep")).is_none());
    }
}
