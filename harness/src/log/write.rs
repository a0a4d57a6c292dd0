//! The typed handles that write the engine's own events: a log lends out one turn, a turn one step, and a step mints
//! an [`OpenCall`] for each call, which its one result uses up.
//!
//! A turn or step that is dropped (an early return, a cancelled future) closes itself honestly, so that the next turn
//! finds a history that any provider accepts (R-151).

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::book::Book;
use super::error::LogError;
use super::event::{
    AssistantMessage, ContextAdded, Header, PromptBlocked, PromptReceived, RequestHeader, RequestRetry, RequestSent,
    StepStart, ToolCall, ToolResult, TurnEnded, TurnStart, UserMessage,
};
use super::handle::LogHandle;
use super::load::{check_header, load};
use super::repair::{RepairReport, repair};
use super::writer::{self, Job, LockedFile, Published, Target, log_path};
use crate::agent::TurnEnd;
use crate::content::Block;
use crate::ids::{CallId, PromptId, Seq, SessionId, StepNumber, TurnId, TurnNumber};
use crate::json::Json;
use crate::point::prompt::ContextMessage;
use crate::point::tools::DeniedBy;
use crate::seam::model::{FaultKind, StopReason, ToolSchema, Usage};
use crate::tool::ErrorInfo;

/// The single writer of a session; its agent owns it. [`close`](Self::close) is its proper end; a drop does the same
/// and waits for the disk on the calling thread.
#[derive(Debug)]
pub struct SessionLog {
    log: LogHandle,
    thread: Option<JoinHandle<()>>,
}

impl SessionLog {
    /// Begins a session's log as `dir/<id>.jsonl`. Nothing is on disk before the first event (R-257); of two that
    /// begin the same session at once, the second is told by its first barrier.
    ///
    /// # Errors
    /// [`LogError::BadHeader`], or [`LogError::Exists`] when there is such a session.
    pub fn create(dir: &Path, header: Header) -> Result<Self, LogError> {
        check_header(&header).map_err(|why| LogError::BadHeader { why })?;
        let path = log_path(dir, &header.id)?;
        let line = Json::of(&header).map_err(|e| LogError::BadHeader { why: e.to_string() })?;
        if path.symlink_metadata().is_ok() {
            return Err(LogError::Exists { id: header.id, path });
        }
        let target = Target::Unpublished { header: line.text().to_owned() };
        Self::start(header, &path, Book::default(), target)
    }

    /// Opens a session's log to go on with it: takes its lock, reads it, mends what a crash left (R-240). Blocks for
    /// as long as reading takes.
    ///
    /// # Errors
    /// [`LogError::Missing`]; [`LogError::Locked`] while another process has it (R-266); what is wrong with the file,
    /// which is then left as it is.
    pub fn open(dir: &Path, id: &SessionId) -> Result<(Self, RepairReport), LogError> {
        let path = log_path(dir, id)?;
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => LogError::Missing { id: id.clone(), path: path.clone() },
            _ => LogError::Io { doing: "open", path: path.clone(), cause: Arc::new(e) },
        })?;
        let file = LockedFile::take(file, id, &path)?;
        let mut loaded = load(&file, &path)?;
        if loaded.header.id != *id {
            return Err(LogError::Identity { path, expected: id.to_string(), found: loaded.header.id });
        }
        let mut published = Published { file, len: loaded.usable, dirty: false };
        let report = repair(&mut loaded, &mut published, &path)?;
        let log = Self::start(loaded.header, &path, loaded.book, Target::Published(published))?;
        Ok((log, report))
    }

    fn start(header: Header, path: &Path, book: Book, target: Target) -> Result<Self, LogError> {
        let latch = Arc::new(OnceLock::new());
        let (queue, thread) = writer::start(header.id.clone(), path.to_owned(), target, Arc::clone(&latch))?;
        let log = LogHandle::new(header, path.to_owned(), latch, book, queue);
        Ok(Self { log, thread: Some(thread) })
    }

    /// What others may do with this log.
    #[must_use]
    pub fn handle(&self) -> LogHandle {
        self.log.clone()
    }

    /// Opens the next turn.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn turn(&mut self, turn_id: TurnId, prompt_id: PromptId) -> Result<Turn<'_>, LogError> {
        // Only a turn that was leaked, or whose closers could not be written, can still be open.
        self.log.close_turn(&dropped())?;
        let number = self.log.at(|at| at.next_turn());
        self.log.append_core(&TurnStart { turn: number, turn_id, prompt_id })?;
        Ok(Turn { log: &self.log, number, state: Open::Yes })
    }

    /// Writes everything that is queued, syncs it and gives the lock back.
    ///
    /// # Errors
    /// The first failed write of the session.
    pub async fn close(mut self) -> Result<(), LogError> {
        let open = self.log.close_turn(&dropped());
        let (answer, done) = oneshot::channel();
        let Some(queue) = self.log.seal() else { return open.map(|_| ()) };
        let asked = queue.send(Job::Close(answer));
        drop(queue);
        let closed = || LogError::Closed { path: self.log.shared_path().to_owned() };
        let ended = if asked.is_ok() { done.await.unwrap_or_else(|_| Err(closed())) } else { Err(closed()) };
        // It answered with its last breath, so this does not wait.
        self.join();
        ended
    }

    fn join(&mut self) {
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!(path = %self.log.shared_path().display(), "the writer of the session log panicked");
        }
    }
}

