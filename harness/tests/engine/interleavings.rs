//! R-154: whatever the order in which bodies end, the durable sequence is the same.
//!
//! Every order of completions that a cap from 1 to 5 allows is played for up to five calls, each time with as many bodies
//! running as the cap lets run. With a place for every call the whole sequence must be the same but for ids of turns and
//! times. With fewer, a call is written when a place becomes free, so the order of completions may move calls between
//! results, and nothing else: the calls among themselves, and everything else among itself, must be the same, and where
//! each call stands must be what the rules on places (R-143) and on ready results (R-146) make of that order.
//!
//! `SLUICE_TEST_LONG=N` plays batches of up to two more calls.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use sluice_harness::cancel::Cancel;
use sluice_harness::ids::Seq;
use sluice_harness::json::Json;
use sluice_harness::log::event::{ToolCall, ToolResult};
use sluice_harness::registry;
use sluice_harness::tool::Concurrency;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::kit::{Custom, assert_balanced, assert_pairs, context, logged_contexts};
use crate::rig::{Play, Rig, prompt, text};

const IDS: [&str; 7] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7"];
const ARGUMENTS: [&str; 7] =
    [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#, r#"{"n":4}"#, r#"{"n":5}"#, r#"{"n":6}"#, r#"{"n":7}"#];

/// The largest batch.
fn largest() -> usize {
    let more = std::env::var("SLUICE_TEST_LONG").ok().and_then(|n| n.parse().ok()).unwrap_or(0_usize);
    (5 + more).min(IDS.len())
}

/// Every way to let go, one after the other, one of the bodies that run: the position among them, each time.
fn choices(left: usize, cap: usize) -> Vec<Vec<usize>> {
    if left == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for first in 0..left.min(cap) {
        for mut tail in choices(left - 1, cap) {
            tail.insert(0, first);
            all.push(tail);
        }
    }
    all
}

/// The one order of calls and results that the rules allow when bodies are let go by these choices: ready results are
/// committed before a further call starts, and a call starts as soon as fewer than `cap` bodies run.
fn ruled(count: usize, cap: usize, chosen: &[usize]) -> Vec<String> {
    let (mut order, mut running, mut done): (Vec<String>, Vec<usize>, Vec<bool>) =
        (Vec::new(), Vec::new(), vec![false; count]);
    let (mut started, mut committed) = (0, 0);
    let mut choices = chosen.iter();
    while committed < count {
        if done[committed] {
            order.push(format!("result {}", IDS[committed]));
            committed += 1;
        } else if started < count && running.len() < cap {
            order.push(format!("call {}", IDS[started]));
            running.push(started);
            started += 1;
        } else {
            let ended = running.remove(*choices.next().unwrap());
            done[ended] = true;
        }
    }
    order
}

type Waiting = Arc<Mutex<Vec<Option<oneshot::Sender<()>>>>>;

/// Plays one batch whose bodies are let go by these choices. Returns what is durable of it, and the order in which the
/// bodies ended.
async fn batch(count: usize, cap: usize, chosen: Vec<usize>) -> (Vec<String>, Vec<usize>) {
    let mut rig = Rig::new();
    rig.limits.parallel_calls = NonZeroUsize::new(cap).unwrap();
    let waiting: Waiting = Arc::new(Mutex::new((0..count).map(|_| None).collect()));
    let ended: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (slots, log) = (Arc::clone(&waiting), Arc::clone(&ended));
    let mut tool = Custom::new(
        "t",
        &rig.counts,
        Arc::new(move |mut body| {
            let (slots, log) = (Arc::clone(&slots), Arc::clone(&log));
            Box::pin(async move {
                let n = usize::try_from(body.input().view()["n"].as_u64().unwrap()).unwrap() - 1;
                let (go, gone) = oneshot::channel();
                slots.lock().unwrap()[n] = Some(go);
                gone.await.unwrap();
                log.lock().unwrap().push(n);
                body.defer(context(&format!("context {n}")));
                Ok(Json::of(&format!("did {n}")).unwrap())
            })
        }),
    );
    tool.concurrency = Box::new(|_| Concurrency::Parallel);
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let calls = (0..count).map(|n| (IDS[n], "t", ARGUMENTS[n])).collect();
    rig.plays([Play::Calls(calls), Play::Text("done")]);
    let agent = rig.agent();
    let played = chosen.clone();
    let releasing = async {
        for (at, choice) in chosen.into_iter().enumerate() {
            // As many as can run at once do run before one is let go.
            let due = (count - at).min(cap);
            let running = || -> Vec<usize> {
                let slots = waiting.lock().unwrap();
                slots.iter().enumerate().filter_map(|(n, slot)| slot.as_ref().map(|_| n)).collect()
            };
            while running().len() != due {
                tokio::task::yield_now().await;
            }
            let n = running()[choice];
            waiting.lock().unwrap()[n].take().unwrap().send(()).unwrap();
            while !ended.lock().unwrap().contains(&n) {
                tokio::task::yield_now().await;
            }
        }
    };
    let cancel = Cancel::new();
    tokio::join!(prompt(&agent, &cancel), releasing);
    assert_pairs(&agent, &IDS[..count]);
    assert_balanced(&agent);
    assert_eq!(rig.counts.tally(), [count; 7]);
    let contexts: Vec<String> = (0..count).map(|n| format!("context {n}")).collect();
    assert_eq!(logged_contexts(&agent), contexts);
    // Calls are written as they start, which depends on when places become free; each list has its own order.
    let events = agent.log().since(Seq(0));
    let order: Vec<String> = events.iter().filter_map(|e| placed(e)).collect();
    assert_eq!(order, ruled(count, cap, &played), "{count} calls, cap {cap}, {played:?}");
    let is_call = |e: &&Arc<sluice_harness::log::Logged>| e.decode::<ToolCall>().is_some();
    if cap >= count {
        // No call waits for a place, so the whole sequence is one and the same.
        let whole = events.iter().map(|e| plain(e)).collect();
        let ended = ended.lock().unwrap().clone();
        return (whole, ended);
    }
    let mut durable: Vec<String> = events.iter().filter(is_call).map(|e| plain(e)).collect();
    durable.extend(events.iter().filter(|e| !is_call(e)).map(|e| plain(e)));
    let ended = ended.lock().unwrap().clone();
    (durable, ended)
}

/// Where a call or a result stands.
fn placed(event: &sluice_harness::log::Logged) -> Option<String> {
    let call = || event.decode::<ToolCall>().map(|call| format!("call {}", call.call_id));
    event.decode::<ToolResult>().map(|result| format!("result {}", result.call_id)).or_else(call)
}

/// An event without the ids of turns, times and positions.
fn plain(event: &sluice_harness::log::Logged) -> String {
    match (event.decode::<ToolCall>(), event.decode::<ToolResult>()) {
        (Some(call), _) => format!("call {} {}", call.call_id, call.arguments),
        (_, Some(result)) => format!("result {} {}", result.call_id, text(&result)),
        _ if &*event.kind == "turn/start" => "turn/start".to_owned(),
        _ => format!("{} {}", event.kind, event.data),
    }
}

#[tokio::test]
async fn r_154_every_interleaving_of_body_completions_leaves_the_same_durable_sequence() {
    for count in 1..=largest() {
        for cap in 1..=count {
            let all = choices(count, cap);
            let (mut expected, mut seen): (Option<Vec<String>>, BTreeSet<Vec<usize>>) = Default::default();
            for some in all.chunks(24) {
                let mut playing = JoinSet::new();
                for chosen in some {
                    playing.spawn(batch(count, cap, chosen.clone()));
                }
                while let Some(played) = playing.join_next().await {
                    let (durable, ended) = played.unwrap();
                    let expected = expected.get_or_insert_with(|| durable.clone());
                    assert_eq!(&durable, expected, "{count} calls, cap {cap}, {ended:?}");
                    seen.insert(ended);
                }
            }
            assert_eq!(seen.len(), all.len(), "{count} calls, cap {cap}");
        }
    }
}
