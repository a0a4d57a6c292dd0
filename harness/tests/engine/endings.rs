//! How turns end otherwise: the stop latch, the model's limits, empty answers, and an agent that is closed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::agent::{CompletedHow, TurnEnd};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::log::event::AssistantMessage;
use sluice_harness::point::prompt::PromptSubmit;
use sluice_harness::point::session::SessionEnd;
use sluice_harness::point::turn::{ContinuationDecision, Steering, TurnContinuation};
use sluice_harness::scene::{StopCause, StopKind};
use sluice_harness::seam::model::{ModelEvent, StopReason};

use crate::kit::{assert_balanced, assert_pairs, context, logged_contexts, logged_end, on, ready};
use crate::rig::{Play, Rig, answers, bump, kinds, prompt};

fn stop() -> StopCause {
    StopCause { by: "PreToolUse:probe".into(), reason: Some("enough".into()), kind: StopKind::Hook }
}

/// Counts how often it is asked, and would go on for ever.
fn eager(rig: &Rig) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    on::<TurnContinuation, _>(rig, Rank::NORMAL, move |_, _| {
        bump(&counted);
        let more = Steering { source: "eager".into(), role: Role::User, text: "more".into() };
        ready(Ok(ContinuationDecision::Continue(vec![more])))
    });
    asked
}

