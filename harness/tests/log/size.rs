//! A long log: what it costs to open.

use std::fs;
use std::io::Write as _;

use sluice_harness::log::{SessionLog, inspect};

use crate::fixture::{another_process, child_dir, create, done, file, folder, id, turn};

/// Peak memory of this process in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn child_opens_a_long_log() {
    let Some(dir) = child_dir() else { return };
    let before = peak();
    let (log, report) = SessionLog::open(&dir, &id()).unwrap();
    assert!(report.is_clean() && log.handle().len() > 100_000);
    println!("took: {}", peak() - before);
}

#[tokio::test]
async fn a_hundred_thousand_events_take_less_than_three_times_their_file() {
    let dir = folder();
    let mut log = create(dir.path());
    turn(&mut log).end(done()).unwrap();
    log.close().await.unwrap();
    let mut bytes = fs::read(file(dir.path())).unwrap();
    let text = "some words of a person, and then some more of them ".repeat(3);
    let mut seq = 2;
    for turn in 2..=20_001 {
        for event in [
            format!(r#""type":"turn/start","data":{{"turn":{turn},"turn_id":"t","prompt_id":"p"}}"#),
            format!(r#""type":"step/start","data":{{"turn":{turn},"step":1}}"#),
            format!(
                r#""type":"user/message","data":{{"turn":{turn},"source":"user","content":[{{"type":"text","text":"{text}"}}]}}"#
            ),
            format!(r#""type":"step/end","data":{{"turn":{turn},"step":1}}"#),
            format!(r#""type":"turn/end","data":{{"turn":{turn},"end":{{"reason":"completed","how":"normal"}}}}"#),
        ] {
            writeln!(bytes, r#"{{"seq":{seq},"time":1764452165123,{event}}}"#).unwrap();
            seq += 1;
        }
    }
    fs::write(file(dir.path()), &bytes).unwrap();
    let output = another_process("size::child_opens_a_long_log", dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let took: u64 = said.split_once("took: ").unwrap().1.lines().next().unwrap().parse().unwrap();
    assert!(took < 3 * bytes.len() as u64, "{took} bytes for a file of {}", bytes.len());
    assert_eq!(inspect(&file(dir.path())).unwrap().events.len(), 100_002);
}
