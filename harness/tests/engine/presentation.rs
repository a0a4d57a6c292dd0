//! What a person is shown: computed from what is durable, total, and the same again on replay.

use std::sync::{Arc, Mutex};

use sluice_harness::agent::Agent;
use sluice_harness::cancel::Cancel;
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::log::SessionLog;
use sluice_harness::log::event::{ToolCall, ToolResult};
use sluice_harness::pipeline::Gated;
use sluice_harness::point::approval::Approval;
use sluice_harness::point::tools::{Allow, AskOrigin, PreAnswer, PreTool, Standing};
use sluice_harness::registry;
use sluice_harness::seam::approval::ApprovalOutcome;
use sluice_harness::seam::live::LiveEvent;
use sluice_harness::tool::{CallCard, CallKind, CardItem, ResultCard};

use crate::kit::{Custom, Ear, agent_with, ask, json, on, one, ready};
use crate::rig::{Play, Rig, answers, prompt};

/// A tool whose cards show all they are given.
fn shown(rig: &Rig) {
    let mut tool = Custom::new("probe", &rig.counts, answers("ok"));
    tool.meta = Box::new(|value| Some(json(&format!(r#"{{"kept":{value}}}"#))));
    tool.card = Box::new(|input| CallCard {
        title: format!("probe {input}"),
        kind: CallKind::Execute,
        items: vec![CardItem::Text(input.to_string())],
        locations: Vec::new(),
    });
    tool.result_card = Box::new(|content, meta| ResultCard {
        title: Some(meta.unwrap().view()["kept"].as_str().unwrap().to_owned()),
        items: vec![CardItem::Text(sluice_harness::content::plain_text(content))],
        locations: Vec::new(),
    });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
}

async fn heard(rig: &Rig, arguments: &'static str) -> (Agent, Vec<LiveEvent>) {
    rig.plays([Play::Calls(vec![("c1", "probe", arguments)]), Play::Text("done")]);
    let ear = Arc::new(Ear::default());
    let agent = agent_with(rig, Arc::<Ear>::clone(&ear));
    prompt(&agent, &Cancel::new()).await;
    let heard = ear.0.lock().unwrap().clone();
    (agent, heard)
}

fn finished(events: &[LiveEvent]) -> ResultCard {
    let card = events.iter().find_map(|e| if let LiveEvent::CallFinished { card, .. } = e { Some(card) } else { None });
    card.unwrap().clone()
}

fn pending(events: &[LiveEvent]) -> CallCard {
    let card = events.iter().find_map(|e| if let LiveEvent::CallPending { card, .. } = e { Some(card) } else { None });
    card.unwrap().clone()
}

#[tokio::test]
async fn r_135_replaying_the_log_gives_the_cards_that_were_shown() {
    let rig = Rig::new();
    shown(&rig);
    let (agent, events) = heard(&rig, r#"{ "n": 1.0 }"#).await;
    let (before, after) = (pending(&events), finished(&events));
    assert_eq!(before.title, r#"probe {"n":1.0}"#);
    assert_eq!(after.title.as_deref(), Some("ok"));
    let id = agent.session().id.clone();
    agent.close("other", std::time::Duration::from_secs(5)).await.unwrap();
    // From the file alone, in another life.
    let (log, repair) = SessionLog::open(&rig.dir.path().join("sessions"), &id).unwrap();
    assert!(repair.is_clean());
    let logged = log.handle().since(Seq(0));
    let call: ToolCall = logged.iter().find_map(|e| e.decode()).unwrap();
    let result: ToolResult = logged.iter().find_map(|e| e.decode()).unwrap();
    let tool = registry::resolve(&rig.root, &call.name).unwrap();
    let input = call.input.unwrap();
    assert_eq!(tool.tool().present_call(&input), before);
    assert_eq!(tool.tool().present_result(&input, &result.content, result.meta.as_ref()), after);
}

#[tokio::test]
async fn r_136_a_card_that_cannot_be_made_falls_back_to_name_and_content() {
    let rig = Rig::new();
    let mut tool = Custom::new("probe", &rig.counts, answers("ok"));
    tool.card = Box::new(|_| panic!("obsolete input"));
    tool.result_card = Box::new(|_, meta| {
        assert!(meta.is_some(), "obsolete meta");
        ResultCard::default()
    });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let (_, events) = heard(&rig, "{}").await;
    let before = pending(&events);
    assert_eq!((before.title.as_str(), before.kind, before.items.len()), ("probe", CallKind::Other, 0));
    assert_eq!(finished(&events), ResultCard { items: vec![CardItem::Text("ok".into())], ..ResultCard::default() });
    assert_eq!(rig.counts.tally(), [1; 7]);
}

#[tokio::test]
async fn an_unknown_tool_and_a_failure_are_shown_by_what_there_is() {
    let rig = Rig::new();
    let (_, events) = heard(&rig, "{}").await;
    assert_eq!(pending(&events).title, "probe");
    let said = CardItem::Text(r#"Error: unknown tool "probe""#.into());
    assert_eq!(finished(&events).items, [said]);
}

#[tokio::test]
async fn a_rewritten_call_is_shown_with_what_really_runs() {
    let rig = Rig::new();
    shown(&rig);
    rig.pre(Rank(-1), |view, next| {
        if view.call().is_nested() {
            return next.delegate();
        }
        Box::pin(async move {
            let Gated::Pass(permit) = view.substitute(json(r#"{"n":2}"#), Standing::Silent).await else {
                panic!("refused")
            };
            Ok(PreAnswer::new(PreTool::Allow(Allow::through(permit))))
        })
    });
    let (_, events) = heard(&rig, r#"{"n":1}"#).await;
    let order: Vec<String> = events
        .iter()
        .filter_map(|e| match e {
            LiveEvent::CallPending { call_id, card, .. } => Some(format!("pending {call_id} {}", card.title)),
            LiveEvent::CallRunning { call_id, rewritten } => {
                let (card, input) = rewritten.clone()?;
                Some(format!("running {call_id} {} {input}", card.title))
            }
            LiveEvent::CallFinished { call_id, is_error, .. } => Some(format!("finished {call_id} {is_error}")),
            _ => None,
        })
        .collect();
    assert_eq!(order, [r#"pending c1 probe {"n":1}"#, r#"running c1 probe {"n":2} {"n":2}"#, "finished c1 false"]);
}

#[tokio::test]
async fn r_068_a_question_hides_secrets_in_its_input_and_its_card_and_the_body_gets_them() {
    let rig = Rig::new();
    let ran: Arc<Mutex<Vec<String>>> = Arc::default();
    let keeps = Arc::clone(&ran);
    let mut tool = Custom::new(
        "shell",
        &rig.counts,
        Arc::new(move |body| {
            keeps.lock().unwrap().push(body.input().text().to_owned());
            ready(Ok(json(r#""ran""#)))
        }),
    );
    tool.parameters = r#"{"type":"object","properties":{"command":{"type":"string"},"env":{"type":"object"}}}"#;
    tool.card = Box::new(|input| CallCard {
        title: input.str_at("command").unwrap_or_default().to_owned(),
        kind: CallKind::Execute,
        items: vec![CardItem::Text(input.text().to_owned())],
        locations: Vec::new(),
    });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Mode))));
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&shown);
    on::<Approval, _>(&rig, Rank::NORMAL, move |view, _| {
        assert!(view.sealed.text().contains("hunter2"));
        seen.lock().unwrap().extend([view.card.input.text().to_owned(), format!("{:?}", view.card)]);
        ready(Ok(ApprovalOutcome::AllowedOnce))
    });
    let given = r#"{"command":"API_KEY=hunter2 make","env":{"DB_PASSWORD":"hunter2"}}"#;
    let one = one(&rig, "shell", given).await;
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown[0], r#"{"command":"API_KEY=<redacted> make","env":{"DB_PASSWORD":"<redacted>"}}"#);
    assert!(!shown[1].contains("hunter2") && shown[1].contains("API_KEY=<redacted> make"), "{}", shown[1]);
    assert_eq!(*ran.lock().unwrap(), [given]);
    let events = one.agent.log().since(Seq(0));
    let questions: Vec<_> = events.iter().filter(|e| e.kind.starts_with("approval/")).collect();
    assert!(questions.len() == 2 && questions.iter().all(|e| !e.data.text().contains("API_KEY")));
}
