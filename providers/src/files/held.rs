//! A folder held open, reached from the root without following a link.
//!
//! What is done through the handle happens in the folder that the walk reached, whatever its path means by then. The
//! invariant: no component of the walked path was a link, so the handle is the folder that the key names, or none.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use sluice_harness::seam::files::{FileFault, FileKey};

use super::{fault, shown, target};

/// Searching a folder needs no right to list it.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlags = OFlags::RDONLY;

/// Where a walk ended.
pub(super) enum Walked<'k> {
    /// In the folder of the file, which has this name there.
    Held(OwnedFd, &'k OsStr),
    /// At a link that was not there when the key was worked out.
    Moved,
}

/// The folder of a file, made where it is missing. `path` is what the caller called the file. Blocks.
pub(super) fn folder_of<'k>(path: &Path, key: &'k FileKey) -> Result<Walked<'k>, FileFault> {
    let (Some(folder), Some(name)) = (target(key).parent(), target(key).file_name()) else {
        return Err(FileFault::NotRegular { path: shown(path) });
    };
    let failed = |e: Errno| fault(path, &e.into());
    let flags = SEARCH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held = rustix::fs::openat(CWD, "/", flags, Mode::empty()).map_err(failed)?;
    for component in folder.components() {
        let Component::Normal(part) = component else { continue };
        let mut next = rustix::fs::openat(&held, part, flags, Mode::empty());
        if matches!(next, Err(Errno::NOENT)) {
            match rustix::fs::mkdirat(&held, part, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(failed(e)),
            }
            next = rustix::fs::openat(&held, part, flags, Mode::empty());
        }
        held = match next {
            Ok(next) => next,
            // Something in the place of a folder stays there; anything else says that the path has just changed.
            Err(Errno::NOTDIR) if is_no_folder(&held, part) => {
                return Err(FileFault::NotFolder { path: shown(folder) });
            }
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Walked::Moved),
            Err(e) => return Err(failed(e)),
        };
    }
    Ok(Walked::Held(held, name))
}

fn is_no_folder(folder: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| !matches!(FileType::from_raw_mode(stat.st_mode), FileType::Symlink | FileType::Directory))
}

/// Makes the folder's entries durable. Best effort: some file systems cannot, and what was published stands.
pub(super) fn sync(folder: &OwnedFd) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(folder) = rustix::fs::openat(folder, ".", flags, Mode::empty()) {
        let _ = File::from(folder).sync_all();
    }
}
