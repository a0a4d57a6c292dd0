//! One connection: the task between the reader thread, the handlers and the writer thread.
//!
//! Lives here: what happens to each message, and who owns what runs because of it. Does not live here:
//! bytes (`framing`), the life of a single request (`request`). Invariant: this task is the only owner of
//! the connection's state and never waits for the output, so answers and cancellations always get through;
//! every task it spawns is awaited or aborted by [`Connection::shutdown`].

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id as TaskId, JoinError, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};

use crate::WireTrace;
use crate::context::RequestContext;
use crate::framing::{FrameReader, Framing};
use crate::message::{Incoming, OutResponse, WireId};
use crate::peer::Peer;
use crate::reader::{self, FromReader};
use crate::request::Job;
use crate::router::{NotificationHandler, Router};
use crate::rpc_error;
use crate::turnstile::{Queues, Turnstile};
use crate::writer::Outgoing;

/// How a connection is to behave. `Options::default()` suits ACP over stdio.
#[derive(Clone)]
pub struct Options {
    /// The framing, or `None` to find it out from the first line that comes in. A side that speaks first
    /// must fix it; until it is known, lines are written.
    pub framing: Option<Framing>,
    /// Longest message accepted, in bytes. A longer one is skipped and answered with -32600.
    pub max_message: usize,
    /// Messages that may wait for the writer before senders wait too.
    pub outgoing_room: usize,
    /// How long a cancelled request may take to answer by itself before it is dropped.
    pub cancel_grace: Duration,
    /// How long the end of the connection may wait for the output to take the last messages.
    pub flush_limit: Duration,
    /// Is shown every message of both directions, as text, before it is parsed or written. Runs on the
    /// reader and writer threads and must not panic.
    pub trace: Option<WireTrace>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            framing: None,
            max_message: 64 * 1024 * 1024,
            outgoing_room: 256,
            cancel_grace: Duration::from_secs(1),
            flush_limit: Duration::from_secs(1),
            trace: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("framing", &self.framing)
            .field("max_message", &self.max_message)
            .field("outgoing_room", &self.outgoing_room)
            .field("cancel_grace", &self.cancel_grace)
            .field("flush_limit", &self.flush_limit)
            .field("trace", &self.trace.is_some())
            .finish()
    }
}

