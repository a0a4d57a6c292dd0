//! Cancellation: one signal that a turn, a call or a scope owns, with the cause that came first.
//!
//! A child signal fires when its parent does; firing a child leaves the parent alone. The first cause wins.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

/// Who or what cancelled. The log and the front ends say it in their own words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CancelCause {
    /// The person at the client.
    User,
    /// An enclosing agent or call.
    Parent,
    /// The scope that owned the work was disposed.
    Disposed,
    /// A time budget ran out.
    Timeout,
    /// The process was told to end by a signal.
    Signal(i32),
}

impl fmt::Display for CancelCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("the user"),
            Self::Parent => f.write_str("the enclosing call"),
            Self::Disposed => f.write_str("the end of the session"),
            Self::Timeout => f.write_str("the time limit"),
            Self::Signal(n) => write!(f, "signal {n}"),
        }
    }
}

/// A cancellation signal; clones are the same signal.
#[derive(Clone)]
pub struct Cancel(Arc<Node>);

struct Node {
    cause: watch::Sender<Option<CancelCause>>,
    children: Mutex<Vec<Weak<Node>>>,
}

impl Cancel {
    /// A signal of its own, not yet fired.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Node { cause: watch::Sender::new(None), children: Mutex::new(Vec::new()) }))
    }

    /// A signal that fires with this one, or by itself.
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self::new();
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|c| c.strong_count() > 0);
        children.push(Arc::downgrade(&child.0));
        // Read under the lock, so that a cancel either sees the child in the list or is seen here.
        let cause = self.cause();
        drop(children);
        if let Some(cause) = cause {
            child.cancel(cause);
        }
        child
    }

    /// Fires the signal; false when it had fired before, and then the first cause stays.
    pub fn cancel(&self, cause: CancelCause) -> bool {
        let first = self.0.cause.send_if_modified(|slot| {
            let first = slot.is_none();
            if first {
                *slot = Some(cause.clone());
            }
            first
        });
        if first {
            let children: Vec<_> = {
                let mut list = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
                std::mem::take(&mut *list)
            };
            for child in children.iter().filter_map(Weak::upgrade) {
                Self(child).cancel(cause.clone());
            }
        }
        first
    }

    /// The cause, once it has fired.
    #[must_use]
    pub fn cause(&self) -> Option<CancelCause> {
        self.0.cause.borrow().clone()
    }

    /// Whether it has fired.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cause.borrow().is_some()
    }

    /// Waits until it fires. Cancel-safe.
    pub async fn cancelled(&self) -> CancelCause {
        let mut watch = self.0.cause.subscribe();
        loop {
            if let Some(cause) = watch.borrow_and_update().clone() {
                return cause;
            }
            if watch.changed().await.is_err() {
                // The sender lives in `self`, so it cannot be gone; waiting for ever is what "never fires" means.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Cancel {
    /// Waits until it has fired and this much time went by since then, or since this was asked. Cancel-safe.
    pub(crate) async fn past(&self, grace: Duration) {
        self.cancelled().await;
        tokio::time::sleep(grace).await;
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.cause()).finish()
    }
}
