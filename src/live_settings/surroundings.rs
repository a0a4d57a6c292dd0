//! What discovery saw around the settings files when the session began: marks of repositories, links, neighbouring files.
//!
//! Reading settings again asks the same of this record, and not of the disk, so that nothing but an applied text changes
//! what counts: a moved `.git` or a new link neither adds a file nor takes one away. The invariant: what was not there
//! to be seen at the beginning is not there later.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sluice_harness::Fut;
use sluice_harness::seam::host_files::{HostFiles, PathKind};

/// The record.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    texts: HashMap<PathBuf, Vec<u8>>,
    kinds: HashMap<PathBuf, PathKind>,
    canonical: HashMap<PathBuf, PathBuf>,
}

impl Surroundings {
    /// A file's text.
    pub(super) fn text(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.texts.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What a path was.
    pub(super) fn kind(&self, path: &Path) -> Option<PathKind> {
        self.kinds.get(path).copied()
    }

    /// Where a path led.
    pub(super) fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.canonical.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Files that are looked at for the record.
pub(super) struct Recording<'a> {
    files: &'a dyn HostFiles,
    seen: Mutex<Surroundings>,
}

impl<'a> Recording<'a> {
    pub(super) fn of(files: &'a dyn HostFiles) -> Self {
        Self { files, seen: Mutex::default() }
    }

    /// The record so far.
    pub(super) fn finish(self) -> Surroundings {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, write: impl FnOnce(&mut Surroundings)) {
        write(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl HostFiles for Recording<'_> {
    fn read<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<Vec<u8>>> {
        Box::pin(async move {
            let text = self.files.read(path).await?;
            self.note(|seen| _ = seen.texts.insert(path.to_owned(), text.clone()));
            Ok(text)
        })
    }

    fn append<'a>(&'a self, path: &'a Path, bytes: &'a [u8]) -> Fut<'a, io::Result<()>> {
        self.files.append(path, bytes)
    }

    fn kind<'a>(&'a self, path: &'a Path) -> Fut<'a, Option<PathKind>> {
        Box::pin(async move {
            let kind = self.files.kind(path).await?;
            self.note(|seen| _ = seen.kinds.insert(path.to_owned(), kind));
            Some(kind)
        })
    }

    fn canonical<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<PathBuf>> {
        Box::pin(async move {
            let real = self.files.canonical(path).await?;
            self.note(|seen| _ = seen.canonical.insert(path.to_owned(), real.clone()));
            Ok(real)
        })
    }
}
