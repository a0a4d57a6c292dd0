//! The calls of one step: gated one at a time in model order, bodies overlapping where they may, results committed in
//! model order (R-140…R-155).
//!
//! Everything runs inside the caller's task: bodies are futures in a [`Pool`] that is polled whatever the batch is
//! waiting for, so dropping the batch drops them all.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context as TaskContext, Poll};

use super::report::Denial;
use crate::Fut;
use crate::cancel::CancelCause;
use crate::content::plain_text;
use crate::json::Json;
use crate::log::{CallResult, LogError, OpenCall, Step};
use crate::pipeline::{CallRequest, Candidate, Frozen, Gated, Outcome, Sealed, dispatch, gate, present, seal, settle};
use crate::point::prompt::ContextMessage;
use crate::point::ring::{CallDenied, DeniedView, SettledCall};
use crate::registry;
use crate::scene::SessionScene;
use crate::seam::live::LiveEvent;
use crate::tool::{CardItem, Concurrency, ResultCard};

/// What a batch leaves: contexts come out only here, after the last result.
#[derive(Debug, Default)]
pub(super) struct BatchEnd {
    pub(super) contexts: Vec<ContextMessage>,
    pub(super) denials: Vec<Denial>,
    pub(super) concludes: bool,
    pub(super) calls: u32,
    pub(super) settled: Vec<SettledCall>,
}

enum State<'p> {
    Running(Fut<'p, Candidate>),
    Ready(Box<Candidate>),
    Taken,
}

struct Slot<'p> {
    open: OpenCall,
    raw: String,
    input: Json,
    state: State<'p>,
}

/// Calls that were started and are not committed, in model order.
struct Pool<'p>(VecDeque<Slot<'p>>);

impl Pool<'_> {
    fn poll(&mut self, cx: &mut TaskContext<'_>) {
        for slot in &mut self.0 {
            if let State::Running(body) = &mut slot.state
                && let Poll::Ready(candidate) = body.as_mut().poll(cx)
            {
                slot.state = State::Ready(Box::new(candidate));
            }
        }
    }

    fn running(&self) -> usize {
        self.0.iter().filter(|s| matches!(s.state, State::Running(_))).count()
    }

    fn head_is_ready(&self) -> bool {
        self.0.front().is_some_and(|s| matches!(s.state, State::Ready(_)))
    }

    /// Waits until the condition holds, bodies going on meanwhile.
    async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        poll_fn(|cx| {
            self.poll(cx);
            if done(self) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Drives a future to its end, bodies going on meanwhile.
    async fn beside<T>(&mut self, mut future: Fut<'_, T>) -> T {
        poll_fn(|cx| {
            self.poll(cx);
            future.as_mut().poll(cx)
        })
        .await
    }
}

struct Batch<'a> {
    scene: &'a SessionScene,
    step: &'a Step<'a>,
    end: BatchEnd,
}

/// Runs a step's calls; every one gets exactly one result, also on cancellation.
///
/// # Errors
/// The log's. Started bodies are then cancelled and awaited, and the log answers their calls as "outcome unknown".
pub(super) async fn run(
    scene: &SessionScene,
    step: &Step<'_>,
    calls: Vec<CallRequest>,
    cap: NonZeroUsize,
) -> Result<BatchEnd, LogError> {
    let mut pool = Pool(VecDeque::new());
    let mut batch = Batch { scene, step, end: BatchEnd::default() };
    let outcome = batch.all(calls, cap, &mut pool).await;
    if let Err(fault) = outcome {
        scene.cancel.cancel(CancelCause::Parent);
        pool.until(|p| p.running() == 0).await;
        return Err(fault);
    }
    Ok(batch.end)
}

impl<'a> Batch<'a> {
    async fn all(&mut self, calls: Vec<CallRequest>, cap: NonZeroUsize, pool: &mut Pool<'a>) -> Result<(), LogError> {
        for request in calls {
            self.commit_ready(pool).await?;
            // Results of what was started come before the pairs of what never will be.
            if self.scene.cancel.is_cancelled() {
                self.drain(pool).await?;
            }
            let sealed = loop {
                let sealed = self.seal(&request);
                if classify(&sealed) == Concurrency::Exclusive && !pool.0.is_empty() {
                    self.drain(pool).await?;
                } else if pool.running() >= cap.get() {
                    pool.until(|p| p.running() < cap.get() || p.head_is_ready()).await;
                    self.commit_ready(pool).await?;
                } else {
                    break sealed;
                }
                // Sealed and classified again, for what ran meanwhile may have changed its tool.
            };
            self.start(request, sealed, pool).await?;
        }
        self.drain(pool).await
    }

    fn seal(&self, request: &CallRequest) -> Sealed {
        seal(&self.scene.context, &self.scene.session, request.clone())
    }

