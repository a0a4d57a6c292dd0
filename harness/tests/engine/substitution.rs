//! Rewrites: a nested call is sealed and judged in the model's place, and nothing else runs.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::ids::{CallId, Seq};
use sluice_harness::json::Json;
use sluice_harness::log::event::RewriteDispatch;
use sluice_harness::pipeline::{CallRequest, Gated, Identity, Permit, Token, gate, seal};
use sluice_harness::point::ListenerFault;
use sluice_harness::point::approval::Approval;
use sluice_harness::point::tools::{
    Allow, AskOrigin, DeniedBy, Guard, PolicyView, PostResult, PreAnswer, PreTool, Reason, Standing, ToolResultNote,
};
use sluice_harness::registry;
use sluice_harness::seam::approval::{ApprovalOutcome, Rejecter};
use sluice_harness::tool::Concurrency;

use crate::kit::{Custom, One, allow, ask, assert_pairs, context, deny, json, logged_contexts, on, one, ready, sees};
use crate::rig::{Play, Rig, bump, prompt, text};

type Answer<'a> = Fut<'a, Result<PreAnswer, ListenerFault>>;

/// A tool that answers with its own input.
fn echo(rig: &Rig) {
    rig.probe("probe", Arc::new(|body| ready(Ok(Json::of(body.input().text()).unwrap()))));
}

/// What a rewriting hook does: ask for the substitute, and pass on what became of it.
fn rewritten<'a>(view: PolicyView<'a>, arguments: &str, standing: Standing) -> Answer<'a> {
    let gating = view.substitute(json(arguments), standing);
    Box::pin(async move {
        Ok(match gating.await {
            Gated::Pass(permit) => PreAnswer::new(PreTool::Allow(Allow::through(permit))),
            Gated::Refused(candidate) => {
                let (reason, contexts) = candidate.into_reason();
                PreAnswer { decision: PreTool::Deny(reason), contexts }
            }
        })
    })
}

/// Rewrites the model's own call, once.
fn rewrites(rig: &Rig, arguments: &'static str, standing: Standing) {
    rig.pre(Rank(-1), move |view, next| {
        if view.call().is_nested() { next.delegate() } else { rewritten(view, arguments, standing.clone()) }
    });
}

fn dispatched(one: &One) -> Vec<RewriteDispatch> {
    one.agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect()
}

