//! The file of a live session: how it comes into being, who may write it, what is in it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde::{Deserialize, Serialize};
use sluice_harness::content::Block;
use sluice_harness::ids::{Seq, SessionId};
use sluice_harness::json::Json;
use sluice_harness::log::{EventKind, LogError, SessionLog, inspect};

use crate::fixture::{another_process, child_dir, create, done, file, folder, header, id, sample, turn};

#[tokio::test]
async fn r_257_nothing_is_on_disk_before_the_first_event() {
    let dir = folder();
    let deep = dir.path().join("state/sessions");
    let mut log = create(&deep);
    log.handle().durable().await.unwrap();
    assert!(!dir.path().join("state").exists());
    let handle = log.handle();
    let open = turn(&mut log);
    handle.durable().await.unwrap();
    assert_eq!(file(&deep).metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for made in [deep.clone(), dir.path().join("state")] {
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    assert_eq!(deep.read_dir().unwrap().count(), 1, "no draft stays behind");
    open.end(done()).unwrap();
    log.close().await.unwrap();
    let empty = create(&dir.path().join("never"));
    empty.close().await.unwrap();
    assert!(!dir.path().join("never").exists());
}

#[tokio::test]
async fn r_248_of_two_creators_of_one_session_the_first_keeps_it() {
    let dir = folder();
    let mut first = create(dir.path());
    let mut second = create(dir.path());
    turn(&mut first).end(done()).unwrap();
    first.handle().durable().await.unwrap();
    let bytes = fs::read(file(dir.path())).unwrap();
    let late = turn(&mut second);
    let _ = late.end(done());
    let error = second.handle().durable().await.unwrap_err();
    assert!(matches!(error, LogError::Exists { .. }), "{error}");
    assert!(second.close().await.is_err());
    assert_eq!(fs::read(file(dir.path())).unwrap(), bytes);
    assert!(matches!(SessionLog::create(dir.path(), header(&id())), Err(LogError::Exists { .. })));
    assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    first.close().await.unwrap();
}

#[tokio::test]
async fn r_248_two_creators_at_once_give_one_session() {
    for _ in 0..50 {
        let dir = folder();
        let mut logs = [create(dir.path()), create(dir.path())];
        for log in &mut logs {
            turn(log);
        }
        let mut kept = 0;
        for log in logs {
            kept += usize::from(log.close().await.is_ok());
        }
        assert_eq!((kept, dir.path().read_dir().unwrap().count()), (1, 1));
        let (_, report) = SessionLog::open(dir.path(), &id()).unwrap();
        assert!(report.is_clean());
    }
}

#[test]
fn child_tries_to_open_the_session() {
    let Some(dir) = child_dir() else { return };
    println!("told: {}", SessionLog::open(&dir, &id()).unwrap_err());
}

#[tokio::test]
async fn r_242_r_266_a_second_writer_is_refused_until_the_first_is_gone() {
    let dir = folder();
    sample(dir.path()).await;
    let (mut log, _) = SessionLog::open(dir.path(), &id()).unwrap();
    let handle = log.handle();
    let open = turn(&mut log);
    handle.durable().await.unwrap();
    let bytes = fs::read(file(dir.path())).unwrap();
    assert!(matches!(SessionLog::open(dir.path(), &id()), Err(LogError::Locked { .. })));
    let output = another_process("store::child_tries_to_open_the_session", dir.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains(&format!("told: the session {} is open in another process", id())), "{told}");
    assert!(told.contains("close it there"), "{told}");
    assert_eq!(fs::read(file(dir.path())).unwrap(), bytes, "a live session is never repaired");
    open.end(done()).unwrap();
    log.close().await.unwrap();
    let (log, report) = SessionLog::open(dir.path(), &id()).unwrap();
    assert!(report.is_clean());
    drop(log);
    SessionLog::open(dir.path(), &id()).unwrap();
}

#[tokio::test]
async fn r_266_a_new_session_is_locked_as_soon_as_it_can_be_seen() {
    let dir = folder();
    let mut log = create(dir.path());
    let open = turn(&mut log);
    drop(open);
    log.handle().durable().await.unwrap();
    assert!(matches!(SessionLog::open(dir.path(), &id()), Err(LogError::Locked { .. })));
}

#[tokio::test]
async fn r_266_the_lock_is_given_back_although_processes_are_being_spawned() {
    let dir = folder();
    sample(dir.path()).await;
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::process::Command::new("/bin/true").status().unwrap();
            }
        });
        let opened: Vec<bool> = (0..300).map(|_| SessionLog::open(dir.path(), &id()).is_ok()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(opened.into_iter().all(|ok| ok));
    });
}

