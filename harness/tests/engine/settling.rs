//! Settling: post-execute, replacement, blocking, the finalizer, and that nothing changes after the freeze.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::sync::{Arc, Mutex};

use sluice_harness::agent::Agent;
use sluice_harness::cancel::Cancel;
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::json::Json;
use sluice_harness::pipeline::{Attempt, Outcome};
use sluice_harness::point::ListenerFault;
use sluice_harness::point::tools::{AskOrigin, DeniedBy, Guard, Origin, PostResult, PreAnswer, Reason, ToolResultNote};
use sluice_harness::registry;
use sluice_harness::tool::{ToolFailure, Verdict};

use crate::kit::{Custom, ask, assert_pairs, context, deny, json, logged_contexts, one, ready, sees, texts};
use crate::rig::{Play, Probe, Rig, answers, keep, prompt, results, text};

const ALL: [usize; 7] = [1; 7];

/// Keeps where the results that post-execute saw came from.
fn origins(rig: &Rig) -> Arc<Mutex<Vec<Origin>>> {
    let seen: Arc<Mutex<Vec<Origin>>> = Arc::default();
    let all = Arc::clone(&seen);
    rig.post(Rank::NORMAL, move |view, next| {
        all.lock().unwrap().push(view.origin());
        next.delegate()
    });
    seen
}

