//! Which file a path means: every link resolved, also where the last parts do not exist yet.
//!
//! Reads links and nothing else. The invariant: two paths that reach one file, or would create one file, have one key
//!

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use sluice_harness::seam::files::{FileFault, FileKey};

/// How many links one path may run through, as Linux has it.
const MAX_LINKS: u32 = 40;

enum Part {
    Root,
    Up,
    Name(OsString),
}

fn parts(path: &Path) -> impl DoubleEndedIterator<Item = Part> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Part::Root),
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

/// The key of an absolute path. Blocks.
pub(super) fn key(path: &Path) -> Result<FileKey, FileFault> {
    if !path.is_absolute() {
        let why = "the path is not absolute".to_owned();
        return Err(FileFault::Io { path: super::shown(path), why });
    }
    follow(path).map(FileKey).map_err(|e| super::fault(path, &e))
}

fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut ahead: VecDeque<Part> = parts(path).collect();
    let mut reached = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        let name = match part {
            Part::Root => {
                reached = PathBuf::from("/");
                continue;
            }
            Part::Up => {
                reached.pop();
                continue;
            }
            Part::Name(name) => name,
        };
        let next = reached.join(name);
        match std::fs::symlink_metadata(&next) {
            Ok(meta) if meta.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::from(rustix::io::Errno::LOOP));
                }
                for part in parts(&std::fs::read_link(&next)?).rev() {
                    ahead.push_front(part);
                }
            }
            Ok(_) => reached = next,
            Err(e) if e.kind() == io::ErrorKind::NotFound => reached = next,
            Err(e) => return Err(e),
        }
    }
    Ok(reached)
}
