//! Closing what a crash, or a dropped turn, left open.
//!
//! The closers are a pure function of where the events stand, so the end of a step, a dropped turn in a live session
//! and the repair of a file write the same things, and repairing twice gives the same bytes. Nothing
//! that was written is ever rewritten: a torn tail is cut off, closers are appended.

use std::path::Path;
use std::sync::Arc;

use super::book::Book;
use super::error::LogError;
use super::event::{EventKind, LogRepaired, StepEnd, ToolResult, TurnEnded};
use super::line::{Logged, kind_name};
use super::load::Loaded;
use super::relation::{NOT_STARTED, Refusal, Relation, Unanswered};
use super::writer::Published;
use crate::agent::TurnEnd;
use crate::content::Block;
use crate::ids::TurnNumber;
use crate::json::Json;
use crate::tool::ErrorInfo;

/// What opening a log had to mend.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// How many bytes of a torn tail were cut off.
    pub torn_bytes: u64,
    /// How many events were written to close what was open.
    pub synthetic: u32,
    /// The turn that was closed as interrupted.
    pub closed_turn: Option<TurnNumber>,
}

impl RepairReport {
    /// Whether there was nothing to mend.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.torn_bytes == 0 && self.synthetic == 0
    }
}

/// An event that closes something.
pub(super) enum Closer {
    /// The result of a call that has none.
    Result(ToolResult),
    /// The end of the step.
    Step(StepEnd),
    /// The end of the turn.
    Turn(TurnEnded),
}

/// The next event that closes the open step, calls first; `None` when no step is open.
pub(super) fn step_closer(at: &Relation) -> Option<Closer> {
    let (turn, step) = at.open_step()?;
    Some(match at.unanswered() {
        Some(call) => Closer::Result(honest_result(call)),
        None => Closer::Step(StepEnd { turn, step }),
    })
}

/// The next event that closes the open turn, the step in it first; `None` when no turn is open.
pub(super) fn turn_closer(at: &Relation, end: &TurnEnd) -> Option<Closer> {
    let turn = at.open_turn()?;
    Some(step_closer(at).unwrap_or_else(|| Closer::Turn(TurnEnded { turn, end: end.clone() })))
}

/// What can truthfully be said of a call without a result.
fn honest_result(call: Unanswered) -> ToolResult {
    let (text, name, code) = if call.call_seq.is_some() {
        (
            "Error: the outcome of this call is unknown: it was begun, and no result of it was recorded. \
             Retry it only if it is read-only or idempotent; otherwise verify what it did, or ask the user.",
            "ToolOutcomeUnknownError",
            "TOOL_OUTCOME_UNKNOWN",
        )
    } else {
        (
            "Error: this call was not started: the session stopped before it. It may be retried.",
            "ToolNotStartedError",
            NOT_STARTED,
        )
    };
    ToolResult {
        turn: call.turn,
        step: call.step,
        call_id: call.call_id,
        content: vec![Block::text(text)],
        is_error: true,
        error: Some(ErrorInfo { name: name.to_owned(), code: code.to_owned() }),
        denied_by: None,
        meta: None,
        call_seq: call.call_seq,
    }
}

/// How many events [`repair`] would write to close what is open.
pub(super) fn closers_due(at: &Relation) -> u32 {
    let events = at.unanswered_count() + usize::from(at.open_step().is_some()) + usize::from(at.open_turn().is_some());
    u32::try_from(events).unwrap_or(u32::MAX)
}

/// Mends the file and the book of a log that was read under its lock.
pub(super) fn repair(loaded: &mut Loaded, log: &mut Published, path: &Path) -> Result<RepairReport, LogError> {
    let mut report =
        RepairReport { torn_bytes: loaded.torn, synthetic: 0, closed_turn: loaded.book.relation().open_turn() };
    if report.torn_bytes > 0 {
        let failed = |e| LogError::Write { path: path.to_owned(), cause: Arc::new(e), cut: None };
        log.file.set_len(loaded.usable).map_err(failed)?;
    }
    while let Some(closer) = turn_closer(loaded.book.relation(), &TurnEnd::Interrupted) {
        match &closer {
            Closer::Result(event) => write(&mut loaded.book, log, event, path)?,
            Closer::Step(event) => write(&mut loaded.book, log, event, path)?,
            Closer::Turn(event) => write(&mut loaded.book, log, event, path)?,
        }
        report.synthetic += 1;
    }
    if !report.is_clean() {
        let note = LogRepaired { torn_bytes: report.torn_bytes, synthetic: report.synthetic };
        write(&mut loaded.book, log, &note, path)?;
        let failed = |e| LogError::Write { path: path.to_owned(), cause: Arc::new(e), cut: None };
        log.file.sync_all().map_err(failed)?;
        log.dirty = false;
    }
    Ok(report)
}

fn write<E: EventKind>(book: &mut Book, log: &mut Published, event: &E, path: &Path) -> Result<(), LogError> {
    let data = Json::of(event).map_err(|fault| LogError::Unserialisable { kind: E::TYPE.to_owned(), fault })?;
    let event = Logged {
        seq: book.next_seq(),
        time_ms: book.last_time(),
        kind: kind_name(E::TYPE),
        ignorable: E::IGNORABLE,
        data,
    };
    let event = book.admit(event).map_err(|refusal| refusal.of(E::TYPE))?;
    log.append_now(&event.line(), path)
}

impl Refusal {
    /// The refusal as an error.
    pub(super) fn of(self, kind: &str) -> LogError {
        match self {
            Self::Duplicate(call_id) => LogError::DuplicateCall { call_id },
            Self::Order(why) => LogError::Order { kind: kind.to_owned(), why },
        }
    }
}
