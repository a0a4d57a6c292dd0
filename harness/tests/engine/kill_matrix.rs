//! R-245: the process dies at each moment of a turn at which something outside the engine runs or is told: every
//! listener, observer, body and live event. Whenever it was, the log opens again, mended once; the prompt is in it; the
//! history is one that a provider takes; and the next turn goes through.
//!
//! The dying is another process's, which aborts at the moment it is told by number.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sluice_harness::agent::{CompletedHow, TurnEnd};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::ids::{Seq, SessionId};
use sluice_harness::log::SessionLog;
use sluice_harness::log::event::{AssistantMessage, PromptReceived, ToolCall, ToolResult};
use sluice_harness::point::approval::Approval;
use sluice_harness::point::prompt::PromptSubmit;
use sluice_harness::point::ring::{BatchSettled, RequestEnded, RequestStarted};
use sluice_harness::point::session::StartSource;
use sluice_harness::point::tools::{AskOrigin, PostExecute, PreExecute};
use sluice_harness::point::turn::{TurnContinuation, TurnEnded};
use sluice_harness::registry;
use sluice_harness::seam::approval::ApprovalOutcome;
use sluice_harness::seam::live::{LiveEvent, LiveSink};
use sluice_harness::tool::Concurrency;
use tempfile::TempDir;

use crate::kit::{Custom, agent_with, ask, assert_balanced, context, json, on, ready, sees};
use crate::rig::{Act, Play, Rig, prompt};
use crate::validity::assert_provider_valid;

const DIR: &str = "ENGINE_CHILD_DIR";
const MOMENT: &str = "ENGINE_CHILD_MOMENT";

/// Counts moments, and ends the process at one of them.
#[derive(Clone)]
struct Moments {
    passed: Arc<AtomicUsize>,
    last: usize,
}

impl Moments {
    fn pass(&self) {
        if self.passed.fetch_add(1, Ordering::SeqCst) == self.last {
            std::process::abort();
        }
    }
}

impl LiveSink for Moments {
    fn send(&self, _: LiveEvent) -> sluice_harness::Fut<'_, ()> {
        self.pass();
        ready(())
    }
}

