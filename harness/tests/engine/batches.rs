//! The calls of one step: who may overlap, in which order results are committed, and what a cancel leaves.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sluice_harness::agent::{Agent, TurnEnd};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::json::Json;
use sluice_harness::log::event::{ToolCall, ToolResult};
use sluice_harness::point::approval::Approval;
use sluice_harness::point::tools::{AskOrigin, ToolResultNote};
use sluice_harness::registry;
use sluice_harness::seam::approval::ApprovalOutcome;
use sluice_harness::seam::model::{ModelEvent, StopReason};
use sluice_harness::tool::Concurrency;
use tokio::sync::Notify;

use crate::kit::{Custom, ask, assert_balanced, assert_pairs, context, deny, logged_contexts, on, ready, sees};
use crate::rig::{Act, Play, Rig, answers, prompt, results, text};

/// Bodies that wait until the test lets them go, by the `n` of their input.
#[derive(Default)]
struct Yard {
    gates: Mutex<HashMap<u64, Arc<Notify>>>,
    /// `+n` when a body starts, `-n` when it ends.
    moves: Mutex<Vec<i64>>,
    running: AtomicUsize,
    peak: AtomicUsize,
    moved: Notify,
}

impl Yard {
    fn gate(&self, n: u64) -> Arc<Notify> {
        Arc::clone(self.gates.lock().unwrap().entry(n).or_default())
    }

    fn release(&self, n: u64) {
        self.gate(n).notify_one();
    }

    fn note(&self, n: i64) {
        self.moves.lock().unwrap().push(n);
        self.moved.notify_waiters();
    }

    /// Waits until the body has started, or ended for `-n`.
    async fn until(&self, n: i64) {
        loop {
            let moved = self.moved.notified();
            if self.moves.lock().unwrap().contains(&n) {
                return;
            }
            moved.await;
        }
    }

    fn moves(&self) -> Vec<i64> {
        self.moves.lock().unwrap().clone()
    }

