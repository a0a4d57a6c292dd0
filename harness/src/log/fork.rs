//! Forks: a new session that begins with another's history, up to an event at which no turn was open.
//!
//! The inherited events stand in the child's log as they stood in the parent's; where they end is marked, and what is
//! pending in the parent is not inherited.

use std::path::Path;

use super::book::Book;
use super::error::LogError;
use super::event::{Header, SeedEnd};
use super::handle::LogHandle;
use super::write::SessionLog;
use crate::ids::{Seq, SessionId};

impl SessionLog {
    /// Begins a session with the parent's events up to and including `boundary`.
    ///
    /// # Errors
    /// [`LogError::NotLive`] when the parent is closed, [`LogError::Boundary`] when there is no such event or a turn
    /// is open after it, or what [`create`](Self::create) says of the child.
    pub fn fork(
        dir: &Path,
        parent: &LogHandle,
        boundary: Seq,
        id: SessionId,
        created_at: String,
    ) -> Result<Self, LogError> {
        if !parent.is_live() {
            return Err(LogError::NotLive { id: parent.header().id });
        }
        let length = usize::try_from(boundary.0).unwrap_or(usize::MAX).saturating_add(1);
        let seed = parent.since(Seq(0));
        let refuse = |why: &str| LogError::Boundary { id: parent.header().id, at: boundary, why: why.to_owned() };
        let seed = seed.get(..length).ok_or_else(|| refuse("there is no such event"))?;
        // Read through first, so that a refusal leaves no file behind.
        let mut read = Book::default();
        for event in seed {
            read.admit((**event).clone()).map_err(|refusal| refusal.of(&event.kind))?;
        }
        if read.relation().open_turn().is_some() {
            return Err(refuse("a turn is open there"));
        }
        let header = Header { id, created_at, parent: Some(parent.header().id), ..parent.header() };
        let child = Self::create(dir, header)?;
        let handle = child.handle();
        for event in seed {
            handle.adopt(event)?;
        }
        handle.append_core(&SeedEnd { parent: parent.header().id })?;
        Ok(child)
    }
}
