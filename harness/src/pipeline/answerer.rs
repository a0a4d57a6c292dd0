//! Who answered a question: found by watching the chain of answerers, not by asking them.
//!
//! The invariant: the one whose answer stands is named, by the name it was mounted with; an answer that nobody gave
//! (the question was withdrawn, nobody could be asked, an answerer failed) names nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Fut;
use crate::context::Waterfall;
use crate::point::approval::{Approval, ApprovalView};
use crate::point::{Listener, ListenerFault, Next};
use crate::seam::approval::ApprovalOutcome;

/// An answer, and whose it is.
type Answer = (ApprovalOutcome, Option<String>);

/// The answer that the chain has come back with so far.
#[derive(Clone, Default)]
struct Standing(Arc<Mutex<Option<Answer>>>);

impl Standing {
    fn lock(&self) -> MutexGuard<'_, Option<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer came out of `who`: it is theirs unless it is what they got from further in.
    fn passed(&self, who: &str, outcome: &ApprovalOutcome) {
        let mut standing = self.lock();
        if standing.as_ref().is_none_or(|(inner, _)| inner != outcome) {
            *standing = Some((outcome.clone(), Some(who.to_owned())));
        }
    }
}

/// An answerer that is watched.
struct Watched {
    inner: Arc<dyn Listener<Approval>>,
    standing: Standing,
}

impl Listener<Approval> for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn decide<'a>(
        &'a self,
        view: ApprovalView<'a>,
        next: Next<'a, Approval>,
    ) -> Fut<'a, Result<ApprovalOutcome, ListenerFault>> {
        Box::pin(async move {
            let outcome = self.inner.decide(view, next).await?;
            self.standing.passed(self.inner.name(), &outcome);
            Ok(outcome)
        })
    }
}

/// Asks the chain. The answer, and who gave it.
pub(super) async fn ask(chain: Waterfall<Approval>, view: ApprovalView<'_>) -> Result<Answer, ListenerFault> {
    let standing = Standing::default();
    let watched = |inner| -> Arc<dyn Listener<Approval>> { Arc::new(Watched { inner, standing: standing.clone() }) };
    let chain = Waterfall { listeners: chain.listeners.into_iter().map(watched).collect() };
    let last = || -> Fut<'_, _> {
        *standing.lock() = Some((ApprovalOutcome::Unavailable, None));
        Box::pin(std::future::ready(Ok(ApprovalOutcome::Unavailable)))
    };
    let outcome = chain.run(view, last).await?;
    let by = match outcome {
        ApprovalOutcome::AllowedOnce | ApprovalOutcome::Rejected { .. } => {
            standing.lock().take().and_then(|(_, by)| by)
        }
        ApprovalOutcome::Cancelled | ApprovalOutcome::Unavailable => None,
    };
    Ok((outcome, by))
}
