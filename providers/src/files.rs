//! Local files: the workspace's files on this machine.
//!
//! Which file a path means lives in [`resolve`], what is on the disk now in [`observe`], the atomic write in
//! [`publish`], and what a sandbox policy lets be changed in [`fence`]; this file joins them, serialises mutations, and
//! maps the system's errors (R-395…R-402).
//!
//! The invariant: nothing of a file changes before its expectation was checked under the file's lock, and a write is
//! visible as a whole or not at all.

mod fence;
mod held;
mod locks;
mod observe;
mod publish;
mod resolve;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{Expectation, FileBytes, FileFault, FileKey, FileStat, FileText, Files, Written};

use crate::off_thread;
use crate::process::words;
use fence::Fence;
pub use fence::FencedFiles;
pub use locks::{FileLock, FileLocks};
use publish::Done;

/// Where an absolute path leads with every link followed, also when its last parts do not exist; the path itself where
/// that cannot be told. Blocks for as long as it takes to read the links.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    resolve::key(path).map_or_else(|_| path.to_owned(), |key| key.0)
}

/// Reads and writes files on this machine.
#[derive(Default)]
pub struct LocalFiles {
    locks: FileLocks,
}

impl LocalFiles {
    /// A provider without locks held.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes under the file's lock what the fence admits.
    async fn write(
        &self,
        path: &Path,
        text: &str,
        expected: Expectation,
        fence: Option<&Arc<Fence>>,
        cancel: &Cancel,
    ) -> Result<Written, FileFault> {
        if let Some(at) = text.bytes().position(|b| b == 0) {
            return Err(FileFault::NotText { path: shown(path), why: format!("NUL at byte {at} of the new text") });
        }
        let text: Arc<str> = text.into();
        // A link on the way may be turned elsewhere between the look and the lock; then the lock was the wrong one.
        for _ in 0..RETARGETS {
            let owned = path.to_owned();
            let key = off_thread::run(cancel, move |_| resolve::key(&owned)).await.map_err(|_| lost(path))??;
            let Some(held) = self.locks.hold(&key, cancel).await else {
                return Err(FileFault::Aborted { path: shown(path) });
            };
            let (owned, text, expected) = (path.to_owned(), Arc::clone(&text), expected.clone());
            let fence = fence.map(Arc::clone);
            let done = off_thread::run(cancel, move |cancel| {
                // Held by the work, not by the future: a dropped write must not let the next one in too early.
                let _held = held;
                if resolve::key(&owned)? != key {
                    return Ok(Done::Moved);
                }
                if let Some(fence) = fence {
                    fence.admit(&owned, &key)?;
                }
                publish::write(&owned, &key, &text, &expected, cancel)
            });
            if let Done::Written(written) = done.await.map_err(|_| lost(path))?? {
                return Ok(written);
            }
        }
        Err(FileFault::Io { path: shown(path), why: "a link on its path keeps changing".to_owned() })
    }

    /// Makes the folders of a file that the fence admits.
    async fn prepare(&self, path: &Path, fence: Option<&Arc<Fence>>, cancel: &Cancel) -> Result<(), FileFault> {
        let (owned, fence) = (path.to_owned(), fence.map(Arc::clone));
        let prepared = off_thread::run(cancel, move |_| {
            for _ in 0..RETARGETS {
                let key = resolve::key(&owned)?;
                if let Some(fence) = &fence {
                    fence.admit(&owned, &key)?;
                }
                if publish::prepare(&owned, &key)? {
                    return Ok(());
                }
            }
            Err(FileFault::Io { path: shown(&owned), why: "a link on its path keeps changing".to_owned() })
        });
        prepared.await.map_err(|_| lost(path))?
    }
}

impl Files for LocalFiles {
    fn stat<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<Option<FileStat>, FileFault>> {
        Box::pin(async move {
            let owned = path.to_owned();
            off_thread::run(cancel, move |_| observe::stat(&owned)).await.map_err(|_| lost(path))?
        })
    }

    fn read_text<'a>(&'a self, path: &'a Path, limit: u64, cancel: &'a Cancel) -> Fut<'a, Result<FileText, FileFault>> {
        Box::pin(async move {
            let owned = path.to_owned();
            off_thread::run(cancel, move |cancel| observe::read_text(&owned, limit, cancel))
                .await
                .map_err(|_| lost(path))?
        })
    }

    fn read_bytes<'a>(
        &'a self,
        path: &'a Path,
        limit: u64,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<FileBytes, FileFault>> {
        Box::pin(async move {
            let owned = path.to_owned();
            off_thread::run(cancel, move |cancel| observe::read_bytes(&owned, limit, cancel))
                .await
                .map_err(|_| lost(path))?
        })
    }

    fn prepare_write<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<(), FileFault>> {
        Box::pin(self.prepare(path, None, cancel))
    }

    fn write_text<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
        expected: Expectation,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Written, FileFault>> {
        Box::pin(self.write(path, text, expected, None, cancel))
    }
}

/// How often a write follows a path that is being re-linked.
const RETARGETS: u32 = 5;

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn lost(path: &Path) -> FileFault {
    FileFault::Io { path: shown(path), why: "the operation was interrupted inside sluice".to_owned() }
}

/// The fault for a system error on the file that the caller called `path`.
fn fault(path: &Path, error: &io::Error) -> FileFault {
    let path = shown(path);
    match error.kind() {
        io::ErrorKind::NotFound => FileFault::NotFound { path },
        io::ErrorKind::NotADirectory => FileFault::NotFolder { path },
        io::ErrorKind::IsADirectory => FileFault::NotRegular { path },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => FileFault::PermissionDenied { path },
        _ => FileFault::Io { path, why: words(error) },
    }
}

/// The path of a key.
fn target(key: &FileKey) -> &PathBuf {
    &key.0
}
