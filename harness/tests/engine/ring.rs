//! The second ring: settled batches, denied calls, model requests; and what is put in from outside.

use std::sync::{Arc, Mutex};

use sluice_harness::Fut;
use sluice_harness::agent::{CompletedHow, TurnEnd};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Role, plain_text};
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::json::Json;
use sluice_harness::log::event::{ContextAdded, UserMessage};
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::point::ring::{
    BatchDecision, BatchSettled, BatchView, CallDenied, DeniedView, RequestEnd, RequestEnded, RequestEndedView,
    RequestStarted, RequestView,
};
use sluice_harness::point::tools::{DeniedBy, PreAnswer, PreTool, Reason};
use sluice_harness::point::turn::Steering;
use sluice_harness::point::{Listener, ListenerFault, Next, Observer};
use sluice_harness::scene::{StopCause, StopKind};
use sluice_harness::seam::model::{FaultKind, ModelFault, Retry};

use crate::rig::{Play, Rig, answers, kinds, prompt};

fn context(text: &str) -> ContextMessage {
    ContextMessage { source: "test".into(), role: Role::System, text: text.into() }
}

struct Settles(BatchDecision, Arc<Mutex<Vec<String>>>);

impl Listener<BatchSettled> for Settles {
    fn name(&self) -> &str {
        "settles"
    }
    fn decide<'a>(
        &'a self,
        view: BatchView<'a>,
        _: Next<'a, BatchSettled>,
    ) -> Fut<'a, Result<BatchDecision, ListenerFault>> {
        for call in view.calls {
            let line = format!("{} {} {} {}", call.call_id, call.name, call.raw_arguments, call.is_error);
            self.1.lock().unwrap().push(line);
        }
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

#[tokio::test]
async fn a_settled_batch_is_seen_whole_and_its_contexts_follow_those_of_the_calls() {
    let rig = Rig::new();
    rig.probe(
        "probe",
        Arc::new(|mut body| {
            body.defer(context("of the call"));
            Box::pin(std::future::ready(Ok(Json::of("ok").unwrap())))
        }),
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let decision = BatchDecision { contexts: vec![context("of the batch")], stop: None };
    rig.root.listen::<BatchSettled>(Rank::NORMAL, Settles(decision, Arc::clone(&seen))).unwrap();
    rig.plays([Play::Calls(vec![("a", "probe", "{ }"), ("b", "gone", "{}")]), Play::Text("done")]);
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(*seen.lock().unwrap(), ["a probe { } false", "b gone {} true"]);
    let contexts: Vec<_> =
        agent.log().since(Seq(0)).iter().filter_map(|e| e.decode::<ContextAdded>()).map(|c| c.text).collect();
    assert_eq!(contexts, ["of the call", "of the batch"]);
}

#[tokio::test]
async fn a_settled_batch_may_stop_the_turn_before_the_next_request() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    let cause = StopCause { by: "test".into(), reason: Some("enough".into()), kind: StopKind::Hook };
    let decision = BatchDecision { contexts: Vec::new(), stop: Some(cause.clone()) };
    rig.root.listen::<BatchSettled>(Rank::NORMAL, Settles(decision, Arc::default())).unwrap();
    rig.plays([Play::Calls(vec![("a", "probe", "{}")])]);
    let report = prompt(&rig.agent(), &Cancel::new()).await;
    assert_eq!(report.end, TurnEnd::Stopped { cause });
}

struct Notes(Arc<Mutex<Vec<String>>>);

impl Observer<CallDenied> for Notes {
    fn observe(&self, denied: &DeniedView<'_>) {
        self.0.lock().unwrap().push(format!("{} {} {:?} {}", denied.call_id, denied.tool, denied.by, denied.reason));
    }
}

impl Observer<RequestStarted> for Notes {
    fn observe(&self, request: &RequestView<'_>) {
        self.0.lock().unwrap().push(format!("start {} {}", request.index, request.attempt));
    }
}

impl Observer<RequestEnded> for Notes {
    fn observe(&self, ended: &RequestEndedView<'_>) {
        let end = match ended.end {
            RequestEnd::Completed => "completed",
            RequestEnd::Cancelled => "cancelled",
            RequestEnd::Failed(why) => why,
        };
        self.0.lock().unwrap().push(format!("end {} {end}", ended.request.index));
    }
}

