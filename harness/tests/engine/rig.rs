//! The rig: an agent over a temporary log, a model that plays steps, tools that count and wait, listeners that count.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::Fut;
use sluice_harness::agent::{Agent, AgentSpec, Jitter, Limits, RetryPolicy, TurnReport};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::{Block, plain_text};
use sluice_harness::context::{Context, Rank};
use sluice_harness::ids::{Seq, SessionId};
use sluice_harness::json::Json;
use sluice_harness::log::event::{FORMAT_VERSION, Header, ToolCall, ToolResult, TurnStart};
use sluice_harness::log::{SessionLog, now_rfc3339};
use sluice_harness::permission::{Mode, PermissionStore};
use sluice_harness::pipeline::{Attempt, Frozen};
use sluice_harness::point::session::StartSource;
use sluice_harness::point::tools::{
    Dispatch, PolicyView, PostAnswer, PostExecute, PostResult, PostView, PreAnswer, PreExecute, ResultView,
    ToolResultNote, Wrapper,
};
use sluice_harness::point::{Listener, ListenerFault, Next, Observer};
use sluice_harness::registry;
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::live::Silent;
use sluice_harness::seam::model::{Model, ModelEvent, ModelFault, ModelInfo, ModelRequest, ModelStream, StopReason};
use sluice_harness::tool::{BodyView, CallCard, CallKind, Concurrency, Content, Tool, ToolFailure};
use tempfile::TempDir;

/// A watchdog for whatever a test awaits.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// Everything that the pipeline tests count.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) pre: AtomicUsize,
    pub(crate) guard: AtomicUsize,
    pub(crate) wrapper: AtomicUsize,
    pub(crate) body: AtomicUsize,
    pub(crate) post: AtomicUsize,
    pub(crate) finalizer: AtomicUsize,
    pub(crate) observer: AtomicUsize,
}

/// The counters as numbers: pre, guard, wrapper, body, post, finalizer, observer.
pub(crate) type Tally = [usize; 7];

impl Counts {
    pub(crate) fn tally(&self) -> Tally {
        [&self.pre, &self.guard, &self.wrapper, &self.body, &self.post, &self.finalizer, &self.observer]
            .map(|c| c.load(Ordering::SeqCst))
    }
}

pub(crate) fn bump(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::SeqCst);
}

/// What a probe's body does with its input.
pub(crate) type Act = Arc<dyn for<'a> Fn(BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> + Send + Sync>;

/// A tool whose body is given by the test.
pub(crate) struct Probe {
    pub(crate) name: &'static str,
    pub(crate) concurrency: Concurrency,
    pub(crate) timeout: Option<Duration>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) act: Act,
}

impl Probe {
    pub(crate) fn new(name: &'static str, counts: &Arc<Counts>, act: Act) -> Self {
        Self { name, concurrency: Concurrency::Exclusive, timeout: None, counts: Arc::clone(counts), act }
    }
}

/// A body that answers at once.
pub(crate) fn answers(value: &'static str) -> Act {
    Arc::new(move |_| Box::pin(std::future::ready(Ok(Json::of(value).unwrap()))))
}

impl Tool for Probe {
    fn name(&self) -> &str {
        self.name
    }
    fn description(&self) -> &str {
        "a probe"
    }
    fn parameters(&self) -> Json {
        Json::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#).unwrap()
    }
    fn output(&self) -> Json {
        Json::parse(r#"{"type":"string"}"#).unwrap()
    }
    fn concurrency(&self, _: &Json) -> Concurrency {
        self.concurrency
    }
    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }
    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        bump(&self.counts.body);
        (self.act)(body)
    }
    fn render(&self, _: &Json, value: &Json) -> Content {
        vec![Block::text(value.view().as_str().unwrap_or_default())]
    }
    fn present_call(&self, input: &Json) -> CallCard {
        CallCard {
            title: format!("{} {input}", self.name),
            kind: CallKind::Other,
            items: Vec::new(),
            locations: Vec::new(),
        }
    }
    fn finalize(&self, _: Option<&Json>, _: &[Block]) -> Option<Content> {
        bump(&self.counts.finalizer);
        None
    }
}