#[tokio::test]
async fn the_latch_lets_the_batch_end_keeps_contexts_and_beats_a_continuation() {
    for stage in ["pre", "body", "post"] {
        let rig = Rig::new();
        let asked = eager(&rig);
        rig.probe(
            "probe",
            Arc::new(move |mut body| {
                body.defer(context("pending"));
                if stage == "body" {
                    body.scene().stop_turn(stop());
                }
                ready(Ok(crate::kit::json(r#""ok""#)))
            }),
        );
        rig.pre(Rank::NORMAL, move |view, next| {
            if stage == "pre" {
                view.scene().stop_turn(stop());
                // Written once: nobody can change it.
                view.scene().stop_turn(StopCause { by: "later".into(), ..stop() });
            }
            next.delegate()
        });
        rig.post(Rank::NORMAL, move |view, next| {
            if stage == "post" {
                view.scene().stop_turn(stop());
            }
            next.delegate()
        });
        rig.plays([Play::Calls(vec![("c1", "probe", "{}"), ("c2", "probe", "{}")])]);
        let agent = rig.agent();
        let report = prompt(&agent, &Cancel::new()).await;
        assert_eq!(report.end, TurnEnd::Stopped { cause: stop() }, "{stage}");
        assert_eq!(logged_end(&agent), report.end);
        // The rest of the batch still runs, and what it adds is in the log before the turn closes.
        assert_pairs(&agent, &["c1", "c2"]);
        assert_eq!(logged_contexts(&agent), ["pending", "pending"]);
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        assert_eq!(rig.counts.tally(), [2; 7]);
        assert_balanced(&agent);
    }
}

#[tokio::test]
async fn the_latch_beats_a_continuation_also_without_a_batch() {
    let rig = Rig::new();
    let asked = eager(&rig);
    on::<PromptSubmit, _>(&rig, Rank::NORMAL, |view, next| {
        view.scene.stop_turn(stop());
        next.delegate()
    });
    rig.plays([Play::Text("said")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!((report.end, report.text.as_str()), (TurnEnd::Stopped { cause: stop() }, "said"));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_cancel_beats_the_latch() {
    let (rig, cancel) = (Rig::new(), Cancel::new());
    let fires = cancel.clone();
    rig.probe(
        "probe",
        Arc::new(move |body| {
            body.scene().stop_turn(stop());
            fires.cancel(CancelCause::User);
            ready(Ok(crate::kit::json(r#""ok""#)))
        }),
    );
    rig.plays([Play::Calls(vec![("c1", "probe", "{}")])]);
    let agent = rig.agent();
    assert_eq!(prompt(&agent, &cancel).await.end, TurnEnd::Cancelled { cause: CancelCause::User });
}

fn assistant(agent: &sluice_harness::agent::Agent) -> Vec<AssistantMessage> {
    agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect()
}

fn call() -> ModelEvent {
    ModelEvent::ToolCall { id: Some("c1".into()), name: "probe".into(), arguments: "{\"n\":".into() }
}

#[tokio::test]
async fn r_199_an_answer_cut_by_its_limit_keeps_its_text_and_drops_its_calls() {
    for (stop, end) in [(StopReason::MaxTokens, TurnEnd::MaxTokens), (StopReason::Refusal, TurnEnd::Refused)] {
        let rig = Rig::new();
        let asked = eager(&rig);
        rig.probe("probe", answers("never"));
        rig.plays([
            Play::Events(vec![Ok(ModelEvent::Text("half".into())), Ok(call()), Ok(ModelEvent::Stop(stop))]),
            Play::Text("done"),
        ]);
        let agent = rig.agent();
        let report = prompt(&agent, &Cancel::new()).await;
        assert_eq!((&report.end, report.text.as_str()), (&end, "half"));
        assert_eq!(logged_end(&agent), end);
        assert_eq!(assistant(&agent)[0].content, [Block::text("half")]);
        assert_pairs(&agent, &[]);
        assert_eq!(rig.counts.tally(), [0; 7]);
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        // The history that is left is one that a model can be asked with.
        prompt_once(&rig, &agent).await;
        let last = rig.player.requests.lock().unwrap().last().unwrap().messages.clone();
        let roles: Vec<_> = last.iter().map(|m| m.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
    }
}

/// A prompt whose continuation the eager listener forces once too often is cancelled after its first request.
async fn prompt_once(rig: &Rig, agent: &sluice_harness::agent::Agent) {
    let cancel = Cancel::new();
    let fires = cancel.clone();
    on::<TurnContinuation, _>(rig, Rank(-1), move |_, next| {
        fires.cancel(CancelCause::User);
        next.delegate()
    });
    prompt(agent, &cancel).await;
}

#[tokio::test]
async fn r_213_an_empty_answer_is_one_message_in_the_log_and_none_for_the_model() {
    for stop in [StopReason::EndTurn, StopReason::MaxTokens] {
        let rig = Rig::new();
        rig.plays([Play::Events(vec![Ok(ModelEvent::Stop(stop))]), Play::Text("done")]);
        let agent = rig.agent();
        let report = prompt(&agent, &Cancel::new()).await;
        let end = match stop {
            StopReason::MaxTokens => TurnEnd::MaxTokens,
            _ => TurnEnd::Completed { how: CompletedHow::Normal, note: None },
        };
        assert_eq!((report.end, report.text.as_str()), (end, ""));
        assert_eq!(assistant(&agent).len(), 1);
        assert!(assistant(&agent)[0].content.is_empty());
        prompt(&agent, &Cancel::new()).await;
        let last = rig.player.requests.lock().unwrap().last().unwrap().messages.clone();
        assert_eq!(last, [Message::text(Role::User, "go"), Message::text(Role::User, "go")]);
    }
}

#[tokio::test]
async fn r_202_closing_an_agent_ends_its_running_turn_then_its_scope() {
    let rig = Rig::new();
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let all = Arc::clone(&order);
    on::<SessionEnd, _>(&rig, Rank::NORMAL, move |view, next| {
        let last = view.scene.log.since(Seq(0)).last().unwrap().kind.to_string();
        all.lock().unwrap().push(format!("{} after {last}", view.reason));
        // Seams are still there.
        assert!(view.scene.context.lease::<dyn sluice_harness::seam::model::Model>().is_ok());
        next.delegate()
    });
    rig.plays([Play::Hang]);
    let agent = rig.agent();
    let closing = async {
        while rig.player.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        agent.close("other", Duration::from_secs(30)).await.unwrap()
    };
    let cancel = Cancel::new();
    let (report, disposed) = tokio::join!(prompt(&agent, &cancel), closing);
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::Disposed });
    assert!(disposed.aborted.is_empty());
    assert_eq!(*order.lock().unwrap(), ["other after turn/end"]);
    assert_balanced(&agent);
    assert_eq!(agent.context().residue(), 0);
    // Nothing more happens: not to the log, not at the points.
    let events = kinds(&agent).len();
    let late = prompt(&agent, &cancel).await;
    assert!(matches!(late.end, TurnEnd::Error { .. }), "{:?}", late.end);
    agent.close("other", Duration::from_secs(30)).await.unwrap();
    assert_eq!((kinds(&agent).len(), order.lock().unwrap().len()), (events, 1));
}

#[tokio::test]
async fn r_202_a_prompt_that_waits_while_the_agent_is_closed_never_starts() {
    let rig = Rig::new();
    rig.plays([Play::Hang]);
    let agent = rig.agent();
    let closing = async {
        while rig.player.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        agent.close("other", Duration::from_secs(30)).await.unwrap();
    };
    let cancel = Cancel::new();
    let (_, second, ()) = tokio::join!(prompt(&agent, &cancel), prompt(&agent, &cancel), closing);
    assert!(matches!(second.end, TurnEnd::Error { .. }), "{:?}", second.end);
    assert_eq!(kinds(&agent).iter().filter(|k| *k == "turn/start").count(), 1);
}

#[tokio::test]
async fn a_turn_ends_with_the_scope_that_it_runs_in() {
    let rig = Rig::new();
    rig.plays([Play::Hang]);
    let agent = rig.agent();
    let disposing = async {
        while rig.player.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        rig.root.dispose(Duration::from_secs(30)).await
    };
    let cancel = Cancel::new();
    let (report, disposed) = tokio::join!(prompt(&agent, &cancel), disposing);
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::Disposed });
    assert!(disposed.aborted.is_empty());
    assert_balanced(&agent);
}

#[tokio::test]
async fn r_151_a_turn_that_is_dropped_mid_body_answers_its_calls_honestly_and_the_next_request_is_valid() {
    let rig = Rig::new();
    let gone = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&gone);
    rig.probe(
        "probe",
        Arc::new(move |body| {
            let told = Arc::clone(&told);
            Box::pin(async move {
                told.notify_one();
                body.scene().cancel.cancelled().await;
                Ok(crate::kit::json(r#""late""#))
            })
        }),
    );
    rig.plays([Play::Calls(vec![("c1", "probe", "{}"), ("c2", "probe", "{}")])]);
    let agent = rig.agent();
    {
        let cancel = Cancel::new();
        let prompting = prompt(&agent, &cancel);
        tokio::pin!(prompting);
        // The caller gives the whole turn up while a body runs: no result was recorded, and the log says so.
        tokio::select! {
            _ = &mut prompting => panic!("it ended"),
            () = gone.notified() => {}
        }
    }
    let results = crate::rig::results(&agent);
    let codes: Vec<_> = results.iter().map(|r| r.error.as_ref().unwrap().code.as_str()).collect();
    assert_eq!(codes, ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]);
    assert_balanced(&agent);
    // The next request is one that any provider accepts.
    rig.plays([Play::Text("done")]);
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!(report.text, "done");
    let last = rig.player.requests.lock().unwrap().last().unwrap().messages.clone();
    let roles: Vec<_> = last.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
}
