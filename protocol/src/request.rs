//! The life of one incoming request, from its place in the queue to what follows its answer.
//!
//! Lives here: the body of the request task. Does not live here: who spawns and owns it (`connection`).
//! Invariant: exactly one answer goes out, whatever the handler does: return, fail, panic, or outlive its
//! cancellation; what the handler sent before goes out before.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use jsonrpsee::types::{ErrorObjectOwned, Id, Params};
use jsonrpsee::{ConnectionId, Extensions, MethodCallback, MethodResponse};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::context::RequestContext;
use crate::message::OutResponse;
use crate::rpc_error;
use crate::writer::Outgoing;

/// Everything the task needs.
pub(crate) struct Job {
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
    pub(crate) callback: MethodCallback,
    pub(crate) context: RequestContext,
    /// Resolves when the request may start.
    pub(crate) turn: Option<oneshot::Receiver<()>>,
    pub(crate) cancel_grace: Duration,
}

type Outcome = Result<Box<RawValue>, ErrorObjectOwned>;

impl Job {
    pub(crate) async fn run(mut self) {
        let outgoing = self.context.peer().outgoing().clone();
        if let Some(mut turn) = self.turn.take() {
            let cancelled = tokio::select! {
                biased;
                _ = &mut turn => false,
                () = self.context.cancelled() => true,
            };
            if cancelled {
                self.answer(&outgoing, Err(rpc_error::request_cancelled())).await;
                // Whoever waits behind us must not start before those ahead of us.
                let _ = turn.await;
                return;
            }
        }
        let outcome = self.call().await;
        self.context.open_turnstile();
        self.answer(&outgoing, outcome).await;
        for mut work in self.context.take_afterwards() {
            if contained(work.as_mut()).await.is_err() {
                tracing::error!(method = self.method, "what follows the answer has panicked");
            }
        }
    }

    /// Runs the handler; dropping it is how it is stopped, so it is gone when this returns.
    async fn call(&self) -> Outcome {
        let mut handler = self.handler();
        // The first poll runs the handler up to its first point of waiting: that is its ordered start.
        let mut first = Some(poll_fn(|cx| Poll::Ready(handler.as_mut().poll(cx))).await);
        self.context.open_turnstile();
        let answered = poll_fn(|cx| match first.take() {
            Some(Poll::Ready(outcome)) => Poll::Ready(outcome),
            Some(Poll::Pending) | None => handler.as_mut().poll(cx),
        });
        let overdue = async {
            self.context.cancelled().await;
            tokio::time::sleep(self.cancel_grace).await;
        };
        tokio::select! {
            biased;
            outcome = answered => outcome,
            () = overdue => Err(rpc_error::request_cancelled()),
        }
    }

    fn handler(&self) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        let mut extensions = Extensions::new();
        extensions.insert(self.context.clone());
        // The id is ours to wrap around the answer; jsonrpsee's own id type is too narrow for the wire.
        let id = Id::Number(0);
        let params = Params::new(self.params.as_deref().map(RawValue::get)).into_owned();
        Box::pin(async move {
            let response = match &self.callback {
                MethodCallback::Sync(callback) => {
                    catch_unwind(AssertUnwindSafe(|| callback(id, params, usize::MAX, extensions))).map_err(drop)
                }
                MethodCallback::Async(callback) => {
                    let mut call = callback(id, params, ConnectionId(0), usize::MAX, extensions);
                    contained(call.as_mut()).await.map_err(drop)
                }
                MethodCallback::Subscription(_) | MethodCallback::Unsubscription(_) => Err(()),
            };
            match response {
                Ok(response) => unwrap_answer(&response),
                Err(()) => {
                    tracing::error!(method = self.method, "the handler of a request has panicked");
                    Err(rpc_error::internal(format_args!("internal error while handling `{}`", self.method)))
                }
            }
        })
    }

    async fn answer(&self, outgoing: &Outgoing, outcome: Outcome) {
        if let Some(text) = response_text(&self.context, outcome)
            && outgoing.send(text).await.is_err()
        {
            tracing::debug!(method = self.method, "nobody is left to be answered");
        }
    }
}

fn response_text(context: &RequestContext, outcome: Outcome) -> Option<String> {
    let response = OutResponse::new(context.id(), outcome.as_deref());
    match serde_json::to_string(&response) {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::error!(%error, "cannot write an answer");
            None
        }
    }
}

/// Takes the result or the error out of the answer that jsonrpsee has built.
fn unwrap_answer(response: &MethodResponse) -> Outcome {
    #[derive(Deserialize)]
    struct Answer {
        result: Option<Box<RawValue>>,
        error: Option<ErrorObjectOwned>,
    }
    match serde_json::from_str::<Answer>(response.as_ref()) {
        Ok(Answer { error: Some(error), .. }) => Err(error),
        Ok(Answer { result: Some(result), .. }) => Ok(result),
        // A result of null.
        Ok(Answer { .. }) => Ok(RawValue::NULL.to_owned()),
        Err(error) => Err(rpc_error::internal(format_args!("cannot read our own answer: {error}"))),
    }
}

/// Polls a future so that a panic in it stays in it.
pub(crate) async fn contained<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    poll_fn(|cx| {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            // The panic hook has already said what and where.
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}

/// The future has panicked and must not be polled again.
#[derive(Debug)]
pub(crate) struct Panicked;