    async fn start(&mut self, request: CallRequest, sealed: Sealed, pool: &mut Pool<'a>) -> Result<(), LogError> {
        let input = sealed.identity().input().clone();
        let card = present(sealed.definition().map(|d| d.tool()), &request.name, &input);
        let open = self.step.call(&request.call_id, &request.name, &request.arguments, sealed.input().cloned())?;
        self.end.calls += 1;
        let raw = request.arguments;
        let pending =
            LiveEvent::CallPending { call_id: request.call_id, tool: request.name, card, input: input.clone() };
        let scene = self.scene;
        pool.beside(scene.live.send(pending)).await;
        let gated = self.gate(sealed, pool).await?;
        let (state, exclusive) = match gated {
            Gated::Refused(candidate) => (State::Ready(Box::new(candidate)), false),
            Gated::Pass(permit) => {
                // What will run may be another input than what was classified, or by now another tool.
                let effective = permit.effective();
                let now = registry::resolve(&scene.context, effective.name());
                let exclusive = permit.concurrency() == Concurrency::Exclusive
                    || crate::pipeline::classify(now.as_ref(), effective.input()) == Concurrency::Exclusive;
                if exclusive {
                    self.drain(pool).await?;
                }
                (State::Running(Box::pin(dispatch(permit, scene.scene()))), exclusive)
            }
        };
        pool.0.push_back(Slot { open, raw, input, state });
        if exclusive { self.drain(pool).await } else { Ok(()) }
    }

    /// Gates one call; heads that become ready are committed also while its gate waits.
    async fn gate(&mut self, sealed: Sealed, pool: &mut Pool<'a>) -> Result<Gated, LogError> {
        let scene = self.scene;
        let mut gating: Fut<'_, Gated> = Box::pin(gate(sealed, scene.scene()));
        loop {
            let gated = poll_fn(|cx| {
                pool.poll(cx);
                match gating.as_mut().poll(cx) {
                    Poll::Ready(gated) => Poll::Ready(Some(gated)),
                    Poll::Pending if pool.head_is_ready() => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            match gated {
                Some(gated) => return Ok(gated),
                None => self.commit_head(pool).await?,
            }
        }
    }

    async fn commit_ready(&mut self, pool: &mut Pool<'a>) -> Result<(), LogError> {
        poll_fn(|cx| {
            pool.poll(cx);
            Poll::Ready(())
        })
        .await;
        while pool.head_is_ready() {
            self.commit_head(pool).await?;
        }
        Ok(())
    }

    async fn drain(&mut self, pool: &mut Pool<'a>) -> Result<(), LogError> {
        while !pool.0.is_empty() {
            pool.until(Pool::head_is_ready).await;
            self.commit_head(pool).await?;
        }
        Ok(())
    }

    async fn commit_head(&mut self, pool: &mut Pool<'a>) -> Result<(), LogError> {
        let Some(head) = pool.0.front_mut() else { return Ok(()) };
        let State::Ready(candidate) = std::mem::replace(&mut head.state, State::Taken) else { return Ok(()) };
        let scene = self.scene;
        let frozen = pool.beside(Box::pin(settle(*candidate, scene.scene()))).await;
        let Some(Slot { open, raw, input, .. }) = pool.0.pop_front() else { return Ok(()) };
        self.record(open, &frozen)?;
        let finished = LiveEvent::CallFinished {
            call_id: frozen.call_id().clone(),
            card: result_card(scene, &frozen, &input),
            is_error: frozen.is_error(),
        };
        pool.beside(scene.live.send(finished)).await;
        if let Some(by) = frozen.denied_by() {
            let reason = plain_text(frozen.outcome().content());
            scene.context.notify::<CallDenied>(&DeniedView {
                scene: scene.scene(),
                call_id: frozen.call_id(),
                tool: frozen.name(),
                input: &input,
                reason: &reason,
                by,
            });
            self.end.denials.push(Denial {
                tool_name: frozen.name().to_owned(),
                tool_use_id: frozen.call_id().clone(),
                tool_input: input.clone(),
                reason,
                by,
            });
        }
        self.end.settled.push(SettledCall {
            call_id: frozen.call_id().clone(),
            name: frozen.name().to_owned(),
            raw_arguments: raw,
            input,
            content: frozen.outcome().content().to_vec(),
            is_error: frozen.is_error(),
        });
        self.end.concludes |= frozen.concludes();
        self.end.contexts.extend(frozen.contexts().iter().cloned());
        Ok(())
    }

    fn record(&self, open: OpenCall, frozen: &Frozen) -> Result<(), LogError> {
        let (error, meta) = match frozen.outcome() {
            Outcome::Success { meta, .. } => (None, meta.clone()),
            Outcome::Failure { info, .. } => (info.clone(), None),
        };
        let result = CallResult {
            content: frozen.outcome().content().to_vec(),
            is_error: frozen.is_error(),
            error,
            denied_by: frozen.denied_by(),
            meta,
        };
        self.step.result(open, result).map(|_| ())
    }
}

fn classify(sealed: &Sealed) -> Concurrency {
    if !sealed.is_valid() {
        return Concurrency::Exclusive;
    }
    crate::pipeline::classify(sealed.definition(), sealed.identity().input())
}

/// How a result is shown; total, and computed from what is durable alone.
fn result_card(scene: &SessionScene, frozen: &Frozen, input: &Json) -> ResultCard {
    let content = frozen.outcome().content();
    let plain = || ResultCard { items: vec![CardItem::Text(plain_text(content))], ..ResultCard::default() };
    let meta = match frozen.outcome() {
        Outcome::Success { meta, .. } => meta.as_ref(),
        Outcome::Failure { .. } => return plain(),
    };
    let input = frozen.rewritten_input().unwrap_or(input);
    registry::resolve(&scene.context, frozen.name())
        .and_then(|d| catch_unwind(AssertUnwindSafe(|| d.tool().present_result(input, content, meta))).ok())
        .unwrap_or_else(plain)
}
