//! The cancellation matrix: where a cancel lands decides the one result, and every path counts the same way.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::agent::TurnEnd;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::context::Rank;
use sluice_harness::json::Json;
use sluice_harness::log::event::ToolResult;
use sluice_harness::pipeline::Attempt;
use sluice_harness::point::approval::{Approval, ApprovalView};
use sluice_harness::point::tools::{AskOrigin, DeniedBy, Guard, PostResult, PreAnswer, PreTool, Reason};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::approval::ApprovalOutcome;
use sluice_harness::tool::ToolFailure;

use crate::rig::{Play, Rig, Tally, answers, calls, prompt, results, text};

const BEFORE: &str = "ABORTED_BEFORE_DISPATCH";
const RUNNING: &str = "ABORTED";

/// Runs one call, expecting one durable call with one durable result, and a turn that ends as cancelled.
async fn cancelled_call(rig: &Rig, cancel: &Cancel) -> (ToolResult, Tally) {
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("not reached after a cancel")]);
    let agent = rig.agent();
    let report = prompt(&agent, cancel).await;
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User });
    let (calls, mut results) = (calls(&agent), results(&agent));
    assert_eq!((calls.len(), results.len()), (1, 1));
    assert_eq!(calls[0].call_id, results[0].call_id);
    (results.remove(0), rig.counts.tally())
}

fn code(result: &ToolResult) -> Option<&str> {
    result.error.as_ref().map(|e| e.code.as_str())
}

fn fires(cancel: &Cancel) -> impl Fn() + Clone + Send + Sync + 'static {
    let cancel = cancel.clone();
    move || {
        cancel.cancel(CancelCause::User);
    }
}

/// An answerer of approvals given by a closure.
struct Answers<F>(F);

impl<F> Listener<Approval> for Answers<F>
where
    F: for<'a> Fn(ApprovalView<'a>) -> Fut<'a, Result<ApprovalOutcome, ListenerFault>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "test-answers"
    }
    fn decide<'a>(
        &'a self,
        view: ApprovalView<'a>,
        _: Next<'a, Approval>,
    ) -> Fut<'a, Result<ApprovalOutcome, ListenerFault>> {
        (self.0)(view)
    }
}

fn answer<F>(rig: &Rig, f: F)
where
    F: for<'a> Fn(ApprovalView<'a>) -> Fut<'a, Result<ApprovalOutcome, ListenerFault>> + Send + Sync + 'static,
{
    rig.root.listen::<Approval>(Rank::NORMAL, Answers(f)).unwrap();
}

fn ask() -> PreAnswer {
    PreAnswer::new(PreTool::Ask { reason: None, origin: AskOrigin::Rule })
}

/// A first tool whose body cancels as it gives up, and a `probe` that must not run after it.
fn first_cancels(rig: &Rig, cancel: &Cancel) {
    let fire = fires(cancel);
    rig.probe(
        "first",
        Arc::new(move |_| {
            fire();
            Box::pin(std::future::ready(Err(ToolFailure::new("gave up"))))
        }),
    );
    rig.probe("probe", answers("never"));
}

