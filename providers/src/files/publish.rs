//! The atomic write: check, stage beside the target, publish in one step.
//!
//! Runs under the file's lock. The invariants: until the one publishing call nothing but a hidden staging file exists,
//! and that is gone whatever happens; after it the write stands, also when it was cancelled meanwhile. Everything that
//! changes the disk goes through a folder held open ([`held`](super::held)), so that a link put into the path
//! meanwhile leads nowhere.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{Expectation, FileFault, FileKey, Written};

use super::held::{self, Walked};
use super::{fault, observe, shown, target};

/// Former texts larger than this are not reported; a diff of them would help nobody.
const BEFORE_LIMIT: u64 = 64 * 1024 * 1024;
/// How much is written between two looks at the signal.
const CHUNK: usize = 256 * 1024;

/// What became of a write.
pub(super) enum Done {
    /// It stands.
    Written(Written),
    /// The path leads elsewhere now, and nothing was changed.
    Moved,
}

/// Writes the text. Blocks.
pub(super) fn write(
    path: &Path,
    key: &FileKey,
    text: &str,
    expected: &Expectation,
    cancel: &Cancel,
) -> Result<Done, FileFault> {
    check_signal(path, cancel)?;
    let old = check(path, key, expected)?;
    let before = match &old {
        Some(_) => former_text(path, cancel)?,
        None => None,
    };
    let (folder, name) = match held::folder_of(path, key)? {
        Walked::Held(folder, name) => (folder, name),
        Walked::Moved => return Ok(Done::Moved),
    };
    let staged = Staged::create(&folder, old.as_ref()).map_err(|e| fault(path, &e))?;
    for piece in text.as_bytes().chunks(CHUNK) {
        check_signal(path, cancel)?;
        (&staged.file).write_all(piece).map_err(|e| fault(path, &e))?;
    }
    staged.file.sync_all().map_err(|e| fault(path, &e))?;
    // Again, right before the step that cannot be taken back: other programs do not know our locks.
    check_signal(path, cancel)?;
    check(path, key, expected)?;
    match expected {
        Expectation::Absent => staged.publish_new(name),
        Expectation::Any | Expectation::Version(_) => staged.publish_over(name),
    }
    .map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => FileFault::NotObserved { path: shown(path) },
        _ => fault(path, &e),
    })?;
    held::sync(&folder);
    let meta = staged.file.metadata().map_err(|e| fault(path, &e))?;
    Ok(Done::Written(Written { before, stat: observe::stat_of(key.clone(), &meta) }))
}

/// Checks that a file may be changed, and makes the folders that it needs; `false` when its path leads elsewhere now.
/// Blocks.
pub(super) fn prepare(path: &Path, key: &FileKey) -> Result<bool, FileFault> {
    check(path, key, &Expectation::Any)?;
    Ok(match held::folder_of(path, key)? {
        Walked::Held(..) => true,
        Walked::Moved => false,
    })
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
        rustix::fs::access(target(key), rustix::fs::Access::WRITE_OK).map_err(|e| fault(path, &e.into()))?;
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

/// A file on its way in a folder; removed when dropped.
struct Staged<'a> {
    folder: &'a OwnedFd,
    file: File,
    name: String,
}

impl<'a> Staged<'a> {
    fn create(folder: &'a OwnedFd, old: Option<&Metadata>) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A replacement is nobody else's business until it has the old file's mode; a new file gets what the
        // user's umask leaves of 0666, which only the kernel can work out without a race.
        let mode = Mode::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".sluice-{}-{number}.tmp", std::process::id());
            match rustix::fs::openat(folder, &name, flags, mode) {
                Ok(file) => {
                    let staged = Self { folder, file: File::from(file), name };
                    if let Some(old) = old {
                        staged.dress(old)?;
                    }
                    return Ok(staged);
                }
                // Left behind by an earlier process of the same number.
                Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
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

    fn publish_over(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(self.folder, &self.name, self.folder, name)?)
    }

    /// Publishes without replacing anything: `AlreadyExists` when somebody was faster.
    fn publish_new(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::linkat(self.folder, &self.name, self.folder, name, AtFlags::empty()) {
            Ok(()) => Ok(rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty())?),
            Err(e) => match io::Error::from(e).kind() {
                // File systems without hard links.
                io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => self.rename_new(name),
                _ => Err(e.into()),
            },
        }
    }

    #[cfg(target_os = "linux")]
    fn rename_new(&self, name: &OsStr) -> io::Result<()> {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        Ok(rustix::fs::renameat_with(self.folder, &self.name, self.folder, name, flags)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn rename_new(&self, _name: &OsStr) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this file system cannot create a file without replacing one"))
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // Fails when it was published, which is the usual case.
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}