impl Drop for SessionLog {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // Best effort: where the log is broken, its error was told at the barriers.
            let _ = self.log.close_turn(&dropped());
            drop(self.log.seal());
            self.join();
        }
    }
}

fn dropped() -> TurnEnd {
    TurnEnd::Error { kind: FaultKind::Internal, message: "the turn was given up before it ended".to_owned() }
}

/// Whether a handle still has its end to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Yes,
    No,
}

/// An open turn. Dropped, it ends as an internal error.
#[derive(Debug)]
pub struct Turn<'l> {
    log: &'l LogHandle,
    number: TurnNumber,
    state: Open,
}

impl Turn<'_> {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> TurnNumber {
        self.number
    }

    /// Records the prompt as it came.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn received(&self, content: Vec<Block>) -> Result<Seq, LogError> {
        self.log.append_core(&PromptReceived { turn: self.number, content })
    }

    /// Records that the prompt was vetoed, by whom and why.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn blocked(
        &self,
        content: Vec<Block>,
        reason: impl Into<String>,
        by: impl Into<String>,
    ) -> Result<Seq, LogError> {
        self.log.append_core(&PromptBlocked { turn: self.number, content, reason: reason.into(), by: by.into() })
    }

    /// Adds a message in the user's role; `source` is `user` for a person.
    ///
    /// # Errors
    /// [`LogError::Order`] when it holds a call or a result, or the error that broke the log.
    pub fn user(&self, source: &str, content: Vec<Block>) -> Result<Seq, LogError> {
        user(self.log, self.number, source, content)
    }

    /// Adds a context.
    ///
    /// # Errors
    /// [`LogError::Order`] for a role that no context has, or the error that broke the log.
    pub fn context(&self, message: &ContextMessage) -> Result<Seq, LogError> {
        context(self.log, self.number, message)
    }

    /// Opens the next step.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn step(&mut self) -> Result<Step<'_>, LogError> {
        // As for a leaked turn.
        self.log.close_step()?;
        let number = self.log.at(|at| at.next_step());
        self.log.append_core(&StepStart { turn: self.number, step: number })?;
        Ok(Step { log: self.log, turn: self.number, number, state: Open::Yes })
    }

    /// Ends the turn.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn end(mut self, end: TurnEnd) -> Result<Seq, LogError> {
        self.log.close_step()?;
        let seq = self.log.append_core(&TurnEnded { turn: self.number, end })?;
        self.state = Open::No;
        Ok(seq)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.state == Open::Yes {
            // Best effort: a broken log told its error already, and the next turn tries again.
            let _ = self.log.close_turn(&dropped());
        }
    }
}

/// An open step. Dropped, it closes its calls and itself.
#[derive(Debug)]
pub struct Step<'t> {
    log: &'t LogHandle,
    turn: TurnNumber,
    number: StepNumber,
    state: Open,
}

/// A recorded call that still owes its one result. Dropping it leaves the step's end to write an honest
/// `TOOL_OUTCOME_UNKNOWN` (R-151).
///
/// ```
/// # use sluice_harness::log::{CallResult, LogError, OpenCall, Step};
/// fn once(step: &Step<'_>, call: OpenCall, result: CallResult) -> Result<(), LogError> {
///     step.result(call, result).map(drop)
/// }
/// ```
///
/// A second result does not compile:
///
/// ```compile_fail,E0382
/// # use sluice_harness::log::{CallResult, LogError, OpenCall, Step};
/// fn twice(step: &Step<'_>, call: OpenCall, result: CallResult) -> Result<(), LogError> {
///     step.result(call, result.clone())?;
///     step.result(call, result).map(drop)
/// }
/// ```
#[derive(Debug)]
#[must_use = "a call owes its result"]
pub struct OpenCall {
    call_id: CallId,
    seq: Seq,
}

impl OpenCall {
    /// The call.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The event that recorded it.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// What the model reads.
    pub content: Vec<Block>,
    /// Whether it failed or was denied.
    pub is_error: bool,
    /// The structured error, if any.
    pub error: Option<ErrorInfo>,
    /// Who denied it, if anybody.
    pub denied_by: Option<DeniedBy>,
    /// What presentation needs on replay.
    pub meta: Option<Json>,
}

