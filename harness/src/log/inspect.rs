//! Looking at a log without touching it: no lock, no repair, no byte changed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::LogError;
use super::event::Header;
use super::line::Logged;
use super::load::load;
use super::repair::closers_due;
use crate::ids::TurnNumber;

/// A log as it is on disk.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its first line.
    pub header: Header,
    /// The events that can be used, in order.
    pub events: Vec<Arc<Logged>>,
    /// What opening it would mend. A live session's open turn looks the same as an interrupted one.
    pub damage: Option<Damage>,
}

/// What opening a log would mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// How many bytes of a torn tail would be cut off.
    pub torn_bytes: u64,
    /// The turn that would be closed as interrupted.
    pub open_turn: Option<TurnNumber>,
    /// How many events would be written to close what is open.
    pub synthetic: u32,
}

/// Reads a log as it is; what a live writer adds meanwhile is left out.
///
/// # Errors
/// What is wrong with the file, in the words with which opening it would fail.
pub fn inspect(path: &Path) -> Result<Inspection, LogError> {
    let open = |e| LogError::Io { doing: "open", path: path.to_owned(), cause: Arc::new(e) };
    let file = File::open(path).map_err(open)?;
    let loaded = load(&file, path)?;
    let at = loaded.book.relation();
    let damage = Damage { torn_bytes: loaded.torn, open_turn: at.open_turn(), synthetic: closers_due(at) };
    let damaged = damage.torn_bytes > 0 || damage.open_turn.is_some();
    Ok(Inspection {
        path: path.to_owned(),
        header: loaded.header,
        events: loaded.book.into_events(),
        damage: damaged.then_some(damage),
    })
}