#[tokio::test]
async fn r_110_post_execute_sees_every_result_but_those_of_defects_and_of_what_never_began() {
    type Scene = fn(&Rig);
    let body: Scene = |rig| rig.probe("probe", answers("ok"));
    let cases: [(&str, Scene, &str, Option<Origin>); 13] = [
        ("success", body, "{}", Some(Origin::Body)),
        (
            "failing body",
            |rig| rig.probe("probe", Arc::new(|_| ready(Err(ToolFailure::new("no"))))),
            "{}",
            Some(Origin::Body),
        ),
        ("panicking body", |rig| rig.probe("probe", Arc::new(|_| panic!("no"))), "{}", Some(Origin::Body)),
        ("invalid value", |rig| rig.probe("probe", Arc::new(|_| ready(Ok(json("7"))))), "{}", Some(Origin::Body)),
        ("unknown tool", |_| {}, "{}", Some(Origin::Unknown)),
        ("invalid arguments", body, r#"{"n":"x"}"#, Some(Origin::InvalidArgs)),
        ("unreadable arguments", body, "{", Some(Origin::InvalidArgs)),
        ("lossy arguments", body, r#"{"n":1,"n":2}"#, None),
        (
            "denied",
            |rig| {
                rig.probe("probe", answers("ok"));
                rig.pre(Rank::NORMAL, |_, _| ready(Ok(deny("no"))));
            },
            "{}",
            Some(Origin::Denied),
        ),
        (
            "nobody to ask",
            |rig| {
                rig.probe("probe", answers("ok"));
                rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
            },
            "{}",
            Some(Origin::Denied),
        ),
        (
            "guarded",
            |rig| {
                rig.probe("probe", answers("ok"));
                rig.root.guard(Guard::new("no", |_| Some(Reason::new(DeniedBy::Guard, "no")))).unwrap();
            },
            "{}",
            Some(Origin::Denied),
        ),
        (
            "failing pre-execute",
            |rig| {
                rig.probe("probe", answers("ok"));
                rig.pre(Rank::NORMAL, |_, _| ready(Err(ListenerFault::new("pre", "broke"))));
            },
            "{}",
            None,
        ),
        (
            "failing wrapper",
            |rig| {
                rig.probe("probe", answers("ok"));
                rig.wrap(Rank::NORMAL, |_| ready(Err(ListenerFault::new("wrapper", "broke"))));
            },
            "{}",
            None,
        ),
    ];
    for (name, scene, arguments, expected) in cases {
        let rig = Rig::new();
        scene(&rig);
        let seen = origins(&rig);
        one(&rig, "probe", arguments).await;
        assert_eq!(seen.lock().unwrap().first().copied(), expected, "{name}");
        // Whatever came before: one finalizer where there is a tool, and one observer.
        let [.., post, finalizer, observer] = rig.counts.tally();
        let finalizers = usize::from(name != "unknown tool");
        assert_eq!((post, finalizer, observer), (usize::from(expected.is_some()), finalizers, 1), "{name}");
    }
}

fn success(rig: &Rig) -> Outcome {
    rig.frozen.lock().unwrap().last().unwrap().outcome().clone()
}

#[tokio::test]
async fn r_111_other_content_leaves_the_value_and_a_failure_stays_one() {
    let rig = Rig::new();
    let mut tool = Custom::new("probe", &rig.counts, answers("secret"));
    tool.meta = Box::new(|_| Some(json(r#"{"lines":1}"#)));
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    rig.post(Rank::NORMAL, |view, _| {
        let PostResult::Success(success) = view.result() else { panic!("failed") };
        assert_eq!((success.value_seen().text(), view.failure()), (r#""secret""#, None));
        ready(Ok(success.content(vec![Block::text("hidden")])))
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!((text(&one.result).as_str(), one.result.is_error), ("hidden", false));
    assert_eq!(one.result.meta.as_ref().unwrap().text(), r#"{"lines":1}"#);
    let Outcome::Success { value, .. } = success(&rig) else { panic!("failed") };
    assert_eq!(value.text(), r#""secret""#);
    assert_eq!(rig.counts.tally(), ALL);

    let rig = Rig::new();
    rig.probe("probe", Arc::new(|_| ready(Err(ToolFailure::coded("E", "CODE", "no")))));
    rig.post(Rank::NORMAL, |view, _| {
        let PostResult::Failure(failure) = view.result() else { panic!("succeeded") };
        assert_eq!(view.failure(), Some("no"));
        ready(Ok(failure.content(vec![Block::text("explained")])))
    });
    let one = crate::kit::one(&rig, "probe", "{}").await;
    assert_eq!((text(&one.result).as_str(), one.result.is_error, one.code()), ("explained", true, Some("CODE")));
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_112_another_value_is_validated_and_projected_again_and_contexts_are_kept() {
    for (value, said, code) in [
        (r#""other""#, "<other>", None),
        (
            "7",
            "Error: tool \"probe\" returned an invalid value: value must be a string, and is an integer",
            Some("INVALID_TOOL_OUTPUT"),
        ),
    ] {
        let rig = Rig::new();
        let mut tool = Custom::new(
            "probe",
            &rig.counts,
            Arc::new(|mut body| {
                body.defer(context("body"));
                ready(Ok(Json::of("first").unwrap()))
            }),
        );
        tool.render = Box::new(|value| vec![Block::text(format!("<{}>", value.view().as_str().unwrap()))]);
        tool.meta = Box::new(|value| Some(value.clone()));
        registry::register(&rig.root, Arc::new(tool)).unwrap();
        rig.post(Rank::NORMAL, move |view, _| {
            let PostResult::Success(success) = view.result() else { panic!("failed") };
            ready(Ok(success.value(json(value))))
        });
        let one = one(&rig, "probe", "{}").await;
        assert_eq!((text(&one.result).as_str(), one.code()), (said, code));
        assert_eq!(one.result.meta.as_ref().map(Json::text), code.is_none().then_some(value));
        assert_eq!(logged_contexts(&one.agent), ["body"]);
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn r_055_another_value_for_a_tool_that_vanished_is_unknown() {
    let rig = Rig::new();
    let registered = registry::register(&rig.root, Arc::new(Probe::new("probe", &rig.counts, answers("ok")))).unwrap();
    rig.post(Rank::NORMAL, move |view, _| {
        registered.end();
        let PostResult::Success(success) = view.result() else { panic!("failed") };
        ready(Ok(success.value(json(r#""other""#))))
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(one.code(), Some("UNKNOWN_TOOL"));
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_114_a_block_replaces_the_result_by_its_feedback() {
    let image = || Block::Image { media_type: "image/png".into(), data: "AA==".into() };
    let empty = "tool result blocked by post-execute policy";
    let cases = [
        (vec![Block::text("no"), Block::text("really")], "no\nreally"),
        (vec![Block::text("see"), image()], "see\n[image content]"),
        (vec![], empty),
    ];
    for (feedback, message) in cases {
        for fails in [false, true] {
            let rig = Rig::new();
            let mut tool = Custom::new(
                "probe",
                &rig.counts,
                Arc::new(move |mut body| {
                    body.defer(context("body"));
                    ready(if fails { Err(ToolFailure::coded("E", "CODE", "no")) } else { Ok(Json::of("ok").unwrap()) })
                }),
            );
            tool.meta = Box::new(|_| Some(json("1")));
            registry::register(&rig.root, Arc::new(tool)).unwrap();
            let given = feedback.clone();
            rig.post(Rank::NORMAL, move |view, _| {
                let answer = match view.result() {
                    PostResult::Success(success) => success.block(given.clone()),
                    PostResult::Failure(failure) => failure.block(given.clone()),
                };
                ready(Ok(answer.with_contexts_before(vec![context("decision")])))
            });
            let one = one(&rig, "probe", "{}").await;
            assert_eq!(one.result.content, feedback);
            assert_eq!((one.result.is_error, one.code(), one.result.meta.as_ref()), (true, None, None));
            assert_eq!(success(&rig).failure_text(), Some(message));
            // Only the decision's own contexts (R-115).
            assert_eq!(logged_contexts(&one.agent), ["decision"]);
            assert_eq!(rig.counts.tally(), ALL);
        }
    }
}

#[tokio::test]
async fn r_115_r_116_r_118_contexts_keep_their_order_and_are_never_merged() {
    let rig = Rig::new();
    rig.probe(
        "probe",
        Arc::new(|mut body| {
            body.defer(context("body"));
            ready(Ok(Json::of("ok").unwrap()))
        }),
    );
    rig.pre(Rank::NORMAL, |_, next| {
        Box::pin(async move { Ok(PreAnswer { contexts: vec![context("pre")], ..next.delegate().await? }) })
    });
    rig.wrap(Rank::NORMAL, |mut dispatch| {
        Box::pin(async move { Ok(dispatch.run(None).await.with_context(context("wrapper"))) })
    });
    for (rank, word) in [(Rank(1), "outer post"), (Rank(2), "inner post")] {
        rig.post(rank, move |_, next| {
            Box::pin(async move { Ok(next.delegate().await?.with_contexts_before(vec![context(word)])) })
        });
    }
    let one = one(&rig, "probe", "{}").await;
    let all = ["pre", "body", "wrapper", "outer post", "inner post"];
    assert_eq!(logged_contexts(&one.agent), all);
    assert_eq!(texts(rig.frozen.lock().unwrap()[0].contexts()), all);
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn contexts_of_pre_execute_outlive_a_block_and_a_failing_post_execute() {
    for blocks in [true, false] {
        let rig = Rig::new();
        rig.probe(
            "probe",
            Arc::new(|mut body| {
                body.defer(context("body"));
                ready(Ok(Json::of("ok").unwrap()))
            }),
        );
        rig.pre(Rank::NORMAL, |_, next| {
            Box::pin(async move { Ok(PreAnswer { contexts: vec![context("pre")], ..next.delegate().await? }) })
        });
        rig.post(Rank::NORMAL, move |view, _| match view.result() {
            PostResult::Success(success) if blocks => ready(Ok(success.block(vec![Block::text("no")]))),
            _ => ready(Err(ListenerFault::new("post", "broke"))),
        });
        let one = one(&rig, "probe", "{}").await;
        assert_eq!(logged_contexts(&one.agent), ["pre"]);
        assert_eq!(text(&one.result), if blocks { "no" } else { "Error: post: broke" });
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn an_outer_listener_cannot_hide_the_defect_of_an_inner_one() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    rig.post(Rank::NORMAL, |view, next| {
        Box::pin(async move {
            let _ = next.delegate().await;
            Ok(keep(view))
        })
    });
    rig.post(Rank(1), |_, _| panic!("broke"));
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Error: test-post: panicked: broke");
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn a_value_whose_verdict_is_failed_is_an_error_with_a_value() {
    let rig = Rig::new();
    let mut tool = Custom::new("probe", &rig.counts, answers("exit 1"));
    tool.verdict = Box::new(|_| Verdict::Failed("it exited with 1".into()));
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    rig.post(Rank::NORMAL, |view, next| {
        assert_eq!(view.failure(), Some("it exited with 1"));
        assert!(matches!(view.result(), PostResult::Success(_)));
        next.delegate()
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!((text(&one.result).as_str(), one.result.is_error, one.code()), ("exit 1", true, None));
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_126_a_finalizer_may_replace_the_content_and_nothing_else() {
    for fails in [false, true] {
        let rig = Rig::new();
        let mut tool = Custom::new(
            "probe",
            &rig.counts,
            Arc::new(move |_| {
                ready(if fails { Err(ToolFailure::coded("E", "CODE", "no")) } else { Ok(Json::of("ok").unwrap()) })
            }),
        );
        tool.finalize = Box::new(|input, content| {
            assert_eq!(input.unwrap().text(), "{}");
            Some(vec![content[0].clone(), Block::text("(signed)")])
        });
        registry::register(&rig.root, Arc::new(tool)).unwrap();
        let one = one(&rig, "probe", "{}").await;
        let (said, code) = if fails { ("Error: no\n(signed)", Some("CODE")) } else { ("ok\n(signed)", None) };
        assert_eq!((text(&one.result).as_str(), one.result.is_error, one.code()), (said, fails, code));
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn r_127_a_panicking_finalizer_is_one_failure_and_is_not_called_again() {
    let rig = Rig::new();
    let mut tool = Custom::new("probe", &rig.counts, answers("ok"));
    tool.finalize = Box::new(|_, _| panic!("no pen"));
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), r#"Error: the tool "probe" failed to finalise its result: no pen"#);
    assert!(one.result.is_error);
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_128_r_129_a_failing_observer_changes_nothing_for_the_result_or_the_others() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    sees::<ToolResultNote, _>(&rig, |_| panic!("first observer"));
    let all = Arc::clone(&seen);
    sees::<ToolResultNote, _>(&rig, move |view| {
        // Before the durable result, after everything else.
        let events = view.scene.log.since(Seq(0));
        assert!(events.iter().any(|e| &*e.kind == "tool/call"));
        assert!(!events.iter().any(|e| &*e.kind == "tool/result"));
        all.lock().unwrap().push(sluice_harness::content::plain_text(view.result.outcome().content()));
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!((text(&one.result).as_str(), one.result.is_error), ("ok", false));
    assert_eq!(*seen.lock().unwrap(), ["ok"]);
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_130_observers_see_the_value_and_the_log_never_does() {
    let rig = Rig::new();
    let mut tool = Custom::new("probe", &rig.counts, answers("VALUE-MARKER"));
    tool.render = Box::new(|_| vec![Block::text("rendered")]);
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let one = one(&rig, "probe", "{}").await;
    let Outcome::Success { value, .. } = success(&rig) else { panic!("failed") };
    assert_eq!(value.text(), r#""VALUE-MARKER""#);
    let file = std::fs::read_to_string(one.agent.log().path()).unwrap();
    assert!(file.contains("rendered") && !file.contains("VALUE-MARKER"));
    assert_eq!(rig.counts.tally(), ALL);
}

/// What a stage does to the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Do {
    Answer,
    Fault,
    Panic,
}

fn does<T>(what: Do, answer: T) -> Result<T, ListenerFault> {
    match what {
        Do::Answer => Ok(answer),
        Do::Fault => Err(ListenerFault::new("stage", "broke")),
        Do::Panic => panic!("broke"),
    }
}

fn staged(rig: &Rig, stage: &'static str, what: Do) {
    let act: crate::rig::Act = Arc::new(move |_| {
        let ok = Json::of("ok").unwrap();
        let done = if stage == "body" { does(what, ok).map_err(|_| ToolFailure::new("broke")) } else { Ok(ok) };
        ready(done)
    });
    let mut tool = Custom::new("probe", &rig.counts, act);
    let panics = move |here: &str| assert!(!(stage == here && what == Do::Panic), "broke");
    tool.finalize = Box::new(move |_, _| {
        panics("finalizer");
        None
    });
    tool.facts = Box::new(move |_| {
        panics("facts");
        Default::default()
    });
    tool.concurrency = Box::new(move |_| {
        panics("classifier");
        sluice_harness::tool::Concurrency::Parallel
    });
    tool.card = Box::new(move |_| {
        panics("card");
        sluice_harness::tool::CallCard {
            title: "t".into(),
            kind: sluice_harness::tool::CallKind::Other,
            items: vec![],
            locations: vec![],
        }
    });
    tool.result_card = Box::new(move |_, _| {
        panics("result card");
        Default::default()
    });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    match stage {
        "pre" => rig.pre(Rank::NORMAL, move |_, _| ready(does(what, crate::kit::allow()))),
        "guard" => {
            drop(rig.root.guard(Guard::new("stage", move |_| {
                does(what, ()).err().map(|_| Reason::new(DeniedBy::Guard, "broke"))
            })))
        }
        "wrapper" => rig.wrap(Rank::NORMAL, move |_| ready(does(what, Attempt::success(json(r#""ok""#))))),
        "post" => rig.post(Rank::NORMAL, move |view, _| ready(does(what, keep(view)))),
        "observer" => sees::<ToolResultNote, _>(rig, move |_| assert!(what != Do::Panic, "broke")),
        "approval" => {
            rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
            crate::kit::on::<sluice_harness::point::approval::Approval, _>(rig, Rank::NORMAL, move |_, _| {
                ready(does(what, sluice_harness::seam::approval::ApprovalOutcome::AllowedOnce))
            });
        }
        _ => {}
    }
}

#[tokio::test]
async fn r_131_whatever_fails_in_whatever_stage_leaves_exactly_one_result_and_a_turn_that_goes_on() {
    let stages = [
        "pre", "approval", "guard", "wrapper", "body", "post", "finalizer", "observer", "facts", "classifier", "card",
        "result card",
    ];
    for stage in stages {
        for what in [Do::Answer, Do::Fault, Do::Panic] {
            let rig = Rig::new();
            staged(&rig, stage, what);
            let one = one(&rig, "probe", "{}").await;
            let harmless = ["observer", "facts", "classifier", "card", "result card"].contains(&stage)
                || (stage == "finalizer" && what == Do::Fault);
            assert_eq!(one.result.is_error, what != Do::Answer && !harmless, "{stage} {what:?}: {}", text(&one.result));
            let [.., finalizer, observer] = rig.counts.tally();
            assert_eq!((finalizer, observer), (1, 1), "{stage} {what:?}");
            assert_eq!(one.report.text, "done", "{stage} {what:?}");
        }
    }
}

#[tokio::test]
async fn r_037_r_132_what_a_stage_was_shown_cannot_be_changed_by_what_it_keeps() {
    // Views are borrows of private fields; what a listener takes is a copy, and changing it changes nothing.
    let rig = Rig::new();
    rig.probe("probe", Arc::new(|_| ready(Err(ToolFailure::new("no")))));
    rig.post(Rank::NORMAL, |view, next| {
        let mut copy = view.content().to_vec();
        copy.push(Block::text("smuggled"));
        next.delegate()
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Error: no");
    assert_eq!(rig.counts.tally(), ALL);
}

#[tokio::test]
async fn r_104_every_result_of_a_batch_is_settled_once_also_beside_defects() {
    let rig = Rig::new();
    rig.probe("fine", answers("ok"));
    rig.probe("broken", Arc::new(|_| panic!("no")));
    rig.plays([
        Play::Calls(vec![("a", "fine", "{}"), ("b", "broken", "{}"), ("c", "none", "{}"), ("d", "fine", "{")]),
        Play::Text("done"),
    ]);
    let agent: Agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    assert_pairs(&agent, &["a", "b", "c", "d"]);
    assert_eq!(results(&agent).iter().map(|r| r.is_error).collect::<Vec<_>>(), [false, true, true, true]);
    assert_eq!(rig.counts.tally(), [3, 3, 2, 2, 4, 3, 4]);
}
