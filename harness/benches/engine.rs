//! What the engine itself costs: numbers to look at, nothing is asserted.
//!
//! `cargo bench -p sluice-harness` prints the pipeline's cost of a call with no listeners and with ten, an append with
//! and without its barrier, and what it takes to load a log of 100,000 events, as multiples of merely parsing its
//! lines and of its size.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::content::Block;
use sluice_harness::context::{Context, Rank};
use sluice_harness::ids::{CallId, PromptId, SessionId, TurnId};
use sluice_harness::json::Json;
use sluice_harness::log::event::FORMAT_VERSION;
use sluice_harness::log::{CallResult, Header, SessionLog, log_path, now_rfc3339};
use sluice_harness::permission::{Mode, PermissionStore};
use sluice_harness::pipeline::{CallRequest, Gated, dispatch, gate, seal, settle};
use sluice_harness::point::tools::{PolicyView, PostAnswer, PostExecute, PostView, PreAnswer, PreExecute};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::registry;
use sluice_harness::scene::{SessionFacts, SessionScene, StopLatch};
use sluice_harness::seam::live::Silent;
use sluice_harness::seam::model::{ModelInfo, StopReason};
use sluice_harness::tool::{BodyView, CallCard, CallKind, Content, Tool, ToolFailure};

/// Set for a process of its own that opens this log and tells its peak memory.
const OPEN: &str = "SLUICE_BENCH_OPEN";

fn main() {
    if let Ok(path) = std::env::var(OPEN) {
        return open_alone(Path::new(&path));
    }
    divan::main();
    let events = std::env::var("SLUICE_BENCH_EVENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    loading(events);
}

struct Echo;

impl Tool for Echo {
    fn name(&self) -> &str {
        "echo"
    }
    fn description(&self) -> &str {
        "gives back its input"
    }
    fn parameters(&self) -> Json {
        Json::parse(r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#).unwrap()
    }
    fn output(&self) -> Json {
        Json::parse(r#"{"type":"object"}"#).unwrap()
    }
    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(std::future::ready(Ok(body.input().clone())))
    }
    fn render(&self, _: &Json, value: &Json) -> Content {
        vec![Block::text(value.text())]
    }
    fn present_call(&self, _: &Json) -> CallCard {
        CallCard { title: "echo".into(), kind: CallKind::Other, items: Vec::new(), locations: Vec::new() }
    }
}

struct Passes;

impl Listener<PreExecute> for Passes {
    fn name(&self) -> &str {
        "passes"
    }
    fn decide<'a>(
        &'a self,
        _: PolicyView<'a>,
        next: Next<'a, PreExecute>,
    ) -> Fut<'a, Result<PreAnswer, ListenerFault>> {
        next.delegate()
    }
}

impl Listener<PostExecute> for Passes {
    fn name(&self) -> &str {
        "passes"
    }
    fn decide<'a>(
        &'a self,
        _: PostView<'a>,
        next: Next<'a, PostExecute>,
    ) -> Fut<'a, Result<PostAnswer, ListenerFault>> {
        next.delegate()
    }
}

fn log_in(dir: &Path) -> SessionLog {
    let header = Header {
        r#type: "session".into(),
        version: FORMAT_VERSION,
        id: SessionId::fresh(),
        created_at: now_rfc3339(),
        cwd: "/project".into(),
        parent: None,
    };
    SessionLog::create(dir, header).unwrap()
}

