//! Forks: what a child inherits, and where it cannot begin.

use sluice_harness::ids::{Seq, SessionId};
use sluice_harness::log::event::SeedEnd;
use sluice_harness::log::{LogError, SessionLog, now_rfc3339};

use crate::fixture::{create, done, folder, id, turn};

fn child() -> SessionId {
    SessionId::new("0195f0d2-7c1a-7000-8000-000000000002")
}

fn fork(dir: &std::path::Path, parent: &sluice_harness::log::LogHandle, at: u64) -> Result<SessionLog, LogError> {
    SessionLog::fork(dir, parent, Seq(at), child(), now_rfc3339())
}

#[tokio::test]
async fn r_246_a_fork_inherits_the_history_and_goes_on_by_itself() {
    let dir = folder();
    let mut parent = create(dir.path());
    {
        let mut turn = turn(&mut parent);
        let step = turn.step().unwrap();
        step.user("user", vec![sluice_harness::content::Block::text("remember 7")]).unwrap();
        step.end().unwrap();
        turn.end(done()).unwrap();
    }
    let handle = parent.handle();
    let last = handle.len() - 1;
    let forked = fork(dir.path(), &handle, last).unwrap();
    assert_eq!(forked.handle().messages(), handle.messages());
    assert_eq!(forked.handle().header().parent, Some(id()));
    assert_eq!(forked.handle().last::<SeedEnd>(), Some(SeedEnd { parent: id() }));
    forked.handle().durable().await.unwrap();
    forked.close().await.unwrap();
    // What came from the parent stands in the child byte for byte, and the next turn continues its numbers.
    let (mut again, report) = SessionLog::open(dir.path(), &child()).unwrap();
    assert!(report.is_clean());
    let lines = |events: Vec<std::sync::Arc<sluice_harness::log::Logged>>| -> Vec<String> {
        events.iter().take(usize::try_from(last).unwrap() + 1).map(|e| e.line()).collect()
    };
    assert_eq!(lines(again.handle().since(Seq(0))), lines(handle.since(Seq(0))));
    assert_eq!(turn(&mut again).number().0, 2);
    assert_eq!(handle.len(), last + 1);
}

#[tokio::test]
async fn r_246_a_fork_is_refused_by_name() {
    let dir = folder();
    let mut parent = create(dir.path());
    let handle = parent.handle();
    turn(&mut parent).end(done()).unwrap();
    assert!(matches!(fork(dir.path(), &handle, 0), Err(LogError::Boundary { .. })), "a turn is open there");
    assert!(matches!(fork(dir.path(), &handle, 99), Err(LogError::Boundary { .. })), "there is no such event");
    // Before it is on disk nobody has the name, and whoever is first gets it.
    handle.durable().await.unwrap();
    let taken = SessionLog::fork(dir.path(), &handle, Seq(1), id(), now_rfc3339());
    assert!(matches!(taken, Err(LogError::Exists { .. })));
    parent.close().await.unwrap();
    assert!(matches!(fork(dir.path(), &handle, 1), Err(LogError::NotLive { .. })));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a refusal leaves no file");
}
