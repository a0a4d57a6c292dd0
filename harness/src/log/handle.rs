//! What everybody who knows a session may do with its log: read it, follow it, wait for it, append an owner's events.
//!
//! A handle cannot write the engine's own kinds from outside this crate: those come from the typed handles and the
//! pipeline, which make their order hold. The mutex is held for the moment of an append and never across an await.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::book::{Book, messages};
use super::clock::now_ms;
use super::error::LogError;
use super::event::{CORE_TYPES, EventKind, Header, RequestHeader};
use super::line::{Logged, is_known, kind_name};
use super::relation::Relation;
use super::repair::{Closer, step_closer, turn_closer};
use super::writer::{Job, Latch};
use crate::agent::TurnEnd;
use crate::content::Message;
use crate::ids::{CallId, Seq};
use crate::json::Json;

/// A session's log, shared. Cheap to clone; clones are the same log. After its end it can still be read.
#[derive(Clone)]
pub struct LogHandle(Arc<Shared>);

struct Shared {
    header: Header,
    path: PathBuf,
    latch: Latch,
    state: Mutex<State>,
}

struct State {
    book: Book,
    /// `None` once the log is closed.
    queue: Option<mpsc::Sender<Job>>,
    followers: Vec<UnboundedSender<Arc<Logged>>>,
}

