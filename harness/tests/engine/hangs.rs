//! whatever ignores its signal is given up after a grace, by name, and the turn ends.
//!
//! The clock is paused: a grace is over at once. The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::sync::Arc;

use sluice_harness::agent::{Agent, TurnEnd, TurnReport};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::json::Json;
use sluice_harness::point::approval::Approval;
use sluice_harness::point::prompt::PromptSubmit;
use sluice_harness::point::tools::AskOrigin;
use sluice_harness::point::turn::TurnContinuation;
use sluice_harness::tool::Concurrency;

use crate::kit::{Custom, ask, assert_balanced, assert_pairs, context, logged_contexts, logged_end, on, ready};
use crate::rig::{Play, Rig, answers, results, text};

/// Prompts without a watchdog, for that would go by the paused clock too.
async fn go(agent: &Agent, cancel: &Cancel) -> TurnReport {
    agent.prompt(vec![Block::text("go")], cancel).await
}

fn firing(cancel: &Cancel) -> impl Fn() + Clone + Send + Sync + 'static {
    let cancel = cancel.clone();
    move || {
        cancel.cancel(CancelCause::User);
    }
}

#[tokio::test(start_paused = true)]
async fn r_103_r_131_a_stage_that_hangs_after_a_cancel_leaves_one_result() {
    let given_up = "no answer within 20 s of the cancellation; the listeners were given up";
    let cases: [(&str, String, [usize; 7]); 5] = [
        ("pre", format!("Error: tools/pre-execute: {given_up}"), [1, 0, 0, 0, 0, 1, 1]),
        ("approval", "Error: tool call aborted before dispatch".into(), [1, 0, 0, 0, 1, 1, 1]),
        (
            "wrapper",
            "Error: a wrapper did not stop within 20 s of the cancellation and was given up".into(),
            [1, 1, 1, 0, 0, 1, 1],
        ),
        (
            "body",
            "Error: the tool `probe` did not stop within 10 s of being cancelled and was abandoned".into(),
            [1; 7],
        ),
        ("post", format!("Error: tools/post-execute: {given_up}"), [1; 7]),
    ];
    for (stage, said, tally) in cases {
        let (rig, cancel) = (Rig::new(), Cancel::new());
        let fire = firing(&cancel);
        match stage {
            "body" => rig.probe(
                "probe",
                Arc::new(move |_| {
                    fire();
                    Box::pin(std::future::pending())
                }),
            ),
            _ => rig.probe("probe", answers("ok")),
        }
        let fire = firing(&cancel);
        match stage {
            "pre" => rig.pre(Rank::NORMAL, move |_, _| {
                fire();
                Box::pin(std::future::pending())
            }),
            "approval" => {
                rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
                on::<Approval, _>(&rig, Rank::NORMAL, move |_, _| {
                    fire();
                    Box::pin(std::future::pending())
                });
            }
            "wrapper" => rig.wrap(Rank::NORMAL, move |_| {
                fire();
                Box::pin(std::future::pending())
            }),
            "post" => rig.post(Rank::NORMAL, move |_, _| {
                fire();
                Box::pin(std::future::pending())
            }),
            _ => {}
        }
        rig.plays([Play::Calls(vec![("c1", "probe", "{}")])]);
        let agent = rig.agent();
        let report = go(&agent, &cancel).await;
        assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User }, "{stage}");
        assert_pairs(&agent, &["c1"]);
        assert_eq!(text(&results(&agent)[0]), said, "{stage}");
        assert_eq!(rig.counts.tally(), tally, "{stage}");
        assert_balanced(&agent);
    }
}

#[tokio::test(start_paused = true)]
async fn r_103_a_listener_of_the_turn_that_hangs_after_a_cancel_does_not_hold_it() {
    for point in ["prompt", "continuation"] {
        let (rig, cancel) = (Rig::new(), Cancel::new());
        let fire = firing(&cancel);
        if point == "prompt" {
            on::<PromptSubmit, _>(&rig, Rank::NORMAL, move |_, _| {
                fire();
                Box::pin(std::future::pending())
            });
        } else {
            on::<TurnContinuation, _>(&rig, Rank::NORMAL, move |_, _| {
                fire();
                Box::pin(std::future::pending())
            });
        }
        rig.plays([Play::Text("said")]);
        let agent = rig.agent();
        let report = go(&agent, &cancel).await;
        // A cancelled turn is one, whoever hung in it.
        assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User }, "{point}");
        assert_eq!(logged_end(&agent), report.end);
        assert_balanced(&agent);
    }
}

#[tokio::test(start_paused = true)]
async fn r_102_r_103_a_sibling_of_an_abandoned_body_still_has_its_own_result() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = firing(&cancel);
    for name in ["deaf", "tidy"] {
        let fire = fire.clone();
        let mut tool = Custom::new(
            name,
            &rig.counts,
            Arc::new(move |mut body| {
                let fire = fire.clone();
                Box::pin(async move {
                    if body.call_id().as_str() == "c1" {
                        std::future::pending::<()>().await;
                    }
                    fire();
                    body.defer(context("tidy"));
                    Ok(Json::of("ok").unwrap())
                })
            }),
        );
        tool.concurrency = Box::new(|_| Concurrency::Parallel);
        sluice_harness::registry::register(&rig.root, Arc::new(tool)).unwrap();
    }
    rig.plays([Play::Calls(vec![("c1", "deaf", "{}"), ("c2", "tidy", "{}")])]);
    let agent = rig.agent();
    go(&agent, &cancel).await;
    assert_pairs(&agent, &["c1", "c2"]);
    let results = results(&agent);
    assert!(text(&results[0]).contains("`deaf` did not stop within 10 s"));
    assert_eq!(text(&results[1]), "Error: tool call aborted");
    assert_eq!(logged_contexts(&agent), ["tidy"]);
    assert_eq!(rig.counts.tally(), [2; 7]);
}