#[tokio::test]
async fn a_denied_call_is_noted_once() {
    let rig = Rig::new();
    rig.probe("probe", answers("never"));
    rig.pre(Rank::NORMAL, |_, _| {
        let denial = PreAnswer::new(PreTool::Deny(Reason::new(DeniedBy::Rule, "no")));
        Box::pin(std::future::ready(Ok(denial)))
    });
    let notes = Arc::new(Mutex::new(Vec::new()));
    rig.root.observe::<CallDenied>(Notes(Arc::clone(&notes))).unwrap();
    rig.one_call("probe", "{}").await;
    assert_eq!(*notes.lock().unwrap(), ["c1 probe Rule Error: no"]);
}

#[tokio::test]
async fn every_request_is_noted_at_both_ends_also_a_repeated_one() {
    let rig = Rig::new();
    let fault = ModelFault { kind: FaultKind::Overloaded, message: "busy".into(), retry: Retry::Backoff };
    rig.plays([Play::Events(vec![Err(fault)]), Play::Text("done")]);
    let notes = Arc::new(Mutex::new(Vec::new()));
    rig.root.observe::<RequestStarted>(Notes(Arc::clone(&notes))).unwrap();
    rig.root.observe::<RequestEnded>(Notes(Arc::clone(&notes))).unwrap();
    prompt(&rig.agent(), &Cancel::new()).await;
    assert_eq!(*notes.lock().unwrap(), ["start 0 1", "end 0 busy", "start 1 2", "end 1 completed"]);
}

fn steering(text: &str) -> Steering {
    Steering { source: "user".into(), role: Role::User, text: text.into() }
}

#[tokio::test]
async fn steering_makes_a_turn_that_would_end_go_on_with_it() {
    let rig = Rig::new();
    rig.plays([Play::Text("first"), Play::Text("second")]);
    let agent = rig.agent();
    // Put in before the turn, it comes with the first request; what is put in while that runs makes the turn go on.
    agent.inject(context("known before"));
    let notes = Arc::new(Mutex::new(Vec::new()));
    rig.root.observe::<RequestStarted>(Notes(Arc::clone(&notes))).unwrap();
    struct Steers(Mutex<Option<Steering>>, Arc<std::sync::OnceLock<Arc<sluice_harness::agent::Agent>>>);
    impl Observer<RequestEnded> for Steers {
        fn observe(&self, _: &RequestEndedView<'_>) {
            if let (Some(agent), Some(message)) = (self.1.get(), self.0.lock().unwrap().take()) {
                agent.steer(message);
            }
        }
    }
    let agent = Arc::new(agent);
    let cell = Arc::new(std::sync::OnceLock::new());
    let _ = cell.set(Arc::clone(&agent));
    rig.root.observe::<RequestEnded>(Steers(Mutex::new(Some(steering("and now?"))), cell)).unwrap();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!(report.end, TurnEnd::Completed { how: CompletedHow::Normal, note: None });
    assert_eq!((report.text.as_str(), report.steps), ("second", 2));
    let messages: Vec<_> = agent
        .log()
        .since(Seq(0))
        .iter()
        .filter_map(|e| e.decode::<UserMessage>())
        .map(|m| plain_text(&m.content))
        .collect();
    assert_eq!(messages, ["go", "and now?"]);
    let requests = rig.player.requests.lock().unwrap();
    assert!(requests[0].messages.iter().any(|m| plain_text(&m.content) == "known before"));
}

#[tokio::test]
async fn a_context_put_in_between_turns_opens_none_and_comes_with_the_next() {
    let rig = Rig::new();
    rig.plays([Play::Text("one"), Play::Text("two")]);
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    let before = kinds(&agent).len();
    agent.inject(context("meanwhile"));
    assert_eq!(kinds(&agent).len(), before);
    prompt(&agent, &Cancel::new()).await;
    let requests = rig.player.requests.lock().unwrap();
    assert!(requests[1].messages.iter().any(|m| plain_text(&m.content) == "meanwhile"));
    assert!(!requests[0].messages.iter().any(|m| plain_text(&m.content) == "meanwhile"));
}
