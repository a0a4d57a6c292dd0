//! Dispatch: wrappers around the body, time budgets, and what a wrapper may make of an attempt.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::agent::{CompletedHow, TurnEnd};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::json::Json;
use sluice_harness::pipeline::{Attempt, TimeoutPolicy};
use sluice_harness::point::ListenerFault;
use sluice_harness::point::tools::{Origin, PostResult};
use sluice_harness::registry;
use sluice_harness::tool::{CallFacts, Effect, ToolFailure};

use crate::kit::{Custom, assert_pairs, context, json, logged_contexts, logged_end, one, ready};
use crate::rig::{Act, Play, Probe, Rig, answers, prompt, results, text};

const ALL: [usize; 7] = [1; 7];
const NO_BODY: [usize; 7] = [1, 1, 1, 0, 1, 1, 1];

fn passes(rig: &Rig, rank: Rank, log: &Arc<Mutex<Vec<&'static str>>>, name: &'static str) {
    let log = Arc::clone(log);
    rig.wrap(rank, move |mut dispatch| {
        let log = Arc::clone(&log);
        Box::pin(async move {
            log.lock().unwrap().push(name);
            let attempt = dispatch.run(None).await;
            log.lock().unwrap().push(name);
            Ok(attempt)
        })
    });
}

#[tokio::test]
async fn wrappers_nest_by_rank_and_then_by_order_of_mounting() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    let order = Arc::default();
    passes(&rig, Rank::POLICY, &order, "inner");
    passes(&rig, Rank::NORMAL, &order, "first");
    passes(&rig, Rank::NORMAL, &order, "second");
    one(&rig, "probe", "{}").await;
    assert_eq!(*order.lock().unwrap(), ["first", "second", "inner", "inner", "second", "first"]);
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_055_a_tool_that_a_wrapper_takes_away_is_unknown_and_post_execute_sees_it() {
    let rig = Rig::new();
    let registered =
        registry::register(&rig.root, Arc::new(Probe::new("probe", &rig.counts, answers("never")))).unwrap();
    rig.wrap(Rank::NORMAL, move |mut dispatch| {
        registered.end();
        Box::pin(async move { Ok(dispatch.run(None).await) })
    });
    rig.post(Rank::NORMAL, |view, next| {
        assert_eq!(view.origin(), Origin::Unknown);
        next.delegate()
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!((text(&one.result).as_str(), one.code()), (r#"Error: unknown tool "probe""#, Some("UNKNOWN_TOOL")));
    assert_eq!(rig.counts.tally(), NO_BODY);
}

#[tokio::test]
async fn r_055_a_tool_that_policy_takes_away_is_unknown_before_any_wrapper() {
    let rig = Rig::new();
    let registered =
        registry::register(&rig.root, Arc::new(Probe::new("probe", &rig.counts, answers("never")))).unwrap();
    rig.pre(Rank::NORMAL, move |_, next| {
        registered.end();
        next.delegate()
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(one.code(), Some("UNKNOWN_TOOL"));
    assert_eq!(rig.counts.tally(), [1, 1, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn r_055_a_tool_put_in_its_place_runs_only_what_was_judged() {
    // (parameters, effect) of the tool that takes the name over, and what becomes of the call.
    let same = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
    let other = r#"{"type":"object","properties":{"n":{"type":"string"}}}"#;
    let cases = [
        (same, Effect::Anything, None, "new", [1; 7]),
        (other, Effect::Anything, Some("INVALID_ARGS"), "Error: invalid arguments: ", NO_BODY),
        (same, Effect::Edits, Some("TOOL_REPLACED"), "Error: the tool \"probe\" was replaced", NO_BODY),
    ];
    for (parameters, effect, code, said, tally) in cases {
        let rig = Rig::new();
        let registered =
            registry::register(&rig.root, Arc::new(Probe::new("probe", &rig.counts, answers("old")))).unwrap();
        let (root, counts) = (rig.root.clone(), Arc::clone(&rig.counts));
        rig.wrap(Rank::NORMAL, move |mut dispatch| {
            registered.end();
            let mut tool = Custom::new("probe", &counts, answers("new"));
            tool.parameters = parameters;
            tool.facts = Box::new(move |_| CallFacts { effect, ..CallFacts::default() });
            registry::register(&root, Arc::new(tool)).unwrap();
            Box::pin(async move { Ok(dispatch.run(None).await) })
        });
        let one = one(&rig, "probe", r#"{"n":1}"#).await;
        assert!(text(&one.result).starts_with(said), "{}", text(&one.result));
        assert_eq!(one.code(), code);
        assert_eq!(rig.counts.tally(), tally);
    }
}

#[tokio::test]
async fn r_075_r_076_a_wrapper_cannot_remove_the_callers_signal_and_post_sees_the_callers() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    // The body's signal is a child: firing the caller's fires it; the wrapper's limit fires it alone.
    rig.probe(
        "probe",
        Arc::new(|body| {
            Box::pin(async move {
                let cause = body.scene().cancel.cancelled().await;
                Ok(Json::of(&format!("{cause:?}")).unwrap())
            })
        }),
    );
    rig.wrap(Rank::NORMAL, |mut dispatch| {
        Box::pin(async move {
            let attempt = dispatch.run(Some(Duration::from_millis(1))).await;
            assert!(attempt.timed_out() && attempt.is_success());
            assert!(!dispatch.cancel().is_cancelled());
            Ok(attempt)
        })
    });
    rig.post(Rank::NORMAL, |view, next| {
        assert!(!view.scene().cancel.is_cancelled());
        next.delegate()
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Timeout");
    assert_eq!(rig.counts.tally(), ALL);
    drop(cancel);
}

#[tokio::test]
async fn r_078_r_029_a_value_that_does_not_fit_its_schema_is_a_failure_that_post_execute_sees() {
    let rig = Rig::new();
    rig.probe("probe", Arc::new(|_| ready(Ok(json("7")))));
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(one.code(), Some("INVALID_TOOL_OUTPUT"));
    assert_eq!(
        text(&one.result),
        r#"Error: tool "probe" returned an invalid value: value must be a string, and is an integer"#
    );
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_029_a_defect_in_projecting_a_value_is_one_failure() {
    for part in ["render", "verdict", "meta"] {
        let rig = Rig::new();
        let mut tool = Custom::new("probe", &rig.counts, answers("ok"));
        match part {
            "render" => tool.render = Box::new(|_| panic!("no ink")),
            "verdict" => tool.verdict = Box::new(|_| panic!("no ink")),
            _ => tool.meta = Box::new(|_| panic!("no ink")),
        }
        registry::register(&rig.root, Arc::new(tool)).unwrap();
        let one = one(&rig, "probe", "{}").await;
        assert_eq!(one.code(), Some("INVALID_TOOL_OUTPUT"), "{part}");
        assert_eq!(text(&one.result), r#"Error: tool "probe" returned an invalid value: no ink"#);
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn r_079_a_failing_body_is_its_words_with_a_code_only_where_it_has_one() {
    struct Odd;
    let cases: [(Act, &str, Option<&str>); 5] = [
        (Arc::new(|_| ready(Err(ToolFailure::new("plain")))), "Error: plain", None),
        (Arc::new(|_| ready(Err(ToolFailure::coded("E", "CODE", "coded")))), "Error: coded", Some("CODE")),
        (Arc::new(|_| panic!("text")), "Error: text", None),
        (Arc::new(|_| Box::pin(async { panic!("in {}", "flight") })), "Error: in flight", None),
        (Arc::new(|_| Box::pin(async { std::panic::panic_any(Odd) })), "Error: <unprintable panic value>", None),
    ];
    for (act, said, code) in cases {
        let rig = Rig::new();
        rig.probe("probe", act);
        let one = one(&rig, "probe", "{}").await;
        assert_eq!((text(&one.result).as_str(), one.code()), (said, code));
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn a_body_cannot_choose_the_lane_of_a_wrappers_defect() {
    let rig = Rig::new();
    rig.probe("probe", Arc::new(|_| ready(Err(ToolFailure::coded("WrapperError", "WRAPPER_FAULT", "sly")))));
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Error: sly");
    // Post-execute is not skipped.
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_080_a_wrappers_own_success_is_validated_and_rendered_like_a_bodys() {
    for (value, said, code) in [
        (r#""mine""#, "<mine>", None),
        (
            "[1]",
            "Error: tool \"probe\" returned an invalid value: value must be a string, and is an array",
            Some("INVALID_TOOL_OUTPUT"),
        ),
    ] {
        let rig = Rig::new();
        let mut tool = Custom::new("probe", &rig.counts, answers("never"));
        tool.render = Box::new(|value| vec![Block::text(format!("<{}>", value.view().as_str().unwrap()))]);
        registry::register(&rig.root, Arc::new(tool)).unwrap();
        rig.wrap(Rank::NORMAL, move |_| ready(Ok(Attempt::success(json(value)).with_context(context("kept")))));
        let one = one(&rig, "probe", "{}").await;
        assert_eq!((text(&one.result).as_str(), one.code()), (said, code));
        assert_eq!(logged_contexts(&one.agent), ["kept"]);
        assert_eq!(rig.counts.tally(), NO_BODY);
    }
}

#[tokio::test]
async fn r_080_an_attempt_kept_from_another_call_is_validated_again_and_concludes_nothing() {
    let rig = Rig::new();
    rig.probe(
        "first",
        Arc::new(|mut body| {
            body.conclude_turn();
            ready(Ok(Json::of("of the first").unwrap()))
        }),
    );
    let mut second = Custom::new("second", &rig.counts, answers("never"));
    second.render = Box::new(|value| vec![Block::text(format!("again: {}", value.view().as_str().unwrap()))]);
    registry::register(&rig.root, Arc::new(second)).unwrap();
    let kept: Arc<Mutex<Option<Attempt>>> = Arc::default();
    rig.wrap(Rank::NORMAL, move |mut dispatch| {
        let kept = Arc::clone(&kept);
        Box::pin(async move {
            if let Some(attempt) = kept.lock().unwrap().take() {
                return Ok(attempt);
            }
            let attempt = dispatch.run(None).await;
            *kept.lock().unwrap() = Some(attempt.clone());
            Ok(Attempt::failure(ToolFailure::new("put aside")))
        })
    });
    rig.plays([Play::Calls(vec![("c1", "first", "{}"), ("c2", "second", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_pairs(&agent, &["c1", "c2"]);
    assert_eq!(text(&results(&agent)[0]), "Error: put aside");
    assert_eq!(text(&results(&agent)[1]), "again: of the first");
    assert_eq!(report.end, TurnEnd::Completed { how: CompletedHow::Normal, note: None });
    assert_eq!(rig.counts.tally(), [2, 2, 2, 1, 2, 2, 2]);
}

#[tokio::test]
async fn r_081_a_wrappers_own_failure_is_seen_by_post_execute() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.wrap(Rank::NORMAL, |_| {
        ready(Ok(Attempt::failure(ToolFailure::coded("Busy", "BUSY", "busy")).with_context(context("kept"))))
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!((text(&one.result).as_str(), one.code()), ("Error: busy", Some("BUSY")));
    assert_eq!(logged_contexts(&one.agent), ["kept"]);
    assert_eq!(rig.counts.tally(), NO_BODY);
}

#[tokio::test]
async fn a_failing_wrapper_goes_straight_to_the_end_and_keeps_what_the_body_deferred() {
    for panics in [false, true] {
        let rig = Rig::new();
        rig.probe(
            "probe",
            Arc::new(|mut body| {
                body.defer(context("deferred"));
                ready(Ok(Json::of("ok").unwrap()))
            }),
        );
        rig.wrap(Rank::NORMAL, move |mut dispatch| {
            Box::pin(async move {
                dispatch.run(None).await;
                assert!(!panics, "broke");
                Err(ListenerFault::new("wrapper", "broke"))
            })
        });
        let one = one(&rig, "probe", "{}").await;
        let said = if panics { "Error: test-wrapper: panicked: broke" } else { "Error: wrapper: broke" };
        assert_eq!(text(&one.result), said);
        assert_eq!(logged_contexts(&one.agent), ["deferred"]);
        assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 0, 1, 1]);
    }
}

#[tokio::test]
async fn r_082_contexts_come_in_order_and_survive_a_failing_body() {
    for fails in [false, true] {
        let rig = Rig::new();
        rig.probe(
            "probe",
            Arc::new(move |mut body| {
                body.defer(context("body 1"));
                body.defer(context("body 2"));
                ready(if fails { Err(ToolFailure::new("no")) } else { Ok(Json::of("ok").unwrap()) })
            }),
        );
        rig.wrap(Rank::NORMAL, |mut dispatch| {
            Box::pin(async move { Ok(dispatch.run(None).await.with_context(context("wrapper"))) })
        });
        let one = one(&rig, "probe", "{}").await;
        assert_eq!(logged_contexts(&one.agent), ["body 1", "body 2", "wrapper"]);
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn r_083_a_concluding_success_ends_the_turn_and_a_failure_never_does() {
    for (how, concludes) in [("success", true), ("failure", false), ("blocked", false), ("context", false)] {
        let rig = Rig::new();
        rig.probe(
            "probe",
            Arc::new(move |mut body| {
                body.conclude_turn();
                if how == "context" {
                    body.defer(context("pending"));
                }
                ready(if how == "failure" { Err(ToolFailure::new("no")) } else { Ok(Json::of("ok").unwrap()) })
            }),
        );
        rig.post(Rank::NORMAL, move |view, next| match view.result() {
            PostResult::Success(success) if how == "blocked" => ready(Ok(success.block(vec![Block::text("no")]))),
            _ => next.delegate(),
        });
        let one = one(&rig, "probe", "{}").await;
        let how_ended = if concludes { CompletedHow::Concluded } else { CompletedHow::Normal };
        assert_eq!(logged_end(&one.agent), TurnEnd::Completed { how: how_ended, note: None }, "{how}");
        assert_eq!(one.report.steps, if concludes { 1 } else { 2 }, "{how}");
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn r_086_a_retrying_wrapper_knows_whether_the_body_was_started() {
    let rig = Rig::new();
    let tries = Arc::new(AtomicUsize::new(0));
    rig.probe(
        "probe",
        Arc::new(move |mut body| {
            let n = tries.fetch_add(1, Ordering::SeqCst);
            body.defer(context(if n == 0 { "first" } else { "second" }));
            ready(if n == 0 { Err(ToolFailure::new("flaky")) } else { Ok(Json::of("ok").unwrap()) })
        }),
    );
    let seen: Arc<Mutex<Vec<bool>>> = Arc::default();
    let told = Arc::clone(&seen);
    rig.wrap(Rank::NORMAL, move |mut dispatch| {
        let told = Arc::clone(&told);
        Box::pin(async move {
            told.lock().unwrap().push(dispatch.body_invoked());
            let attempt = dispatch.run(None).await;
            told.lock().unwrap().push(dispatch.body_invoked());
            assert_eq!(attempt.failure_message(), Some("flaky"));
            Ok(dispatch.run(None).await)
        })
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "ok");
    assert_eq!(*seen.lock().unwrap(), [false, true]);
    assert_eq!(logged_contexts(&one.agent), ["first", "second"]);
    assert_eq!(rig.counts.tally(), [1, 1, 1, 2, 1, 1, 1]);
}

/// A tool with a budget of a second whose body takes `body`, and whose caller cancels `cancel_at` after its start.
///
/// The clock is paused, and goes on whenever nothing else does; so nothing but the body's own time may wait by it.
async fn timed(body: Duration, cancel_at: Option<Duration>, fails: bool) -> (Rig, sluice_harness::agent::Agent) {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fired = cancel.clone();
    let mut tool = Probe::new(
        "probe",
        &rig.counts,
        Arc::new(move |_| {
            let fired = fired.clone();
            let firing = async move {
                if let Some(at) = cancel_at {
                    tokio::time::sleep(at).await;
                    fired.cancel(CancelCause::User);
                }
            };
            Box::pin(async move {
                tokio::join!(tokio::time::sleep(body), firing);
                if fails { Err(ToolFailure::new("late words")) } else { Ok(Json::of("in time").unwrap()) }
            })
        }),
    );
    tool.timeout = Some(Duration::from_secs(1));
    rig.tool(tool);
    rig.root.wrap(Rank::NORMAL, TimeoutPolicy).unwrap();
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    agent.prompt(vec![Block::text("go")], &cancel).await;
    assert_pairs(&agent, &["c1"]);
    (rig, agent)
}

#[tokio::test(start_paused = true)]
async fn r_085_a_time_budget_races_the_body_and_the_caller_in_four_ways() {
    let (ms, s) = (Duration::from_millis, Duration::from_secs);
    let timeout = ("Error: tool call timed out after 1000ms", Some("TOOL_TIMEOUT"));
    let cases = [
        ("the body first", s(0), None, false, ("in time", None)),
        ("the budget first, the body answers late", s(2), None, false, timeout),
        ("the budget first, the body fails late", s(2), None, true, timeout),
        ("the caller first", s(2), Some(ms(500)), false, ("Error: tool call aborted", Some("ABORTED"))),
        ("the budget first, then the caller", s(3), Some(s(2)), false, timeout),
    ];
    for (name, body, cancel, fails, (said, code)) in cases {
        let (rig, agent) = timed(body, cancel, fails).await;
        let result = results(&agent).remove(0);
        assert_eq!(text(&result), said, "{name}");
        assert_eq!(result.error.as_ref().map(|e| e.code.as_str()), code, "{name}");
        assert_eq!(rig.counts.tally(), ALL, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn r_085_an_inner_wrappers_own_limit_is_not_taken_for_the_tools_budget() {
    let rig = Rig::new();
    let mut tool = Probe::new(
        "probe",
        &rig.counts,
        Arc::new(|body| {
            Box::pin(async move {
                body.scene().cancel.cancelled().await;
                Err(ToolFailure::new("stopped early"))
            })
        }),
    );
    tool.timeout = Some(Duration::from_secs(60));
    rig.tool(tool);
    rig.root.wrap(Rank::NORMAL, TimeoutPolicy).unwrap();
    rig.wrap(Rank(1), |mut dispatch| Box::pin(async move { Ok(dispatch.run(Some(Duration::from_secs(1))).await) }));
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    agent.prompt(vec![Block::text("go")], &Cancel::new()).await;
    assert_eq!(text(&results(&agent)[0]), "Error: stopped early");
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test(start_paused = true)]
async fn r_153_the_budget_of_one_call_does_not_touch_its_sibling() {
    let rig = Rig::new();
    for (name, wait, timeout) in [("slow", 100, Some(1)), ("steady", 50, None)] {
        let mut tool = Custom::new(
            name,
            &rig.counts,
            Arc::new(move |body| {
                Box::pin(async move {
                    let sleep = tokio::time::sleep(Duration::from_secs(wait));
                    tokio::select! {
                        () = sleep => Ok(Json::of("done").unwrap()),
                        _ = body.scene().cancel.cancelled() => Err(ToolFailure::new("stopped")),
                    }
                })
            }),
        );
        tool.timeout = timeout.map(Duration::from_secs);
        tool.concurrency = Box::new(|_| sluice_harness::tool::Concurrency::Parallel);
        registry::register(&rig.root, Arc::new(tool)).unwrap();
    }
    rig.root.wrap(Rank::NORMAL, TimeoutPolicy).unwrap();
    rig.plays([Play::Calls(vec![("c1", "slow", "{}"), ("c2", "steady", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    agent.prompt(vec![Block::text("go")], &Cancel::new()).await;
    assert_pairs(&agent, &["c1", "c2"]);
    assert_eq!(text(&results(&agent)[0]), "Error: tool call timed out after 1000ms");
    assert_eq!(text(&results(&agent)[1]), "done");
    assert_eq!(rig.counts.tally(), [2; 7]);
}
