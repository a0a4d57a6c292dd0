//! The file fence: local files of which a sandbox policy lets only some be changed.
//!
//! Reading is always let. The invariant: the file that is changed is the one that was judged. It is judged under its
//! lock, by the path with every link followed, and changed through folders reached without following any, so that a
//! link put into the path in between makes the write start over and be judged anew. The policy's folders are taken
//! as they were resolved for it: a folder that later becomes a link opens nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{Expectation, FileBytes, FileFault, FileKey, FileStat, FileText, Files, Written};
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};

use super::{LocalFiles, real_path, shown, target};

/// Which files may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mode: SandboxMode,
    /// Links resolved; none lies in another.
    writable: Vec<PathBuf>,
    /// Left as it is also below those; free of links.
    protected: Vec<PathBuf>,
}

impl Fence {
    /// Lets the file of this key be changed, or says why not. `path` is what the caller called it.
    pub(super) fn admit(&self, path: &Path, key: &FileKey) -> Result<(), FileFault> {
        let inside = match self.mode {
            SandboxMode::Off => true,
            SandboxMode::ReadOnly => false,
            SandboxMode::WorkspaceWrite => {
                let below = |folders: &[PathBuf]| folders.iter().any(|folder| target(key).starts_with(folder));
                below(&self.writable) && !below(&self.protected)
            }
        };
        if inside {
            return Ok(());
        }
        let writable = match self.mode {
            SandboxMode::Off | SandboxMode::ReadOnly => Vec::new(),
            SandboxMode::WorkspaceWrite => self.writable.clone(),
        };
        let guarded = match self.mode {
            SandboxMode::Off | SandboxMode::ReadOnly => None,
            SandboxMode::WorkspaceWrite => self.protected.iter().find(|place| target(key).starts_with(place)).cloned(),
        };
        Err(FileFault::SandboxDenied { path: shown(path), mode: self.mode, writable, guarded })
    }
}

/// Local files behind a fence.
pub struct FencedFiles {
    inner: Arc<LocalFiles>,
    fence: Arc<Fence>,
}

impl FencedFiles {
    /// Fences `inner` in by a policy, whose folders were resolved when it was made: what has become a link since then
    /// opens nothing. Blocks for as long as it takes to look.
    #[must_use]
    pub fn new(inner: Arc<LocalFiles>, policy: &SandboxPolicy) -> Self {
        let mut writable: Vec<PathBuf> = Vec::new();
        for folder in policy.writable.iter().filter(|folder| real_path(folder) == **folder) {
            if !writable.iter().any(|outer| folder.starts_with(outer)) {
                writable.retain(|inner| !inner.starts_with(folder));
                writable.push(folder.clone());
            }
        }
        Self { inner, fence: Arc::new(Fence { mode: policy.mode, writable, protected: policy.protected.clone() }) }
    }
}

impl Files for FencedFiles {
    fn stat<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<Option<FileStat>, FileFault>> {
        self.inner.stat(path, cancel)
    }

    fn read_text<'a>(&'a self, path: &'a Path, limit: u64, cancel: &'a Cancel) -> Fut<'a, Result<FileText, FileFault>> {
        self.inner.read_text(path, limit, cancel)
    }

    fn read_bytes<'a>(
        &'a self,
        path: &'a Path,
        limit: u64,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<FileBytes, FileFault>> {
        self.inner.read_bytes(path, limit, cancel)
    }

    fn prepare_write<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<(), FileFault>> {
        Box::pin(self.inner.prepare(path, Some(&self.fence), cancel))
    }

    fn write_text<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
        expected: Expectation,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Written, FileFault>> {
        Box::pin(self.inner.write(path, text, expected, Some(&self.fence), cancel))
    }
}
