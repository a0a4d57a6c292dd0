//! A program that goes on beside its starter: how long it counts as running, and what may be asked of it.
//!
//! Contract for every provider: whatever a started program leaves in its process group stays owned, and is gone when
//! the provider is; a [`Running`] that is dropped before its end is ended. Output can be read while it runs, from any
//! position on, in bounded pieces.

use super::{Capture, End};
use crate::Fut;

/// When a started program is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// When the process itself is.
    Leader,
    /// When nobody in its process group runs any more; its end is the process's own all the same.
    Group,
}

/// Positions in both output streams, in bytes from their beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// In stdout.
    pub stdout: u64,
    /// In stderr.
    pub stderr: u64,
}

/// What both streams hold from a [`Mark`] on; each `total` counts from there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Of stdout.
    pub stdout: Capture,
    /// Of stderr.
    pub stderr: Capture,
}

/// A started program.
pub trait Running: Send + Sync {
    /// How it ended; `None` while it runs.
    fn end(&self) -> Option<End>;

    /// Waits for its end; its output is complete then. Cancel-safe.
    fn ended(&self) -> Fut<'_, End>;

    /// Ends it: TERM to its group, grace, KILL. Returns at once; the end, [`End::Cancelled`], follows. Idempotent.
    fn stop(&self);

    /// What it has printed from a position on.
    fn output(&self, from: Mark) -> Fut<'_, Output>;
}
