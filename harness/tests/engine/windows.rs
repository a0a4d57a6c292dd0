//! A cancel in every window of a turn: it ends balanced, as cancelled, and no further request goes out.

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::agent::{Agent, TurnEnd, TurnReport};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::log::event::AssistantMessage;
use sluice_harness::point::prompt::{PromptDecision, PromptSubmit};
use sluice_harness::point::session::{SessionStart, StartOutcome};
use sluice_harness::point::turn::{ContinuationDecision, Steering, TurnContinuation};
use sluice_harness::seam::model::{FaultKind, Model, ModelEvent, ModelFault, Retry};

use crate::kit::{FnModel, assert_balanced, context, logged_end, on, ready, sees};
use crate::rig::{Play, Rig, answers, kinds, prompt};

/// Prompts, and asserts what every cancelled turn has.
async fn cancelled(rig: &Rig, agent: &Agent, cancel: &Cancel, requests: usize) -> TurnReport {
    let report = prompt(agent, cancel).await;
    let end = TurnEnd::Cancelled { cause: CancelCause::User };
    assert_eq!(report.end, end);
    assert_eq!(logged_end(agent), end);
    assert_balanced(agent);
    assert_eq!(rig.player.requests.lock().unwrap().len(), requests);
    report
}

fn firing(cancel: &Cancel) -> impl Fn() + Clone + Send + Sync + 'static {
    let cancel = cancel.clone();
    move || {
        cancel.cancel(CancelCause::User);
    }
}

#[tokio::test]
async fn r_196_before_the_turn() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    cancel.cancel(CancelCause::User);
    // The first cause stays.
    assert!(!cancel.cancel(CancelCause::Disposed));
    let agent = rig.agent();
    cancelled(&rig, &agent, &cancel, 0).await;
    assert_eq!(kinds(&agent), ["turn/start", "prompt/received", "turn/end"]);
}

#[tokio::test]
async fn r_196_while_the_sessions_start_is_awaited_and_the_next_prompt_still_has_it() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let open = Arc::new(tokio::sync::Notify::new());
    let (waits, fire) = (Arc::clone(&open), firing(&cancel));
    sees::<SessionStart, _>(&rig, move |view| {
        let (waits, fire) = (Arc::clone(&waits), fire.clone());
        let quick = StartOutcome { contexts: vec![context("quick")], stop: None };
        view.promise("quick", Duration::from_secs(60), Box::pin(async move { quick }));
        view.promise(
            "slow",
            Duration::from_secs(60),
            Box::pin(async move {
                // The first prompt has the quick one already, and is cancelled here.
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                fire();
                waits.notified().await;
                StartOutcome { contexts: vec![context("slow")], stop: None }
            }),
        );
    });
    let agent = rig.agent();
    cancelled(&rig, &agent, &cancel, 0).await;
    open.notify_one();
    rig.plays([Play::Text("done")]);
    prompt(&agent, &Cancel::new()).await;
    let first = rig.player.requests.lock().unwrap()[0].messages.clone();
    assert_eq!(
        first,
        [Message::text(Role::System, "quick"), Message::text(Role::System, "slow"), Message::text(Role::User, "go"),]
    );
}

#[tokio::test]
async fn r_196_in_a_prompt_listener_the_judged_prompt_stays_in_the_history() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = firing(&cancel);
    on::<PromptSubmit, _>(&rig, Rank::NORMAL, move |_, next| {
        fire();
        Box::pin(async move {
            match next.delegate().await? {
                PromptDecision::Allow { content, .. } => {
                    Ok(PromptDecision::Allow { content, contexts: vec![context("why")] })
                }
                block @ PromptDecision::Block(_) => Ok(block),
            }
        })
    });
    let agent = rig.agent();
    cancelled(&rig, &agent, &cancel, 0).await;
    assert_eq!(kinds(&agent)[2..], ["user/message", "context/message", "turn/end"]);
}

