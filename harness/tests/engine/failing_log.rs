//! R-150, R-200: a log that the disk refuses, in the middle of a batch and at a turn's end. The turn ends as an error
//! that names the file, no body is left running, and the next open mends what is there.
//!
//! The disk refuses in another process, whose files may not grow beyond a limit.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sluice_harness::agent::{Agent, TurnEnd, TurnReport};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::ids::SessionId;
use sluice_harness::json::Json;
use sluice_harness::log::event::{LogRepaired, ToolResult, TurnEnded};
use sluice_harness::log::{LogHandle, SessionLog};
use sluice_harness::point::turn::{ContinuationDecision, StopWord, TurnContinuation};
use sluice_harness::registry;
use sluice_harness::tool::Concurrency;
use tempfile::TempDir;

use crate::kit::{Custom, on};
use crate::rig::{Play, Rig, WATCHDOG, bump};
use crate::validity::assert_provider_valid;

const DIR: &str = "ENGINE_CHILD_DIR";

/// Longer than the other process may make a file.
const TOO_LONG: usize = 200_000;

/// A prompt whose turn cannot be kept: what is in the log is another test's matter.
async fn prompt(agent: &Agent, cancel: &Cancel) -> TurnReport {
    let turn = agent.prompt(vec![Block::text("go")], cancel);
    tokio::time::timeout(WATCHDOG, turn).await.expect("the turn hangs")
}

fn child_dir() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