const CALLS: [(&str, &str, &str); 3] =
    [("c1", "t", r#"{"n":1}"#), ("c2", "t", r#"{"n":2}"#), ("c3", "t", r#"{"n":3}"#)];

/// Two parallel calls, then one that is asked about, then a word.
fn staged(rig: &Rig, moments: &Moments) {
    let at = || {
        let moments = moments.clone();
        move || moments.pass()
    };
    let (begins, ends) = (at(), at());
    let act: Act = Arc::new(move |mut body| {
        let ends = ends.clone();
        begins();
        body.defer(context("by the way"));
        Box::pin(async move {
            tokio::task::yield_now().await;
            ends();
            Ok(json(r#""did it""#))
        })
    });
    let mut tool = Custom::new("t", &rig.counts, act);
    tool.concurrency = Box::new(|input| match input.view()["n"].as_u64() {
        Some(3) => Concurrency::Exclusive,
        _ => Concurrency::Parallel,
    });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
    let pass = at();
    on::<PromptSubmit, _>(rig, Rank::NORMAL, move |_, next| {
        pass();
        next.delegate()
    });
    let pass = at();
    on::<PreExecute, _>(rig, Rank::NORMAL, move |view, next| {
        pass();
        if view.call().call_id().as_str() == "c3" {
            return ready(Ok(ask(None, AskOrigin::Mode)));
        }
        next.delegate()
    });
    let pass = at();
    on::<Approval, _>(rig, Rank::NORMAL, move |_, _| {
        pass();
        ready(Ok(ApprovalOutcome::AllowedOnce))
    });
    let pass = at();
    on::<PostExecute, _>(rig, Rank::NORMAL, move |_, next| {
        pass();
        next.delegate()
    });
    let pass = at();
    on::<BatchSettled, _>(rig, Rank::NORMAL, move |_, next| {
        pass();
        next.delegate()
    });
    let pass = at();
    on::<TurnContinuation, _>(rig, Rank::NORMAL, move |_, next| {
        pass();
        next.delegate()
    });
    let pass = at();
    sees::<RequestStarted, _>(rig, move |_| pass());
    let pass = at();
    sees::<RequestEnded, _>(rig, move |_| pass());
    let pass = at();
    sees::<TurnEnded, _>(rig, move |_| pass());
    rig.plays([Play::Calls(CALLS[..2].to_vec()), Play::Calls(CALLS[2..].to_vec()), Play::Text("done")]);
}

#[tokio::test]
async fn child_dies_at_a_moment_of_its_turn() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    let Some(last) = std::env::var(MOMENT).ok().and_then(|n| n.parse().ok()) else { return };
    let moments = Moments { passed: Arc::default(), last };
    let rig = Rig { dir: TempDir::new_in(&dir).unwrap(), ..Rig::new() };
    staged(&rig, &moments);
    let agent = agent_with(&rig, Arc::new(moments));
    std::fs::write(dir.join("session"), agent.log().path().to_str().unwrap()).unwrap();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!(report.text, "done");
    let _ = rig.dir.keep();
}

/// Runs the other process to a moment; whether it came to it.
fn dies(dir: &Path, moment: usize) -> bool {
    let output = Command::new("/bin/sh")
        .args(["-c", r#"ulimit -c 0; exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["kill_matrix::child_dies_at_a_moment_of_its_turn", "--exact", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .env(MOMENT, moment.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || output.status.signal().is_some(), "moment {moment}: {said}");
    !output.status.success()
}

#[tokio::test]
async fn r_245_r_263_a_process_that_dies_at_any_moment_of_a_turn_loses_neither_the_prompt_nor_the_session() {
    let mut moment = 0;
    let mut left = std::collections::BTreeSet::new();
    loop {
        let dir = tempfile::tempdir().unwrap();
        let died = dies(dir.path(), moment);
        let path = PathBuf::from(std::fs::read_to_string(dir.path().join("session")).unwrap());
        let id = SessionId::new(path.file_stem().unwrap().to_str().unwrap());
        let (log, report) = SessionLog::open(path.parent().unwrap(), &id).unwrap();
        let handle = log.handle();
        // The prompt is synced before anything outside the engine hears of it.
        assert_eq!(handle.last::<PromptReceived>().unwrap().content, [Block::text("go")], "moment {moment}");
        assert_provider_valid(&handle.messages());
        let count = |kind: &str| handle.since(Seq(0)).iter().filter(|e| &*e.kind == kind).count();
        assert_eq!((count("turn/start"), count("turn/end")), (1, 1), "moment {moment}");
        // Every call that a model asked for has one result.
        let events = handle.since(Seq(0));
        let asked: Vec<String> = events
            .iter()
            .filter_map(|e| e.decode::<AssistantMessage>())
            .flat_map(|m| m.content)
            .filter_map(|b| if let Block::ToolUse { id, .. } = b { Some(id) } else { None })
            .collect();
        let mut results: Vec<String> =
            events.iter().filter_map(|e| e.decode::<ToolResult>()).map(|r| r.call_id.to_string()).collect();
        results.sort();
        assert_eq!(results, asked, "moment {moment}");
        assert!(events.iter().filter_map(|e| e.decode::<ToolCall>()).all(|c| asked.contains(&c.call_id.to_string())));
        left.insert((count("tool/call"), count("assistant/message"), report.synthetic));
        log.close().await.unwrap();

        let (log, again) = SessionLog::open(path.parent().unwrap(), &id).unwrap();
        assert!(again.is_clean(), "moment {moment} is mended twice");
        let rig = Rig::new();
        rig.plays([Play::Text("and on")]);
        let agent = rig.agent_over(log, StartSource::Resume);
        let next = prompt(&agent, &Cancel::new()).await;
        assert_eq!(next.end, TurnEnd::Completed { how: CompletedHow::Normal, note: None }, "moment {moment}");
        assert_provider_valid(&rig.player.requests.lock().unwrap()[0].messages);
        assert_balanced(&agent);
        if !died {
            break;
        }
        moment += 1;
    }
    assert!(moment > 30 && left.len() > 8, "{moment} moments left {left:?}");
}