/// A pre-execute listener given by a closure.
pub(crate) struct Pre<F>(pub(crate) F);

impl<F> Listener<PreExecute> for Pre<F>
where
    F: for<'a> Fn(PolicyView<'a>, Next<'a, PreExecute>) -> Fut<'a, Result<PreAnswer, ListenerFault>>
        + Send
        + Sync
        + 'static,
{
    fn name(&self) -> &str {
        "test-pre"
    }
    fn decide<'a>(
        &'a self,
        view: PolicyView<'a>,
        next: Next<'a, PreExecute>,
    ) -> Fut<'a, Result<PreAnswer, ListenerFault>> {
        (self.0)(view, next)
    }
}

/// A post-execute listener given by a closure.
pub(crate) struct Post<F>(pub(crate) F);

impl<F> Listener<PostExecute> for Post<F>
where
    F: for<'a> Fn(PostView<'a>, Next<'a, PostExecute>) -> Fut<'a, Result<PostAnswer, ListenerFault>>
        + Send
        + Sync
        + 'static,
{
    fn name(&self) -> &str {
        "test-post"
    }
    fn decide<'a>(
        &'a self,
        view: PostView<'a>,
        next: Next<'a, PostExecute>,
    ) -> Fut<'a, Result<PostAnswer, ListenerFault>> {
        (self.0)(view, next)
    }
}

/// A wrapper given by a closure.
pub(crate) struct Wrap<F>(pub(crate) F);

impl<F> Wrapper for Wrap<F>
where
    F: for<'a> Fn(Dispatch<'a>) -> Fut<'a, Result<Attempt, ListenerFault>> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "test-wrapper"
    }
    fn around<'a>(&'a self, dispatch: Dispatch<'a>) -> Fut<'a, Result<Attempt, ListenerFault>> {
        (self.0)(dispatch)
    }
}

struct Watching(Arc<Counts>, Arc<Mutex<Vec<Frozen>>>);

impl Observer<ToolResultNote> for Watching {
    fn observe(&self, snapshot: &ResultView<'_>) {
        bump(&self.0.observer);
        self.1.lock().unwrap().push(snapshot.result.clone());
    }
}

