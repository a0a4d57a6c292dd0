//! The gates before a body: identity, policy, approval, guards, and arguments that never reach them.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::context::Rank;
use sluice_harness::ids::{CallId, Seq};
use sluice_harness::log::event::{ApprovalAsked, ApprovalDecided};
use sluice_harness::pipeline::{CallRequest, Gated, Token, gate, seal, settle};
use sluice_harness::point::ListenerFault;
use sluice_harness::point::approval::Approval;
use sluice_harness::point::session::SessionStart;
use sluice_harness::point::tools::{
    AskOrigin, DeniedBy, Guard, PreAnswer, PreExecute, PreTool, Reason, ToolResultNote,
};
use sluice_harness::registry;
use sluice_harness::scene::SessionScene;
use sluice_harness::seam::approval::{ApprovalOutcome, Rejecter};

use crate::kit::{Custom, One, allow, ask, assert_pairs, context, deny, logged_contexts, on, on_in, one, ready, sees};
use crate::rig::{Counts, Play, Probe, Rig, answers, bump, prompt, results, text};

const NO_BODY: [usize; 7] = [1, 0, 0, 0, 1, 1, 1];
const GUARDED: [usize; 7] = [1, 1, 0, 0, 1, 1, 1];
const ALL: [usize; 7] = [1; 7];

