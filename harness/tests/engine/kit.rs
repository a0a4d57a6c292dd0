//! More parts for the rig: a tool with every seam open, listeners of any point, an ear, and what every pipeline test
//! asserts of the log.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::Fut;
use sluice_harness::agent::{Agent, AgentSpec, TurnReport};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Block, Role};
use sluice_harness::context::{Context, Rank};
use sluice_harness::ids::Seq;
use sluice_harness::json::Json;
use sluice_harness::log::SessionLog;
use sluice_harness::log::event::{ToolCall, ToolResult, TurnEnded};
use sluice_harness::permission::{Mode, PermissionStore};
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::point::session::StartSource;
use sluice_harness::point::tools::{Allow, AskOrigin, DeniedBy, PreAnswer, PreTool, Reason};
use sluice_harness::point::{Listener, ListenerFault, Next, Note, Observer, Point};
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::live::{LiveEvent, LiveSink, NoticeLevel};
use sluice_harness::seam::model::{Model, ModelFault, ModelInfo, ModelRequest, ModelStream};
use sluice_harness::tool::{
    BodyView, CallCard, CallFacts, CallKind, Concurrency, Content, ResultCard, Tool, ToolFailure, Verdict,
};

use crate::rig::{Act, Counts, Play, Rig, bump, calls, prompt, results};

/// A future that is there at once.
pub(crate) fn ready<'a, T: Send + 'a>(value: T) -> Fut<'a, T> {
    Box::pin(std::future::ready(value))
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

pub(crate) fn context(text: &str) -> ContextMessage {
    ContextMessage { source: "test".into(), role: Role::System, text: text.into() }
}

pub(crate) fn texts(contexts: &[ContextMessage]) -> Vec<&str> {
    contexts.iter().map(|c| c.text.as_str()).collect()
}

pub(crate) fn allow() -> PreAnswer {
    PreAnswer::new(PreTool::Allow(Allow::plain()))
}

pub(crate) fn deny(text: &str) -> PreAnswer {
    PreAnswer::new(PreTool::Deny(Reason::new(DeniedBy::Hook, text)))
}

pub(crate) fn ask(reason: Option<&str>, origin: AskOrigin) -> PreAnswer {
    PreAnswer::new(PreTool::Ask { reason: reason.map(str::to_owned), origin })
}

/// A listener of any point given by a closure.
pub(crate) struct On<P, F>(F, PhantomData<fn() -> P>);

impl<P: Point, F> Listener<P> for On<P, F>
where
    F: for<'a> Fn(P::View<'a>, Next<'a, P>) -> Fut<'a, Result<P::Decision, ListenerFault>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "test-listener"
    }
    fn decide<'a>(&'a self, view: P::View<'a>, next: Next<'a, P>) -> Fut<'a, Result<P::Decision, ListenerFault>> {
        (self.0)(view, next)
    }
}

/// Mounts a listener on the rig's root.
pub(crate) fn on<P: Point, F>(rig: &Rig, rank: Rank, f: F)
where
    F: for<'a> Fn(P::View<'a>, Next<'a, P>) -> Fut<'a, Result<P::Decision, ListenerFault>> + Send + Sync + 'static,
{
    on_in::<P, F>(&rig.root, rank, f);
}

/// Mounts a listener on a scope.
pub(crate) fn on_in<P: Point, F>(scope: &Context, rank: Rank, f: F)
where
    F: for<'a> Fn(P::View<'a>, Next<'a, P>) -> Fut<'a, Result<P::Decision, ListenerFault>> + Send + Sync + 'static,
{
    scope.listen::<P>(rank, On(f, PhantomData)).unwrap();
}

/// An observer of any notification given by a closure.
pub(crate) struct Sees<N, F>(F, PhantomData<fn() -> N>);

impl<N: Note, F> Observer<N> for Sees<N, F>
where
    F: for<'a, 'b> Fn(&'a N::Snapshot<'b>) + Send + Sync + 'static,
{
    fn observe(&self, snapshot: &N::Snapshot<'_>) {
        (self.0)(snapshot);
    }
}

/// Mounts an observer on the rig's root.
pub(crate) fn sees<N: Note, F>(rig: &Rig, f: F)
where
    F: for<'a, 'b> Fn(&'a N::Snapshot<'b>) + Send + Sync + 'static,
{
    sees_in::<N, F>(&rig.root, f);
}

/// Mounts an observer on a scope.
pub(crate) fn sees_in<N: Note, F>(scope: &Context, f: F)
where
    F: for<'a, 'b> Fn(&'a N::Snapshot<'b>) + Send + Sync + 'static,
{
    scope.observe::<N>(Sees(f, PhantomData)).unwrap();
}

