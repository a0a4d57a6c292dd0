//! What a model was told can be told again from the log alone, also after a restart.

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::agent::Agent;
use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::log::event::{
    AssistantMessage, ContextAdded, RequestHeader, RequestSent, ToolResult, TurnStart, UserMessage,
};
use sluice_harness::log::{Logged, SessionLog};
use sluice_harness::point::prompt::{PromptDecision, PromptSubmit};
use sluice_harness::point::session::StartSource;
use sluice_harness::point::turn::{ContinuationDecision, Steering, TurnContinuation};
use sluice_harness::registry;
use sluice_harness::seam::model::{FaultKind, Model, ModelEvent, ModelFault, ModelRequest, Retry, StopReason};
use sluice_harness::tool::ToolFailure;

use crate::kit::{Custom, assert_balanced, assert_pairs, context, on, ready};
use crate::rig::{Play, Rig, answers, calls, prompt};

/// What the log says that the request at `sent` held, told by this test's own reading of the events.
fn rebuilt(events: &[Arc<Logged>], sent: Seq) -> (RequestHeader, Vec<Message>) {
    let mut header = None;
    let mut messages = Vec::new();
    for event in events.iter().take_while(|e| e.seq < sent) {
        if let Some(next) = event.decode::<RequestHeader>() {
            header = Some(next);
        } else if let Some(user) = event.decode::<UserMessage>() {
            messages.push(Message { role: Role::User, content: user.content });
        } else if let Some(added) = event.decode::<ContextAdded>() {
            messages.push(Message { role: added.role, content: vec![Block::text(added.text)] });
        } else if let Some(answer) = event.decode::<AssistantMessage>() {
            if !answer.content.is_empty() {
                messages.push(Message { role: Role::Assistant, content: answer.content });
            }
        } else if let Some(result) = event.decode::<ToolResult>() {
            let block = Block::ToolResult {
                tool_use_id: result.call_id.as_str().to_owned(),
                content: result.content,
                is_error: result.is_error,
            };
            messages.push(Message { role: Role::Tool, content: vec![block] });
        }
    }
    (header.expect("no header before a request"), messages)
}

/// Asserts that every request of these is what the log tells, and that the file tells the same as the memory.
fn assert_rebuilt(agent: &Agent, requests: &[ModelRequest]) {
    let events = agent.log().since(Seq(0));
    let sent: Vec<(Seq, RequestSent)> = events.iter().filter_map(|e| Some((e.seq, e.decode()?))).collect();
    assert_eq!(sent.len(), requests.len());
    for (n, ((at, sent), request)) in sent.iter().zip(requests).enumerate() {
        let (header, messages) = rebuilt(&events, *at);
        assert_eq!(request.messages, messages, "request {n}");
        assert_eq!((&request.system, &request.tools), (&header.system, &header.tools), "request {n}");
        assert_eq!(request.max_output_tokens, header.max_output_tokens);
        assert_eq!((request.index, sent.index), (n as u64, n as u64));
    }
    let file = std::fs::read_to_string(agent.log().path()).unwrap();
    let lines: Vec<&str> = file.lines().skip(1).collect();
    let told: Vec<String> = events.iter().map(|e| e.line()).collect();
    assert_eq!(lines, told);
}

fn requests(rig: &Rig) -> Vec<ModelRequest> {
    rig.player.requests.lock().unwrap().clone()
}

