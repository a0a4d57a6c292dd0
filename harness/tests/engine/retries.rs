//! Failed requests: which are repeated, when, how often, and what of it is durable.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::agent::{Agent, CompletedHow, Jitter, RetryPolicy, TurnEnd, TurnReport};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::Block;
use sluice_harness::ids::Seq;
use sluice_harness::log::event::{AssistantMessage, RequestRetry, RequestSent};
use sluice_harness::seam::model::{FaultKind, Model, ModelEvent, ModelFault, ModelStream, Retry, StopReason};
use tokio::time::Instant;

use crate::kit::{FnModel, assert_balanced, ready};
use crate::rig::{Rig, kinds};

fn busy(retry: Retry) -> ModelFault {
    ModelFault { kind: FaultKind::Overloaded, message: "busy; try later".into(), retry }
}

/// What one request comes to: events, each perhaps a fault.
type Tape = Vec<Result<ModelEvent, ModelFault>>;

struct Reads(VecDeque<Result<ModelEvent, ModelFault>>);

impl ModelStream for Reads {
    fn next(&mut self) -> sluice_harness::Fut<'_, Option<Result<ModelEvent, ModelFault>>> {
        ready(self.0.pop_front())
    }
}

/// When each request went out.
type Times = Arc<Mutex<Vec<Instant>>>;

/// An agent whose requests come to these tapes, one after another. Nothing but the waits before retries waits by the
/// clock, so that a paused one shows them exactly.
fn agent(rig: &Rig, tapes: Vec<Tape>) -> (Agent, Times) {
    let agent = rig.agent();
    let times = Times::default();
    let (sent, tapes, info) = (Arc::clone(&times), Mutex::new(VecDeque::from(tapes)), rig.player.info());
    let model = FnModel {
        info: Box::new(move || info.clone()),
        stream: Box::new(move |_, _| {
            sent.lock().unwrap().push(Instant::now());
            let tape = tapes.lock().unwrap().pop_front().expect("asked once too often");
            match tape.first() {
                // A request that is refused outright.
                Some(Err(fault)) => ready(Err(fault.clone())),
                _ => ready(Ok(Box::new(Reads(tape.into())) as Box<dyn ModelStream>)),
            }
        }),
    };
    agent.context().provide::<dyn Model>(Arc::new(model)).unwrap();
    (agent, times)
}

async fn go(agent: &Agent) -> TurnReport {
    agent.prompt(vec![Block::text("go")], &Cancel::new()).await
}

fn waits(times: &Times) -> Vec<Duration> {
    let times = times.lock().unwrap();
    times.windows(2).map(|w| w[1] - w[0]).collect()
}

fn fine() -> Tape {
    vec![Ok(ModelEvent::Text("done".into())), Ok(ModelEvent::Stop(StopReason::EndTurn))]
}

fn retried(agent: &Agent) -> Vec<(u32, u64, String)> {
    let events = agent.log().since(Seq(0));
    let of = |r: RequestRetry| (r.attempt, r.delay_ms, r.kind);
    events.iter().filter_map(|e| e.decode().map(of)).collect()
}

fn assert_close(actual: &[Duration], expected_ms: &[u64]) {
    assert_eq!(actual.len(), expected_ms.len(), "{actual:?}");
    for (actual, expected) in actual.iter().zip(expected_ms) {
        // A timer goes by whole milliseconds.
        let off = actual.abs_diff(Duration::from_millis(*expected));
        assert!(off <= Duration::from_millis(2), "{actual:?} is not {expected} ms");
    }
}

fn completed() -> TurnEnd {
    TurnEnd::Completed { how: CompletedHow::Normal, note: None }
}