/// What one model exchange plays.
#[derive(Clone)]
pub(crate) enum Play {
    Text(&'static str),
    Calls(Vec<(&'static str, &'static str, &'static str)>),
    Events(Vec<Result<ModelEvent, ModelFault>>),
    /// Never answers.
    Hang,
    /// These, and then the signal fires and nothing more comes.
    Stalls(Vec<ModelEvent>, Cancel),
}

/// A model that plays exchanges in order and keeps the requests.
#[derive(Default)]
pub(crate) struct Player {
    pub(crate) plays: Mutex<VecDeque<Play>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
}

struct Tape(VecDeque<Result<ModelEvent, ModelFault>>, bool, Option<Cancel>);

impl ModelStream for Tape {
    fn next(&mut self) -> Fut<'_, Option<Result<ModelEvent, ModelFault>>> {
        let next = self.0.pop_front();
        let hang = self.1;
        let fires = self.2.clone();
        Box::pin(async move {
            if next.is_none() && hang {
                if let Some(fires) = fires {
                    fires.cancel(CancelCause::User);
                }
                std::future::pending::<()>().await;
            }
            next
        })
    }
}

impl Model for Player {
    fn info(&self) -> ModelInfo {
        ModelInfo { provider: "test".into(), model: "player".into(), effort: None, context_window: None }
    }
    fn stream<'a>(&'a self, request: ModelRequest, _: &'a Cancel) -> Fut<'a, Result<Box<dyn ModelStream>, ModelFault>> {
        self.requests.lock().unwrap().push(request);
        let play = self.plays.lock().unwrap().pop_front().expect("the model was asked once too often");
        Box::pin(async move {
            let mut fires = None;
            let (events, hang) = match play {
                Play::Text(text) => {
                    (vec![Ok(ModelEvent::Text(text.into())), Ok(ModelEvent::Stop(StopReason::EndTurn))], false)
                }
                Play::Calls(calls) => {
                    let mut events: Vec<_> = calls
                        .into_iter()
                        .map(|(id, name, arguments)| {
                            Ok(ModelEvent::ToolCall {
                                id: Some(id.into()),
                                name: name.into(),
                                arguments: arguments.into(),
                            })
                        })
                        .collect();
                    events.push(Ok(ModelEvent::Stop(StopReason::ToolUse)));
                    (events, false)
                }
                Play::Events(events) => (events, false),
                Play::Stalls(events, cancel) => {
                    fires = Some(cancel);
                    (events.into_iter().map(Ok).collect(), true)
                }
                Play::Hang => (vec![Ok(ModelEvent::Text("half of it".into()))], true),
            };
            Ok(Box::new(Tape(events.into(), hang, fires)) as Box<dyn ModelStream>)
        })
    }
}

/// A whole agent for a test.
pub(crate) struct Rig {
    pub(crate) root: Context,
    pub(crate) counts: Arc<Counts>,
    pub(crate) frozen: Arc<Mutex<Vec<Frozen>>>,
    pub(crate) player: Arc<Player>,
    pub(crate) limits: Limits,
    pub(crate) retry: RetryPolicy,
    pub(crate) jitter: Jitter,
    pub(crate) dir: TempDir,
}

impl Rig {
    /// A rig whose listeners, guard and wrapper count and let everything through.
    pub(crate) fn new() -> Self {
        let root = Context::root("test");
        let counts = Arc::new(Counts::default());
        let frozen = Arc::new(Mutex::new(Vec::new()));
        let player = Arc::new(Player::default());
        root.provide::<dyn Model>(Arc::<Player>::clone(&player)).unwrap();
        root.observe::<ToolResultNote>(Watching(Arc::clone(&counts), Arc::clone(&frozen))).unwrap();
        let rig = Self {
            root,
            counts,
            frozen,
            player,
            limits: Limits::default(),
            retry: RetryPolicy { retries: 2, base: Duration::from_millis(1), cap: Duration::from_millis(5) },
            jitter: Jitter::None,
            dir: tempfile::tempdir().unwrap(),
        };
        let counts = Arc::clone(&rig.counts);
        rig.pre(Rank::OUTER, move |_, next| {
            bump(&counts.pre);
            next.delegate()
        });
        let counts = Arc::clone(&rig.counts);
        rig.post(Rank::OUTER, move |_, next| {
            bump(&counts.post);
            next.delegate()
        });
        let counts = Arc::clone(&rig.counts);
        rig.wrap(Rank::OUTER, move |mut dispatch| {
            bump(&counts.wrapper);
            Box::pin(async move { Ok(dispatch.run(None).await) })
        });
        let counts = Arc::clone(&rig.counts);
        rig.root
            .guard(sluice_harness::point::tools::Guard::new("counting", move |_| {
                bump(&counts.guard);
                None
            }))
            .unwrap();
        rig
    }

    pub(crate) fn pre<F>(&self, rank: Rank, f: F)
    where
        F: for<'a> Fn(PolicyView<'a>, Next<'a, PreExecute>) -> Fut<'a, Result<PreAnswer, ListenerFault>>
            + Send
            + Sync
            + 'static,
    {
        self.root.listen::<PreExecute>(rank, Pre(f)).unwrap();
    }

    pub(crate) fn post<F>(&self, rank: Rank, f: F)
    where
        F: for<'a> Fn(PostView<'a>, Next<'a, PostExecute>) -> Fut<'a, Result<PostAnswer, ListenerFault>>
            + Send
            + Sync
            + 'static,
    {
        self.root.listen::<PostExecute>(rank, Post(f)).unwrap();
    }

    pub(crate) fn wrap<F>(&self, rank: Rank, f: F)
    where
        F: for<'a> Fn(Dispatch<'a>) -> Fut<'a, Result<Attempt, ListenerFault>> + Send + Sync + 'static,
    {
        self.root.wrap(rank, Wrap(f)).unwrap();
    }

    pub(crate) fn tool(&self, probe: Probe) {
        registry::register(&self.root, Arc::new(probe)).unwrap();
    }

    pub(crate) fn probe(&self, name: &'static str, act: Act) {
        self.tool(Probe::new(name, &self.counts, act));
    }

    pub(crate) fn plays(&self, plays: impl IntoIterator<Item = Play>) {
        self.player.plays.lock().unwrap().extend(plays);
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            r#type: "session".into(),
            version: FORMAT_VERSION,
            id: SessionId::fresh(),
            created_at: now_rfc3339(),
            cwd: self.dir.path().to_path_buf(),
            parent: None,
        }
    }

