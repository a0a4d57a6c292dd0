//! The host-files seam: the user's own files, outside any fence: settings, trust, transcripts.
//!
//! Bridges read hook settings and write transcripts through it. Tools never get it: what a model asks for goes through
//! [`Files`](super::files::Files).

use std::io;
use std::path::{Path, PathBuf};

use crate::Fut;

/// Reads and appends the user's own files.
pub trait HostFiles: Send + Sync {
    /// The whole content of a file; `NotFound` when there is none.
    fn read<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<Vec<u8>>>;
    /// Appends whole lines in one write; makes the file (mode 0600) and its folders (0700) where they are missing.
    fn append<'a>(&'a self, path: &'a Path, bytes: &'a [u8]) -> Fut<'a, io::Result<()>>;
    /// Whether the path exists, and as what.
    fn kind<'a>(&'a self, path: &'a Path) -> Fut<'a, Option<PathKind>>;
    /// The path with every link resolved.
    fn canonical<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<PathBuf>>;
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// Anything else.
    Other,
}
