//! The file-system seam: what tools may do with a workspace's files.
//!
//! Contract for every provider (R-395…R-402): paths are absolute; the same file by any alias has one [`FileKey`];
//! text is strict UTF-8 without NUL; writes are atomic and keep the mode; an [`Expectation`] is checked before
//! anything changes; mutations of one file are serialised.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::sandbox::SandboxMode;
use crate::Fut;
use crate::cancel::Cancel;

/// One file under any of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileKey(pub PathBuf);

/// One state of a file, opaque; equal versions mean nothing was written in between.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileVersion(pub String);

/// What is known of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// Its identity.
    pub key: FileKey,
    /// What it is.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Its state.
    pub version: FileVersion,
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A device, socket, pipe …
    Other,
}

/// A file's text as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// The text, line ends as they are.
    pub text: String,
    /// The file's state when it was read.
    pub stat: FileStat,
}

/// A file's bytes as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The file's state when it was read.
    pub stat: FileStat,
}

/// What must hold before a write changes anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// Nothing.
    Any,
    /// No file may be there.
    Absent,
    /// The file must be in this state.
    Version(FileVersion),
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The former text, where there was a text file.
    pub before: Option<String>,
    /// The state after the write.
    pub stat: FileStat,
}

/// Why a file operation could not be done. Each has a stable code.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FileFault {
    /// `FS_NOT_FOUND`
    #[error("File does not exist: {path}")]
    NotFound {
        /// The path.
        path: String,
    },
    /// `FS_NOT_DIRECTORY`
    #[error("Not a folder: {path}")]
    NotFolder {
        /// The path.
        path: String,
    },
    /// `FS_NOT_REGULAR_FILE`
    #[error("Not a regular file: {path}")]
    NotRegular {
        /// The path.
        path: String,
    },
    /// `FS_NOT_TEXT`
    #[error("Not a text file: {path} ({why})")]
    NotText {
        /// The path.
        path: String,
        /// What was found in it.
        why: String,
    },
    /// `FS_TOO_LARGE`
    #[error("File is too large: {path} has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The path.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// `FS_PERMISSION_DENIED`
    #[error("Permission denied: {path}")]
    PermissionDenied {
        /// The path.
        path: String,
    },
    /// `FS_SANDBOX_DENIED`
    #[error("The sandbox mode {mode} does not let {path} be changed")]
    SandboxDenied {
        /// The path.
        path: String,
        /// The mode in force.
        mode: SandboxMode,
        /// The folders below which the mode lets files be changed.
        writable: Vec<PathBuf>,
        /// What stays as it is also below those, where the path lies in it.
        guarded: Option<PathBuf>,
    },
    /// `FS_STALE_VERSION`
    #[error("File has changed since it was read: {path}")]
    Stale {
        /// The path.
        path: String,
    },
    /// `FS_NOT_OBSERVED`
    #[error("File exists and was not read first: {path}")]
    NotObserved {
        /// The path.
        path: String,
    },
    /// `FS_ABORTED`
    #[error("The operation on {path} was cancelled")]
    Aborted {
        /// The path.
        path: String,
    },
    /// `FS_IO_ERROR`
    #[error("{path}: {why}")]
    Io {
        /// The path.
        path: String,
        /// The system's words.
        why: String,
    },
}

impl FileFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "FS_NOT_FOUND",
            Self::NotFolder { .. } => "FS_NOT_DIRECTORY",
            Self::NotRegular { .. } => "FS_NOT_REGULAR_FILE",
            Self::NotText { .. } => "FS_NOT_TEXT",
            Self::TooLarge { .. } => "FS_TOO_LARGE",
            Self::PermissionDenied { .. } => "FS_PERMISSION_DENIED",
            Self::SandboxDenied { .. } => "FS_SANDBOX_DENIED",
            Self::Stale { .. } => "FS_STALE_VERSION",
            Self::NotObserved { .. } => "FS_NOT_OBSERVED",
            Self::Aborted { .. } => "FS_ABORTED",
            Self::Io { .. } => "FS_IO_ERROR",
        }
    }
}

/// A workspace's files.
pub trait Files: Send + Sync {
    /// What a path is; `None` when nothing is there.
    fn stat<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<Option<FileStat>, FileFault>>;
    /// The whole text of a regular file of at most `limit` bytes.
    fn read_text<'a>(&'a self, path: &'a Path, limit: u64, cancel: &'a Cancel) -> Fut<'a, Result<FileText, FileFault>>;
    /// The bytes on the disk of a regular file of at most `limit` bytes, whatever they are.
    fn read_bytes<'a>(
        &'a self,
        path: &'a Path,
        limit: u64,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<FileBytes, FileFault>>;
    /// Makes the folders that a write of this file needs, having checked that the file may be changed at all; its
    /// state is not looked at. For a provider whose writes another program carries out.
    fn prepare_write<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<(), FileFault>>;
    /// Writes the whole text of a file, making missing folders.
    fn write_text<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
        expected: Expectation,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Written, FileFault>>;
}
