//! The search seam: find files by name and lines by pattern.
//!
//! Contract: hidden and ignored files are covered as ripgrep does by default for `Grep` (ignore rules honoured, hidden
//! files included) and fully for `Glob`; version-control folders never; results are sorted as each method says.

use std::path::PathBuf;

use thiserror::Error;

use crate::Fut;
use crate::cancel::Cancel;

/// A search for files by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobQuery {
    /// A glob, relative to `root`; `**` crosses folders.
    pub pattern: String,
    /// Where to look; absolute.
    pub root: PathBuf,
    /// At most so many files are returned.
    pub limit: usize,
}

/// Files found by name, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GlobHits {
    /// Absolute paths.
    pub files: Vec<PathBuf>,
    /// Whether there were more.
    pub truncated: bool,
}

/// A search for lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepQuery {
    /// A regular expression in the syntax of the `regex` crate.
    pub pattern: String,
    /// A file or folder; absolute.
    pub root: PathBuf,
    /// Only files whose path fits this glob.
    pub glob: Option<String>,
    /// Only files of this type, by ripgrep's names (`rust`, `py`, …).
    pub file_type: Option<String>,
    /// Letter case.
    pub case: LetterCase,
    /// Whether `.` and the pattern may span lines.
    pub lines: LineMode,
    /// Lines shown before each match.
    pub before: usize,
    /// Lines shown after each match.
    pub after: usize,
    /// At most so many output lines in all; the search stops there.
    pub limit: usize,
}

/// Whether letter case matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterCase {
    /// It does.
    Sensitive,
    /// It does not.
    Insensitive,
}

/// Whether a match may span lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMode {
    /// No.
    Single,
    /// Yes.
    Multi,
}

/// One line of a grep answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrepLine {
    /// Absolute path of the file.
    pub path: PathBuf,
    /// From 1.
    pub number: u64,
    /// The line without its end, invalid UTF-8 replaced.
    pub text: String,
    /// Whether the line matched, or is context of one that did.
    pub is_match: bool,
}

/// Lines found, files in path order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrepHits {
    /// The lines in order.
    pub lines: Vec<GrepLine>,
    /// Whether the limit cut the answer.
    pub truncated: bool,
}

/// Why a search could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SearchFault {
    /// `SEARCH_INVALID_PATTERN`
    #[error("the pattern {pattern:?} is not valid: {why}")]
    InvalidPattern {
        /// The pattern, glob or file type.
        pattern: String,
        /// Why.
        why: String,
    },
    /// `SEARCH_NOT_FOUND`
    #[error("there is nothing at {path}")]
    NotFound {
        /// The root.
        path: String,
    },
    /// `SEARCH_ABORTED`
    #[error("the search was cancelled")]
    Aborted,
    /// `SEARCH_FAILED`
    #[error("the search failed at {path}: {why}")]
    Failed {
        /// Where.
        path: String,
        /// Why.
        why: String,
    },
}

impl SearchFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidPattern { .. } => "SEARCH_INVALID_PATTERN",
            Self::NotFound { .. } => "SEARCH_NOT_FOUND",
            Self::Aborted => "SEARCH_ABORTED",
            Self::Failed { .. } => "SEARCH_FAILED",
        }
    }
}

/// Searches a workspace.
pub trait Search: Send + Sync {
    /// Finds files by name.
    fn glob<'a>(&'a self, query: GlobQuery, cancel: &'a Cancel) -> Fut<'a, Result<GlobHits, SearchFault>>;
    /// Finds lines by pattern.
    fn grep<'a>(&'a self, query: GrepQuery, cancel: &'a Cancel) -> Fut<'a, Result<GrepHits, SearchFault>>;
}