impl LogHandle {
    pub(super) fn new(header: Header, path: PathBuf, latch: Latch, book: Book, queue: mpsc::Sender<Job>) -> Self {
        let state = State { book, queue: Some(queue), followers: Vec::new() };
        Self(Arc::new(Shared { header, path, latch, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event of an owner's own kind. It is in the log at once and on disk soon; see [`durable`](Self::durable).
    ///
    /// # Errors
    /// [`LogError::Reserved`] for the engine's own kinds, [`LogError::Unlisted`] for a kind that no reader would know,
    /// [`LogError::Unserialisable`], [`LogError::Closed`], or the error that broke the log.
    pub fn append<E: EventKind>(&self, event: &E) -> Result<Seq, LogError> {
        if CORE_TYPES.contains(&E::TYPE) {
            return Err(LogError::Reserved { kind: E::TYPE.to_owned() });
        }
        if !E::IGNORABLE && !is_known(E::TYPE) {
            return Err(LogError::Unlisted { kind: E::TYPE.to_owned() });
        }
        self.append_core(event)
    }

    /// Appends an event of any kind, in relation to those before it.
    pub(crate) fn append_core<E: EventKind>(&self, event: &E) -> Result<Seq, LogError> {
        let data = Json::of(event).map_err(|fault| LogError::Unserialisable { kind: E::TYPE.to_owned(), fault })?;
        let mut state = self.state();
        if let Some(error) = self.0.latch.get() {
            return Err(error.clone());
        }
        let State { book, queue, followers } = &mut *state;
        let closed = || LogError::Closed { path: self.0.path.clone() };
        let sender = queue.as_ref().ok_or_else(closed)?;
        let seq = book.next_seq();
        let event = Logged { seq, time_ms: now_ms(), kind: kind_name(E::TYPE), ignorable: E::IGNORABLE, data };
        let event = book.admit(event).map_err(|refusal| refusal.of(E::TYPE))?;
        if sender.send(Job::Write(Arc::clone(&event))).is_err() {
            *queue = None;
            return Err(closed());
        }
        followers.retain(|follower| follower.send(Arc::clone(&event)).is_ok());
        tracing::info!(seq = seq.0, kind = E::TYPE, "event");
        tracing::trace!(seq = seq.0, data = %event.data, "event data");
        Ok(seq)
    }

    /// Appends an event of another session as it stands there; for the inherited history of a fork.
    pub(super) fn adopt(&self, event: &Logged) -> Result<(), LogError> {
        let mut state = self.state();
        if let Some(error) = self.0.latch.get() {
            return Err(error.clone());
        }
        let event = state.book.admit(event.clone()).map_err(|refusal| refusal.of(&event.kind))?;
        let queue = state.queue.as_ref().ok_or_else(|| LogError::Closed { path: self.0.path.clone() })?;
        queue.send(Job::Write(event)).map_err(|_| LogError::Closed { path: self.0.path.clone() })
    }

    /// Whether events can still be appended.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state().queue.is_some()
    }

    /// Waits until everything appended so far is written and synced: the barrier before a request and before a body
    /// . Cancel-safe.
    ///
    /// # Errors
    /// The first failed write of the session, which names the file and the cause; [`LogError::Closed`] after the end.
    pub async fn durable(&self) -> Result<(), LogError> {
        let (answer, done) = oneshot::channel();
        self.ask(Job::Sync(answer))?;
        done.await.unwrap_or_else(|_| Err(self.broken()))
    }

    fn ask(&self, job: Job) -> Result<(), LogError> {
        let state = self.state();
        match &state.queue {
            Some(queue) => queue.send(job).map_err(|_| self.broken()),
            None => Err(self.broken()),
        }
    }

    fn broken(&self) -> LogError {
        self.0.latch.get().cloned().unwrap_or_else(|| LogError::Closed { path: self.0.path.clone() })
    }

    /// The log's first line.
    #[must_use]
    pub fn header(&self) -> Header {
        self.0.header.clone()
    }

    /// The log's file; it exists from the first event on.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.0.path.clone()
    }

    /// The events from `from` on.
    #[must_use]
    pub fn since(&self, from: Seq) -> Vec<Arc<Logged>> {
        let from = usize::try_from(from.0).unwrap_or(usize::MAX);
        self.state().book.events().get(from..).unwrap_or_default().to_vec()
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.state().book.next_seq().0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The history that a model sees. Between steps every call in it has its one result.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let visible = self.state().book.visible();
        messages(&visible)
    }

    /// How many requests were sent in the session.
    #[must_use]
    pub fn requests_sent(&self) -> u64 {
        self.state().book.relation().requests_sent()
    }

    /// What the last request carried beside the messages.
    #[must_use]
    pub fn last_request_header(&self) -> Option<RequestHeader> {
        let event = self.state().book.last_header();
        event.and_then(|event| event.decode())
    }

    /// Whether the session has a call of this id, or a nested one, already.
    #[must_use]
    pub fn is_call_id_used(&self, id: &CallId) -> bool {
        self.state().book.relation().is_used(id)
    }

    /// The last event of a kind.
    #[must_use]
    pub fn last<E: EventKind>(&self) -> Option<E> {
        let event = self.state().book.events().iter().rev().find(|event| *event.kind == *E::TYPE).cloned();
        event.and_then(|event| event.decode())
    }

    /// Every event appended from now on, in order, each after it was handed to the writer. A dropped receiver is
    /// forgotten; the channel ends with the log.
    #[must_use]
    pub fn subscribe(&self) -> UnboundedReceiver<Arc<Logged>> {
        let (follower, events) = unbounded_channel();
        let mut state = self.state();
        // After the end nothing can follow, so the receiver ends at once.
        if state.queue.is_some() {
            state.followers.push(follower);
        }
        events
    }

    pub(super) fn shared_path(&self) -> &Path {
        &self.0.path
    }

    /// Reads where the events stand.
    pub(super) fn at<T>(&self, read: impl FnOnce(&Relation) -> T) -> T {
        read(self.state().book.relation())
    }

    /// Closes the open step, and first its calls that have no result.
    pub(super) fn close_step(&self) -> Result<Option<Seq>, LogError> {
        self.close(step_closer)
    }

    /// Closes the open turn and all in it.
    pub(super) fn close_turn(&self, end: &TurnEnd) -> Result<Option<Seq>, LogError> {
        self.close(|at| turn_closer(at, end))
    }

    fn close(&self, next: impl Fn(&Relation) -> Option<Closer>) -> Result<Option<Seq>, LogError> {
        let mut last = None;
        while let Some(closer) = self.at(&next) {
            last = Some(match closer {
                Closer::Result(event) => self.append_core(&event)?,
                Closer::Step(event) => self.append_core(&event)?,
                Closer::Turn(event) => self.append_core(&event)?,
            });
        }
        Ok(last)
    }

    /// Lets no further append in and gives the queue to whoever ends the writer.
    pub(super) fn seal(&self) -> Option<mpsc::Sender<Job>> {
        let mut state = self.state();
        state.followers.clear();
        state.queue.take()
    }
}

impl std::fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogHandle").field("path", &self.0.path).field("len", &self.len()).finish()
    }
}
