//! What a request handler is given beside the parameters.
//!
//! Lives here: [`RequestContext`]. Does not live here: running the handler (`request`). Invariant: the
//! context belongs to one request and tells the truth about it: its id as it stood on the wire, and whether
//! the other side still wants the answer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::message::WireId;
use crate::peer::Peer;
use crate::turnstile::{Hold, Turnstile};

/// Work that follows an answer.
pub(crate) type Afterwards = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One incoming request as its handler sees it; cheap to clone.
#[derive(Clone)]
pub struct RequestContext(Arc<Inner>);

struct Inner {
    id: WireId,
    peer: Peer,
    cancelled: watch::Receiver<bool>,
    turnstile: Turnstile,
    afterwards: Mutex<Vec<Afterwards>>,
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("id", &self.0.id)
            .field("cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

impl RequestContext {
    pub(crate) fn new(id: WireId, peer: Peer, cancelled: watch::Receiver<bool>, turnstile: Turnstile) -> Self {
        Self(Arc::new(Inner { id, peer, cancelled, turnstile, afterwards: Mutex::default() }))
    }

    /// The id under which the answer will go out.
    #[must_use]
    pub fn id(&self) -> &WireId {
        &self.0.id
    }

    /// The other side.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.0.peer
    }

    /// Whether the request was cancelled (by the other side, or because the connection shuts down).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.0.cancelled.borrow()
    }

    /// Resolves when the request is cancelled. A handler that sees it has the grace of
    /// [`Options::cancel_grace`](crate::Options::cancel_grace) to answer in its own words; after that it is
    /// dropped and the answer is error -32800.
    pub async fn cancelled(&self) {
        let mut cancelled = self.0.cancelled.clone();
        if cancelled.wait_for(|cancelled| *cancelled).await.is_err() {
            // The request is over; nobody can cancel it any more.
            std::future::pending().await
        }
    }

    /// Keeps later messages of this request's queue from starting until the hold is dropped.
    ///
    /// Messages of one queue start in order of arrival: each runs up to its first point of waiting before
    /// the next begins. A handler that must do more before that (load a session, register a turn for
    /// cancellation) takes the hold *before its first await*. Later than that, or without a queue, the hold
    /// holds nothing.
    pub fn hold(&self) -> Hold {
        self.0.turnstile.hold()
    }

    /// Runs `work` once the answer has been sent, so that what it sends follows the answer on the wire.
    /// It belongs to the request: shutting the connection down ends it.
    pub fn after_answer(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.afterwards.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(work));
    }

    pub(crate) fn take_afterwards(&self) -> Vec<Afterwards> {
        std::mem::take(&mut *self.0.afterwards.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn open_turnstile(&self) {
        self.0.turnstile.open();
    }
}