#[tokio::test]
async fn r_196_after_the_step_began_nothing_is_said_to_be_sent() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let (fire, info) = (firing(&cancel), rig.player.info());
    let agent = rig.agent();
    let model = FnModel {
        info: Box::new(move || {
            fire();
            info.clone()
        }),
        stream: Box::new(|_, _| panic!("a request went out")),
    };
    agent.context().provide::<dyn Model>(Arc::new(model)).unwrap();
    cancelled(&rig, &agent, &cancel, 0).await;
    assert!(kinds(&agent).iter().any(|k| k == "step/start"));
    assert!(!kinds(&agent).iter().any(|k| k == "request/sent"));
}

#[tokio::test]
async fn r_196_in_a_batch() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = firing(&cancel);
    rig.probe(
        "fires",
        Arc::new(move |_| {
            fire();
            ready(Ok(crate::kit::json(r#""ok""#)))
        }),
    );
    rig.plays([Play::Calls(vec![("c1", "fires", "{}"), ("c2", "fires", "{}")])]);
    let agent = rig.agent();
    cancelled(&rig, &agent, &cancel, 1).await;
    crate::kit::assert_pairs(&agent, &["c1", "c2"]);
    assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn r_196_in_a_continuation_listener_that_would_go_on() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fire = firing(&cancel);
    on::<TurnContinuation, _>(&rig, Rank::NORMAL, move |_, _| {
        fire();
        let more = Steering { source: "eager".into(), role: Role::User, text: "more".into() };
        ready(Ok(ContinuationDecision::Continue(vec![more])))
    });
    rig.plays([Play::Text("said")]);
    let agent = rig.agent();
    let report = cancelled(&rig, &agent, &cancel, 1).await;
    assert_eq!(report.text, "said");
}

#[tokio::test]
async fn r_196_in_the_wait_before_a_retry() {
    let (mut rig, cancel) = (Rig::new(), Cancel::new());
    rig.retry.base = Duration::from_secs(600);
    rig.retry.cap = Duration::from_secs(600);
    let fault = ModelFault { kind: FaultKind::Overloaded, message: "busy".into(), retry: Retry::Backoff };
    rig.plays([Play::Events(vec![Err(fault)])]);
    let agent = rig.agent();
    let fire = firing(&cancel);
    let firing = async {
        while !kinds(&agent).iter().any(|k| k == "request/retry") {
            tokio::task::yield_now().await;
        }
        fire();
    };
    tokio::join!(cancelled(&rig, &agent, &cancel, 1), firing);
}

fn saved(agent: &Agent) -> Vec<AssistantMessage> {
    agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect()
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.into())
}

fn call() -> ModelEvent {
    ModelEvent::ToolCall { id: Some("c1".into()), name: "probe".into(), arguments: "{}".into() }
}

#[tokio::test]
async fn r_196_r_197_in_the_stream_what_was_visible_is_saved_and_calls_are_dropped() {
    let thought = |signature| Block::Thinking { text: "hm".into(), signature };
    let think = || ModelEvent::Thinking("hm".into());
    let cases: [(&str, Vec<ModelEvent>, Vec<Block>, &str); 7] = [
        ("text", vec![text("ha"), text("lf")], vec![Block::text("half")], "half"),
        ("thinking only", vec![think()], vec![thought(None)], ""),
        (
            "signed thinking and text",
            vec![think(), ModelEvent::ThinkingSignature("s".into()), text("so")],
            vec![thought(Some("s".into())), Block::text("so")],
            "so",
        ),
        ("text and a call", vec![text("look:"), call()], vec![Block::text("look:")], "look:"),
        ("a call only", vec![call()], vec![], ""),
        ("blank", vec![text("  \n")], vec![], ""),
        ("nothing", vec![], vec![], ""),
    ];
    for (name, events, kept, said) in cases {
        let (rig, cancel) = (Rig::new(), Cancel::new());
        rig.probe("probe", answers("never"));
        rig.plays([Play::Stalls(events, cancel.clone()), Play::Text("done")]);
        let agent = rig.agent();
        let report = cancelled(&rig, &agent, &cancel, 1).await;
        assert_eq!(report.text, said, "{name}");
        let messages = saved(&agent);
        if kept.is_empty() {
            assert!(messages.is_empty(), "{name}");
        } else {
            assert_eq!(messages.len(), 1, "{name}");
            assert_eq!((&messages[0].content, messages[0].interrupted), (&kept, true), "{name}");
            assert_eq!(messages[0].stop_reason, None);
        }
        assert_eq!(rig.counts.tally(), [0; 7]);
        // The next prompt goes out with that history, which any provider accepts.
        prompt(&agent, &Cancel::new()).await;
        let roles: Vec<_> = rig.player.requests.lock().unwrap()[1].messages.iter().map(|m| m.role).collect();
        let expected: &[Role] =
            if kept.is_empty() { &[Role::User, Role::User] } else { &[Role::User, Role::Assistant, Role::User] };
        assert_eq!(roles, expected, "{name}");
    }
}

#[tokio::test]
async fn r_194_the_first_cause_of_a_cancellation_stays_and_an_idle_one_arms_nothing() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fires = cancel.clone();
    rig.probe(
        "fires",
        Arc::new(move |_| {
            assert!(fires.cancel(CancelCause::User));
            assert!(!fires.cancel(CancelCause::Disposed), "the second cause is not the first");
            ready(Ok(crate::kit::json(r#""ok""#)))
        }),
    );
    rig.plays([Play::Calls(vec![("c1", "fires", "{}")]), Play::Text("next")]);
    let agent = rig.agent();
    let report = prompt(&agent, &cancel).await;
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User });
    // Fired again between turns, it ends nothing that comes after it.
    cancel.cancel(CancelCause::Parent);
    assert_eq!(prompt(&agent, &Cancel::new()).await.text, "next");
    assert_eq!(rig.counts.tally(), [1; 7]);
}

#[tokio::test]
async fn r_195_a_prompt_during_a_cancelled_turns_end_runs_after_it_and_one_during_disposal_never() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let (fire, (ending, ended)) = (firing(&cancel), tokio::sync::oneshot::channel::<()>());
    let ended = Arc::new(tokio::sync::Mutex::new(Some(ended)));
    rig.probe(
        "slow to end",
        Arc::new(move |body| {
            let (fire, ended) = (fire.clone(), Arc::clone(&ended));
            Box::pin(async move {
                fire();
                body.scene().cancel.cancelled().await;
                ended.lock().await.take().unwrap().await.unwrap();
                Ok(crate::kit::json(r#""ok""#))
            })
        }),
    );
    rig.plays([Play::Calls(vec![("c1", "slow to end", "{}")]), Play::Text("after it")]);
    let agent = rig.agent();
    let going = Cancel::new();
    let second = async {
        cancel.cancelled().await;
        let next = prompt(&agent, &going);
        tokio::pin!(next);
        // It has come while the first turn is still ending.
        tokio::select! {
            biased;
            _ = &mut next => panic!("two turns at once"),
            () = tokio::task::yield_now() => {}
        }
        ending.send(()).unwrap();
        next.await
    };
    let (first, second) = tokio::join!(prompt(&agent, &cancel), second);
    assert_eq!(first.end, TurnEnd::Cancelled { cause: CancelCause::User });
    assert_eq!(second.text, "after it");
    agent.close("other", Duration::from_secs(1)).await.unwrap();
    let refused = prompt(&agent, &Cancel::new()).await;
    assert!(matches!(refused.end, TurnEnd::Error { .. }), "{:?}", refused.end);
    assert_eq!(rig.player.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn r_187_without_limits_a_turn_takes_as_many_steps_as_the_model_wants() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    rig.plays((0..60).map(|_| Play::Calls(vec![("c", "probe", "{}")])));
    rig.plays([Play::Text("done")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!((report.text.as_str(), report.steps), ("done", 61));
    assert_eq!(rig.counts.tally(), [60; 7]);
}