#[tokio::test]
async fn a_session_that_is_not_there_is_missing_and_strange_ids_stay_in_the_folder() {
    let dir = folder();
    assert!(matches!(SessionLog::open(dir.path(), &id()), Err(LogError::Missing { .. })));
    assert!(matches!(SessionLog::open(dir.path(), &SessionId::new("")), Err(LogError::BadHeader { .. })));
    let strange = SessionId::new("../../x y");
    let mut log = SessionLog::create(dir.path(), header(&strange)).unwrap();
    turn(&mut log).end(done()).unwrap();
    let path = log.handle().path();
    log.close().await.unwrap();
    assert_eq!(path, dir.path().join("..~002F..~002Fx~0020y.jsonl"));
    SessionLog::open(dir.path(), &strange).unwrap();
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Observed {
    exact: Json,
}

impl EventKind for Observed {
    const TYPE: &'static str = "fs/observed";
}

#[derive(Serialize, Deserialize)]
struct Stranger {}

impl EventKind for Stranger {
    const TYPE: &'static str = "stranger/came";
}

#[derive(Serialize, Deserialize)]
struct Usurper {}

impl EventKind for Usurper {
    const TYPE: &'static str = "turn/end";
}

#[tokio::test]
async fn owners_append_their_own_kinds_and_every_digit_survives() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    let text = r#"{"z":1.00,"a":[123456789012345678901234567890,1E+2,0.10],"\u00e9\n":"\u2028"}"#;
    let event = Observed { exact: Json::parse(text).unwrap() };
    assert_eq!(handle.append(&event).unwrap(), Seq(0));
    assert!(matches!(handle.append(&Usurper {}), Err(LogError::Reserved { .. })));
    assert!(matches!(handle.append(&Stranger {}), Err(LogError::Unlisted { .. })));
    turn(&mut log).end(done()).unwrap();
    log.close().await.unwrap();
    let read = inspect(&file(dir.path())).unwrap().events;
    assert_eq!(read[0].decode::<Observed>().unwrap(), event);
    assert_eq!(read[0].decode::<Usurper>().map(|_| ()), None);
    assert!(read[0].line().contains(r#""data":{"exact":{"z":1.00,"a":[123456789012345678901234567890,1E+2,0.10]"#));
    assert_eq!(read, handle.since(Seq(0)));
    let text = fs::read_to_string(file(dir.path())).unwrap();
    let spelled: Vec<String> = read.iter().map(|event| event.line()).collect();
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), spelled);
}

#[tokio::test]
async fn followers_see_every_event_in_order_from_any_thread() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    turn(&mut log).end(done()).unwrap();
    drop(handle.subscribe());
    let mut follower = handle.subscribe();
    let event = Observed { exact: Json::empty_object() };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250).for_each(|_| assert!(handle.append(&event).is_ok())));
        }
    });
    let mut next = turn(&mut log);
    next.step().unwrap().user("user", vec![Block::text("hi")]).unwrap();
    next.end(done()).unwrap();
    handle.durable().await.unwrap();
    let on_disk = inspect(&handle.path()).unwrap().events;
    log.close().await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = follower.recv().await {
        seen.push(event);
    }
    assert_eq!(seen, handle.since(Seq(2)));
    assert_eq!(seen.len(), 1005);
    assert_eq!(on_disk, handle.since(Seq(0)));
}
