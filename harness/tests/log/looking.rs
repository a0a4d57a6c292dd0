//! Looking at logs: `inspect` and `list` tell what is there and change nothing.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use sluice_harness::content::Block;
use sluice_harness::ids::SessionId;
use sluice_harness::log::{Damage, LogError, SessionLog, inspect, list};

use crate::fixture::{create, done, file, folder, header, id, lines, sample, turn};

fn revision(path: &Path) -> (u64, u64, i64, i64, i64, i64) {
    let m: Metadata = path.metadata().unwrap();
    (m.ino(), m.size(), m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec())
}

#[tokio::test]
async fn r_265_inspect_and_list_change_nothing() {
    let dir = folder();
    let whole = sample(dir.path()).await;
    let path = file(dir.path());
    let all = lines(&whole);
    let call = all.iter().position(|line| line.contains(r#""call_id":"d""#)).unwrap();
    for (bytes, damage) in [
        (whole.clone(), None),
        (
            (all[..=call].join("\n") + "\n{\"se").into_bytes(),
            Some(Damage { torn_bytes: 4, open_turn: Some(sluice_harness::ids::TurnNumber(2)), synthetic: 5 }),
        ),
    ] {
        fs::write(&path, &bytes).unwrap();
        let before = revision(&path);
        let seen = inspect(&path).unwrap();
        assert_eq!(seen.damage, damage);
        assert_eq!(seen.header.id, id());
        let (told, summary) = list(dir.path()).remove(0);
        assert_eq!((told, summary.unwrap().turns), (path.clone(), 2));
        assert_eq!(revision(&path), before);
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }
}

#[tokio::test]
async fn r_265_a_live_session_can_be_looked_at() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    let open = turn(&mut log);
    open.received(vec![Block::text("hello")]).unwrap();
    handle.durable().await.unwrap();
    let seen = inspect(&handle.path()).unwrap();
    assert_eq!(seen.events, handle.since(sluice_harness::ids::Seq(0)));
    assert_eq!(seen.damage.unwrap().open_turn, Some(open.number()));
    assert_eq!(list(dir.path())[0].1.as_ref().unwrap().title, "hello");
}

#[tokio::test]
async fn sessions_are_listed_newest_first_with_their_first_prompt_as_title() {
    let dir = folder();
    for (name, prompt) in [("one", "  first\n\tprompt \u{1b}[31m"), ("two", &*"ä".repeat(200)), ("three", "third")] {
        let mut log = SessionLog::create(dir.path(), header(&SessionId::new(name))).unwrap();
        let open = turn(&mut log);
        open.received(vec![Block::text(prompt)]).unwrap();
        open.received(vec![Block::text("not this")]).unwrap();
        open.end(done()).unwrap();
        log.close().await.unwrap();
    }
    let stamp = |name: &str, second: u32| {
        let path = dir.path().join(format!("{name}.jsonl"));
        let mut all = lines(&fs::read(&path).unwrap());
        for line in &mut all[1..] {
            let at = line.find("\"time\":").unwrap() + 7;
            let end = at + line[at..].find(',').unwrap();
            line.replace_range(at..end, &format!("{second}000"));
        }
        fs::write(&path, all.join("\n") + "\n").unwrap();
    };
    stamp("one", 20);
    stamp("two", 30);
    stamp("three", 10);
    fs::write(dir.path().join("broken.jsonl"), "no log\n").unwrap();
    fs::write(dir.path().join("stolen.jsonl"), fs::read(dir.path().join("one.jsonl")).unwrap()).unwrap();
    fs::write(dir.path().join("notes.txt"), "something else").unwrap();

    let all = list(dir.path());
    let told: Vec<_> = all
        .iter()
        .filter_map(|(_, summary)| summary.as_ref().ok())
        .map(|s| (s.id.as_str(), s.title.clone(), s.updated.as_str(), s.turns))
        .collect();
    assert_eq!(
        told,
        [
            ("two", "ä".repeat(79) + "…", "1970-01-01T00:00:30.000Z", 1),
            ("one", "first prompt [31m".to_owned(), "1970-01-01T00:00:20.000Z", 1),
            ("three", "third".to_owned(), "1970-01-01T00:00:10.000Z", 1),
        ]
    );
    assert!(matches!(&all[3], (path, Err(LogError::Corrupt { .. })) if path.ends_with("broken.jsonl")));
    assert!(matches!(&all[4], (path, Err(LogError::Identity { .. })) if path.ends_with("stolen.jsonl")));
    assert_eq!(all.len(), 5);
    assert!(list(&dir.path().join("nowhere")).is_empty());
}