#[tokio::test]
async fn r_211_every_request_is_what_the_log_alone_derives() {
    let rig = Rig::new();
    rig.probe(
        "fails",
        Arc::new(|mut body| {
            body.defer(context("deferred"));
            ready(Err(ToolFailure::new("no")))
        }),
    );
    rig.probe("probe", answers("ok"));
    on::<PromptSubmit, _>(&rig, Rank::NORMAL, |_, _| {
        ready(Ok(PromptDecision::Allow { content: None, contexts: vec![context("prompt context")] }))
    });
    on::<TurnContinuation, _>(&rig, Rank::NORMAL, |view, next| {
        if view.continuations.is_empty() && view.last_message == Some("almost") {
            let more = |role| Steering { source: "s".into(), role, text: "more".into() };
            return ready(Ok(ContinuationDecision::Continue(vec![more(Role::User), more(Role::System)])));
        }
        next.delegate()
    });
    let fault = ModelFault { kind: FaultKind::Network, message: "cut".into(), retry: Retry::Backoff };
    let cancel = Cancel::new();
    rig.plays([
        Play::Calls(vec![("c1", "fails", "{}"), ("c2", "probe", r#"{"n":1.50e3}"#), ("c1", "none", "[")]),
        Play::Events(vec![Err(fault)]),
        Play::Events(vec![
            Ok(ModelEvent::Thinking("hm".into())),
            Ok(ModelEvent::ThinkingSignature("proof".into())),
            Ok(ModelEvent::Text("almost".into())),
            Ok(ModelEvent::Stop(StopReason::EndTurn)),
        ]),
        Play::Events(vec![Ok(ModelEvent::Stop(StopReason::EndTurn))]),
        Play::Stalls(vec![ModelEvent::Text("cut".into())], cancel.clone()),
        Play::Text("done"),
    ]);
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    prompt(&agent, &cancel).await;
    prompt(&agent, &Cancel::new()).await;
    assert_pairs(&agent, &["c1", "c2", "c1_2"]);
    assert_balanced(&agent);
    let requests = requests(&rig);
    assert_eq!(requests.len(), 6);
    assert_rebuilt(&agent, &requests);
    // The model's own digits are still its own.
    assert!(requests[1].messages.iter().any(|m| format!("{:?}", m.content).contains("1.50e3")));
}

fn headers(agent: &Agent) -> Vec<String> {
    agent.log().since(Seq(0)).iter().filter_map(|e| e.decode::<RequestHeader>()).map(|h| h.why).collect()
}

/// Closes the agent and opens its session again.
async fn reopened(rig: &Rig, agent: Agent) -> Agent {
    let id = agent.session().id.clone();
    agent.close("other", Duration::from_secs(30)).await.unwrap();
    let (log, repair) = SessionLog::open(&rig.dir.path().join("sessions"), &id).unwrap();
    assert!(repair.is_clean());
    rig.agent_over(log, StartSource::Resume)
}

#[tokio::test]
async fn r_212_a_header_is_written_first_on_change_and_by_every_new_agent() {
    let rig = Rig::new();
    rig.plays((0..5).map(|_| Play::Text("done")));
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(headers(&agent), ["initial"]);
    let late = Arc::new(Custom::new("late", &rig.counts, answers("ok")));
    registry::register(&rig.root, late).unwrap();
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(headers(&agent), ["initial", "change"]);
    let agent = reopened(&rig, agent).await;
    prompt(&agent, &Cancel::new()).await;
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(headers(&agent), ["initial", "change", "resume"]);
    assert_rebuilt(&agent, &requests(&rig));
}

#[tokio::test]
async fn r_243_a_resumed_session_goes_on_counting_where_it_stopped() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    let turn = || [Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")];
    rig.plays(turn());
    rig.plays(turn());
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    let agent = reopened(&rig, agent).await;
    prompt(&agent, &Cancel::new()).await;
    let starts: Vec<TurnStart> = agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect();
    assert_eq!(starts.iter().map(|s| s.turn.0).collect::<Vec<_>>(), [1, 2]);
    assert_ne!(starts[0].turn_id, starts[1].turn_id);
    // Request indexes, sequence numbers and ids of calls go on too.
    let indexes: Vec<u64> = requests(&rig).iter().map(|r| r.index).collect();
    assert_eq!(indexes, [0, 1, 2, 3]);
    assert_pairs(&agent, &["c1", "c1_2"]);
    assert_eq!(calls(&agent)[1].turn.0, 2);
    assert_rebuilt(&agent, &requests(&rig));
    assert_balanced(&agent);
}

#[tokio::test]
async fn r_263_what_a_body_or_a_model_is_about_to_see_is_on_disk_first() {
    let rig = Rig::new();
    let on_disk = |what: &str, log: &sluice_harness::log::LogHandle| {
        let file = std::fs::read_to_string(log.path()).unwrap();
        let last = file.lines().last().unwrap().to_owned();
        assert!(file.ends_with('\n') && last.contains(&format!("\"type\":\"{what}\"")), "{what}: {last}");
    };
    rig.probe(
        "probe",
        Arc::new(move |body| {
            on_disk("tool/call", body.scene().log);
            ready(Ok(crate::kit::json(r#""ok""#)))
        }),
    );
    on::<PromptSubmit, _>(&rig, Rank::NORMAL, move |view, next| {
        on_disk("prompt/received", view.scene.log);
        next.delegate()
    });
    let agent = rig.agent();
    let (log, player) = (agent.log().clone(), Arc::clone(&rig.player));
    let model = crate::kit::FnModel {
        info: Box::new(move || player.info()),
        stream: Box::new({
            let player = Arc::clone(&rig.player);
            move |request, cancel| {
                on_disk("request/sent", &log);
                let player = Arc::clone(&player);
                Box::pin(async move { player.stream(request, &cancel).await })
            }
        }),
    };
    agent.context().provide::<dyn Model>(Arc::new(model)).unwrap();
    rig.plays([Play::Calls(vec![("c1", "probe", "{}"), ("c2", "probe", "{}")]), Play::Text("done")]);
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!(report.text, "done");
    assert!(crate::rig::results(&agent).iter().all(|r| !r.is_error));
    assert_eq!(rig.counts.tally(), [2; 7]);
}