#[tokio::test]
async fn r_087_a_cancel_before_entry_asks_no_policy() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    // The second of two exclusive calls has not entered when the first one's body cancels.
    first_cancels(&rig, &cancel);
    rig.plays([Play::Calls(vec![("c0", "first", "{}"), ("c1", "probe", "{}")])]);
    let agent = rig.agent();
    let report = prompt(&agent, &cancel).await;
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User });
    let results = results(&agent);
    assert_eq!(text(&results[0]), "Error: gave up");
    assert_eq!(text(&results[1]), "Error: tool call aborted before dispatch");
    assert_eq!(code(&results[1]), Some(BEFORE));
    // Everything but finalizer and observer counts the first call alone.
    assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn r_087_arguments_that_cannot_be_sealed_beat_a_cancel() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    first_cancels(&rig, &cancel);
    rig.plays([Play::Calls(vec![("c0", "first", "{}"), ("c1", "probe", r#"{"n":1,"n":2}"#)])]);
    let agent = rig.agent();
    prompt(&agent, &cancel).await;
    assert_eq!(code(&results(&agent)[1]), Some("INVALID_ARGS"));
    // The cancelling call went through the stages up to its body; the other one met no policy.
    assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn r_070_r_088_a_cancel_during_an_allowing_pre_execute_still_asks_the_guards() {
    for (guarded, expected, denied) in
        [(false, "Error: tool call aborted before dispatch", None), (true, "Error: no", Some(DeniedBy::Guard))]
    {
        let (rig, cancel) = (Rig::new(), Cancel::new());
        rig.probe("probe", answers("never"));
        if guarded {
            rig.root.guard(Guard::new("no", |_| Some(Reason::new(DeniedBy::Guard, "no")))).unwrap();
        }
        let fire = fires(&cancel);
        rig.pre(Rank::NORMAL, move |_, next| {
            fire();
            next.delegate()
        });
        let (result, tally) = cancelled_call(&rig, &cancel).await;
        assert_eq!((text(&result).as_str(), result.denied_by), (expected, denied));
        assert_eq!(tally, [1, 1, 0, 0, 1, 1, 1]);
    }
}

#[tokio::test]
async fn r_089_a_cancel_during_a_denying_pre_execute_leaves_the_denial() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("never"));
    let fire = fires(&cancel);
    rig.pre(Rank::NORMAL, move |_, _| {
        fire();
        let denial = PreAnswer::new(PreTool::Deny(Reason::new(DeniedBy::Hook, "denied")));
        Box::pin(std::future::ready(Ok(denial)))
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!((text(&result).as_str(), result.denied_by), ("Error: denied", Some(DeniedBy::Hook)));
    assert_eq!(tally, [1, 0, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn r_090_a_cancel_during_a_failing_pre_execute_leaves_the_failure() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("never"));
    let fire = fires(&cancel);
    rig.pre(Rank::NORMAL, move |_, _| {
        fire();
        Box::pin(std::future::ready(Err(ListenerFault::new("broken", "cannot decide"))))
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(text(&result), "Error: broken: cannot decide");
    assert_eq!(tally, [1, 0, 0, 0, 0, 1, 1]);
}

#[tokio::test]
async fn r_091_a_cancel_during_an_approval_withdraws_the_question() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("never"));
    rig.pre(Rank::NORMAL, |_, _| Box::pin(std::future::ready(Ok(ask()))));
    let fire = fires(&cancel);
    answer(&rig, move |_| {
        fire();
        Box::pin(std::future::pending())
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(code(&result), Some(BEFORE));
    assert_eq!(tally, [1, 0, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn r_092_an_approval_that_is_cancelled_by_itself_is_a_denial() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.pre(Rank::NORMAL, |_, _| Box::pin(std::future::ready(Ok(ask()))));
    answer(&rig, |_| Box::pin(std::future::ready(Ok(ApprovalOutcome::Cancelled))));
    let (result, _) = rig.one_call("probe", "{}").await;
    assert_eq!(text(&result), r#"Error: approval for tool "probe" was cancelled"#);
    assert_eq!(rig.counts.tally(), [1, 0, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn r_093_a_cancel_in_a_wrapper_before_it_goes_on_starts_no_body() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("never"));
    let fire = fires(&cancel);
    rig.wrap(Rank::NORMAL, move |mut dispatch| {
        fire();
        Box::pin(async move { Ok(dispatch.run(None).await) })
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(code(&result), Some(BEFORE));
    assert_eq!(tally, [1, 1, 1, 0, 1, 1, 1]);
}

#[tokio::test]
async fn r_094_a_wrappers_own_success_is_dropped_by_a_cancel_and_its_contexts_kept() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("never"));
    let fire = fires(&cancel);
    rig.wrap(Rank::NORMAL, move |_| {
        fire();
        let attempt = Attempt::success(Json::of("mine").unwrap()).with_context(context("kept"));
        Box::pin(std::future::ready(Ok(attempt)))
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(code(&result), Some(BEFORE));
    assert_eq!(tally, [1, 1, 1, 0, 1, 1, 1]);
    assert_eq!(rig.frozen.lock().unwrap()[0].contexts()[0].text, "kept");
}

#[tokio::test]
async fn r_095_a_bodys_success_after_a_cancel_is_dropped_and_its_contexts_kept() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = fires(&cancel);
    rig.probe(
        "probe",
        Arc::new(move |mut body| {
            fire();
            body.defer(context("kept"));
            Box::pin(std::future::ready(Ok(Json::of("late").unwrap())))
        }),
    );
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!((text(&result).as_str(), code(&result)), ("Error: tool call aborted", Some(RUNNING)));
    assert_eq!(tally, [1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(rig.frozen.lock().unwrap()[0].contexts()[0].text, "kept");
}

#[tokio::test]
async fn r_096_a_bodys_failure_after_a_cancel_keeps_its_words() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = fires(&cancel);
    rig.probe(
        "probe",
        Arc::new(move |_| {
            fire();
            Box::pin(std::future::ready(Err(ToolFailure::new("interrupted at line 3"))))
        }),
    );
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(text(&result), "Error: interrupted at line 3");
    assert_eq!(tally, [1, 1, 1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn r_097_a_wrapper_that_answers_late_is_aborted() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("done"));
    let fire = fires(&cancel);
    rig.wrap(Rank::NORMAL, move |mut dispatch| {
        let fire = fire.clone();
        Box::pin(async move {
            let attempt = dispatch.run(None).await;
            fire();
            Ok(attempt)
        })
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(code(&result), Some(RUNNING));
    assert_eq!(tally, [1, 1, 1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn r_098_a_wrapper_that_fails_after_a_cancel_is_its_failure() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("done"));
    let fire = fires(&cancel);
    rig.wrap(Rank::NORMAL, move |mut dispatch| {
        let fire = fire.clone();
        Box::pin(async move {
            dispatch.run(None).await;
            fire();
            Err(ListenerFault::new("wrapper", "broke"))
        })
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(text(&result), "Error: wrapper: broke");
    assert_eq!(tally, [1, 1, 1, 1, 0, 1, 1]);
}

#[tokio::test]
async fn r_099_a_cancel_during_an_accepting_post_execute_drops_the_success() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("done"));
    let fire = fires(&cancel);
    rig.post(Rank::NORMAL, move |_, next| {
        fire();
        next.delegate()
    });
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(code(&result), Some(RUNNING));
    assert_eq!(tally, [1, 1, 1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn r_100_a_cancel_during_a_blocking_or_failing_post_execute_leaves_it() {
    for blocks in [true, false] {
        let (rig, cancel) = (Rig::new(), Cancel::new());
        rig.probe("probe", answers("done"));
        let fire = fires(&cancel);
        rig.post(Rank::NORMAL, move |view, _| {
            fire();
            let answer = match view.result() {
                PostResult::Success(success) if blocks => {
                    Ok(success.block(vec![sluice_harness::content::Block::text("feedback")]))
                }
                _ => Err(ListenerFault::new("post", "broke")),
            };
            Box::pin(std::future::ready(answer))
        });
        let (result, tally) = cancelled_call(&rig, &cancel).await;
        assert_eq!(text(&result), if blocks { "feedback" } else { "Error: post: broke" });
        assert_eq!(tally, [1, 1, 1, 1, 1, 1, 1]);
    }
}

#[tokio::test]
async fn r_101_a_cancel_after_the_freeze_changes_nothing() {
    use sluice_harness::point::Observer;
    use sluice_harness::point::tools::{ResultView, ToolResultNote};
    struct Fires(Cancel);
    impl Observer<ToolResultNote> for Fires {
        fn observe(&self, _: &ResultView<'_>) {
            self.0.cancel(CancelCause::User);
        }
    }
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("done"));
    rig.root.observe::<ToolResultNote>(Fires(cancel.clone())).unwrap();
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!((text(&result).as_str(), result.is_error), ("done", false));
    assert_eq!(tally, [1, 1, 1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn r_102_a_started_body_is_awaited_after_a_cancel() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = fires(&cancel);
    let (told, ended) = std::sync::mpsc::channel();
    rig.probe(
        "probe",
        Arc::new(move |body| {
            let (fire, told) = (fire.clone(), told.clone());
            Box::pin(async move {
                fire();
                body.scene().cancel.cancelled().await;
                tokio::task::yield_now().await;
                told.send(()).unwrap();
                Ok(Json::of("stopped").unwrap())
            })
        }),
    );
    let (result, tally) = cancelled_call(&rig, &cancel).await;
    assert_eq!(code(&result), Some(RUNNING));
    assert_eq!(tally, [1; 7]);
    ended.try_recv().expect("the body was abandoned");
}

#[tokio::test(start_paused = true)]
async fn r_103_a_body_that_ignores_its_signal_is_abandoned_by_name_after_the_grace() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = fires(&cancel);
    rig.probe(
        "probe",
        Arc::new(move |_| {
            fire();
            Box::pin(std::future::pending())
        }),
    );
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")])]);
    let agent = rig.agent();
    let report = agent.prompt(vec![sluice_harness::content::Block::text("go")], &cancel).await;
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User });
    let result = results(&agent).remove(0);
    assert!(text(&result).contains("`probe` did not stop within 10 s"), "{}", text(&result));
    assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 1, 1, 1]);
}

fn context(text: &str) -> sluice_harness::point::prompt::ContextMessage {
    sluice_harness::point::prompt::ContextMessage {
        source: "test".into(),
        role: sluice_harness::content::Role::System,
        text: text.into(),
    }
}
