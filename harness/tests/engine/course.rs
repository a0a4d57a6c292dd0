//! Turns from the prompt to their end: the order of events, vetoes, the session's start, budgets and continuations.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::agent::{Agent, Budget, CompletedHow, TurnEnd};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::log::event::{PromptBlocked, TurnStart};
use sluice_harness::point::prompt::{Keep, PromptBlock, PromptDecision, PromptSubmit};
use sluice_harness::point::session::{SessionStart, StartOutcome, StartSource};
use sluice_harness::point::turn::{Continuation, ContinuationDecision, Steering, StopWord, TurnContinuation};
use sluice_harness::scene::{StopCause, StopKind};
use sluice_harness::seam::live::NoticeLevel;

use crate::kit::{Ear, agent_with, assert_balanced, context, logged_contexts, logged_end, on, ready, sees};
use crate::rig::{Play, Rig, answers, calls, kinds, prompt, results, text};

fn completed(how: CompletedHow) -> TurnEnd {
    TurnEnd::Completed { how, note: None }
}

#[tokio::test]
async fn r_176_a_plain_turn_writes_its_events_in_order() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    rig.plays([Play::Calls(vec![("c1", "probe", r#"{"n": 1.0}"#)]), Play::Text("done")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!(report.end, TurnEnd::Completed { how: CompletedHow::Normal, note: None });
    assert_eq!((report.text.as_str(), report.steps), ("done", 2));
    assert_eq!(
        kinds(&agent),
        [
            "turn/start",
            "prompt/received",
            "step/start",
            "user/message",
            "request/header",
            "request/sent",
            "assistant/message",
            "tool/call",
            "tool/result",
            "step/end",
            "step/start",
            "request/sent",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
    );
    assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(calls(&agent)[0].arguments, r#"{"n": 1.0}"#);
    assert_eq!(calls(&agent)[0].input.as_ref().unwrap().text(), r#"{"n":1.0}"#);
    assert_eq!(text(&results(&agent)[0]), "ok");
}

#[tokio::test]
async fn a_second_prompt_waits_for_the_first_and_is_the_next_turn() {
    let rig = Rig::new();
    rig.plays([Play::Text("one"), Play::Text("two")]);
    let agent = rig.agent();
    let cancel = Cancel::new();
    let (first, second) = tokio::join!(prompt(&agent, &cancel), prompt(&agent, &cancel));
    assert_eq!((first.text.as_str(), second.text.as_str()), ("one", "two"));
    assert_balanced(&agent);
    let starts: Vec<TurnStart> = agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect();
    assert_eq!(starts.iter().map(|s| s.turn.0).collect::<Vec<_>>(), [1, 2]);
}

/// Vetoes the first prompt only.
fn vetoes(rig: &Rig, keep: Keep) {
    let first = AtomicUsize::new(0);
    on::<PromptSubmit, _>(rig, Rank::NORMAL, move |_, next| {
        if first.fetch_add(1, Ordering::SeqCst) > 0 {
            return next.delegate();
        }
        ready(Ok(PromptDecision::Block(PromptBlock {
            reason: "not today".into(),
            by: "a hook".into(),
            keep,
            contexts: vec![context("beside it")],
        })))
    });
}

fn last_request(rig: &Rig) -> Vec<Message> {
    rig.player.requests.lock().unwrap().last().unwrap().messages.clone()
}

fn said(role: Role, text: &str) -> Message {
    Message::text(role, text)
}

#[tokio::test]
async fn r_179_r_180_a_vetoed_prompt_is_durable_has_no_step_and_does_not_park_the_next() {
    for keep in [Keep::Dropped, Keep::InHistory] {
        let rig = Rig::new();
        vetoes(&rig, keep);
        rig.plays([Play::Text("done")]);
        let agent = rig.agent();
        let report = prompt(&agent, &Cancel::new()).await;
        let end = TurnEnd::Rejected { by: "a hook".into(), text: "not today".into() };
        assert_eq!((&report.end, report.steps), (&end, 0));
        assert_eq!(logged_end(&agent), end);
        let blocked: PromptBlocked = agent.log().last().unwrap();
        assert_eq!((blocked.reason.as_str(), blocked.by.as_str()), ("not today", "a hook"));
        assert_eq!(blocked.content, [Block::text("go")]);
        assert!(!kinds(&agent).iter().any(|k| k == "step/start"));
        let report = prompt(&agent, &Cancel::new()).await;
        assert_eq!(report.end, completed(CompletedHow::Normal));
        let mut expected = vec![said(Role::System, "beside it"), said(Role::User, "go")];
        if keep == Keep::InHistory {
            expected.insert(0, said(Role::User, "go"));
        }
        assert_eq!(last_request(&rig), expected);
        assert_balanced(&agent);
    }
}

#[tokio::test]
async fn a_prompt_may_be_replaced_and_contexts_follow_it() {
    let rig = Rig::new();
    on::<PromptSubmit, _>(&rig, Rank::NORMAL, |view, _| {
        assert_eq!(view.content, [Block::text("go")]);
        // It is durable before anybody judges it.
        assert!(view.scene.log.since(Seq(0)).iter().any(|e| &*e.kind == "prompt/received"));
        ready(Ok(PromptDecision::Allow { content: Some(vec![Block::text("went")]), contexts: vec![context("why")] }))
    });
    rig.plays([Play::Text("done")]);
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(last_request(&rig), [said(Role::User, "went"), said(Role::System, "why")]);
}

/// Promises a context at the session's start.
fn promises(
    rig: &Rig,
    deadline: Duration,
    what: impl Fn() -> sluice_harness::point::session::Promise + Send + Sync + 'static,
) {
    sees::<SessionStart, _>(rig, move |view| {
        assert_eq!(view.source, StartSource::Startup);
        view.promise("a starter", deadline, what());
    });
}

fn promised(text: &str) -> StartOutcome {
    StartOutcome { contexts: vec![context(text)], stop: None }
}

#[tokio::test]
async fn r_193_what_session_start_promises_is_awaited_before_the_first_request_in_order() {
    let rig = Rig::new();
    let open = Arc::new(tokio::sync::Notify::new());
    let waits = Arc::clone(&open);
    promises(&rig, Duration::from_secs(60), move || {
        let waits = Arc::clone(&waits);
        Box::pin(async move {
            waits.notified().await;
            promised("slow")
        })
    });
    promises(&rig, Duration::from_secs(60), || Box::pin(async { promised("quick") }));
    rig.plays([Play::Text("done"), Play::Text("done")]);
    let agent = rig.agent();
    let requests = Arc::clone(&rig.player);
    let opening = async {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(requests.requests.lock().unwrap().is_empty());
        open.notify_one();
    };
    let cancel = Cancel::new();
    tokio::join!(prompt(&agent, &cancel), opening);
    let expected = [said(Role::System, "slow"), said(Role::System, "quick"), said(Role::User, "go")];
    assert_eq!(last_request(&rig), expected);
    // Once, not with every prompt.
    prompt(&agent, &cancel).await;
    assert_eq!(logged_contexts(&agent), ["slow", "quick"]);
}

#[tokio::test]
async fn r_193_a_late_or_failing_promise_is_said_and_the_session_goes_on() {
    type Make = fn() -> sluice_harness::point::session::Promise;
    let cases: [(Make, &str); 2] = [
        (|| Box::pin(std::future::pending()), "did not answer within"),
        (|| Box::pin(async { panic!("no start") }), "no start"),
    ];
    for (make, said) in cases {
        let rig = Rig::new();
        sees::<SessionStart, _>(&rig, |_| panic!("a failing starter"));
        promises(&rig, Duration::from_millis(1), make);
        rig.plays([Play::Text("done")]);
        let ear = Arc::new(Ear::default());
        let agent = agent_with(&rig, Arc::<Ear>::clone(&ear));
        let report = prompt(&agent, &Cancel::new()).await;
        assert_eq!(report.end, completed(CompletedHow::Normal));
        let notices = ear.notices();
        assert!(notices.iter().any(|(l, t)| *l == NoticeLevel::Warning && t.contains(said)), "{notices:?}");
    }
}

#[tokio::test]
async fn a_session_start_may_stop_the_first_prompt_and_keeps_its_contexts() {
    let rig = Rig::new();
    let stop = StopCause { by: "SessionStart".into(), reason: Some("closed today".into()), kind: StopKind::Hook };
    promises(&rig, Duration::from_secs(60), move || {
        let stop = Some(stop.clone());
        Box::pin(async move { StartOutcome { stop, ..promised("kept") } })
    });
    rig.plays([Play::Text("done")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!(report.end, TurnEnd::Rejected { by: "SessionStart".into(), text: "closed today".into() });
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(last_request(&rig), [said(Role::System, "kept"), said(Role::User, "go")]);
}

fn loops(rig: &Rig, times: usize) {
    rig.probe("probe", answers("ok"));
    const IDS: [&str; 4] = ["c1", "c2", "c3", "c4"];
    rig.plays(IDS[..times].iter().map(|id| Play::Calls(vec![(*id, "probe", "{}")])));
}

#[tokio::test]
async fn r_188_a_looping_model_meets_its_budget_with_a_durable_reason() {
    for which in [Budget::MaxTurns, Budget::MaxSteps] {
        let mut rig = Rig::new();
        match which {
            Budget::MaxTurns => rig.limits.max_turns = Some(3),
            _ => rig.limits.max_steps = Some(3),
        }
        loops(&rig, 3);
        let agent = rig.agent();
        let report = prompt(&agent, &Cancel::new()).await;
        let end = TurnEnd::Budget { which, limit: 3 };
        assert_eq!((&report.end, report.steps), (&end, 3));
        assert_eq!(logged_end(&agent), end);
        assert_eq!(rig.counts.tally(), [3; 7]);
        assert_balanced(&agent);
    }
}

#[tokio::test]
async fn r_188_a_turns_time_runs_out_in_the_stream_and_in_a_body_with_a_durable_reason() {
    for in_body in [false, true] {
        let mut rig = Rig::new();
        rig.limits.timeout = Some(Duration::from_secs(1));
        rig.probe(
            "probe",
            Arc::new(|body| {
                Box::pin(async move {
                    body.scene().cancel.cancelled().await;
                    Err(sluice_harness::tool::ToolFailure::new("stopped"))
                })
            }),
        );
        rig.plays([if in_body { Play::Calls(vec![("c1", "probe", "{}")]) } else { Play::Hang }]);
        let agent = rig.agent();
        let report = prompt(&agent, &Cancel::new()).await;
        let end = TurnEnd::Budget { which: Budget::Timeout, limit: 1000 };
        assert_eq!(report.end, end);
        assert_eq!(logged_end(&agent), end);
        assert_balanced(&agent);
        assert_eq!(report.text, if in_body { "" } else { "half of it" });
    }
}

fn steering(text: &str) -> Steering {
    Steering { source: "test:Stop".into(), role: Role::User, text: text.into() }
}

#[tokio::test]
async fn a_continuation_goes_on_in_the_same_turn_and_the_view_says_how_often() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    type Views = Vec<(Option<String>, Vec<Continuation>)>;
    let seen: Arc<Mutex<Views>> = Arc::default();
    let all = Arc::clone(&seen);
    on::<TurnContinuation, _>(&rig, Rank::NORMAL, move |view, next| {
        let mut seen = all.lock().unwrap();
        seen.push((view.last_message.map(str::to_owned), view.continuations.to_vec()));
        match seen.len() {
            1 => ready(Ok(ContinuationDecision::Continue(vec![
                steering("more"),
                Steering { role: Role::Developer, ..steering("and this") },
            ]))),
            2 => ready(Ok(ContinuationDecision::Continue(vec![steering("yet more")]))),
            _ => next.delegate(),
        }
    });
    rig.plays([
        Play::Text("first"),
        Play::Calls(vec![("c1", "probe", "{}")]),
        Play::Text("second"),
        Play::Text("third"),
    ]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!((report.end, report.steps), (completed(CompletedHow::Normal), 4));
    let by = |n| Continuation { source: "test:Stop".into(), calls_since: n };
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (Some("first".into()), vec![]),
            (Some("second".into()), vec![by(1)]),
            (Some("third".into()), vec![by(1), by(0)]),
        ]
    );
    let messages = last_request(&rig);
    assert_eq!(messages[2..4], [said(Role::User, "more"), said(Role::Developer, "and this")]);
    assert_eq!(kinds(&agent).iter().filter(|k| *k == "turn/start").count(), 1);
}

#[tokio::test]
async fn r_188_continuations_meet_their_cap_with_a_durable_reason() {
    let mut rig = Rig::new();
    rig.limits.max_continuations = 2;
    on::<TurnContinuation, _>(&rig, Rank::NORMAL, |_, _| {
        ready(Ok(ContinuationDecision::Continue(vec![steering("never enough")])))
    });
    rig.plays([Play::Text("1"), Play::Text("2"), Play::Text("3")]);
    let ear = Arc::new(Ear::default());
    let agent: Agent = agent_with(&rig, Arc::<Ear>::clone(&ear));
    let report = prompt(&agent, &Cancel::new()).await;
    let note = "test:Stop wanted to go on, but a turn is continued at most 2 times";
    let end = TurnEnd::Completed { how: CompletedHow::StopHookCapped, note: Some(note.into()) };
    assert_eq!((&report.end, report.steps), (&end, 3));
    assert_eq!(logged_end(&agent), end);
    assert_eq!(ear.notices(), [(NoticeLevel::Warning, note.to_owned())]);
}

#[tokio::test]
async fn a_turn_that_ends_says_how_a_stop_listener_worded_it() {
    type Word = fn() -> ContinuationDecision;
    let cases: [(Word, TurnEnd); 3] = [
        (|| ContinuationDecision::Continue(vec![]), completed(CompletedHow::Normal)),
        (
            || ContinuationDecision::Stop(StopWord::Prevented { reason: Some("enough".into()) }),
            TurnEnd::Completed { how: CompletedHow::StopHookPrevented, note: Some("enough".into()) },
        ),
        (
            || ContinuationDecision::Stop(StopWord::Capped { reason: "eight".into() }),
            TurnEnd::Completed { how: CompletedHow::StopHookCapped, note: Some("eight".into()) },
        ),
    ];
    for (word, end) in cases {
        let rig = Rig::new();
        on::<TurnContinuation, _>(&rig, Rank::NORMAL, move |_, _| ready(Ok(word())));
        rig.plays([Play::Text("done")]);
        let agent = rig.agent();
        assert_eq!(prompt(&agent, &Cancel::new()).await.end, end);
        assert_eq!(logged_end(&agent), end);
    }
}