/// The connection's threads could not be started.
#[derive(Debug, Error)]
#[error("cannot start the threads of the connection")]
pub struct StartError(#[from] io::Error);

/// Why [`Connection::serve`] returned.
#[derive(Debug)]
pub enum Ended {
    /// The input ended: the other side has said all it will say.
    Eof,
    /// The input failed.
    InputFailed(io::Error),
    /// The output is gone: nothing more can be said.
    OutputClosed,
}

/// A full-duplex JSON-RPC connection over a pair of blocking byte streams.
///
/// Dropping it aborts its requests without waiting; [`Connection::shutdown`] is the orderly way.
#[derive(Debug)]
pub struct Connection {
    peer: Peer,
    router: Router,
    inbox: mpsc::Receiver<FromReader>,
    queues: Queues,
    running: JoinSet<()>,
    /// Requests of the other side that are not answered yet, or whose aftermath runs.
    open: HashMap<TaskId, Open>,
    /// The queue that a task stands or stood in.
    queued: HashMap<TaskId, String>,
    cancel_grace: Duration,
    flush_limit: Duration,
}

/// What the connection remembers of a request that runs.
#[derive(Debug)]
struct Open {
    id: WireId,
    cancel: watch::Sender<bool>,
}

impl Connection {
    /// Starts the reader and the writer thread. Nothing is dispatched before [`Connection::serve`].
    ///
    /// The reader thread can only end at end of input or with the next message after the connection is
    /// gone; on standard input it may live as long as the process.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        router: Router,
        options: Options,
    ) -> Result<Self, StartError> {
        let framing = Arc::new(OnceLock::new());
        if let Some(fixed) = options.framing {
            let _ = framing.set(fixed);
        }
        let outgoing = Outgoing::start(writer, Arc::clone(&framing), options.outgoing_room, options.trace.clone())?;
        let inbox = reader::start(FrameReader::new(reader, Arc::clone(&framing), options.max_message, options.trace))?;
        Ok(Self {
            peer: Peer::new(outgoing, framing),
            router,
            inbox,
            queues: Queues::default(),
            running: JoinSet::new(),
            open: HashMap::new(),
            queued: HashMap::new(),
            cancel_grace: options.cancel_grace,
            flush_limit: options.flush_limit,
        })
    }

    /// A handle to the other side.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer.clone()
    }

    /// Dispatches what comes in until the input ends or the output is gone. On return everything sent so
    /// far is flushed and every open request of ours is resolved; requests of the other side may still
    /// run, and may still send: [`Connection::drain`] or [`Connection::shutdown`] is next.
    pub async fn serve(&mut self) -> Ended {
        let ended = loop {
            tokio::select! {
                received = self.inbox.recv() => match received {
                    Some(FromReader::Message(message)) => self.handle(message),
                    Some(FromReader::Failed(error)) => break Ended::InputFailed(error),
                    None => break Ended::Eof,
                },
                Some(finished) = self.running.join_next_with_id() => self.forget(finished),
                () = self.peer.outgoing().gone() => break Ended::OutputClosed,
            }
        };
        self.peer.close_pending();
        if timeout(self.flush_limit, self.peer.outgoing().flush()).await.is_err() {
            tracing::warn!("the other side does not read its input");
        }
        ended
    }

    /// Lets running requests finish by themselves for at most `limit`; tells whether all did.
    pub async fn drain(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while let Ok(finished) = timeout_at(deadline, self.running.join_next_with_id()).await {
            match finished {
                Some(finished) => self.forget(finished),
                None => return true,
            }
        }
        false
    }

    /// Cancels what still runs, gives it `grace` to end, aborts the rest and waits for that, then flushes
    /// and lets go of the output. An output that takes nothing is left to its thread after the flush limit.
    pub async fn shutdown(mut self, grace: Duration) {
        self.inbox.close();
        self.peer.close_pending();
        for open in self.open.values() {
            open.cancel.send_replace(true);
        }
        if !self.drain(grace).await {
            self.running.shutdown().await;
        }
        if timeout(self.flush_limit, self.peer.outgoing().close()).await.is_err() {
            tracing::warn!("the other side does not read its input; the last messages may be lost");
        }
    }

    fn handle(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => self.handle_request(id, method, params),
            Incoming::Notification { method, params } => match method.as_str() {
                "$/cancel_request" | "$/cancelRequest" => self.handle_cancel(params.as_deref()),
                _ => self.handle_notification(&method, params),
            },
            Incoming::Response { id, outcome } => self.peer.complete(&id, outcome),
            Incoming::Fault { id, error } => {
                tracing::warn!(code = error.code(), reason = error.message(), "bad input");
                self.answer_now(&id, &error);
            }
        }
    }

    fn handle_request(&mut self, id: WireId, method: String, params: Option<Box<RawValue>>) {
        let Some(callback) = self.router.find_request(&method).cloned() else {
            self.answer_now(&id, &rpc_error::method_not_found(&method));
            return;
        };
        let queue = self.queue_of(&method, params.as_deref());
        let (turn, passage) = match &queue {
            Some(queue) => {
                let place = self.queues.enter(queue);
                (place.turn, Some(place.passage))
            }
            None => (None, None),
        };
        let (cancel, cancelled) = watch::channel(false);
        let job = Job {
            method,
            params,
            callback,
            context: RequestContext::new(id.clone(), self.peer.clone(), cancelled, Turnstile::new(passage)),
            turn,
            cancel_grace: self.cancel_grace,
        };
        let task = self.running.spawn(job.run()).id();
        self.open.insert(task, Open { id, cancel });
        if let Some(queue) = queue {
            self.queued.insert(task, queue);
        }
    }

    fn handle_notification(&mut self, method: &str, params: Option<Box<RawValue>>) {
        let Some(handler) = self.router.find_notification(method).cloned() else {
            if self.router.find_request(method).is_some() {
                tracing::warn!(method, "ignored a request without an id");
            } else {
                tracing::debug!(method, "ignored an unknown notification");
            }
            return;
        };
        let peer = self.peer.clone();
        match self.queue_of(method, params.as_deref()) {
            // Behind a request that has yet to start: a cancel must find the turn it is meant for.
            Some(queue) if !self.queues.is_free(&queue) => {
                let place = self.queues.enter(&queue);
                let waiting = self.running.spawn(async move {
                    if let Some(turn) = place.turn {
                        let _ = turn.await;
                    }
                    notify_contained(&handler, params.as_deref(), &peer);
                    drop(place.passage);
                });
                self.queued.insert(waiting.id(), queue);
            }
            Some(_) | None => notify_contained(&handler, params.as_deref(), &peer),
        }
    }

    /// `$/cancel_request` of ACP v1 names a `requestId`, `$/cancelRequest` of language servers an `id`.
    fn handle_cancel(&mut self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Cancel {
            #[serde(alias = "id", rename = "requestId")]
            request: WireId,
        }
        let cancel = params.and_then(|params| serde_json::from_str::<Cancel>(params.get()).ok());
        let Some(Cancel { request }) = cancel else {
            tracing::warn!("ignored a cancellation that names no request");
            return;
        };
        for open in self.open.values().filter(|open| open.id == request) {
            open.cancel.send_replace(true);
        }
    }

    fn queue_of(&self, method: &str, params: Option<&RawValue>) -> Option<String> {
        let params = Params::new(params.map(RawValue::get));
        let queue_of = || self.router.queue_of(method, &params);
        catch_unwind(AssertUnwindSafe(queue_of)).unwrap_or_default()
    }

    /// Answers without a handler. The connection never waits for room; a task of its own does.
    fn answer_now(&mut self, id: &WireId, error: &ErrorObjectOwned) {
        let outgoing = self.peer.outgoing();
        match serde_json::to_string(&OutResponse::new(id, Err(error))) {
            Ok(text) => {
                if let Some(text) = outgoing.try_send(text) {
                    let outgoing = outgoing.clone();
                    self.running.spawn(async move {
                        let _ = outgoing.send(text).await;
                    });
                }
            }
            Err(error) => tracing::error!(%error, "cannot write an answer"),
        }
    }

    fn forget(&mut self, finished: Result<(TaskId, ()), JoinError>) {
        let task = match &finished {
            Ok((task, ())) => *task,
            Err(error) => error.id(),
        };
        self.open.remove(&task);
        if let Some(queue) = self.queued.remove(&task) {
            // Asking makes the queue forget itself once it is free.
            self.queues.is_free(&queue);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.peer.close_pending();
    }
}

fn notify_contained(handler: &NotificationHandler, params: Option<&RawValue>, peer: &Peer) {
    let params = Params::new(params.map(RawValue::get)).into_owned();
    if catch_unwind(AssertUnwindSafe(|| handler(params, peer))).is_err() {
        tracing::error!("the handler of a notification has panicked");
    }
}
