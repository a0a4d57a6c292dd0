//! The atomic write: check, stage beside the target, publish in one step.
//!
//! Runs under the file's lock. The invariant: until the one publishing call nothing but a hidden staging file exists,
//! and that is gone whatever happens; after it the write stands, also when it was cancelled meanwhile.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::Access;
#[cfg(target_os = "linux")]
use rustix::fs::{CWD, RenameFlags};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{Expectation, FileFault, FileKey, Written};

use super::{fault, observe, shown, target};

/// Former texts larger than this are not reported; a diff of them would help nobody.
const BEFORE_LIMIT: u64 = 64 * 1024 * 1024;
/// How much is written between two looks at the signal.
const CHUNK: usize = 256 * 1024;

/// Writes the text. Blocks.
pub(super) fn write(
    path: &Path,
    key: &FileKey,
    text: &str,
    expected: &Expectation,
    cancel: &Cancel,
) -> Result<Written, FileFault> {
    check_signal(path, cancel)?;
    let old = check(path, key, expected)?;
    let before = match &old {
        Some(_) => former_text(path, cancel)?,
        None => None,
    };
    let folder = target(key).parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => FileFault::NotFolder { path: shown(folder) },
        _ => fault(path, &e),
    })?;
    let staged = Staged::create(folder, old.as_ref()).map_err(|e| fault(path, &e))?;
    for piece in text.as_bytes().chunks(CHUNK) {
        check_signal(path, cancel)?;
        (&staged.file).write_all(piece).map_err(|e| fault(path, &e))?;
    }
    staged.file.sync_all().map_err(|e| fault(path, &e))?;
    // Again, right before the step that cannot be taken back: other programs do not know our locks.
    check_signal(path, cancel)?;
    check(path, key, expected)?;
    match expected {
        Expectation::Absent => staged.publish_new(target(key)),
        Expectation::Any | Expectation::Version(_) => staged.publish_over(target(key)),
    }
    .map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => FileFault::NotObserved { path: shown(path) },
        _ => fault(path, &e),
    })?;
    if let Ok(folder) = File::open(folder) {
        // Best effort: some file systems cannot sync a folder, and the write itself stands.
        let _ = folder.sync_all();
    }
    let meta = staged.file.metadata().map_err(|e| fault(path, &e))?;
    Ok(Written { before, stat: observe::stat_of(key.clone(), &meta) })
}

fn check_signal(path: &Path, cancel: &Cancel) -> Result<(), FileFault> {
    if cancel.is_cancelled() { Err(FileFault::Aborted { path: shown(path) }) } else { Ok(()) }
}

/// Checks what is there against what the caller expects and returns it.
fn check(path: &Path, key: &FileKey, expected: &Expectation) -> Result<Option<Metadata>, FileFault> {
    let old = match std::fs::symlink_metadata(target(key)) {
        Ok(meta) => Some(meta),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(fault(path, &e)),
    };
    if let Some(meta) = &old
        && !meta.is_file()
    {
        return Err(FileFault::NotRegular { path: shown(path) });
    }
    match (expected, &old) {
        (Expectation::Any, _) | (Expectation::Absent, None) => {}
        (Expectation::Absent, Some(_)) => return Err(FileFault::NotObserved { path: shown(path) }),
        (Expectation::Version(_), None) => return Err(FileFault::Stale { path: shown(path) }),
        (Expectation::Version(wanted), Some(meta)) => {
            if observe::stat_of(key.clone(), meta).version != *wanted {
                return Err(FileFault::Stale { path: shown(path) });
            }
        }
    }
    if old.is_some() {
        // Replacing needs no right to write the old file itself; whoever made it read-only meant something by it.
        rustix::fs::access(target(key), Access::WRITE_OK).map_err(|e| fault(path, &e.into()))?;
    }
    Ok(old)
}

fn former_text(path: &Path, cancel: &Cancel) -> Result<Option<String>, FileFault> {
    match observe::read_text(path, BEFORE_LIMIT, cancel) {
        Ok(text) => Ok(Some(text.text)),
        Err(fault @ FileFault::Aborted { .. }) => Err(fault),
        // What cannot be read as text has no former text.
        Err(_) => Ok(None),
    }
}

/// A file on its way; removed when dropped.
struct Staged {
    file: File,
    path: PathBuf,
}

impl Staged {
    fn create(folder: &Path, old: Option<&Metadata>) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".sluice-{}-{number}.tmp", std::process::id()));
            let mut options = OpenOptions::new();
            // A replacement is nobody else's business until it has the old file's mode; a new file gets what the
            // user's umask leaves of 0666, which only the kernel can work out without a race.
            options.write(true).create_new(true).mode(if old.is_some() { 0o600 } else { 0o666 });
            match options.open(&path) {
                Ok(file) => {
                    let staged = Self { file, path };
                    if let Some(old) = old {
                        staged.dress(old)?;
                    }
                    return Ok(staged);
                }
                // Left behind by an earlier process of the same number.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn dress(&self, old: &Metadata) -> io::Result<()> {
        let new = self.file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only a privileged process can give a file away; for others the file becomes theirs, as with any editor.
            let _ = std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()));
        }
        self.file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))
    }

    fn publish_over(&self, target: &Path) -> io::Result<()> {
        std::fs::rename(&self.path, target)
    }

    /// Publishes without replacing anything: `AlreadyExists` when somebody was faster.
    fn publish_new(&self, target: &Path) -> io::Result<()> {
        match std::fs::hard_link(&self.path, target) {
            Ok(()) => std::fs::remove_file(&self.path),
            // File systems without hard links.
            Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                rename_new(&self.path, target)
            }
            Err(e) => Err(e),
        }
    }
}

#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(target_os = "linux"))]
fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this file system cannot create a file without replacing one"))
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Fails when it was published, which is the usual case.
        let _ = std::fs::remove_file(&self.path);
    }
}
