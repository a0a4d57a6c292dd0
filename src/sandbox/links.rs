//! Where a folder that is to be writable really is, with the links on the way that may be believed.
//!
//! The invariant: a link that a command of an earlier session may have made leads to no grant. Only the user can have
//! made one in a folder where no command ever makes anything; every other link on the way is the end of it.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;

/// So many links on one way lead nowhere, as for the kernel.
const MOST: usize = 40;

/// Where an absolute path leads, if it is there and every folder that holds a link on the way `stands`.
pub(super) fn real(path: &Path, stands: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut at = PathBuf::from("/");
    let mut ahead = reversed(path);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        match Path::new(&part).components().next()? {
            Component::RootDir => at = PathBuf::from("/"),
            Component::ParentDir => {
                at.pop();
            }
            Component::CurDir | Component::Prefix(_) => {}
            Component::Normal(name) => {
                let next = at.join(name);
                if !next.symlink_metadata().ok()?.is_symlink() {
                    at = next;
                    continue;
                }
                links += 1;
                if links > MOST || !stands(&at) {
                    return None;
                }
                ahead.extend(reversed(&next.read_link().ok()?));
            }
        }
    }
    Some(at)
}

/// The parts of a path, the first one last.
fn reversed(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Whether only the user, or the system, makes anything in this folder, whatever a session's workspace is: the root, the
/// home folder itself unless it lies in a temporary one, and what belongs to others and is closed to us.
pub(super) fn is_beyond_commands(folder: &Path, home: Option<&Path>) -> bool {
    // A folder of our own that is closed may have been closed by a command.
    let closed = || {
        folder.metadata().is_ok_and(|meta| meta.uid() != rustix::process::geteuid().as_raw())
            && rustix::fs::access(folder, Access::WRITE_OK).is_err()
    };
    folder == Path::new("/") || Some(folder) == home || closed()
}
