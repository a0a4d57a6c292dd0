//! Sample sessions, and the judge of what a provider accepts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sluice_harness::agent::{CompletedHow, TurnEnd};
use sluice_harness::content::{Block, Role};
use sluice_harness::ids::{CallId, PromptId, SessionId, TurnId};
use sluice_harness::json::Json;
use sluice_harness::log::event::FORMAT_VERSION;
use sluice_harness::log::{CallResult, Header, SessionLog, Step, now_rfc3339};
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::seam::model::{StopReason, ToolSchema, Usage};
use tempfile::TempDir;

/// A folder that is gone after the test; in memory where the machine offers that, for some tests sync thousands of
/// times.
pub(crate) fn folder() -> TempDir {
    tempfile::Builder::new().tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub(crate) fn id() -> SessionId {
    SessionId::new("0195f0d2-7c1a-7000-8000-000000000001")
}

pub(crate) fn header(id: &SessionId) -> Header {
    Header {
        r#type: "session".to_owned(),
        version: FORMAT_VERSION,
        id: id.clone(),
        created_at: now_rfc3339(),
        cwd: PathBuf::from("/project"),
        parent: None,
    }
}

pub(crate) fn create(dir: &Path) -> SessionLog {
    SessionLog::create(dir, header(&id())).unwrap()
}

pub(crate) fn file(dir: &Path) -> PathBuf {
    dir.join(format!("{}.jsonl", id()))
}

pub(crate) fn turn(log: &mut SessionLog) -> sluice_harness::log::Turn<'_> {
    log.turn(TurnId::new("t"), PromptId::new("p")).unwrap()
}

pub(crate) fn done() -> TurnEnd {
    TurnEnd::Completed { how: CompletedHow::Normal, note: None }
}

pub(crate) fn call_id(id: &str) -> CallId {
    CallId::new(id)
}

pub(crate) fn tool_use(id: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "Read".to_owned(),
        input: Json::parse(r#"{"z":1.00,"a":123456789012345678901234567890}"#).unwrap(),
        raw: None,
    }
}

pub(crate) fn text_result(text: &str) -> CallResult {
    CallResult { content: vec![Block::text(text)], is_error: false, error: None, denied_by: None, meta: None }
}

pub(crate) fn answer(step: &Step<'_>, content: Vec<Block>) {
    let usage = Usage { input_tokens: 5, output_tokens: 7, cached_input_tokens: 0, ..Usage::default() };
    step.assistant(content, "script", "sequence", Some(StopReason::ToolUse), Some(usage), false).unwrap();
}

pub(crate) fn run(step: &Step<'_>, id: &str) {
    let open = step.call(&call_id(id), "Read", r#"{"z":1.00}"#, Some(Json::parse(r#"{"z":1.00}"#).unwrap())).unwrap();
    step.result(open, text_result(&format!("what {id} gave"))).unwrap();
}

/// Two turns: calls with results, a context, a retry, an answer without calls; then calls again.
pub(crate) async fn sample(dir: &Path) -> Vec<u8> {
    let mut log = create(dir);
    {
        let mut turn = turn(&mut log);
        turn.received(vec![Block::text("read two files\nplease – ü")]).unwrap();
        let step = turn.step().unwrap();
        step.user("user", vec![Block::text("read two files\nplease – ü")]).unwrap();
        let tools =
            vec![ToolSchema { name: "Read".into(), description: "reads".into(), parameters: Json::empty_object() }];
        step.header("initial", "script", "sequence", "be brief", tools, Some(1000)).unwrap();
        step.sent(1, 0).unwrap();
        step.retry(1, "overloaded", "busy", 500).unwrap();
        step.sent(2, 1).unwrap();
        answer(&step, vec![Block::text("reading"), tool_use("a"), tool_use("b")]);
        run(&step, "a");
        run(&step, "b");
        let context = ContextMessage { source: "hook".into(), role: Role::Developer, text: "mind the gap".into() };
        step.context(&context).unwrap();
        step.end().unwrap();
        let step = turn.step().unwrap();
        step.sent(1, 2).unwrap();
        answer(&step, Vec::new());
        step.end().unwrap();
        turn.end(done()).unwrap();
    }
    {
        let mut turn = turn(&mut log);
        turn.received(vec![Block::text("and another")]).unwrap();
        turn.user("user", vec![Block::text("and another")]).unwrap();
        let step = turn.step().unwrap();
        step.sent(1, 3).unwrap();
        answer(&step, vec![tool_use("c"), tool_use("d"), tool_use("e")]);
        let c = step.call(&call_id("c"), "Read", "{}", None).unwrap();
        let d = step.call(&call_id("d"), "Read", "{}", None).unwrap();
        step.result(c, text_result("c")).unwrap();
        step.result(d, text_result("d")).unwrap();
        run(&step, "e");
        step.end().unwrap();
        turn.end(done()).unwrap();
    }
    log.close().await.unwrap();
    fs::read(file(dir)).unwrap()
}

/// The lines of a log as text.
pub(crate) fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8(bytes.to_vec()).unwrap().lines().map(str::to_owned).collect()
}

/// This test binary again, to run one test that acts as another process; it finds its folder in `LOG_CHILD_DIR`.
pub(crate) fn another_process(test: &str, dir: &Path) -> Command {
    in_shell(r#"exec "$0" "$@""#, test, dir)
}

/// As [`another_process`], through a shell line that ends in `exec "$0" "$@"`.
pub(crate) fn in_shell(line: &str, test: &str, dir: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", line])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env("LOG_CHILD_DIR", dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The folder, in a process that [`another_process`] started; elsewhere there is nothing to act.
pub(crate) fn child_dir() -> Option<PathBuf> {
    std::env::var_os("LOG_CHILD_DIR").map(PathBuf::from)
}
