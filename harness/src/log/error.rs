//! What can go wrong with a log; each variant names the thing and what to do.
//!
//! The errors are clonable, for a failed write is latched and told to everybody who asks afterwards.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::ids::{CallId, Seq, SessionId};
use crate::json::JsonFault;

/// Why a log could not be written, opened or read.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum LogError {
    /// A call id that the session has used already; the call needs another id or a failure of its own.
    #[error("the call id `{call_id}` is already used in this session")]
    DuplicateCall {
        /// The id.
        call_id: CallId,
    },
    /// A fork of a session that is closed (`SESSION_NOT_LIVE`).
    #[error("the session {id} is not open, and only an open session can be forked; resume it first")]
    NotLive {
        /// The session.
        id: SessionId,
    },
    /// A fork at an event at which it cannot begin (`INVALID_BOUNDARY`, `OPEN_TURN`).
    #[error("the session {id} cannot be forked at event {}: {why}", at.0)]
    Boundary {
        /// The session.
        id: SessionId,
        /// The event.
        at: Seq,
        /// Why.
        why: String,
    },
    /// An owner wanted to append one of the engine's own kinds.
    #[error("`{kind}` is one of the engine's own events; owners append only kinds of their own")]
    Reserved {
        /// The kind.
        kind: String,
    },
    /// An owner wanted to append a kind that no reader would know.
    #[error(
        "`{kind}` is not a listed kind of event; list it, or mark it as ignorable, or the log could not be opened again"
    )]
    Unlisted {
        /// The kind.
        kind: String,
    },
    /// The event would break the order or the pairing of events; nothing was written.
    #[error("`{kind}` cannot be logged here: {why}")]
    Order {
        /// The kind.
        kind: String,
        /// Which rule.
        why: String,
    },
    /// The event has no lossless JSON form; nothing was written.
    #[error("`{kind}` cannot be logged: {fault}")]
    Unserialisable {
        /// The kind.
        kind: String,
        /// Why not.
        fault: JsonFault,
    },
    /// The file could not be written; from here on every append and barrier of the session fails with this.
    #[error("the session log {} could not be written: {cause}{}", path.display(), cut_note(cut.as_deref()))]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: Arc<io::Error>,
        /// Why the half-written event could not even be cut off again; absent when it was.
        cut: Option<Arc<io::Error>>,
    },
    /// Something else could not be done with the file.
    #[error("could not {doing} the session log {}: {cause}", path.display())]
    Io {
        /// What could not be done: `open`, `read`, `lock`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: Arc<io::Error>,
    },
    /// A session of this id exists; the one that came first keeps it.
    #[error("the session {id} exists already ({}); resume it, or start a session with another id", path.display())]
    Exists {
        /// The session.
        id: SessionId,
        /// Its log.
        path: PathBuf,
    },
    /// Another process, or another part of this one, has the session open.
    #[error("the session {id} is open in another process ({}); close it there, or start a new session", path.display())]
    Locked {
        /// The session.
        id: SessionId,
        /// Its log.
        path: PathBuf,
    },
    /// There is no such session.
    #[error("there is no session {id} (no file {}); `sluice sessions list` names those there are", path.display())]
    Missing {
        /// The session.
        id: SessionId,
        /// Where its log would be.
        path: PathBuf,
    },
    /// The file is damaged in a way that no crash explains; it is left as it is.
    #[error("the session log {} is corrupt at line {line}: {why}; it was left as it is", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1; the header is line 1.
        line: u64,
        /// What is wrong there.
        why: String,
    },
    /// The file holds a kind of event that this program does not know and may not skip.
    #[error("the session log {} has an event of the unknown type `{kind}` at line {line}; open it with the newer version that wrote it", path.display())]
    UnknownKind {
        /// The file.
        path: PathBuf,
        /// The kind.
        kind: String,
        /// The line, from 1.
        line: u64,
    },
    /// The file has another format version.
    #[error("the session log {} has format version {found}, which is {} than this program reads ({})", path.display(), age.word(), super::event::FORMAT_VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// On which side of ours.
        age: OtherVersion,
    },
    /// The file is another session's.
    #[error("the session log {} belongs to the session {found}, not to {expected}; give the file its own name back", path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// The session that its name stands for.
        expected: String,
        /// The session that its header names.
        found: SessionId,
    },
    /// A new log's header is not valid.
    #[error("a session log cannot begin so: {why}")]
    BadHeader {
        /// What is wrong with it.
        why: String,
    },
    /// The log was closed.
    #[error("the session log {} is closed", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
    },
}

/// On which side of our format version another one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherVersion {
    /// An older program wrote it.
    Older,
    /// A newer program wrote it.
    Newer,
}

impl OtherVersion {
    fn word(self) -> &'static str {
        match self {
            Self::Older => "older",
            Self::Newer => "newer",
        }
    }
}

fn cut_note(cut: Option<&io::Error>) -> String {
    cut.map(|e| format!(" (and the half-written event could not be cut off: {e})")).unwrap_or_default()
}
