//! The session log: one append-only JSONL file a session, and the source of what the model sees.
//!
//! *Model-visible means logged.* The typed handles make enclosure lexical: a turn borrows the log, a step borrows the
//! turn, and a call's one result is minted with the call ([`OpenCall`]). Relational checks are always on;
//! every event is one write, and [`LogHandle::durable`] is the barrier before a model request and before a tool body
//!
//!
//! Where to look: `write` holds the typed handles, `handle` what everybody may do, `book` the memory of a session and
//! `relation` the one state machine that live appends and loading share; `writer` is the thread that owns the file,
//! `line` the spelling of an event, `load` and `repair` bring a file back to life, `inspect` and `list` only look.

mod book;
mod clock;
mod error;
pub mod event;
mod fork;
mod handle;
mod inspect;
mod line;
mod list;
mod load;
mod relation;
mod repair;
mod write;
mod writer;

pub use clock::now_rfc3339;
pub use error::{LogError, OtherVersion};
pub use event::{EventKind, Header};
pub use handle::LogHandle;
pub use inspect::{Damage, Inspection, inspect};
pub use line::Logged;
pub use list::{SessionSummary, list};
pub use repair::RepairReport;
pub use write::{CallResult, OpenCall, SessionLog, Step, Turn};
pub use writer::log_path;

#[cfg(test)]
mod tests;