/// This test binary again, its files limited, to run one test as another process.
fn limited(test: &str, dir: &Path) -> String {
    let output = Command::new("/bin/sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -f 64; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
}

/// A rig whose sessions lie where the other process can find them.
fn rig_in(dir: &Path) -> Rig {
    Rig { dir: TempDir::new_in(dir).unwrap(), ..Rig::new() }
}

/// Keeps the rig's folder, and leaves word of it and of the session.
fn leave_word(dir: &Path, rig: Rig, agent: &Agent) {
    let path = agent.log().path().to_owned();
    std::fs::write(dir.join("session"), path.to_str().unwrap()).unwrap();
    let _ = rig.dir.keep();
}

/// Waits until the log has failed.
async fn refused(log: &LogHandle) {
    while log.durable().await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// What a turn is that could not be kept: an error that names the file, as every later prompt and the close are.
async fn assert_said(agent: &Agent, end: &TurnEnd) {
    let path = agent.log().path().to_str().unwrap().to_owned();
    let TurnEnd::Error { message, .. } = end else { panic!("{end:?}") };
    assert!(message.contains(&path) && message.contains("File too large"), "{message}");
    let again = prompt(agent, &Cancel::new()).await;
    assert_eq!((again.end, again.steps), (end.clone(), 0));
    let closing = agent.close("other", Duration::from_secs(5));
    let closed = tokio::time::timeout(WATCHDOG, closing).await.expect("the close hangs");
    assert!(closed.unwrap_err().to_string().contains(&path));
}

/// Opens what was left: mended once, valid for a provider, and whole from then on.
async fn mended(dir: &Path) -> LogHandle {
    let path = PathBuf::from(std::fs::read_to_string(dir.join("session")).unwrap());
    let id = SessionId::new(path.file_stem().unwrap().to_str().unwrap());
    let (log, report) = SessionLog::open(path.parent().unwrap(), &id).unwrap();
    assert_eq!(report.torn_bytes, 0, "what could not be written was cut off at once");
    assert!(report.closed_turn.is_some());
    let handle = log.handle();
    assert_provider_valid(&handle.messages());
    assert!(handle.last::<LogRepaired>().is_some());
    assert_eq!(handle.last::<TurnEnded>().unwrap().end, TurnEnd::Interrupted);
    log.close().await.unwrap();
    let (log, again) = SessionLog::open(path.parent().unwrap(), &id).unwrap();
    assert!(again.is_clean());
    let handle = log.handle();
    log.close().await.unwrap();
    handle
}

#[tokio::test]
async fn child_whose_log_fails_in_a_batch() {
    let Some(dir) = child_dir() else { return };
    let rig = rig_in(&dir);
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let log: Arc<std::sync::OnceLock<LogHandle>> = Arc::default();
    let (b, e, l) = (Arc::clone(&begun), Arc::clone(&ended), Arc::clone(&log));
    let mut tool = Custom::new(
        "t",
        &rig.counts,
        Arc::new(move |body| {
            let (b, e, l) = (Arc::clone(&b), Arc::clone(&e), Arc::clone(&l));
            Box::pin(async move {
                bump(&b);
                match body.input().view()["n"].as_u64().unwrap() {
                    // Its result is what the disk refuses.
                    1 => {}
                    // Its result is the first thing that cannot be recorded any more.
                    2 => refused(l.get().unwrap()).await,
                    // Goes on until it is told to end.
                    _ => {
                        body.scene().cancel.cancelled().await;
                    }
                }
                bump(&e);
                Ok(Json::of(&"x".repeat(TOO_LONG)).unwrap())
            })
        }),
    );
    tool.concurrency = Box::new(|_| Concurrency::Parallel);
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let calls = vec![("c1", "t", r#"{"n":1}"#), ("c2", "t", r#"{"n":2}"#), ("c3", "t", r#"{"n":3}"#)];
    rig.plays([Play::Calls(calls)]);
    let agent = rig.agent();
    log.set(agent.log().clone()).unwrap();
    let report = prompt(&agent, &Cancel::new()).await;
    let (begun, ended) = (begun.load(Ordering::SeqCst), ended.load(Ordering::SeqCst));
    assert!(begun >= 2 && begun == ended, "{ended} of {begun} bodies have ended");
    assert_said(&agent, &report.end).await;
    leave_word(&dir, rig, &agent);
}

#[tokio::test]
async fn r_150_a_log_that_fails_in_a_batch_ends_the_turn_with_its_bodies_awaited_and_is_mended_later() {
    let dir = tempfile::tempdir().unwrap();
    limited("failing_log::child_whose_log_fails_in_a_batch", dir.path());
    let log = mended(dir.path()).await;
    let results: Vec<ToolResult> = log.since(sluice_harness::ids::Seq(0)).iter().filter_map(|e| e.decode()).collect();
    assert_eq!(results.len(), 3, "every call of the answer has its one result");
    for result in &results {
        let code = result.error.as_ref().map(|e| e.code.as_str());
        assert!(matches!(code, Some("TOOL_OUTCOME_UNKNOWN" | "TOOL_NOT_STARTED")), "{result:?}");
    }
}

#[tokio::test]
async fn child_whose_log_fails_at_the_end_of_its_turn() {
    let Some(dir) = child_dir() else { return };
    let rig = rig_in(&dir);
    on::<TurnContinuation, _>(&rig, Rank::NORMAL, |view, _| {
        // The last listener before the end fills the disk; what fails first after it is the end itself.
        let log = view.scene.log;
        Box::pin(async move {
            let text = "x".repeat(TOO_LONG);
            log.append(&Filler { text }).unwrap();
            refused(log).await;
            Ok(ContinuationDecision::Stop(StopWord::Completed))
        })
    });
    rig.plays([Play::Text("done")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!((report.steps, report.text.as_str()), (1, "done"));
    assert_said(&agent, &report.end).await;
    leave_word(&dir, rig, &agent);
}

/// Some owner's event.
#[derive(serde::Serialize, serde::Deserialize)]
struct Filler {
    text: String,
}

impl sluice_harness::log::event::EventKind for Filler {
    const TYPE: &'static str = "test/filler";
    const IGNORABLE: bool = true;
}

#[tokio::test]
async fn r_200_a_turn_whose_end_cannot_be_written_says_so_and_is_closed_by_the_next_open() {
    let dir = tempfile::tempdir().unwrap();
    limited("failing_log::child_whose_log_fails_at_the_end_of_its_turn", dir.path());
    let log = mended(dir.path()).await;
    let said = log.last::<sluice_harness::log::event::AssistantMessage>().unwrap();
    assert_eq!(said.content, [sluice_harness::content::Block::text("done")], "what was durable is kept");
}