/// A folder in memory where there is one, so that the disk does not drown what is measured.
fn memory() -> tempfile::TempDir {
    tempfile::Builder::new().tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

#[divan::bench(args = [0, 10])]
fn one_call_through_the_pipeline(bencher: divan::Bencher<'_, '_>, listeners: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dir = memory();
    let log = log_in(dir.path());
    let context = Context::root("bench");
    registry::register(&context, Arc::new(Echo)).unwrap();
    for _ in 0..listeners {
        context.listen::<PreExecute>(Rank::NORMAL, Passes).unwrap();
        context.listen::<PostExecute>(Rank::NORMAL, Passes).unwrap();
    }
    let model = ModelInfo { provider: "x".into(), model: "x".into(), effort: None, context_window: None };
    let session = SessionFacts::new(
        SessionId::fresh(),
        "/project".into(),
        "/project".into(),
        "/state".into(),
        Arc::new(PermissionStore::new(Mode::Default)),
        model,
    );
    let scene = SessionScene {
        context,
        session: Arc::new(session),
        log: log.handle(),
        live: Arc::new(Silent),
        turn: None,
        cancel: Cancel::new(),
        latch: Arc::new(StopLatch::new()),
    };
    bencher.bench_local(|| {
        runtime.block_on(async {
            let request =
                CallRequest { call_id: CallId::new("c"), name: "echo".into(), arguments: r#"{"text":"hello"}"#.into() };
            let sealed = seal(&scene.context, &scene.session, request);
            let candidate = match gate(sealed, scene.scene()).await {
                Gated::Pass(permit) => dispatch(permit, scene.scene()).await,
                Gated::Refused(candidate) => candidate,
            };
            settle(candidate, scene.scene()).await
        })
    });
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Barrier {
    None,
    InMemory,
    OnDisk,
}

#[divan::bench(args = [Barrier::None, Barrier::InMemory, Barrier::OnDisk])]
fn one_append(bencher: divan::Bencher<'_, '_>, barrier: Barrier) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dir = if barrier == Barrier::OnDisk { tempfile::tempdir_in(".").unwrap() } else { memory() };
    let mut log = log_in(dir.path());
    let handle = log.handle();
    let turn = log.turn(TurnId::fresh(), PromptId::fresh()).unwrap();
    bencher.bench_local(|| {
        turn.user("user", vec![Block::text("a message of some forty characters, more or less")]).unwrap();
        if barrier != Barrier::None {
            runtime.block_on(handle.durable()).unwrap();
        }
    });
}

/// Writes a log of about so many events and says what opening it takes.
fn loading(events: usize) {
    let dir = memory();
    let mut log = log_in(dir.path());
    let id = log.handle().header().id;
    let per_step = 6;
    let text = "a line of the file that was read, as long as such lines are\n".repeat(6);
    let mut turn = log.turn(TurnId::fresh(), PromptId::fresh()).unwrap();
    turn.user("user", vec![Block::text("go")]).unwrap();
    for n in 0..events / per_step {
        let step = turn.step().unwrap();
        step.sent(1, n as u64).unwrap();
        let call = CallId::new(format!("call_{n}"));
        let input = Json::parse(r#"{"file_path":"/project/src/main.rs","limit":40}"#).unwrap();
        let block = Block::ToolUse { id: call.as_str().into(), name: "Read".into(), input: input.clone(), raw: None };
        step.assistant(vec![block], "x", "x", Some(StopReason::ToolUse), None, false).unwrap();
        let open = step.call(&call, "Read", input.text(), Some(input.clone())).unwrap();
        let content = vec![Block::text(text.clone())];
        step.result(open, CallResult { content, is_error: false, error: None, denied_by: None, meta: None }).unwrap();
        step.end().unwrap();
    }
    turn.end(sluice_harness::agent::TurnEnd::MaxTokens).unwrap();
    drop(log);

    let path = log_path(dir.path(), &id).unwrap();
    let file = std::fs::read_to_string(&path).unwrap();
    let best = |run: &dyn Fn()| (0..3).map(|_| timed(run)).min().unwrap_or_default();
    let values = best(&|| file.lines().for_each(|l| drop(serde_json::from_str::<serde_json::Value>(l).unwrap())));
    let lossless = best(&|| file.lines().for_each(|l| drop(Json::parse(l).unwrap())));
    let opening = best(&|| drop(SessionLog::open(dir.path(), &id).unwrap()));
    let size = file.len();
    drop(file);
    let opened = SessionLog::open(dir.path(), &id).unwrap();
    let count = opened.0.handle().len();
    #[expect(clippy::cast_precision_loss, reason = "ratios for people")]
    let ratio = |a: usize, b: usize| a as f64 / b.max(1) as f64;
    let micros = |d: Duration| usize::try_from(d.as_micros()).unwrap_or(usize::MAX);
    println!("opening a log of {count} events, {:.1} MB: {opening:.2?}", ratio(size, 1_000_000));
    println!("  {:.2} x parsing its lines as plain values ({values:.2?})", ratio(micros(opening), micros(values)));
    println!("  {:.2} x parsing its lines losslessly ({lossless:.2?})", ratio(micros(opening), micros(lossless)));
    drop(opened);
    // In a process of its own, where nothing that was freed before hides what opening takes.
    let alone = std::process::Command::new(std::env::current_exe().unwrap()).env(OPEN, &path).output().unwrap();
    let peak = String::from_utf8_lossy(&alone.stdout).trim().parse().unwrap_or(0);
    println!("  peak memory {:.2} x the file", ratio(peak, size));
}

/// Opens a log and prints how many bytes that took at the most.
fn open_alone(path: &Path) {
    let id = SessionId::new(path.file_stem().and_then(|s| s.to_str()).unwrap());
    let before = resident("VmRSS:");
    let opened = SessionLog::open(path.parent().unwrap(), &id).unwrap();
    println!("{}", resident("VmHWM:").saturating_sub(before));
    drop(opened);
}

/// A memory figure of this process in bytes; 0 where the system does not tell.
fn resident(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) * 1024
}

fn timed(run: &dyn Fn()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}