    pub(crate) fn agent(&self) -> Agent {
        let log = SessionLog::create(&self.dir.path().join("sessions"), self.header()).unwrap();
        self.agent_over(log, StartSource::Startup)
    }

    pub(crate) fn agent_over(&self, log: SessionLog, source: StartSource) -> Agent {
        let dir: PathBuf = self.dir.path().to_path_buf();
        let session = SessionFacts::new(
            log.handle().header().id,
            dir.clone(),
            dir.clone(),
            dir.join("state"),
            Arc::new(PermissionStore::new(Mode::Default)),
            self.player.info(),
        );
        Agent::start(AgentSpec {
            context: self.root.child("agent").unwrap(),
            session: Arc::new(session),
            log,
            live: Arc::new(Silent),
            system: "be brief".into(),
            limits: self.limits,
            retry: self.retry,
            source,
        })
        .with_jitter(self.jitter)
    }

    /// One prompt whose only call is `name` with `arguments`, then a final text; returns the call's one result.
    pub(crate) async fn one_call(&self, name: &'static str, arguments: &'static str) -> (ToolResult, TurnReport) {
        self.plays([Play::Calls(vec![("c1", name, arguments)]), Play::Text("done")]);
        let agent = self.agent();
        let report = prompt(&agent, &Cancel::new()).await;
        (results(&agent).remove(0), report)
    }
}

/// Prompts under the watchdog; however the turn ended, every call of it then has its one result in the log.
pub(crate) async fn prompt(agent: &Agent, cancel: &Cancel) -> TurnReport {
    let turn = agent.prompt(vec![Block::text("go")], cancel);
    let report = tokio::time::timeout(WATCHDOG, turn).await.expect("the turn hangs");
    assert_one_result_each(agent);
    report
}

/// Durable calls and results of the last turn: 1 to 1, with equal ids, both in model order.
pub(crate) fn assert_one_result_each(agent: &Agent) {
    let Some(TurnStart { turn, .. }) = agent.log().last::<TurnStart>() else { return };
    let calls = calls(agent).into_iter().filter(|c| c.turn == turn).map(|c| c.call_id);
    let results = results(agent).into_iter().filter(|r| r.turn == turn).map(|r| r.call_id);
    let (calls, results): (Vec<_>, Vec<_>) = (calls.collect(), results.collect());
    assert_eq!(calls, results, "durable calls and results");
}

/// The durable results in order.
pub(crate) fn results(agent: &Agent) -> Vec<ToolResult> {
    agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect()
}

/// The durable calls in order.
pub(crate) fn calls(agent: &Agent) -> Vec<ToolCall> {
    agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect()
}

/// The kinds of the log's events in order.
pub(crate) fn kinds(agent: &Agent) -> Vec<String> {
    agent.log().since(Seq(0)).iter().map(|e| e.kind.to_string()).collect()
}

/// What the model read of a result.
pub(crate) fn text(result: &ToolResult) -> String {
    plain_text(&result.content)
}

/// Keeps a post view's result as it is.
pub(crate) fn keep(view: PostView<'_>) -> PostAnswer {
    match view.result() {
        PostResult::Success(success) => success.keep(),
        PostResult::Failure(failure) => failure.keep(),
    }
}
