//! What is on the disk now: a file's state, and its whole text.
//!
//! Changes nothing. The invariant: the version that comes with a text was taken before the text was read, so that a
//! write that happened meanwhile makes a later guarded write stale instead of being lost.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{FileBytes, FileFault, FileKey, FileKind, FileStat, FileText, FileVersion};

use super::{fault, resolve, shown, target};

/// How much is read between two looks at the signal.
const CHUNK: usize = 256 * 1024;
/// How often a file that changes under the reader is read again.
const REREADS: u32 = 3;

/// The state of whatever a path means; `None` when nothing is there. Blocks.
pub(super) fn stat(path: &Path) -> Result<Option<FileStat>, FileFault> {
    let key = resolve::key(path)?;
    match std::fs::symlink_metadata(target(&key)) {
        Ok(meta) => Ok(Some(stat_of(key, &meta))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(fault(path, &e)),
    }
}

/// The state as the metadata has it.
pub(super) fn stat_of(key: FileKey, meta: &Metadata) -> FileStat {
    let kind = if meta.is_file() {
        FileKind::File
    } else if meta.is_dir() {
        FileKind::Folder
    } else {
        FileKind::Other
    };
    FileStat { key, kind, size: meta.len(), version: version_of(meta) }
}

fn version_of(meta: &Metadata) -> FileVersion {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    FileVersion(format!(
        "{}:{}:{}:{}:{}",
        meta.dev(),
        meta.ino(),
        meta.size(),
        nanos(meta.mtime(), meta.mtime_nsec()),
        nanos(meta.ctime(), meta.ctime_nsec())
    ))
}

/// The whole text of a regular file. Blocks.
pub(super) fn read_text(path: &Path, limit: u64, cancel: &Cancel) -> Result<FileText, FileFault> {
    let FileBytes { bytes, stat } = read_bytes(path, limit, cancel)?;
    Ok(FileText { text: text_of(path, bytes)?, stat })
}

/// All bytes of a regular file. Blocks.
pub(super) fn read_bytes(path: &Path, limit: u64, cancel: &Cancel) -> Result<FileBytes, FileFault> {
    let key = resolve::key(path)?;
    let mut tries = 0;
    loop {
        let (bytes, before, after) = read_once(path, &key, limit, cancel)?;
        tries += 1;
        if before.version != after.version && tries < REREADS {
            continue;
        }
        return Ok(FileBytes { bytes, stat: before });
    }
}

fn read_once(
    path: &Path,
    key: &FileKey,
    limit: u64,
    cancel: &Cancel,
) -> Result<(Vec<u8>, FileStat, FileStat), FileFault> {
    let too_large = |size: u64| FileFault::TooLarge { path: shown(path), size, limit };
    let mut file = open_regular(path, key)?;
    let before = file.metadata().map_err(|e| fault(path, &e))?;
    if before.len() > limit {
        return Err(too_large(before.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0).min(CHUNK * 64));
    loop {
        if cancel.is_cancelled() {
            return Err(FileFault::Aborted { path: shown(path) });
        }
        let n = (&mut file).take(CHUNK as u64).read_to_end(&mut bytes).map_err(|e| fault(path, &e))?;
        // Also what grows while it is read, and what has no size of its own, stays below the limit.
        if bytes.len() as u64 > limit {
            return Err(too_large(bytes.len() as u64));
        }
        if n == 0 {
            break;
        }
    }
    let after = file.metadata().map_err(|e| fault(path, &e))?;
    Ok((bytes, stat_of(key.clone(), &before), stat_of(key.clone(), &after)))
}

fn open_regular(path: &Path, key: &FileKey) -> Result<File, FileFault> {
    // Looked at first, because opening a device may do something; opened without waiting, because a pipe put there
    // since would wait for a writer.
    let meta = std::fs::symlink_metadata(target(key)).map_err(|e| fault(path, &e))?;
    if !meta.is_file() {
        return Err(FileFault::NotRegular { path: shown(path) });
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits().cast_signed())
        .open(target(key))
        .map_err(|e| fault(path, &e))?;
    let opened = file.metadata().map_err(|e| fault(path, &e))?;
    if opened.is_file() { Ok(file) } else { Err(FileFault::NotRegular { path: shown(path) }) }
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, FileFault> {
    let refused = |why: String| FileFault::NotText { path: shown(path), why };
    if matches!(bytes.as_slice(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
        return Err(refused("its byte order mark says UTF-16 or UTF-32; only UTF-8 is text here".to_owned()));
    }
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        return Err(refused(format!("NUL at byte {at}")));
    }
    String::from_utf8(bytes).map_err(|e| refused(format!("invalid UTF-8 at byte {}", e.utf8_error().valid_up_to())))
}
