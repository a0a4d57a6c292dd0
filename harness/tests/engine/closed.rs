//! What fails closed whatever stands further out, and who is said to have answered a question.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use sluice_harness::Fut;
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::log::event::ApprovalDecided;
use sluice_harness::pipeline::Attempt;
use sluice_harness::point::approval::{Approval, ApprovalView};
use sluice_harness::point::tools::AskOrigin;
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::approval::{ApprovalOutcome, Rejecter};

use crate::kit::{ask, context, json, logged_contexts, one, ready};
use crate::rig::{Rig, answers, text};

#[tokio::test]
async fn r_080_r_081_an_outer_wrapper_cannot_make_anything_else_of_an_inner_ones_defect() {
    for panics in [false, true] {
        let rig = Rig::new();
        rig.probe("probe", answers("ran"));
        rig.wrap(Rank::NORMAL, |mut dispatch| {
            Box::pin(async move {
                let inner = dispatch.run(None).await;
                assert!(!inner.is_success());
                Ok(Attempt::success(json(r#""all is well""#)).with_context(context("outer")))
            })
        });
        rig.wrap(Rank(1), move |mut dispatch| {
            Box::pin(async move {
                dispatch.run(None).await;
                assert!(!panics, "broke");
                Err(ListenerFault::new("inner", "broke"))
            })
        });
        let one = one(&rig, "probe", "{}").await;
        let said = if panics { "Error: test-wrapper: panicked: broke" } else { "Error: inner: broke" };
        assert_eq!((text(&one.result).as_str(), one.code()), (said, Some("WRAPPER_FAULT")));
        assert!(one.result.is_error);
        assert_eq!(logged_contexts(&one.agent), ["outer"]);
        assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 0, 1, 1]);
    }
}

#[tokio::test]
async fn r_080_r_086_a_retry_around_a_defect_does_not_hide_it() {
    let rig = Rig::new();
    rig.probe("probe", answers("ran"));
    rig.wrap(Rank::NORMAL, |mut dispatch| {
        Box::pin(async move {
            let first = dispatch.run(None).await;
            Ok(if first.is_success() { first } else { dispatch.run(None).await })
        })
    });
    let broken = std::sync::atomic::AtomicBool::new(true);
    rig.wrap(Rank(1), move |mut dispatch| {
        let broke = broken.swap(false, std::sync::atomic::Ordering::SeqCst);
        Box::pin(async move {
            if broke { Err(ListenerFault::new("inner", "broke once")) } else { Ok(dispatch.run(None).await) }
        })
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Error: inner: broke once");
    assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 0, 1, 1]);
}

/// An answerer with a name: it answers by itself, or hands on what it got, or hands on something else.
struct Answerer(&'static str, fn(Option<ApprovalOutcome>) -> Option<ApprovalOutcome>);

impl Listener<Approval> for Answerer {
    fn name(&self) -> &str {
        self.0
    }
    fn decide<'a>(
        &'a self,
        _: ApprovalView<'a>,
        next: Next<'a, Approval>,
    ) -> Fut<'a, Result<ApprovalOutcome, ListenerFault>> {
        Box::pin(async move {
            if let Some(own) = (self.1)(None) {
                return Ok(own);
            }
            let inner = next.delegate().await?;
            Ok((self.1)(Some(inner.clone())).unwrap_or(inner))
        })
    }
}

#[tokio::test]
async fn the_log_says_who_answered_a_question() {
    let yes = |_| Some(ApprovalOutcome::AllowedOnce);
    let no = |_| Some(ApprovalOutcome::Rejected { message: None, by: Rejecter::Person });
    let passes = |_| None;
    let overrules = |inner: Option<_>| inner.map(|_| ApprovalOutcome::Rejected { message: None, by: Rejecter::Hook });
    let withdraws = |_| Some(ApprovalOutcome::Cancelled);
    let cases: [(Answerer, Answerer, Option<&str>); 6] = [
        (Answerer("hook", yes), Answerer("client", no), Some("hook")),
        (Answerer("hook", passes), Answerer("client", no), Some("client")),
        (Answerer("hook", passes), Answerer("client", yes), Some("client")),
        (Answerer("hook", overrules), Answerer("client", yes), Some("hook")),
        (Answerer("hook", passes), Answerer("client", withdraws), None),
        (Answerer("hook", passes), Answerer("client", passes), None),
    ];
    for (at, (outer, inner, expected)) in cases.into_iter().enumerate() {
        let rig = Rig::new();
        rig.probe("probe", answers("ran"));
        rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
        rig.root.listen::<Approval>(Rank::NORMAL, outer).unwrap();
        rig.root.listen::<Approval>(Rank(1), inner).unwrap();
        let one = one(&rig, "probe", "{}").await;
        let decided: Vec<ApprovalDecided> = one.agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect();
        assert_eq!(decided.len(), 1, "case {at}");
        assert_eq!(decided[0].by.as_deref(), expected, "case {at}");
        let ran = usize::from(decided[0].outcome == ApprovalOutcome::AllowedOnce);
        assert_eq!(rig.counts.tally(), [1, ran, ran, ran, 1, 1, 1], "case {at}");
    }
}