#[tokio::test(start_paused = true)]
async fn r_214_a_repeated_request_stays_in_its_step_and_leaves_one_message() {
    let mut rig = Rig::new();
    rig.retry = RetryPolicy::default();
    let (agent, times) = agent(&rig, vec![vec![Err(busy(Retry::Backoff))], fine()]);
    let report = go(&agent).await;
    assert_eq!((report.end, report.steps), (completed(), 1));
    assert_close(&waits(&times), &[500]);
    let tail: Vec<String> = kinds(&agent).into_iter().skip(4).collect();
    assert_eq!(
        tail,
        [
            "request/header",
            "request/sent",
            "request/retry",
            "request/sent",
            "assistant/message",
            "step/end",
            "turn/end"
        ]
    );
    let sent: Vec<RequestSent> = agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect();
    assert_eq!(sent.iter().map(|s| (s.attempt, s.index)).collect::<Vec<_>>(), [(1, 0), (2, 1)]);
    assert_eq!(retried(&agent), [(1, 500, "overloaded".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn r_215_waits_double_up_to_the_cap_and_then_it_is_given_up() {
    let s = Duration::from_secs;
    let cases: [(RetryPolicy, &[u64]); 3] = [
        (RetryPolicy::default(), &[500, 1000, 2000, 4000, 8000]),
        (RetryPolicy { retries: 4, base: s(3), cap: s(10) }, &[3000, 6000, 10_000, 10_000]),
        (RetryPolicy { retries: 0, base: s(3), cap: s(10) }, &[]),
    ];
    for (policy, expected) in cases {
        let mut rig = Rig::new();
        rig.retry = policy;
        let tapes = (0..=expected.len()).map(|_| vec![Err(busy(Retry::Backoff))]).collect();
        let (agent, times) = agent(&rig, tapes);
        let report = go(&agent).await;
        let end = TurnEnd::Error { kind: FaultKind::Overloaded, message: "busy; try later".into() };
        assert_eq!(report.end, end);
        assert_close(&waits(&times), expected);
        let durable: Vec<u64> = retried(&agent).into_iter().map(|(_, ms, _)| ms).collect();
        assert_eq!(durable, expected);
        assert_balanced(&agent);
    }
}

#[tokio::test(start_paused = true)]
async fn r_215_what_the_provider_wants_is_heeded_within_the_cap_and_given_up_beyond_it() {
    for (wanted, expected) in [(5, &[5000][..]), (10, &[10_000]), (60, &[])] {
        let mut rig = Rig::new();
        rig.retry = RetryPolicy::default();
        let after = Retry::After(Duration::from_secs(wanted));
        let (agent, times) = agent(&rig, vec![vec![Err(busy(after))], fine()]);
        let report = go(&agent).await;
        assert_close(&waits(&times), expected);
        assert_eq!(report.end == completed(), !expected.is_empty(), "{wanted}");
    }
}

#[tokio::test(start_paused = true)]
async fn r_215_nothing_is_repeated_after_its_first_content() {
    let content: [(ModelEvent, &str); 3] = [
        (ModelEvent::Text("half".into()), "half"),
        (ModelEvent::Thinking("hm".into()), ""),
        (ModelEvent::ToolCall { id: None, name: "probe".into(), arguments: "{}".into() }, ""),
    ];
    for (event, said) in content {
        let mut rig = Rig::new();
        rig.retry = RetryPolicy::default();
        let call = matches!(event, ModelEvent::ToolCall { .. });
        let (agent, times) = agent(&rig, vec![vec![Ok(event), Err(busy(Retry::Backoff))]]);
        let report = go(&agent).await;
        assert!(matches!(report.end, TurnEnd::Error { kind: FaultKind::Overloaded, .. }));
        assert_eq!((report.text.as_str(), waits(&times).len()), (said, 0));
        // What was visible is saved as what it is.
        let kept: Option<AssistantMessage> = agent.log().last();
        assert_eq!(kept.map(|m| m.interrupted), if call { None } else { Some(true) });
        assert_balanced(&agent);
    }
}

#[tokio::test(start_paused = true)]
async fn r_215_a_stream_that_breaks_before_its_first_content_is_repeated() {
    let mut rig = Rig::new();
    rig.retry = RetryPolicy::default();
    let usage = ModelEvent::Usage(Default::default());
    // Cut off without a word, and failed after the tokens were counted.
    let (agent, times) = agent(&rig, vec![vec![], vec![Ok(usage), Err(busy(Retry::Backoff))], fine()]);
    let report = go(&agent).await;
    assert_eq!(report.end, completed());
    assert_close(&waits(&times), &[500, 1000]);
    let kinds: Vec<_> = retried(&agent).into_iter().map(|(_, _, kind)| kind).collect();
    assert_eq!(kinds, ["bad_response", "overloaded"]);
}

#[tokio::test(start_paused = true)]
async fn r_216_a_fault_that_no_repetition_helps_is_said_at_once() {
    let mut rig = Rig::new();
    rig.retry = RetryPolicy::default();
    let fault = ModelFault { kind: FaultKind::Auth, message: "no key; set one".into(), retry: Retry::No };
    let (agent, times) = agent(&rig, vec![vec![Err(fault)]]);
    let report = go(&agent).await;
    assert_eq!(report.end, TurnEnd::Error { kind: FaultKind::Auth, message: "no key; set one".into() });
    assert_eq!(waits(&times).len(), 0);
    assert!(retried(&agent).is_empty());
}

#[tokio::test(start_paused = true)]
async fn r_215_waits_are_moved_by_up_to_a_tenth_and_the_log_says_how_long_they_were() {
    let mut rig = Rig::new();
    rig.retry = RetryPolicy::default();
    rig.jitter = Jitter::default();
    let tapes = (0..6).map(|_| vec![Err(busy(Retry::Backoff))]).collect();
    let (agent, times) = agent(&rig, tapes);
    go(&agent).await;
    let durable: Vec<u64> = retried(&agent).into_iter().map(|(_, ms, _)| ms).collect();
    assert_close(&waits(&times), &durable);
    assert_eq!(durable.len(), 5);
    for (actual, round) in durable.iter().zip([500, 1000, 2000, 4000, 8000]) {
        assert!((round * 9 / 10..=round * 11 / 10).contains(actual), "{actual} is not about {round}");
    }
    // Five waits that are all round would be one case in 200 to the fifth.
    assert_ne!(durable, [500, 1000, 2000, 4000, 8000]);
}