#[tokio::test]
async fn r_057_a_rewrite_runs_as_a_nested_call_and_the_log_holds_both() {
    let rig = Rig::new();
    echo(&rig);
    rewrites(&rig, r#"{"n":2}"#, Standing::Silent);
    type Seen = Vec<(String, String, String, bool, Token)>;
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let note = |seen: &Arc<Mutex<Vec<_>>>, call: &Identity| {
        let ids = (call.call_id().to_string(), call.root_call_id().to_string(), call.input().text().to_owned());
        seen.lock().unwrap().push((ids.0, ids.1, ids.2, call.is_nested(), call.token()));
    };
    let all = Arc::clone(&seen);
    sees::<ToolResultNote, _>(&rig, move |view| note(&all, view.call.unwrap()));
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!(text(&one.result), r#"{"n":2}"#);
    assert_eq!(one.call.input.as_ref().unwrap().text(), r#"{"n":1}"#);
    let rewrites = dispatched(&one);
    assert_eq!(rewrites.len(), 1);
    assert_eq!((rewrites[0].call_id.as_str(), rewrites[0].sub_call_id.as_str()), ("c1", "c1:rewrite"));
    assert_eq!((rewrites[0].name.as_str(), rewrites[0].input.text()), ("probe", r#"{"n":2}"#));
    let seen = seen.lock().unwrap();
    let (inner, outer) = (&seen[0], &seen[1]);
    assert_eq!(
        (inner.0.as_str(), inner.1.as_str(), inner.2.as_str(), inner.3),
        ("c1:rewrite", "c1", r#"{"n":2}"#, true)
    );
    assert_eq!((outer.0.as_str(), outer.1.as_str(), outer.2.as_str(), outer.3), ("c1", "c1", r#"{"n":1}"#, false));
    assert_ne!(inner.4, outer.4);
    // Policy and guards judge both calls, one body runs, post-execute looks once, and each call has its finalizer
    // and its observers once.
    assert_eq!(rig.counts.tally(), [2, 2, 1, 1, 1, 2, 2]);
    assert_eq!(rig.frozen.lock().unwrap()[1].rewritten_input().unwrap().text(), r#"{"n":2}"#);
}

#[tokio::test]
async fn r_051_a_rewrite_of_a_rewrite_carries_the_models_own_id_all_the_way() {
    let rig = Rig::new();
    echo(&rig);
    rig.pre(Rank(-1), |view, next| match view.call().input().text() {
        r#"{"n":1}"# => rewritten(view, r#"{"n":2}"#, Standing::Silent),
        r#"{"n":2}"# => rewritten(view, r#"{"n":3}"#, Standing::Silent),
        _ => next.delegate(),
    });
    let roots: Arc<Mutex<Vec<String>>> = Arc::default();
    let all = Arc::clone(&roots);
    sees::<ToolResultNote, _>(&rig, move |view| {
        let call = view.call.unwrap();
        all.lock().unwrap().push(format!("{}<{}", call.call_id(), call.root_call_id()));
    });
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!(text(&one.result), r#"{"n":3}"#);
    assert_eq!(*roots.lock().unwrap(), ["c1:rewrite:rewrite<c1", "c1:rewrite<c1", "c1<c1"]);
    let rewrites = dispatched(&one);
    assert_eq!(rewrites.len(), 1);
    assert_eq!((rewrites[0].call_id.as_str(), rewrites[0].input.text()), ("c1", r#"{"n":3}"#));
    assert_eq!(rig.counts.tally(), [3, 3, 1, 1, 1, 3, 3]);
}

#[tokio::test]
async fn a_listener_that_rewrites_its_own_rewrites_is_stopped_and_nothing_runs() {
    let rig = Rig::new();
    echo(&rig);
    rig.pre(Rank(-1), |view, _| rewritten(view, view.call().input().text(), Standing::Silent));
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!(text(&one.result), "Error: the input was rewritten more than 8 times over");
    assert_eq!(one.result.denied_by, Some(DeniedBy::Guard));
    assert_eq!(rig.counts.tally(), [9, 0, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn policy_and_guards_judge_the_new_input_and_a_refused_substitute_runs_nothing() {
    for by_guard in [false, true] {
        let rig = Rig::new();
        echo(&rig);
        rewrites(&rig, r#"{"n":2}"#, Standing::Allowed);
        if by_guard {
            let check = |view: sluice_harness::point::tools::GuardView<'_>| {
                (view.call.input().text() == r#"{"n":2}"#).then(|| Reason::new(DeniedBy::Guard, "not two"))
            };
            rig.root.guard(Guard::new("two", check)).unwrap();
        } else {
            rig.pre(Rank::POLICY, |view, next| match view.call().input().text() {
                r#"{"n":2}"# => ready(Ok(PreAnswer { contexts: vec![context("why")], ..deny("not two") })),
                _ => next.delegate(),
            });
        }
        let one = one(&rig, "probe", r#"{"n":1}"#).await;
        assert_eq!(text(&one.result), "Error: not two");
        assert_eq!(logged_contexts(&one.agent), if by_guard { vec![] } else { vec!["why"] });
        assert!(dispatched(&one).is_empty());
        // The nested call was judged, the outer one denied with its words; nothing of the nested one is settled.
        assert_eq!(rig.counts.tally(), [2, usize::from(by_guard), 0, 0, 1, 1, 1]);
    }
}

#[tokio::test]
async fn a_guard_still_denies_the_models_own_input_that_was_rewritten() {
    let rig = Rig::new();
    echo(&rig);
    rewrites(&rig, r#"{"n":2}"#, Standing::Allowed);
    let check = |view: sluice_harness::point::tools::GuardView<'_>| {
        (view.call.input().text() == r#"{"n":1}"#).then(|| Reason::new(DeniedBy::Guard, "not one"))
    };
    rig.root.guard(Guard::new("one", check)).unwrap();
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!(text(&one.result), "Error: not one");
    assert!(dispatched(&one).is_empty());
    assert_eq!(rig.counts.tally(), [2, 2, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn r_072_a_substitute_that_does_not_fit_runs_nothing() {
    for (arguments, said) in [
        (r#"{"n":"x"}"#, "Error: invalid arguments: arguments.n must be an integer, and is a string"),
        ("[]", "Error: invalid arguments: arguments must be an object"),
    ] {
        let rig = Rig::new();
        echo(&rig);
        let told = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&told);
        rig.pre(Rank(-1), move |view, _| {
            let counted = Arc::clone(&counted);
            let gating = view.substitute(json(arguments), Standing::Allowed);
            Box::pin(async move {
                let Gated::Refused(candidate) = gating.await else { panic!("it fits") };
                assert!(candidate.invalid_arguments().is_some());
                bump(&counted);
                let (reason, _) = candidate.into_reason();
                Ok(PreAnswer::new(PreTool::Deny(reason)))
            })
        });
        let one = one(&rig, "probe", r#"{"n":1}"#).await;
        assert_eq!(text(&one.result), said);
        assert_eq!(told.load(Ordering::SeqCst), 1);
        assert_eq!(rig.counts.tally(), [1, 0, 0, 0, 1, 1, 1]);
    }
}

#[tokio::test]
async fn the_standing_of_a_rewriting_hook_is_joined_with_the_policy_by_strictness() {
    // (standing, policy on the new input) → (asked how often, runs when the answer is yes)
    let mode: fn() -> PreAnswer = || ask(None, AskOrigin::Mode);
    let rule: fn() -> PreAnswer = || ask(None, AskOrigin::Rule);
    let plain: fn() -> PreAnswer = allow;
    let never: fn() -> PreAnswer = || deny("never");
    let cases = [
        (Standing::Silent, plain, 0, true),
        (Standing::Silent, mode, 1, true),
        (Standing::Silent, rule, 1, true),
        (Standing::Silent, never, 0, false),
        (Standing::Allowed, plain, 0, true),
        (Standing::Allowed, mode, 0, true),
        (Standing::Allowed, rule, 1, true),
        (Standing::Allowed, never, 0, false),
        (Standing::Ask(Some("sure?".into())), plain, 1, true),
        (Standing::Ask(Some("sure?".into())), mode, 1, true),
        (Standing::Ask(None), rule, 1, true),
        (Standing::Ask(None), never, 0, false),
    ];
    for (at, (standing, policy, questions, runs)) in cases.into_iter().enumerate() {
        let rig = Rig::new();
        echo(&rig);
        rewrites(&rig, r#"{"n":2}"#, standing);
        rig.pre(
            Rank::POLICY,
            move |view, next| {
                if view.call().is_nested() { ready(Ok(policy())) } else { next.delegate() }
            },
        );
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        on::<Approval, _>(&rig, Rank::NORMAL, move |view, _| {
            // What is asked is what would run, under the id that the model knows.
            assert_eq!((view.card.input.text(), view.card.call_id.as_str()), (r#"{"n":2}"#, "c1"));
            bump(&counted);
            ready(Ok(ApprovalOutcome::AllowedOnce))
        });
        let one = one(&rig, "probe", r#"{"n":1}"#).await;
        assert_eq!(asked.load(Ordering::SeqCst), questions, "case {at}");
        let (said, tally) =
            if runs { (r#"{"n":2}"#, [2, 2, 1, 1, 1, 2, 2]) } else { ("Error: never", [2, 0, 0, 0, 1, 1, 1]) };
        assert_eq!(text(&one.result), said, "case {at}");
        assert_eq!(rig.counts.tally(), tally, "case {at}");
    }
}

#[tokio::test]
async fn post_execute_looks_once_at_what_ran_under_the_models_own_id() {
    let rig = Rig::new();
    echo(&rig);
    rewrites(&rig, r#"{"n":2}"#, Standing::Silent);
    rig.post(Rank::NORMAL, |view, _| {
        assert_eq!((view.call().input().text(), view.call().call_id().as_str()), (r#"{"n":2}"#, "c1:rewrite"));
        assert_eq!(view.reported_id().as_str(), "c1");
        assert!(view.origin().is_body());
        let PostResult::Success(success) = view.result() else { panic!("it failed") };
        let answer = success.block(vec![Block::text("blocked")]).with_contexts_before(vec![context("post")]);
        ready(Ok(answer))
    });
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!((text(&one.result).as_str(), one.result.is_error), ("blocked", true));
    assert_eq!(logged_contexts(&one.agent), ["post"]);
    assert_eq!(rig.counts.tally(), [2, 2, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn contexts_of_the_outer_call_come_before_those_of_what_ran() {
    let rig = Rig::new();
    rig.probe(
        "probe",
        Arc::new(|mut body| {
            body.defer(context("body"));
            ready(Ok(Json::of("ok").unwrap()))
        }),
    );
    rig.pre(Rank(-1), |view, next| {
        if view.call().is_nested() {
            return Box::pin(
                async move { Ok(PreAnswer { contexts: vec![context("nested")], ..next.delegate().await? }) },
            );
        }
        let answer = rewritten(view, r#"{"n":2}"#, Standing::Silent);
        Box::pin(async move { Ok(PreAnswer { contexts: vec![context("outer")], ..answer.await? }) })
    });
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!(logged_contexts(&one.agent), ["outer", "nested", "body"]);
    assert_eq!(rig.counts.tally(), [2, 2, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn a_question_about_a_rewrite_that_is_rewritten_again_is_closed() {
    let rig = Rig::new();
    echo(&rig);
    rewrites(&rig, r#"{"n":2}"#, Standing::Ask(None));
    rig.pre(Rank(1), |view, next| match view.call().input().text() {
        r#"{"n":2}"# => rewritten(view, r#"{"n":3}"#, Standing::Silent),
        _ => next.delegate(),
    });
    on::<Approval, _>(&rig, Rank::NORMAL, |_, _| ready(Ok(ApprovalOutcome::AllowedOnce)));
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    let said = "Error: a hook wants a confirmation of an input that another hook rewrites, which cannot be expressed";
    assert_eq!(text(&one.result), said);
    assert_eq!(rig.counts.tally(), [3, 1, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn a_permit_of_another_call_opens_nothing() {
    // Kept from the first call and given for the second.
    let rig = Rig::new();
    echo(&rig);
    let kept: Arc<Mutex<Option<Permit>>> = Arc::default();
    rig.pre(Rank(-1), move |view, next| {
        if view.call().is_nested() {
            return next.delegate();
        }
        let kept = Arc::clone(&kept);
        let gating = view.substitute(json(r#"{"n":9}"#), Standing::Silent);
        Box::pin(async move {
            if let Some(permit) = kept.lock().unwrap().take() {
                return Ok(PreAnswer::new(PreTool::Allow(Allow::through(permit))));
            }
            let Gated::Pass(permit) = gating.await else { panic!("refused") };
            *kept.lock().unwrap() = Some(permit);
            next.delegate().await
        })
    });
    rig.plays([Play::Calls(vec![("c1", "probe", r#"{"n":1}"#), ("c2", "probe", r#"{"n":2}"#)]), Play::Text("done")]);
    let agent = rig.agent();
    prompt(&agent, &Default::default()).await;
    assert_pairs(&agent, &["c1", "c2"]);
    let results = crate::rig::results(&agent);
    assert_eq!(text(&results[0]), r#"{"n":1}"#);
    assert_eq!(text(&results[1]), "Error: the permit of another call was given for this one");
    assert_eq!(rig.counts.tally(), [3, 3, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn a_permit_made_outside_the_call_opens_nothing() {
    let rig = Rig::new();
    echo(&rig);
    rig.probe("other", Arc::new(|_| panic!("it must not run")));
    rig.pre(Rank(-1), |view, next| {
        if view.call().name() == "other" {
            return next.delegate();
        }
        Box::pin(async move {
            let scene = view.scene();
            let request = CallRequest { call_id: CallId::new("x"), name: "other".into(), arguments: "{}".into() };
            let Gated::Pass(permit) = gate(seal(scene.context, scene.session, request), scene).await else {
                panic!("refused")
            };
            Ok(PreAnswer::new(PreTool::Allow(Allow::through(permit))))
        })
    });
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!(text(&one.result), "Error: the permit of another call was given for this one");
    assert_eq!(rig.counts.tally(), [2, 2, 0, 0, 0, 1, 1]);
}

#[tokio::test]
async fn two_questions_about_two_rewrites_of_one_call_are_two_questions() {
    let rig = Rig::new();
    echo(&rig);
    rig.pre(Rank(-1), |view, next| {
        if view.call().is_nested() {
            return ready(Ok(ask(None, AskOrigin::Rule)));
        }
        let first = view.substitute(json(r#"{"n":2}"#), Standing::Silent);
        drop(next);
        Box::pin(async move {
            let Gated::Refused(_) = first.await else { panic!("the first was not refused") };
            rewritten(view, r#"{"n":3}"#, Standing::Silent).await
        })
    });
    on::<Approval, _>(&rig, Rank::NORMAL, |view, _| {
        let no = ApprovalOutcome::Rejected { message: None, by: Rejecter::Person };
        ready(Ok(if view.card.input.text() == r#"{"n":3}"# { ApprovalOutcome::AllowedOnce } else { no }))
    });
    let one = one(&rig, "probe", r#"{"n":1}"#).await;
    assert_eq!(text(&one.result), r#"{"n":3}"#);
    assert_eq!(dispatched(&one)[0].sub_call_id.as_str(), "c1:rewrite2");
    assert_eq!(rig.counts.tally(), [3, 2, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn an_id_that_the_model_took_is_not_given_to_a_rewrite() {
    let rig = Rig::new();
    echo(&rig);
    rewrites(&rig, r#"{"n":2}"#, Standing::Silent);
    rig.plays([
        Play::Calls(vec![("c1", "probe", r#"{"n":1}"#), ("c1:rewrite", "probe", r#"{"n":2}"#)]),
        Play::Text("done"),
    ]);
    let agent = rig.agent();
    prompt(&agent, &Default::default()).await;
    assert_pairs(&agent, &["c1", "c1:rewrite"]);
    assert!(crate::rig::results(&agent).iter().all(|r| text(r) == r#"{"n":2}"#));
    assert_eq!(rig.counts.tally(), [4, 4, 2, 2, 2, 4, 4]);
}

#[tokio::test]
async fn r_140_a_rewritten_call_overlaps_only_if_what_really_runs_may() {
    // `n` of 1 may overlap, `n` of 2 may not: two calls of 1, both rewritten to 2, run one after the other.
    let rig = Rig::new();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak) = (Arc::clone(&now), Arc::clone(&most));
    let mut tool = Custom::new(
        "probe",
        &rig.counts,
        Arc::new(move |_| {
            let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
            Box::pin(async move {
                peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(Json::of("ok").unwrap())
            })
        }),
    );
    tool.concurrency =
        Box::new(|input| if input.text() == r#"{"n":1}"# { Concurrency::Parallel } else { Concurrency::Exclusive });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    rewrites(&rig, r#"{"n":2}"#, Standing::Silent);
    rig.plays([Play::Calls(vec![("c1", "probe", r#"{"n":1}"#), ("c2", "probe", r#"{"n":1}"#)]), Play::Text("done")]);
    let agent = rig.agent();
    prompt(&agent, &Default::default()).await;
    assert_pairs(&agent, &["c1", "c2"]);
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(rig.counts.tally(), [4, 4, 2, 2, 2, 4, 4]);
}
