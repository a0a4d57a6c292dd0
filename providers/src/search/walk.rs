//! The walk through a folder: which files a search sees at all.
//!
//! Opens no file. The invariant: regular files only, never inside a version-control folder, in path order.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::search::SearchFault;

use crate::process::words;

/// Folders that are never entered; `.git` may also be a file.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".svn", ".jj"];

/// What a search's root is.
pub(super) enum Root {
    File,
    Folder,
}

/// Which files are left out.
pub(super) enum Scope {
    /// None.
    Everything,
    /// Those that ignore files name, as ripgrep does; only files of these types.
    Unignored(Types),
}

/// Looks at the root; whatever is neither file nor folder cannot be searched.
pub(super) fn root_kind(root: &Path) -> Result<Root, SearchFault> {
    let path = root.display().to_string();
    match std::fs::metadata(root) {
        Ok(meta) if meta.is_file() => Ok(Root::File),
        Ok(meta) if meta.is_dir() => Ok(Root::Folder),
        Ok(_) => Err(SearchFault::Failed { path, why: "it is neither a file nor a folder".to_owned() }),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(SearchFault::NotFound { path })
        }
        Err(e) => Err(SearchFault::Failed { path, why: words(&e) }),
    }
}

/// Calls `found` for each file below a folder, in path order, until it says stop.
pub(super) fn files(
    root: &Path,
    scope: Scope,
    cancel: &Cancel,
    mut found: impl FnMut(&DirEntry) -> Result<Next, SearchFault>,
) -> Result<(), SearchFault> {
    let mut walk = WalkBuilder::new(root);
    walk.follow_links(false).sort_by_file_name(OsStr::cmp);
    match scope {
        Scope::Everything => walk.standard_filters(false),
        Scope::Unignored(types) => walk.standard_filters(true).hidden(false).types(types),
    };
    walk.filter_entry(|entry| entry.depth() == 0 || !VERSION_CONTROL.iter().any(|name| entry.file_name() == *name));
    for entry in walk.build() {
        if cancel.is_cancelled() {
            return Err(SearchFault::Aborted);
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(e) => {
                // One folder that may not be read does not spoil the rest.
                tracing::debug!(error = %e, "left out of a search");
                continue;
            }
        };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        match found(&entry)? {
            Next::Go => {}
            Next::Stop => break,
        }
    }
    Ok(())
}

/// Whether the walk goes on.
pub(super) enum Next {
    Go,
    Stop,
}

/// The path of `file` below `root`.
pub(super) fn below(root: &Path, file: &Path) -> PathBuf {
    file.strip_prefix(root).unwrap_or(file).to_owned()
}