type Finalize = Box<dyn Fn(Option<&Json>, &[Block]) -> Option<Content> + Send + Sync>;

type Meta = Box<dyn Fn(&Json) -> Option<Json> + Send + Sync>;
type Shows = Box<dyn Fn(&[Block], Option<&Json>) -> ResultCard + Send + Sync>;

/// A tool with every seam open; counts bodies and finalizers.
pub(crate) struct Custom {
    pub(crate) name: &'static str,
    pub(crate) counts: Arc<Counts>,
    pub(crate) act: Act,
    pub(crate) parameters: &'static str,
    pub(crate) finalize: Finalize,
    pub(crate) render: Box<dyn Fn(&Json) -> Content + Send + Sync>,
    pub(crate) verdict: Box<dyn Fn(&Json) -> Verdict + Send + Sync>,
    pub(crate) meta: Meta,
    pub(crate) concurrency: Box<dyn Fn(&Json) -> Concurrency + Send + Sync>,
    pub(crate) facts: Box<dyn Fn(&Json) -> CallFacts + Send + Sync>,
    pub(crate) card: Box<dyn Fn(&Json) -> CallCard + Send + Sync>,
    pub(crate) result_card: Shows,
    pub(crate) timeout: Option<Duration>,
}

impl Custom {
    pub(crate) fn new(name: &'static str, counts: &Arc<Counts>, act: Act) -> Self {
        Self {
            name,
            counts: Arc::clone(counts),
            act,
            parameters: r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#,
            finalize: Box::new(|_, _| None),
            render: Box::new(|value| vec![Block::text(value.view().as_str().unwrap_or_default())]),
            verdict: Box::new(|_| Verdict::Succeeded),
            meta: Box::new(|_| None),
            concurrency: Box::new(|_| Concurrency::Exclusive),
            facts: Box::new(|_| CallFacts::default()),
            card: Box::new(move |_| CallCard {
                title: name.to_owned(),
                kind: CallKind::Other,
                items: Vec::new(),
                locations: Vec::new(),
            }),
            result_card: Box::new(|_, _| ResultCard::default()),
            timeout: None,
        }
    }
}

impl Tool for Custom {
    fn name(&self) -> &str {
        self.name
    }
    fn description(&self) -> &str {
        "a custom probe"
    }
    fn parameters(&self) -> Json {
        json(self.parameters)
    }
    fn output(&self) -> Json {
        json(r#"{"type":"string"}"#)
    }
    fn concurrency(&self, input: &Json) -> Concurrency {
        (self.concurrency)(input)
    }
    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
    fn facts(&self, input: &Json) -> CallFacts {
        (self.facts)(input)
    }
    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        bump(&self.counts.body);
        (self.act)(body)
    }
    fn render(&self, _: &Json, value: &Json) -> Content {
        (self.render)(value)
    }
    fn verdict(&self, _: &Json, value: &Json) -> Verdict {
        (self.verdict)(value)
    }
    fn meta(&self, _: &Json, value: &Json) -> Option<Json> {
        (self.meta)(value)
    }
    fn present_call(&self, input: &Json) -> CallCard {
        (self.card)(input)
    }
    fn present_result(&self, _: &Json, content: &[Block], meta: Option<&Json>) -> ResultCard {
        (self.result_card)(content, meta)
    }
    fn finalize(&self, input: Option<&Json>, content: &[Block]) -> Option<Content> {
        bump(&self.counts.finalizer);
        (self.finalize)(input, content)
    }
}

type Streams = dyn Fn(ModelRequest, Cancel) -> Fut<'static, Result<Box<dyn ModelStream>, ModelFault>> + Send + Sync;

/// A model given by two closures.
pub(crate) struct FnModel {
    pub(crate) info: Box<dyn Fn() -> ModelInfo + Send + Sync>,
    pub(crate) stream: Box<Streams>,
}

impl Model for FnModel {
    fn info(&self) -> ModelInfo {
        (self.info)()
    }
    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Box<dyn ModelStream>, ModelFault>> {
        (self.stream)(request, cancel.clone())
    }
}

/// An ear that keeps what it hears.
#[derive(Default)]
pub(crate) struct Ear(pub(crate) Mutex<Vec<LiveEvent>>);

impl Ear {
    pub(crate) fn notices(&self) -> Vec<(NoticeLevel, String)> {
        let heard = self.0.lock().unwrap();
        heard
            .iter()
            .filter_map(|e| if let LiveEvent::Notice(n) = e { Some((n.level, n.text.clone())) } else { None })
            .collect()
    }
}

