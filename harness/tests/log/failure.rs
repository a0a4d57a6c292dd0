//! Writes that fail: cut off, latched, told to everybody.

use std::fs;

use sluice_harness::content::Block;
use sluice_harness::ids::Seq;
use sluice_harness::log::{LogError, SessionLog, inspect};

use crate::fixture::{child_dir, create, done, file, folder, id, in_shell, turn};

#[tokio::test]
async fn r_258_a_log_that_cannot_begin_says_so_at_the_barrier_and_ever_after() {
    let dir = folder();
    let blocked = dir.path().join("a-file");
    fs::write(&blocked, "").unwrap();
    let mut log = create(&blocked.join("sessions"));
    let handle = log.handle();
    let open = turn(&mut log);
    let error = handle.durable().await.unwrap_err();
    assert!(matches!(error, LogError::Write { .. }), "{error}");
    assert!(error.to_string().contains("a-file"), "{error}");
    assert_eq!(handle.durable().await.unwrap_err().to_string(), error.to_string());
    assert_eq!(open.received(vec![]).unwrap_err().to_string(), error.to_string());
    assert_eq!(open.end(done()).unwrap_err().to_string(), error.to_string());
    assert_eq!(log.close().await.unwrap_err().to_string(), error.to_string());
}

#[test]
fn child_writes_until_the_disk_refuses() {
    let Some(dir) = child_dir() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut log = create(&dir);
        let handle = log.handle();
        let turn = turn(&mut log);
        let error = loop {
            if let Err(e) = turn.user("user", vec![Block::text("x".repeat(777))]) {
                break e;
            }
            if let Err(e) = handle.durable().await {
                break e;
            }
        };
        println!("refused: {error}");
        let again = turn.user("user", vec![Block::text("y")]).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert!(!handle.is_empty() && !handle.since(Seq(3)).is_empty());
    });
}

#[tokio::test]
async fn r_258_a_half_written_event_is_cut_off_again() {
    let dir = folder();
    let line = r#"trap "" XFSZ; ulimit -f 16; exec "$0" "$@""#;
    let output = in_shell(line, "failure::child_writes_until_the_disk_refuses", dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("refused: ") && said.contains(file(dir.path()).to_str().unwrap()), "{said}");
    assert!(said.contains("File too large"), "{said}");
    let bytes = fs::read(file(dir.path())).unwrap();
    assert!(bytes.len() > 4000 && bytes.ends_with(b"}\n"), "{}", bytes.len());
    let damage = inspect(&file(dir.path())).unwrap().damage.unwrap();
    assert_eq!((damage.torn_bytes, damage.synthetic), (0, 1), "only the turn is open");
    let (log, report) = SessionLog::open(dir.path(), &id()).unwrap();
    assert_eq!((report.torn_bytes, report.synthetic), (0, 1));
    log.close().await.unwrap();
}

#[tokio::test]
async fn a_closed_log_takes_nothing_more() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    turn(&mut log).end(done()).unwrap();
    let mut follower = handle.subscribe();
    log.close().await.unwrap();
    assert!(matches!(handle.durable().await, Err(LogError::Closed { .. })));
    assert!(follower.recv().await.is_none());
    assert_eq!(handle.len(), 2, "it can still be read");
}