impl Step<'_> {
    /// Its number.
    #[must_use]
    pub fn number(&self) -> StepNumber {
        self.number
    }

    /// Adds a message in the user's role; `source` is `user` for a person. Not while a call has no result.
    ///
    /// # Errors
    /// [`LogError::Order`] when it comes between a call and its result, or the error that broke the log.
    pub fn user(&self, source: &str, content: Vec<Block>) -> Result<Seq, LogError> {
        user(self.log, self.turn, source, content)
    }

    /// Adds a context. Not while a call has no result.
    ///
    /// # Errors
    /// As [`user`](Self::user).
    pub fn context(&self, message: &ContextMessage) -> Result<Seq, LogError> {
        context(self.log, self.turn, message)
    }

    /// Records what the next request carries beside the messages; `why` is `initial`, `resume` or `change`.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn header(
        &self,
        why: impl Into<String>,
        provider: impl Into<String>,
        model: impl Into<String>,
        system: impl Into<String>,
        tools: Vec<ToolSchema>,
        max_output_tokens: Option<u64>,
    ) -> Result<Seq, LogError> {
        self.log.append_core(&RequestHeader {
            turn: self.turn,
            why: why.into(),
            provider: provider.into(),
            model: model.into(),
            system: system.into(),
            tools,
            max_output_tokens,
        })
    }

    /// Records that a request is about to be sent; `attempt` is from 1, `index` counts the session's requests from 0.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn sent(&self, attempt: u32, index: u64) -> Result<Seq, LogError> {
        self.log.append_core(&RequestSent { turn: self.turn, step: self.number, attempt, index })
    }

    /// Records that attempt `attempt` failed and when the next follows.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn retry(
        &self,
        attempt: u32,
        kind: impl Into<String>,
        message: impl Into<String>,
        delay_ms: u64,
    ) -> Result<Seq, LogError> {
        self.log.append_core(&RequestRetry {
            turn: self.turn,
            step: self.number,
            attempt,
            kind: kind.into(),
            message: message.into(),
            delay_ms,
        })
    }

    /// Records the model's answer; the calls in it are what [`call`](Self::call) may record.
    ///
    /// # Errors
    /// [`LogError::DuplicateCall`] when a call's id is used already in the session or twice in the answer (nothing is
    /// written then: give the call another id and try again), or the error that broke the log.
    pub fn assistant(
        &self,
        content: Vec<Block>,
        provider: impl Into<String>,
        model: impl Into<String>,
        stop_reason: Option<StopReason>,
        usage: Option<Usage>,
        interrupted: bool,
    ) -> Result<Seq, LogError> {
        self.log.append_core(&AssistantMessage {
            turn: self.turn,
            step: self.number,
            content,
            provider: provider.into(),
            model: model.into(),
            stop_reason,
            usage,
            interrupted,
        })
    }

    /// Records a call that the step's answer asks for, before anything of it runs.
    ///
    /// # Errors
    /// [`LogError::DuplicateCall`] when it was recorded before (R-155), [`LogError::Order`] when the answer does not
    /// ask for it, or the error that broke the log.
    pub fn call(
        &self,
        call_id: &CallId,
        name: &str,
        arguments: &str,
        input: Option<Json>,
    ) -> Result<OpenCall, LogError> {
        let seq = self.log.append_core(&ToolCall {
            turn: self.turn,
            step: self.number,
            call_id: call_id.clone(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            input,
        })?;
        Ok(OpenCall { call_id: call_id.clone(), seq })
    }

    /// Records the one result of a call.
    ///
    /// # Errors
    /// [`LogError::Order`] when the call is not open in this step, or the error that broke the log.
    pub fn result(&self, call: OpenCall, result: CallResult) -> Result<Seq, LogError> {
        self.log.append_core(&ToolResult {
            turn: self.turn,
            step: self.number,
            call_id: call.call_id,
            content: result.content,
            is_error: result.is_error,
            error: result.error,
            denied_by: result.denied_by,
            meta: result.meta,
            call_seq: Some(call.seq),
        })
    }

    /// Ends the step; calls that have no result get an honest one first.
    ///
    /// # Errors
    /// The error that broke the log.
    pub fn end(mut self) -> Result<Seq, LogError> {
        let last = self.log.close_step()?;
        self.state = Open::No;
        last.ok_or_else(|| LogError::Order { kind: "step/end".to_owned(), why: "no step is open".to_owned() })
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if self.state == Open::Yes {
            // Best effort, as for a turn.
            let _ = self.log.close_step();
        }
    }
}

fn user(log: &LogHandle, turn: TurnNumber, source: &str, content: Vec<Block>) -> Result<Seq, LogError> {
    log.append_core(&UserMessage { turn, source: source.to_owned(), content })
}

fn context(log: &LogHandle, turn: TurnNumber, message: &ContextMessage) -> Result<Seq, LogError> {
    let ContextMessage { source, role, text } = message;
    log.append_core(&ContextAdded { turn, source: source.clone(), role: *role, text: text.clone() })
}