impl LiveSink for Ear {
    fn send(&self, event: LiveEvent) -> Fut<'_, ()> {
        self.0.lock().unwrap().push(event);
        ready(())
    }
}

/// An agent over a new log that tells `live`.
pub(crate) fn agent_with(rig: &Rig, live: Arc<dyn LiveSink>) -> Agent {
    let log = SessionLog::create(&rig.dir.path().join("sessions"), rig.header()).unwrap();
    agent_over(rig, log, live, StartSource::Startup)
}

pub(crate) fn agent_over(rig: &Rig, log: SessionLog, live: Arc<dyn LiveSink>, source: StartSource) -> Agent {
    let dir = rig.dir.path().to_path_buf();
    let session = SessionFacts::new(
        log.handle().header().id,
        dir.clone(),
        dir.clone(),
        dir.join("state"),
        Arc::new(PermissionStore::new(Mode::Default)),
        rig.player.info(),
    );
    Agent::start(AgentSpec {
        context: rig.root.child("agent").unwrap(),
        session: Arc::new(session),
        log,
        live,
        system: "be brief".into(),
        limits: rig.limits,
        retry: rig.retry,
        source,
    })
    .with_jitter(rig.jitter)
}

/// Asserts that the log has exactly these calls in this order, each before its one result, the results in the same
/// order, each citing its call.
pub(crate) fn assert_pairs(agent: &Agent, ids: &[&str]) {
    let events = agent.log().since(Seq(0));
    let called: Vec<(Seq, ToolCall)> = events.iter().filter_map(|e| Some((e.seq, e.decode()?))).collect();
    let answered: Vec<(Seq, ToolResult)> = events.iter().filter_map(|e| Some((e.seq, e.decode()?))).collect();
    assert_eq!(called.iter().map(|(_, c)| c.call_id.as_str()).collect::<Vec<_>>(), ids, "calls");
    assert_eq!(answered.iter().map(|(_, r)| r.call_id.as_str()).collect::<Vec<_>>(), ids, "results");
    for ((at, _), (then, result)) in called.iter().zip(&answered) {
        assert!(at < then);
        assert_eq!(result.call_seq, Some(*at));
    }
}

/// One call's one result, with the agent that made it.
pub(crate) struct One {
    pub(crate) result: ToolResult,
    pub(crate) call: ToolCall,
    pub(crate) report: TurnReport,
    pub(crate) agent: Agent,
}

impl One {
    pub(crate) fn code(&self) -> Option<&str> {
        self.result.error.as_ref().map(|e| e.code.as_str())
    }
}

/// One prompt whose only call is `c1`, then a final text; the log has one call and one result.
pub(crate) async fn one(rig: &Rig, name: &'static str, arguments: &'static str) -> One {
    rig.plays([Play::Calls(vec![("c1", name, arguments)]), Play::Text("done")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_pairs(&agent, &["c1"]);
    One { result: results(&agent).remove(0), call: calls(&agent).remove(0), report, agent }
}

/// The context messages of the log in order.
pub(crate) fn logged_contexts(agent: &Agent) -> Vec<String> {
    let events = agent.log().since(Seq(0));
    events.iter().filter_map(|e| e.decode::<sluice_harness::log::event::ContextAdded>()).map(|c| c.text).collect()
}

/// The last `turn/end` of the log, which must be its last event.
pub(crate) fn logged_end(agent: &Agent) -> sluice_harness::agent::TurnEnd {
    let events = agent.log().since(Seq(0));
    events.last().unwrap().decode::<TurnEnded>().expect("the turn is not closed").end
}

/// Asserts that every turn, step and call of the log is closed, in order.
pub(crate) fn assert_balanced(agent: &Agent) {
    let mut open: Vec<&str> = Vec::new();
    let events = agent.log().since(Seq(0));
    let mut due: Vec<String> = Vec::new();
    for event in &events {
        match &*event.kind {
            "turn/start" => {
                assert!(open.is_empty());
                open.push("turn");
            }
            "step/start" => {
                assert_eq!(open, ["turn"]);
                open.push("step");
            }
            "tool/call" => due.push(event.decode::<ToolCall>().unwrap().call_id.to_string()),
            "tool/result" => {
                let id = event.decode::<ToolResult>().unwrap().call_id.to_string();
                due.retain(|d| *d != id);
            }
            "step/end" => {
                assert_eq!(open.pop(), Some("step"));
                assert_eq!(due, Vec::<String>::new());
            }
            "turn/end" => assert_eq!(open.pop(), Some("turn")),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} is still open");
}
