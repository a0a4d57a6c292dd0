//! Ordered starts: messages of one queue begin in the order in which they arrived.
//!
//! Lives here: the queues, one per key (an ACP session, say), and the hold a handler can keep. Does not
//! live here: which message belongs to which queue (`router`). Invariant: a message of a queue starts after
//! every earlier one has started and let go of its hold; a request that never starts keeps its place until
//! its turn has passed, so nothing overtakes through it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

/// Keeps the next message of the same queue from starting until dropped.
///
/// Taken with [`RequestContext::hold`](crate::RequestContext::hold). Keep it until the state that later
/// messages depend on is in place, and no longer: what waits behind it includes cancellation.
#[derive(Debug)]
#[must_use = "the next message of the queue starts as soon as the hold is dropped"]
pub struct Hold {
    _passage: Option<oneshot::Sender<()>>,
}

/// A place in a queue. Dropping the passage, wherever it is by then, lets the next one in.
#[derive(Debug)]
pub(crate) struct Place {
    /// Resolves when the predecessor has let go; `None` when there is none.
    pub(crate) turn: Option<oneshot::Receiver<()>>,
    pub(crate) passage: oneshot::Sender<()>,
}

/// The tails of all queues in which something has not yet let go.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    tails: HashMap<String, oneshot::Receiver<()>>,
}

impl Queues {
    /// Takes the last place in the queue.
    pub(crate) fn enter(&mut self, key: &str) -> Place {
        let (passage, tail) = oneshot::channel();
        let turn = self.tails.insert(key.to_owned(), tail).and_then(still_closed);
        Place { turn, passage }
    }

    /// Whether something that starts now would overtake nothing. Forgets queues that have run empty.
    pub(crate) fn is_free(&mut self, key: &str) -> bool {
        match self.tails.remove(key).and_then(still_closed) {
            None => true,
            Some(tail) => {
                self.tails.insert(key.to_owned(), tail);
                false
            }
        }
    }
}

/// Nothing is ever sent over a passage; it opens by being dropped.
fn still_closed(mut turn: oneshot::Receiver<()>) -> Option<oneshot::Receiver<()>> {
    match turn.try_recv() {
        Err(oneshot::error::TryRecvError::Empty) => Some(turn),
        Ok(()) | Err(oneshot::error::TryRecvError::Closed) => None,
    }
}

/// The passage of a running request: open after its first poll unless the handler takes the hold in it.
#[derive(Debug)]
pub(crate) struct Turnstile(Mutex<Option<oneshot::Sender<()>>>);

impl Turnstile {
    pub(crate) fn new(passage: Option<oneshot::Sender<()>>) -> Self {
        Self(Mutex::new(passage))
    }

    pub(crate) fn hold(&self) -> Hold {
        Hold { _passage: self.take() }
    }

    pub(crate) fn open(&self) {
        drop(self.take());
    }

    fn take(&self) -> Option<oneshot::Sender<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