type Seen = Arc<Mutex<Vec<(&'static str, Token, String)>>>;

#[tokio::test]
async fn r_050_r_051_r_052_every_stage_sees_the_same_sealed_identity() {
    let rig = Rig::new();
    let seen: Seen = Arc::default();
    let note = |stage: &'static str| {
        let seen = Arc::clone(&seen);
        move |call: &sluice_harness::pipeline::Identity| {
            let all = format!(
                "{} {} {} {} {}",
                call.call_id(),
                call.root_call_id(),
                call.name(),
                call.input(),
                call.is_nested()
            );
            seen.lock().unwrap().push((stage, call.token(), all));
        }
    };
    let pre = note("pre");
    rig.pre(Rank::NORMAL, move |view, next| {
        pre(view.call());
        next.delegate()
    });
    let guard = note("guard");
    rig.root
        .guard(Guard::new("looks", move |view| {
            guard(view.call);
            None
        }))
        .unwrap();
    let wrapper = note("wrapper");
    rig.wrap(Rank::NORMAL, move |mut dispatch| {
        wrapper(dispatch.call());
        Box::pin(async move { Ok(dispatch.run(None).await) })
    });
    let post = note("post");
    rig.post(Rank::NORMAL, move |view, next| {
        assert_eq!(view.reported_id(), view.call().root_call_id());
        post(view.call());
        next.delegate()
    });
    let observer = note("observer");
    sees::<ToolResultNote, _>(&rig, move |view| observer(view.call.unwrap()));
    let body: Arc<Mutex<String>> = Arc::default();
    let told = Arc::clone(&body);
    rig.probe(
        "probe",
        Arc::new(move |view| {
            *told.lock().unwrap() = format!("{} {}", view.call_id(), view.input());
            ready(Ok(crate::kit::json(r#""ok""#)))
        }),
    );
    let one = one(&rig, "probe", r#"{ "n" : 7 }"#).await;
    let seen = seen.lock().unwrap();
    let stages: Vec<_> = seen.iter().map(|(stage, _, _)| *stage).collect();
    assert_eq!(stages, ["pre", "guard", "wrapper", "post", "observer"]);
    assert!(seen.iter().all(|(_, token, _)| *token == seen[0].1));
    assert!(seen.iter().all(|(_, _, all)| all == r#"c1 c1 probe {"n":7} false"#), "{seen:?}");
    assert_eq!(*body.lock().unwrap(), r#"c1 {"n":7}"#);
    assert_eq!(rig.counts.tally(), ALL);
    // The mark of an execution never leaves the process.
    let file = std::fs::read_to_string(one.agent.log().path()).unwrap();
    assert!(!file.to_lowercase().contains("token\":") && !file.contains("Token("));
}

#[tokio::test]
async fn r_054_a_tool_replaced_during_policy_keeps_the_finalizer_it_began_with() {
    let rig = Rig::new();
    let later = Arc::new(Counts::default());
    let first = registry::register(&rig.root, Arc::new(Probe::new("probe", &rig.counts, answers("old")))).unwrap();
    let (root, counts) = (rig.root.clone(), Arc::clone(&later));
    rig.pre(Rank::NORMAL, move |_, next| {
        first.end();
        registry::register(&root, Arc::new(Probe::new("probe", &counts, answers("new")))).unwrap();
        next.delegate()
    });
    let one = one(&rig, "probe", "{}").await;
    // The body is the one that the name means at dispatch (R-055); the finalizer is the first one's.
    assert_eq!(text(&one.result), "new");
    assert_eq!(rig.counts.tally(), [1, 1, 1, 0, 1, 1, 1]);
    assert_eq!(later.tally(), [0, 0, 0, 1, 0, 0, 0]);
}

#[tokio::test]
async fn r_056_policy_sees_a_call_of_an_unknown_tool_and_no_body_runs() {
    let rig = Rig::new();
    let one = one(&rig, "nope", "{}").await;
    assert_eq!(text(&one.result), r#"Error: unknown tool "nope""#);
    let error = one.result.error.as_ref().unwrap();
    assert_eq!((error.name.as_str(), error.code.as_str()), ("ToolNotFoundError", "UNKNOWN_TOOL"));
    // There is no tool, so there is no finalizer.
    assert_eq!(rig.counts.tally(), [1, 1, 0, 0, 1, 0, 1]);
}

#[tokio::test]
async fn r_061_a_listener_of_one_agent_does_not_hear_another_ones_calls() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")]);
    let (strict, free) = (rig.agent(), rig.agent());
    on_in::<PreExecute, _>(strict.context(), Rank::NORMAL, |_, _| ready(Ok(deny("no"))));
    prompt(&free, &Default::default()).await;
    assert_eq!(text(&results(&free)[0]), "ok");
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")]);
    prompt(&strict, &Default::default()).await;
    assert_eq!(text(&results(&strict)[0]), "Error: no");
    assert_eq!(rig.counts.tally(), [2, 1, 1, 1, 2, 2, 2]);
}

#[tokio::test]
async fn r_062_a_denial_runs_nothing_also_with_an_empty_reason() {
    for (reason, expected) in [("not here", "Error: not here"), ("", "Error: ")] {
        let rig = Rig::new();
        rig.probe("probe", answers("never"));
        rig.pre(Rank::NORMAL, move |_, _| ready(Ok(deny(reason))));
        let one = one(&rig, "probe", "{}").await;
        assert_eq!(text(&one.result), expected);
        assert_eq!((one.result.is_error, one.code(), one.result.denied_by), (true, None, Some(DeniedBy::Hook)));
        assert_eq!(one.report.denials.len(), 1);
        assert_eq!(rig.counts.tally(), NO_BODY);
    }
}

#[tokio::test]
async fn r_063_a_failing_listener_closes_the_gate_whatever_an_outer_one_makes_of_it() {
    for panics in [false, true] {
        let rig = Rig::new();
        rig.probe("probe", answers("never"));
        rig.pre(Rank(-1), |_, next| {
            Box::pin(async move {
                let _ = next.delegate().await;
                Ok(allow())
            })
        });
        rig.pre(Rank::NORMAL, move |_, _| {
            assert!(!panics, "broken");
            ready(Err(ListenerFault::new("policy", "broken")))
        });
        let one = one(&rig, "probe", "{}").await;
        let expected = if panics { "Error: test-pre: panicked: broken" } else { "Error: policy: broken" };
        assert_eq!(text(&one.result), expected);
        assert_eq!(rig.counts.tally(), [1, 0, 0, 0, 0, 1, 1]);
    }
}

#[tokio::test]
async fn r_064_r_065_a_question_that_nobody_can_answer_is_a_denial_in_the_askers_words() {
    let cases = [
        (None, AskOrigin::Rule, r#"Error: tool "probe" requires approval, but no approval channel is available"#),
        (
            Some("it writes"),
            AskOrigin::Mode,
            r#"Error: it writes (tool "probe" requires approval, but no approval channel is available)"#,
        ),
        (Some("ask me first"), AskOrigin::Hook, "ask me first"),
    ];
    for (reason, origin, expected) in cases {
        let rig = Rig::new();
        rig.probe("probe", answers("never"));
        rig.pre(Rank::NORMAL, move |_, _| ready(Ok(ask(reason, origin))));
        let one = one(&rig, "probe", "{}").await;
        assert_eq!(text(&one.result), expected);
        assert_eq!(one.result.denied_by, Some(DeniedBy::NobodyToAsk));
        assert_eq!(rig.counts.tally(), NO_BODY);
    }
}

fn asked(one: &One) -> (Vec<ApprovalAsked>, Vec<ApprovalDecided>) {
    let events = one.agent.log().since(Seq(0));
    (events.iter().filter_map(|e| e.decode()).collect(), events.iter().filter_map(|e| e.decode()).collect())
}

#[tokio::test]
async fn r_066_only_allowed_once_lets_the_call_through() {
    type Answer = fn() -> Result<ApprovalOutcome, ListenerFault>;
    let nobody = r#"Error: tool "probe" requires approval, but no approval channel is available"#;
    let cases: [(Answer, &str, [usize; 7]); 7] = [
        (|| Ok(ApprovalOutcome::AllowedOnce), "ran", ALL),
        (
            || Ok(ApprovalOutcome::Rejected { message: None, by: Rejecter::Person }),
            r#"Error: the user rejected tool "probe""#,
            NO_BODY,
        ),
        (
            || Ok(ApprovalOutcome::Rejected { message: Some("do it by hand".into()), by: Rejecter::Person }),
            "do it by hand",
            NO_BODY,
        ),
        (|| Ok(ApprovalOutcome::Cancelled), r#"Error: approval for tool "probe" was cancelled"#, NO_BODY),
        (|| Ok(ApprovalOutcome::Unavailable), nobody, NO_BODY),
        (|| Err(ListenerFault::new("client", "gone")), nobody, NO_BODY),
        (|| panic!("rogue answerer"), nobody, NO_BODY),
    ];
    for (answer, expected, tally) in cases {
        let rig = Rig::new();
        rig.probe("probe", answers("ran"));
        rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
        on::<Approval, _>(&rig, Rank::NORMAL, move |_, _| ready(answer()));
        let one = one(&rig, "probe", "{}").await;
        assert_eq!(text(&one.result), expected);
        assert_eq!(rig.counts.tally(), tally);
        let (asked, decided) = asked(&one);
        assert_eq!((asked.len(), decided.len()), (1, 1));
        assert_eq!(asked[0].id, decided[0].id);
    }
}

#[tokio::test]
async fn r_066_an_outer_answerer_cannot_turn_a_failed_one_into_a_yes() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
    on::<Approval, _>(&rig, Rank::NORMAL, |_, next| {
        Box::pin(async move {
            let _ = next.delegate().await;
            Ok(ApprovalOutcome::AllowedOnce)
        })
    });
    on::<Approval, _>(&rig, Rank(1), |_, _| panic!("rogue answerer"));
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(one.result.denied_by, Some(DeniedBy::NobodyToAsk));
    assert_eq!(rig.counts.tally(), NO_BODY);
}

#[tokio::test]
async fn r_068_an_answerer_sees_the_sealed_arguments_and_the_log_of_questions_does_not() {
    let rig = Rig::new();
    rig.probe("probe", answers("ran"));
    rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(Some("why"), AskOrigin::Mode))));
    on::<Approval, _>(&rig, Rank::NORMAL, |view, _| {
        assert_eq!(view.card.input.text(), r#"{"n":42}"#);
        assert_eq!((view.card.tool.as_str(), view.card.call_id.as_str()), ("probe", "c1"));
        assert_eq!(view.card.card.title, r#"probe {"n":42}"#);
        assert_eq!((view.card.reason.as_deref(), view.card.origin), (Some("why"), AskOrigin::Mode));
        ready(Ok(ApprovalOutcome::AllowedOnce))
    });
    let one = one(&rig, "probe", r#"{"n":42}"#).await;
    assert_eq!(text(&one.result), "ran");
    assert_eq!(rig.counts.tally(), ALL);
    let events = one.agent.log().since(Seq(0));
    let questions: Vec<_> = events.iter().filter(|e| e.kind.starts_with("approval/")).collect();
    assert_eq!(questions.len(), 2);
    assert!(questions.iter().all(|e| !e.data.text().contains("42")));
}

#[tokio::test]
async fn r_069_guards_come_after_an_approval_and_no_listener_undoes_them() {
    let rig = Rig::new();
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    rig.probe("probe", answers("never"));
    let seen = Arc::clone(&order);
    rig.pre(Rank::NORMAL, move |_, _| {
        seen.lock().unwrap().push("pre");
        ready(Ok(ask(None, AskOrigin::Rule)))
    });
    let seen = Arc::clone(&order);
    on::<Approval, _>(&rig, Rank::NORMAL, move |_, _| {
        seen.lock().unwrap().push("approval");
        ready(Ok(ApprovalOutcome::AllowedOnce))
    });
    let seen = Arc::clone(&order);
    rig.root
        .guard(Guard::new("never", move |_| {
            seen.lock().unwrap().push("guard");
            Some(Reason::new(DeniedBy::Guard, "never"))
        }))
        .unwrap();
    // Mounted last, and outermost: it says yes whatever the others said.
    rig.pre(Rank(-2000), |_, next| {
        Box::pin(async move {
            let answer = next.delegate().await?;
            assert!(matches!(answer.decision, PreTool::Ask { .. }));
            Ok(answer)
        })
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Error: never");
    assert_eq!(*order.lock().unwrap(), ["pre", "approval", "guard"]);
    assert_eq!(rig.counts.tally(), GUARDED);
}

#[tokio::test]
async fn r_069_a_guard_denies_what_every_listener_allows() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.pre(Rank(-2000), |_, _| ready(Ok(allow())));
    rig.root.guard(Guard::new("never", |_| Some(Reason::new(DeniedBy::Guard, "never")))).unwrap();
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Error: never");
    // The counting listener stands further in and was never asked.
    assert_eq!(rig.counts.tally(), [0, 1, 0, 0, 1, 1, 1]);
}

#[tokio::test]
async fn r_071_a_panicking_guard_denies() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.root.guard(Guard::new("shaky", |_| panic!("no idea"))).unwrap();
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "Error: the guard `shaky` failed, and a failing guard denies: no idea");
    assert_eq!(one.result.denied_by, Some(DeniedBy::Guard));
    assert_eq!(rig.counts.tally(), GUARDED);
}

#[tokio::test]
async fn r_014_guards_run_from_the_farthest_scope_in_and_one_added_by_a_guard_is_heard() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let seen = Arc::clone(&order);
    agent
        .context()
        .guard(Guard::new("own", move |_| {
            seen.lock().unwrap().push("own");
            None
        }))
        .unwrap();
    let (seen, root, once) = (Arc::clone(&order), rig.root.clone(), AtomicUsize::new(0));
    rig.root
        .guard(Guard::new("global", move |_| {
            seen.lock().unwrap().push("global");
            if once.fetch_add(1, Ordering::SeqCst) == 0 {
                let seen = Arc::clone(&seen);
                let added = Guard::new("added", move |_| {
                    seen.lock().unwrap().push("added");
                    Some(Reason::new(DeniedBy::Guard, "the added one"))
                });
                root.guard(added).unwrap();
            }
            None
        }))
        .unwrap();
    prompt(&agent, &Default::default()).await;
    assert_eq!(text(&results(&agent)[0]), "Error: the added one");
    // The scope's own guard comes last, and the first reason wins.
    assert_eq!(*order.lock().unwrap(), ["global", "added"]);
    assert_pairs(&agent, &["c1"]);
    assert_eq!(rig.counts.tally(), GUARDED);
}

#[tokio::test]
async fn r_072_arguments_that_do_not_fit_ask_nobody_and_run_nothing() {
    let rig = Rig::new();
    let questions = Arc::new(AtomicUsize::new(0));
    rig.probe("probe", answers("never"));
    rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
    let counted = Arc::clone(&questions);
    on::<Approval, _>(&rig, Rank::NORMAL, move |_, _| {
        bump(&counted);
        ready(Ok(ApprovalOutcome::AllowedOnce))
    });
    let one = one(&rig, "probe", r#"{"n":"two"}"#).await;
    assert_eq!(text(&one.result), "Error: invalid arguments: arguments.n must be an integer, and is a string");
    let error = one.result.error.as_ref().unwrap();
    assert_eq!((error.name.as_str(), error.code.as_str()), ("ToolArgsError", "INVALID_ARGS"));
    assert_eq!(questions.load(Ordering::SeqCst), 0);
    assert_eq!(rig.counts.tally(), [0, 0, 0, 0, 1, 1, 1]);
}

/// Runs a call of a tool that keeps what its body and its finalizer were given.
async fn spied(arguments: &'static str) -> (Rig, One, Vec<String>, Vec<Option<String>>) {
    let rig = Rig::new();
    let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
    let finals: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let body = Arc::clone(&bodies);
    let mut tool = Custom::new(
        "probe",
        &rig.counts,
        Arc::new(move |view| {
            body.lock().unwrap().push(view.input().text().to_owned());
            ready(Ok(crate::kit::json(r#""ok""#)))
        }),
    );
    tool.parameters = r#"{"type":"object","properties":{"n":{}}}"#;
    let seen = Arc::clone(&finals);
    tool.finalize = Box::new(move |input, _| {
        seen.lock().unwrap().push(input.map(|i| i.text().to_owned()));
        None
    });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let one = one(&rig, "probe", arguments).await;
    let (bodies, finals) = (bodies.lock().unwrap().clone(), finals.lock().unwrap().clone());
    (rig, one, bodies, finals)
}

#[tokio::test]
async fn r_035_r_036_arguments_that_cannot_be_kept_losslessly_are_one_result_without_policy() {
    let deep: &'static str = Box::leak(format!("{{\"n\":{}{}}}", "[".repeat(200), "]".repeat(200)).into_boxed_str());
    for arguments in [r#"{"n":1,"n":2}"#, r#"{"n":-0}"#, r#"{"n":1e999}"#, r#"{"n":1e-999}"#, r#"{"n":"\ud800"}"#, deep]
    {
        let (rig, one, bodies, finals) = spied(arguments).await;
        let said = text(&one.result);
        assert!(said.starts_with("Error: tool execution arguments must be losslessly JSON-serializable"), "{said}");
        assert_eq!(one.code(), Some("INVALID_ARGS"));
        assert_eq!(rig.counts.tally(), [0, 0, 0, 0, 0, 1, 1]);
        assert!(bodies.is_empty());
        // Nobody is shown an input that the model never gave; the audit keeps the raw text.
        assert_eq!(finals, [None]);
        assert_eq!((one.call.arguments.as_str(), one.call.input.as_ref()), (arguments, None));
    }
}

#[tokio::test]
async fn r_036_argument_text_that_is_no_object_is_one_result_and_post_execute_sees_it() {
    for arguments in ["{", "not json", "[1]", "7", r#"{"n":NaN}"#] {
        let (rig, one, bodies, finals) = spied(arguments).await;
        assert!(text(&one.result).starts_with("Error: invalid arguments: "), "{}", text(&one.result));
        assert_eq!(one.code(), Some("INVALID_ARGS"));
        assert_eq!(rig.counts.tally(), [0, 0, 0, 0, 1, 1, 1]);
        assert!(bodies.is_empty());
        assert_eq!(finals, [None]);
        assert_eq!((one.call.arguments.as_str(), one.call.input.as_ref()), (arguments, None));
    }
}

#[tokio::test]
async fn r_036_r_038_what_the_log_says_ran_is_what_ran_digit_for_digit() {
    let cases = [
        (r#"{"n":9007199254740993}"#, r#"{"n":9007199254740993}"#),
        (r#"{ "n": 0.1000000000000000055511151231257827 }"#, r#"{"n":0.1000000000000000055511151231257827}"#),
        (r#"{"n":{"z":1,"a":2}}"#, r#"{"n":{"z":1,"a":2}}"#),
        ("", "{}"),
        ("  ", "{}"),
    ];
    for (arguments, sealed) in cases {
        let (rig, one, bodies, finals) = spied(arguments).await;
        assert_eq!(bodies, [sealed]);
        assert_eq!(finals, [Some(sealed.to_owned())]);
        assert_eq!(one.call.input.as_ref().unwrap().text(), sealed);
        assert_eq!(one.call.arguments, arguments);
        assert_eq!(rig.counts.tally(), ALL);
        // And on disk.
        let file = std::fs::read_to_string(one.agent.log().path()).unwrap();
        assert!(file.contains(&format!("\"input\":{sealed}")), "{file}");
    }
}

#[tokio::test]
async fn contexts_of_pre_execute_are_kept_on_every_lane() {
    type Answer = fn() -> PreAnswer;
    let lanes: [(&str, Answer, [usize; 7]); 4] = [
        ("allow", allow, ALL),
        ("deny", || deny("no"), NO_BODY),
        ("ask", || ask(None, AskOrigin::Rule), NO_BODY),
        ("guard", allow, GUARDED),
    ];
    for (lane, answer, tally) in lanes {
        let rig = Rig::new();
        rig.probe("probe", answers("ok"));
        rig.pre(Rank::NORMAL, move |_, _| ready(Ok(PreAnswer { contexts: vec![context("kept")], ..answer() })));
        if lane == "guard" {
            rig.root.guard(Guard::new("no", |_| Some(Reason::new(DeniedBy::Guard, "no")))).unwrap();
        }
        let one = one(&rig, "probe", "{}").await;
        assert_eq!(logged_contexts(&one.agent), ["kept"], "{lane}");
        assert_eq!(rig.counts.tally(), tally, "{lane}");
        let kinds = crate::rig::kinds(&one.agent);
        let (result, context) = (
            kinds.iter().position(|k| k == "tool/result").unwrap(),
            kinds.iter().position(|k| k == "context/message").unwrap(),
        );
        assert!(result < context, "{lane}");
    }
}

#[tokio::test]
async fn r_065_a_question_outside_of_a_turn_has_nobody_to_go_to() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
    let questions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&questions);
    on::<Approval, _>(&rig, Rank::NORMAL, move |_, _| {
        bump(&counted);
        ready(Ok(ApprovalOutcome::AllowedOnce))
    });
    let found: Arc<Mutex<Option<SessionScene>>> = Arc::default();
    let keeps = Arc::clone(&found);
    sees::<SessionStart, _>(&rig, move |view| *keeps.lock().unwrap() = Some(view.scene.clone()));
    let agent = rig.agent();
    let owned = found.lock().unwrap().take().unwrap();
    let request = CallRequest { call_id: CallId::new("x"), name: "probe".into(), arguments: "{}".into() };
    let sealed = seal(agent.context(), agent.session(), request);
    let Gated::Refused(candidate) = gate(sealed, owned.scene()).await else { panic!("it passed") };
    let frozen = settle(candidate, owned.scene()).await;
    let said = r#"tool "probe" requires approval, but no turn is open to ask in"#;
    assert_eq!(frozen.outcome().failure_text(), Some(said));
    assert_eq!(questions.load(Ordering::SeqCst), 0);
    assert_eq!(rig.counts.tally(), [1, 0, 0, 0, 0, 1, 1]);
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_is_cancelled_already() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    rig.probe("probe", answers("never"));
    let fires = cancel.clone();
    rig.pre(Rank::NORMAL, move |_, _| {
        fires.cancel(CancelCause::User);
        ready(Ok(ask(None, AskOrigin::Rule)))
    });
    on::<Approval, _>(&rig, Rank::NORMAL, |_, _| panic!("somebody was asked"));
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")])]);
    let agent = rig.agent();
    prompt(&agent, &cancel).await;
    assert_pairs(&agent, &["c1"]);
    assert_eq!(text(&results(&agent)[0]), "Error: tool call aborted before dispatch");
    assert!(!crate::rig::kinds(&agent).iter().any(|k| k.starts_with("approval/asked")));
    assert_eq!(rig.counts.tally(), NO_BODY);
}
