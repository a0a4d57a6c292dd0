//! The user's own files on this machine: settings, trust, transcripts.
//!
//! No fence, no versions, no text rules: that is what [`files`](crate::files) is for. The invariant: what this module
//! creates is readable by its owner alone.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::host_files::{HostFiles, PathKind};

use crate::off_thread;

/// Reads and appends files on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalHostFiles;

impl LocalHostFiles {
    /// A provider; it has no state.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    off_thread::run(&Cancel::new(), move |_| work())
        .await
        .unwrap_or_else(|_| Err(io::Error::other("the operation was interrupted inside sluice")))
}

/// Whether the path itself names an open descriptor, as a shell's `<(…)` does.
fn is_given_descriptor(path: &Path) -> bool {
    path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd") || path == Path::new("/dev/stdin")
}

impl HostFiles for LocalHostFiles {
    fn read<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<Vec<u8>>> {
        let path = path.to_owned();
        Box::pin(blocking(move || {
            let file = std::fs::metadata(&path)?;
            // A link can pose as a settings file and lead to a device that never ends, or to our own input.
            if !file.is_file() && !file.is_dir() && !is_given_descriptor(&path) {
                return Err(io::Error::other("it is no regular file"));
            }
            std::fs::read(path)
        }))
    }

    fn append<'a>(&'a self, path: &'a Path, bytes: &'a [u8]) -> Fut<'a, io::Result<()>> {
        let (path, bytes) = (path.to_owned(), bytes.to_owned());
        Box::pin(blocking(move || {
            if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            // One call: lines of several writers do not mix, and a full disk leaves at worst one torn line.
            file.write_all(&bytes)
        }))
    }

    fn kind<'a>(&'a self, path: &'a Path) -> Fut<'a, Option<PathKind>> {
        let path = path.to_owned();
        Box::pin(async move {
            let meta = blocking(move || std::fs::metadata(path)).await.ok()?;
            Some(if meta.is_file() {
                PathKind::File
            } else if meta.is_dir() {
                PathKind::Folder
            } else {
                PathKind::Other
            })
        })
    }

    fn canonical<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<PathBuf>> {
        let path = path.to_owned();
        Box::pin(blocking(move || std::fs::canonicalize(path)))
    }
}
