//! The three shapes of interception, and no fourth: waterfall, guard, notification.
//!
//! A **waterfall** listener decides or delegates, at most once, by move. A **guard** denies or abstains
//! ([`tools::Guard`]). A **notification** looks. Errors and panics never escape: a listener's defect becomes a
//! [`ListenerFault`], which also beats whatever an outer listener makes of it, so that a defect fails closed.

pub mod approval;
pub mod configuration;
pub mod files;
pub mod notification;
pub mod prompt;
pub mod ring;
pub mod session;
pub mod tools;
pub mod turn;

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use thiserror::Error;

use crate::Fut;
use crate::cancel::Cancel;
use crate::context::Waterfall;

/// A decision point of the waterfall shape.
pub trait Point: Sized + 'static {
    /// Its name, such as `tools/pre-execute`.
    const NAME: &'static str;
    /// What a listener may see, and through it the only authority it has.
    type View<'a>: Copy + Send + Sync;
    /// What a listener answers. There is no default: a malformed decision does not exist (R-063).
    type Decision: Send;
}

/// A listener of a waterfall. Must be re-entrant: several calls may be decided at once (R-153).
pub trait Listener<P: Point>: Send + Sync + 'static {
    /// Who this is, in faults and gate records.
    fn name(&self) -> &str;
    /// Answers, or delegates.
    fn decide<'a>(&'a self, view: P::View<'a>, next: Next<'a, P>) -> Fut<'a, Result<P::Decision, ListenerFault>>;
}

/// A notification: a snapshot that everybody may look at and nobody can change.
pub trait Note: Sized + 'static {
    /// Its name, such as `tools/result`.
    const NAME: &'static str;
    /// What is shown.
    type Snapshot<'a>;
}

/// An observer of a notification.
pub trait Observer<N: Note>: Send + Sync + 'static {
    /// Looks.
    fn observe(&self, snapshot: &N::Snapshot<'_>);
}

/// A defect of a listener, wrapper, guard or body: never a decision.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{listener}: {what}")]
pub struct ListenerFault {
    /// Who failed.
    pub listener: String,
    /// How.
    pub what: String,
}

impl ListenerFault {
    /// A fault with its own words.
    #[must_use]
    pub fn new(listener: impl Into<String>, what: impl Into<String>) -> Self {
        Self { listener: listener.into(), what: what.into() }
    }
}

type Last<'a, P> = Box<dyn FnOnce() -> Fut<'a, Result<<P as Point>::Decision, ListenerFault>> + Send + 'a>;

/// The rest of a waterfall. Delegating consumes it: at most once, by type (R-053).
///
/// ```
/// # use sluice_harness::point::{ListenerFault, Next, Point};
/// async fn once<'a, P: Point>(next: Next<'a, P>) -> Result<P::Decision, ListenerFault> {
///     next.delegate().await
/// }
/// ```
///
/// ```compile_fail,E0382
/// # use sluice_harness::point::{ListenerFault, Next, Point};
/// async fn twice<'a, P: Point>(next: Next<'a, P>) -> Result<P::Decision, ListenerFault> {
///     let _ = next.delegate().await;
///     next.delegate().await
/// }
/// ```
pub struct Next<'a, P: Point> {
    rest: &'a [Arc<dyn Listener<P>>],
    view: P::View<'a>,
    last: Last<'a, P>,
    fault: Arc<Mutex<Option<ListenerFault>>>,
}

impl<'a, P: Point> Next<'a, P> {
    /// Asks the listeners further in, and at last the point's own answer.
    pub fn delegate(self) -> Fut<'a, Result<P::Decision, ListenerFault>> {
        let Some((first, rest)) = self.rest.split_first() else {
            return (self.last)();
        };
        let name = first.name().to_owned();
        let fault = Arc::clone(&self.fault);
        let next = Next { rest, view: self.view, last: self.last, fault: self.fault };
        let view = self.view;
        let running = contained_call(move || first.decide(view, next));
        Box::pin(async move {
            let answer = match running.await {
                Ok(answer) => answer,
                Err(panic) => Err(ListenerFault::new(name, format!("panicked: {panic}"))),
            };
            if let Err(defect) = &answer {
                fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| defect.clone());
            }
            answer
        })
    }
}

impl<P: Point> Waterfall<P> {
    /// Runs the point: listeners from the outside in, then `last`. A fault anywhere is the outcome, whatever an outer
    /// listener made of it.
    ///
    /// # Errors
    /// The first [`ListenerFault`].
    pub async fn run<'a>(
        &'a self,
        view: P::View<'a>,
        last: impl FnOnce() -> Fut<'a, Result<P::Decision, ListenerFault>> + Send + 'a,
    ) -> Result<P::Decision, ListenerFault> {
        let fault = Arc::new(Mutex::new(None));
        let next = Next { rest: &self.listeners, view, last: Box::new(last), fault: Arc::clone(&fault) };
        let answer = next.delegate().await;
        let kept = fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some(defect) => Err(defect),
            None => answer,
        }
    }
}

/// Drives a decision, and gives it up when it goes on for longer than a grace after the signal fired: a listener that
/// ignores its signal must not hold the turn for ever (R-103).
pub(crate) async fn within_grace<T>(
    cancel: &Cancel,
    point: &'static str,
    deciding: impl Future<Output = Result<T, ListenerFault>>,
) -> Result<T, ListenerFault> {
    tokio::select! {
        biased;
        decided = deciding => decided,
        () = cancel.past(LISTENER_GRACE) => Err(ListenerFault::new(
            point,
            format!("no answer within {} s of the cancellation; the listeners were given up", LISTENER_GRACE.as_secs()),
        )),
    }
}

/// How long listeners may go on after the signal fired; longer than a body may, which they may be waiting for.
pub(crate) const LISTENER_GRACE: Duration = Duration::from_secs(20);

/// Makes and drives a future, turning a panic at any point into its text.
pub(crate) fn contained_call<'a, T: 'a>(make: impl FnOnce() -> Fut<'a, T>) -> Contained<'a, T> {
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(future) => Contained(Some(future), None),
        Err(panic) => Contained(None, Some(panic_text(&*panic))),
    }
}

/// A future whose panics become errors, poll by poll.
pub(crate) struct Contained<'a, T>(Option<Fut<'a, T>>, Option<String>);

impl<T> Future for Contained<'_, T> {
    type Output = Result<T, String>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(future) = this.0.as_mut() else {
            return Poll::Ready(Err(this.1.take().unwrap_or_default()));
        };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => {
                this.0 = None;
                Poll::Ready(Ok(value))
            }
            Err(panic) => {
                this.0 = None;
                Poll::Ready(Err(panic_text(&*panic)))
            }
        }
    }
}

/// What a panic said, where it said anything (R-079).
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "<unprintable panic value>".to_owned())
}