    fn act(self: &Arc<Self>) -> Act {
        let yard = Arc::clone(self);
        Arc::new(move |body| {
            let yard = Arc::clone(&yard);
            Box::pin(async move {
                let n = body.input().view()["n"].as_u64().unwrap_or_default();
                yard.peak.fetch_max(yard.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                yard.note(n.cast_signed());
                let gate = yard.gate(n);
                tokio::select! {
                    () = gate.notified() => {}
                    _ = body.scene().cancel.cancelled() => {}
                }
                yard.running.fetch_sub(1, Ordering::SeqCst);
                yard.note(-n.cast_signed());
                Ok(Json::of(&format!("did {n}")).unwrap())
            })
        })
    }
}

/// Registers `name`, parallel or exclusive, over the yard.
fn tool(rig: &Rig, yard: &Arc<Yard>, name: &'static str, concurrency: Concurrency) {
    let mut tool = Custom::new(name, &rig.counts, yard.act());
    tool.concurrency = Box::new(move |_| concurrency);
    registry::register(&rig.root, Arc::new(tool)).unwrap();
}

/// A rig with `par` and `exc` over one yard.
fn yard() -> (Rig, Arc<Yard>) {
    let (rig, yard) = (Rig::new(), Arc::new(Yard::default()));
    tool(&rig, &yard, "par", Concurrency::Parallel);
    tool(&rig, &yard, "exc", Concurrency::Exclusive);
    (rig, yard)
}

const ARGUMENTS: [&str; 8] =
    [r#"{"n":0}"#, r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#, r#"{"n":4}"#, r#"{"n":5}"#, r#"{"n":6}"#, r#"{"n":7}"#];
const IDS: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

/// Calls 1, 2, … of these tools, then a final text.
fn play(rig: &Rig, tools: &[&'static str]) {
    let calls = tools.iter().enumerate().map(|(at, tool)| (IDS[at + 1], *tool, ARGUMENTS[at + 1])).collect();
    rig.plays([Play::Calls(calls), Play::Text("done")]);
}

/// `c` for a call and `r` for a result, with the number, in the order of the log.
fn pairs(agent: &Agent) -> Vec<String> {
    let events = agent.log().since(Seq(0));
    events
        .iter()
        .filter_map(|e| {
            let call = e.decode::<ToolCall>().map(|c| format!("c{}", &c.call_id.as_str()[1..]));
            call.or_else(|| e.decode::<ToolResult>().map(|r| format!("r{}", &r.call_id.as_str()[1..])))
        })
        .collect()
}

#[tokio::test]
async fn r_140_only_a_clear_parallel_overlaps() {
    type Classify = fn(&Json) -> Concurrency;
    let cases: [(&str, Classify, &str, usize); 4] = [
        ("parallel", |_| Concurrency::Parallel, ARGUMENTS[1], 2),
        ("exclusive", |_| Concurrency::Exclusive, ARGUMENTS[1], 1),
        ("panicking", |_| panic!("unclear"), ARGUMENTS[1], 1),
        ("by arguments", |i| if i.text() == "{}" { Concurrency::Exclusive } else { Concurrency::Parallel }, "", 1),
    ];
    for (name, classify, arguments, peak) in cases {
        let (rig, yard) = (Rig::new(), Arc::new(Yard::default()));
        let mut tool = Custom::new("t", &rig.counts, yard.act());
        tool.concurrency = Box::new(classify);
        registry::register(&rig.root, Arc::new(tool)).unwrap();
        rig.plays([Play::Calls(vec![("c1", "t", arguments), ("c2", "t", arguments)]), Play::Text("done")]);
        let agent = rig.agent();
        let letting_go = async {
            let n = i64::from(peak == 2 || arguments == ARGUMENTS[1]);
            for round in 1..=2 {
                while yard.moves().iter().filter(|m| **m == n).count() < if peak == 2 { 2 } else { round } {
                    tokio::task::yield_now().await;
                }
                yard.release(n.cast_unsigned());
                tokio::task::yield_now().await;
            }
            // Nobody may be left waiting for a release that came before it.
            loop {
                yard.release(n.cast_unsigned());
                tokio::task::yield_now().await;
            }
        };
        let cancel = Cancel::new();
        tokio::select! {
            _ = prompt(&agent, &cancel) => {}
            () = letting_go => {}
        }
        assert_pairs(&agent, &["c1", "c2"]);
        assert_eq!(yard.peak.load(Ordering::SeqCst), peak, "{name}");
        assert_eq!(rig.counts.tally(), [2; 7], "{name}");
    }
}

#[tokio::test]
async fn r_140_unknown_tools_and_bad_arguments_are_barriers() {
    let unknown = [3, 3, 2, 2, 3, 2, 3];
    let misfit = [2, 2, 2, 2, 3, 3, 3];
    for (name, arguments, tally) in [("nope", "{}", unknown), ("par", r#"{"n":"x"}"#, misfit), ("par", "{", misfit)] {
        let (rig, yard) = yard();
        rig.plays([
            Play::Calls(vec![("c1", "par", ARGUMENTS[1]), ("c2", name, arguments), ("c3", "par", ARGUMENTS[3])]),
            Play::Text("done"),
        ]);
        let agent = rig.agent();
        let watching = async {
            yard.until(1).await;
            // The barrier is not even called while the first runs.
            assert_eq!(pairs(&agent), ["c1"]);
            yard.release(1);
            yard.until(3).await;
            assert_eq!(pairs(&agent), ["c1", "r1", "c2", "r2", "c3"]);
            yard.release(3);
        };
        let cancel = Cancel::new();
        tokio::join!(prompt(&agent, &cancel), watching);
        assert_pairs(&agent, &["c1", "c2", "c3"]);
        assert_eq!(rig.counts.tally(), tally);
    }
}

#[tokio::test]
async fn r_141_no_call_starts_before_the_answer_is_complete() {
    let (rig, yard) = yard();
    let call = |id: &str, name: &str| {
        Ok(ModelEvent::ToolCall { id: Some(id.into()), name: name.into(), arguments: ARGUMENTS[1].into() })
    };
    // The stream ends without its end: the calls in it never start.
    rig.plays([Play::Events(vec![call("c1", "par"), call("c2", "par")])]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert!(matches!(report.end, TurnEnd::Error { .. }));
    assert!(yard.moves().is_empty() && pairs(&agent).is_empty());
    assert_eq!(rig.counts.tally(), [0; 7]);
    assert_balanced(&agent);
}

#[tokio::test]
async fn r_142_r_145_an_exclusive_call_is_a_barrier_and_results_go_in_model_order() {
    let (rig, yard) = yard();
    let pre: Arc<Mutex<Vec<String>>> = Arc::default();
    let all = Arc::clone(&pre);
    rig.pre(Rank::NORMAL, move |view, next| {
        all.lock().unwrap().push(view.call().call_id().to_string());
        next.delegate()
    });
    play(&rig, &["par", "par", "exc", "par", "par"]);
    let agent = rig.agent();
    let watching = async {
        yard.until(2).await;
        yard.release(2);
        yard.until(-2).await;
        // The second is ready; it waits for the first, and so does the barrier.
        assert_eq!(pairs(&agent), ["c1", "c2"]);
        yard.release(1);
        yard.until(3).await;
        assert_eq!(pairs(&agent), ["c1", "c2", "r1", "r2", "c3"]);
        yard.release(3);
        yard.until(5).await;
        assert_eq!(pairs(&agent), ["c1", "c2", "r1", "r2", "c3", "r3", "c4", "c5"]);
        yard.release(5);
        yard.until(-5).await;
        yard.release(4);
    };
    let cancel = Cancel::new();
    tokio::join!(prompt(&agent, &cancel), watching);
    assert_pairs(&agent, &["c1", "c2", "c3", "c4", "c5"]);
    assert_eq!(*pre.lock().unwrap(), ["c1", "c2", "c3", "c4", "c5"]);
    assert_eq!(yard.moves(), [1, 2, -2, -1, 3, -3, 4, 5, -5, -4]);
    assert_eq!(rig.counts.tally(), [5; 7]);
}

#[tokio::test]
async fn r_143_a_rolling_pool_never_holds_more_than_its_cap_and_refills() {
    let (mut rig, yard) = yard();
    rig.limits.parallel_calls = NonZeroUsize::new(2).unwrap();
    play(&rig, &["par"; 5]);
    let agent = rig.agent();
    let watching = async {
        yard.until(2).await;
        // The second ends first; its place is filled though the first still runs.
        yard.release(2);
        yard.until(3).await;
        yard.release(3);
        yard.until(4).await;
        yard.release(1);
        yard.until(5).await;
        yard.release(4);
        yard.release(5);
    };
    let cancel = Cancel::new();
    tokio::join!(prompt(&agent, &cancel), watching);
    assert_eq!(yard.peak.load(Ordering::SeqCst), 2);
    assert_pairs(&agent, &["c1", "c2", "c3", "c4", "c5"]);
    assert_eq!(rig.counts.tally(), [5; 7]);
}

#[tokio::test]
async fn r_143_a_cap_of_one_is_serial() {
    let (mut rig, yard) = yard();
    rig.limits.parallel_calls = NonZeroUsize::MIN;
    play(&rig, &["par"; 3]);
    let agent = rig.agent();
    for n in 1..=3 {
        yard.release(n);
    }
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(pairs(&agent), ["c1", "r1", "c2", "r2", "c3", "r3"]);
    assert_eq!(yard.moves(), [1, -1, 2, -2, 3, -3]);
    assert_eq!(rig.counts.tally(), [3; 7]);
}

#[tokio::test]
async fn r_144_a_call_whose_tool_becomes_exclusive_meanwhile_is_a_barrier() {
    // When the first result is observed, `late` is put in place again as exclusive, while `par` 2 still runs. The cap
    // makes the third call wait, so it was classified before.
    for cap in [2, 10] {
        let (mut rig, yard) = yard();
        rig.limits.parallel_calls = NonZeroUsize::new(cap).unwrap();
        let mut first = Custom::new("late", &rig.counts, yard.act());
        first.concurrency = Box::new(|_| Concurrency::Parallel);
        let registered = registry::register(&rig.root, Arc::new(first)).unwrap();
        let (root, counts, again) = (rig.root.clone(), Arc::clone(&rig.counts), Arc::clone(&yard));
        sees::<ToolResultNote, _>(&rig, move |view| {
            if view.result.call_id().as_str() == "c1" {
                registered.end();
                registry::register(&root, Arc::new(Custom::new("late", &counts, again.act()))).unwrap();
            }
        });
        // At a cap of ten it is the third call's own gate that waits while the first is committed.
        let open = Arc::new(Notify::new());
        let waits = Arc::clone(&open);
        rig.pre(Rank::NORMAL, move |view, next| {
            let (waits, held) = (Arc::clone(&waits), cap == 10 && view.call().name() == "late");
            Box::pin(async move {
                if held {
                    waits.notified().await;
                }
                next.delegate().await
            })
        });
        play(&rig, &["par", "par", "late"]);
        let agent = rig.agent();
        let watching = async {
            yard.until(2).await;
            yard.release(1);
            yard.until(-1).await;
            while !pairs(&agent).contains(&"r1".to_owned()) {
                tokio::task::yield_now().await;
            }
            open.notify_one();
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            // It does not start beside the second.
            assert!(!yard.moves().contains(&3), "cap {cap}");
            yard.release(2);
            yard.until(3).await;
            assert!(pairs(&agent).contains(&"r2".to_owned()), "cap {cap}");
            yard.release(3);
        };
        let cancel = Cancel::new();
        tokio::join!(prompt(&agent, &cancel), watching);
        assert_pairs(&agent, &["c1", "c2", "c3"]);
        assert_eq!(rig.counts.tally(), [3; 7]);
    }
}

#[tokio::test]
async fn r_146_a_ready_head_is_committed_while_a_later_gate_waits() {
    let (rig, yard) = yard();
    rig.pre(Rank::NORMAL, |view, next| {
        if view.call().call_id().as_str() == "c2" { ready(Ok(ask(None, AskOrigin::Rule))) } else { next.delegate() }
    });
    let answered = Arc::new(Notify::new());
    let waits = Arc::clone(&answered);
    on::<Approval, _>(&rig, Rank::NORMAL, move |_, _| {
        let waits = Arc::clone(&waits);
        Box::pin(async move {
            waits.notified().await;
            Ok(ApprovalOutcome::AllowedOnce)
        })
    });
    play(&rig, &["par", "par"]);
    let agent = rig.agent();
    let watching = async {
        yard.until(1).await;
        yard.release(1);
        while !pairs(&agent).contains(&"r1".to_owned()) {
            tokio::task::yield_now().await;
        }
        assert_eq!(pairs(&agent), ["c1", "c2", "r1"]);
        answered.notify_one();
        yard.until(2).await;
        yard.release(2);
    };
    let cancel = Cancel::new();
    tokio::join!(prompt(&agent, &cancel), watching);
    assert_pairs(&agent, &["c1", "c2"]);
    assert_eq!(rig.counts.tally(), [2; 7]);
}

#[tokio::test]
async fn r_147_a_denied_call_commits_in_its_place() {
    let (rig, yard) = yard();
    rig.pre(
        Rank::NORMAL,
        |view, next| {
            if view.call().call_id().as_str() == "c2" { ready(Ok(deny("no"))) } else { next.delegate() }
        },
    );
    play(&rig, &["par", "par", "par"]);
    let agent = rig.agent();
    let watching = async {
        yard.until(3).await;
        yard.release(3);
        yard.until(-3).await;
        assert_eq!(pairs(&agent), ["c1", "c2", "c3"]);
        yard.release(1);
    };
    let cancel = Cancel::new();
    tokio::join!(prompt(&agent, &cancel), watching);
    assert_pairs(&agent, &["c1", "c2", "c3"]);
    assert_eq!(text(&results(&agent)[1]), "Error: no");
    assert_eq!(yard.moves(), [1, 3, -3, -1]);
    assert_eq!(rig.counts.tally(), [3, 2, 2, 2, 3, 3, 3]);
}

#[tokio::test]
async fn r_148_a_cancel_in_the_middle_commits_what_ran_and_pairs_what_never_will() {
    let (mut rig, yard) = yard();
    rig.limits.parallel_calls = NonZeroUsize::new(2).unwrap();
    rig.post(Rank::NORMAL, |view, next| {
        let word = format!("after {}", view.call().call_id());
        Box::pin(async move { Ok(next.delegate().await?.with_contexts_before(vec![context(&word)])) })
    });
    play(&rig, &["par", "par", "par", "exc"]);
    let agent = rig.agent();
    let cancel = Cancel::new();
    let watching = async {
        yard.until(2).await;
        cancel.cancel(CancelCause::User);
    };
    let (report, ()) = tokio::join!(prompt(&agent, &cancel), watching);
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User });
    assert_eq!(pairs(&agent), ["c1", "c2", "r1", "r2", "c3", "r3", "c4", "r4"]);
    let codes: Vec<_> = results(&agent).iter().map(|r| r.error.as_ref().unwrap().code.clone()).collect();
    assert_eq!(codes, ["ABORTED", "ABORTED", "ABORTED_BEFORE_DISPATCH", "ABORTED_BEFORE_DISPATCH"]);
    // Contexts come after the last result, before the interrupted turn closes.
    assert_eq!(logged_contexts(&agent), ["after c1", "after c2"]);
    assert_balanced(&agent);
    assert_eq!(rig.counts.tally(), [2, 2, 2, 2, 2, 4, 4]);
    assert_eq!(rig.player.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn r_148_results_of_what_ran_come_before_the_pairs_also_while_places_are_free() {
    let rig = Rig::new();
    let started = Arc::new(Notify::new());
    let tells = Arc::clone(&started);
    // It takes its time after the cancel.
    let mut tool = Custom::new(
        "slow",
        &rig.counts,
        Arc::new(move |body| {
            let tells = Arc::clone(&tells);
            Box::pin(async move {
                tells.notify_one();
                body.scene().cancel.cancelled().await;
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                Ok(Json::of("ok").unwrap())
            })
        }),
    );
    tool.concurrency = Box::new(|_| Concurrency::Parallel);
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let cancel = Cancel::new();
    let fires = cancel.clone();
    // Fired while the second is judged and the first runs.
    rig.pre(Rank::NORMAL, move |view, next| {
        let (started, fires, second) = (Arc::clone(&started), fires.clone(), view.call().call_id().as_str() == "c2");
        Box::pin(async move {
            if second {
                started.notified().await;
                fires.cancel(CancelCause::User);
            }
            next.delegate().await
        })
    });
    play(&rig, &["slow", "slow", "slow", "slow"]);
    let agent = rig.agent();
    prompt(&agent, &cancel).await;
    assert_eq!(pairs(&agent), ["c1", "c2", "r1", "r2", "c3", "r3", "c4", "r4"]);
    assert_eq!(rig.counts.tally(), [2, 2, 1, 1, 2, 4, 4]);
}

#[tokio::test]
async fn r_149_a_cancel_before_the_batch_pairs_every_call_and_runs_none() {
    // Fired between the model's last word and the first call.
    struct Fires(Cancel);
    impl sluice_harness::seam::live::LiveSink for Fires {
        fn send(&self, event: sluice_harness::seam::live::LiveEvent) -> sluice_harness::Fut<'_, ()> {
            if matches!(event, sluice_harness::seam::live::LiveEvent::Usage { .. }) {
                self.0.cancel(CancelCause::User);
            }
            ready(())
        }
    }
    let (rig, yard) = yard();
    let call = |at: usize| {
        Ok(ModelEvent::ToolCall { id: Some(IDS[at].into()), name: "par".into(), arguments: ARGUMENTS[at].into() })
    };
    let usage = sluice_harness::seam::model::Usage::default();
    rig.plays([Play::Events(vec![
        call(1),
        call(2),
        Ok(ModelEvent::Usage(usage)),
        Ok(ModelEvent::Stop(StopReason::ToolUse)),
    ])]);
    let cancel = Cancel::new();
    let agent = crate::kit::agent_with(&rig, Arc::new(Fires(cancel.clone())));
    let report = prompt(&agent, &cancel).await;
    assert_eq!(report.end, TurnEnd::Cancelled { cause: CancelCause::User });
    assert_pairs(&agent, &["c1", "c2"]);
    assert!(yard.moves().is_empty());
    assert_eq!(rig.counts.tally(), [0, 0, 0, 0, 0, 2, 2]);
}

#[tokio::test]
async fn r_155_two_calls_of_one_id_get_a_result_each_and_a_valid_history() {
    for tool in ["par", "exc"] {
        let (rig, yard) = yard();
        rig.plays([
            Play::Calls(vec![("same", tool, ARGUMENTS[1]), ("same", tool, ARGUMENTS[2])]),
            Play::Calls(vec![("same", tool, ARGUMENTS[3])]),
            Play::Text("done"),
        ]);
        for n in 1..=3 {
            yard.release(n);
        }
        let agent = rig.agent();
        prompt(&agent, &Cancel::new()).await;
        assert_pairs(&agent, &["same", "same_2", "same_3"]);
        let said: Vec<_> = results(&agent).iter().map(text).collect();
        assert_eq!(said, ["did 1", "did 2", "did 3"]);
        assert_eq!(rig.counts.tally(), [3; 7]);
        // Every call of the last request has one result, in order.
        let last = rig.player.requests.lock().unwrap().last().unwrap().messages.clone();
        let ids = |wanted: bool| -> Vec<String> {
            use sluice_harness::content::Block;
            let blocks = last.iter().flat_map(|m| m.content.clone());
            blocks
                .filter_map(|b| match b {
                    Block::ToolUse { id, .. } if wanted => Some(id),
                    Block::ToolResult { tool_use_id, .. } if !wanted => Some(tool_use_id),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(ids(true), ids(false));
    }
}

#[tokio::test]
async fn contexts_of_a_batch_come_in_model_order_after_its_last_result() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    rig.post(Rank::NORMAL, |view, next| {
        let word = format!("after {}", view.call().call_id());
        Box::pin(async move { Ok(next.delegate().await?.with_contexts_before(vec![context(&word)])) })
    });
    rig.plays([Play::Calls(vec![("c1", "probe", "{}"), ("c2", "probe", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    let kinds = crate::rig::kinds(&agent);
    let tail: Vec<_> = kinds.iter().skip_while(|k| *k != "tool/call").take(7).map(String::as_str).collect();
    assert_eq!(
        tail,
        ["tool/call", "tool/result", "tool/call", "tool/result", "context/message", "context/message", "step/end"]
    );
    assert_eq!(logged_contexts(&agent), ["after c1", "after c2"]);
    assert_eq!(rig.counts.tally(), [2; 7]);
}
