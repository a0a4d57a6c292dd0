//! Files that no crash explains: refused, by name, and left as they are.

use std::fs;
use std::path::Path;

use sluice_harness::log::{LogError, OtherVersion, SessionLog};

use crate::fixture::{file, folder, id, lines, sample};

/// Opens a log of these lines, which must be refused without a byte changed and with the file named.
#[track_caller]
fn refused(dir: &Path, lines: &[String]) -> LogError {
    let path = file(dir);
    let text = lines.join("\n") + "\n";
    fs::write(&path, &text).unwrap();
    let error = SessionLog::open(dir, &id()).expect_err("it must be refused");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

/// As [`refused`], for a log that is corrupt with `why` in the words.
#[track_caller]
fn corrupt(dir: &Path, lines: &[String], why: &str) {
    let error = refused(dir, lines);
    assert!(matches!(error, LogError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains(why), "{error} does not say `{why}`");
}

fn edited(lines: &[String], at: usize, from: &str, to: &str) -> Vec<String> {
    let mut lines = lines.to_vec();
    assert!(lines[at].contains(from), "{} has no {from}", lines[at]);
    lines[at] = lines[at].replacen(from, to, 1);
    lines
}

#[tokio::test]
async fn r_260_damage_before_a_later_turn_end_is_corruption() {
    let dir = folder();
    let all = lines(&sample(dir.path()).await);
    let half = all[5][..all[5].len() / 2].to_owned();
    for at in [2, 10, all.len() - 2] {
        let mut torn = all.clone();
        torn[at].clone_from(&half);
        corrupt(dir.path(), &torn, "a turn ended after it");
        let mut gap = all.clone();
        gap.remove(at);
        corrupt(dir.path(), &gap, "missing");
    }
}

#[tokio::test]
async fn r_260_damage_after_the_last_turn_end_is_cut_off() {
    let dir = folder();
    let mut all = lines(&sample(dir.path()).await);
    all.pop();
    let ended = all.iter().position(|line| line.contains("turn/end")).unwrap();
    for at in [ended + 2, all.len() - 1] {
        for damage in [Some("\0\0\0\0"), Some("{\"seq\":1"), Some(""), None] {
            let mut damaged = all.clone();
            match damage {
                Some(text) => text.clone_into(&mut damaged[at]),
                // A gap, with whole lines behind it.
                None => damaged[at] = all[at].replacen("{\"seq\":", "{\"seq\":9", 1),
            }
            let text = damaged.join("\n") + "\n";
            fs::write(file(dir.path()), &text).unwrap();
            let (log, report) = SessionLog::open(dir.path(), &id()).unwrap();
            log.close().await.unwrap();
            let kept = damaged[..at].iter().map(|line| line.len() + 1).sum::<usize>();
            assert_eq!(report.torn_bytes as usize, text.len() - kept);
            let repaired = fs::read_to_string(file(dir.path())).unwrap();
            assert_eq!(repaired[..kept], text[..kept]);
            let (_, again) = SessionLog::open(dir.path(), &id()).unwrap();
            assert!(again.is_clean());
        }
    }
}

#[tokio::test]
async fn r_267_lines_that_are_well_formed_and_wrong_are_corrupt_anywhere() {
    let dir = folder();
    let all = lines(&sample(dir.path()).await);
    let tail = all[..all.len() - 1].to_vec();
    for lines in [&all, &tail] {
        let last = lines.len() - 1;
        for (from, to, why) in [
            ("\"data\":{", "\"data\":{\"turn\":2,", "twice"),
            ("{\"seq\"", "{\"seq\":0,\"seq\"", "duplicate field"),
            ("\"data\":{", "\"data\":{\"x\":-0,", "losslessly"),
            ("\"data\":{", "\"data\":{\"x\":1e999,", "losslessly"),
            ("\"time\":", "\"extra\":1,\"time\":", "unknown field"),
            ("\"data\":{", "\"data\":7,\"date\":{", "unknown field"),
            ("\"turn\":2", "\"turn\":2.0", "malformed"),
            ("\"turn\":2", "\"turn\":\"2\"", "malformed"),
            ("\"turn\":2", "\"turn\":3", "turn 3"),
        ] {
            corrupt(dir.path(), &edited(lines, last, from, to), why);
        }
        let mut garbage = lines.clone();
        garbage[last].push_str(" x");
        corrupt(dir.path(), &garbage, "text after the event");
        let mut twice = lines.clone();
        twice.push(lines[last].clone());
        corrupt(dir.path(), &twice, "does not belong here");
    }
}

#[tokio::test]
async fn r_234_lines_out_of_their_relation_are_corrupt() {
    let dir = folder();
    let all = lines(&sample(dir.path()).await);
    let at = |what: &str| all.iter().position(|line| line.contains(what)).unwrap();
    corrupt(dir.path(), &edited(&all, at("turn/start"), "\"turn\":1", "\"turn\":2"), "turn 1 is due");
    corrupt(dir.path(), &edited(&all, at("step/start"), "\"step\":1", "\"step\":2"), "step 1 is due");
    corrupt(dir.path(), &edited(&all, at("tool/call"), "\"call_id\":\"a\"", "\"call_id\":\"x\""), "does not ask");
    corrupt(dir.path(), &edited(&all, at("tool/result"), "\"call_id\":\"a\"", "\"call_id\":\"b\""), "never recorded");
    corrupt(dir.path(), &edited(&all, at("tool/result"), "\"call_seq\":", "\"call_seq\":1"), "cites another");
    corrupt(dir.path(), &edited(&all, at("step/end"), "step/end", "step/start"), "still open");
    let second = all.iter().rposition(|line| line.contains("assistant/message")).unwrap();
    corrupt(dir.path(), &edited(&all, second, "\"id\":\"c\"", "\"id\":\"a\""), "a second time");
}

#[tokio::test]
async fn r_247_unknown_kinds_are_refused_unless_they_may_be_skipped() {
    let dir = folder();
    let all = lines(&sample(dir.path()).await);
    let seq = all.len() - 1;
    let with = |event: &str| [all.clone(), vec![format!("{{\"seq\":{seq},\"time\":1,{event}}}")]].concat();
    let error = refused(dir.path(), &with(r#""type":"goal/change","data":{}"#));
    assert!(matches!(&error, LogError::UnknownKind { kind, .. } if kind == "goal/change"), "{error}");
    for known in [
        r#""type":"goal/change","ignorable":true,"data":{"x":1.50}"#,
        r#""type":"todo/write","data":{"todos":[]}"#,
        r#""type":"hook/invoked","data":{}"#,
        r#""type":"fs/observed","data":{}"#,
    ] {
        let text = with(known).join("\n") + "\n";
        fs::write(file(dir.path()), &text).unwrap();
        let (log, report) = SessionLog::open(dir.path(), &id()).unwrap();
        assert!(report.is_clean());
        assert!(text.ends_with(&(log.handle().since(sluice_harness::ids::Seq(seq as u64))[0].line() + "\n")));
    }
}

#[tokio::test]
async fn r_247_other_versions_are_refused_by_age() {
    let dir = folder();
    let all = lines(&sample(dir.path()).await);
    for (version, age, word) in [("-1", OtherVersion::Older, "older"), ("1", OtherVersion::Newer, "newer")] {
        let error = refused(dir.path(), &edited(&all, 0, "\"version\":0", &format!("\"version\":{version}")));
        assert!(matches!(error, LogError::Version { age: found, .. } if found == age), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[tokio::test]
async fn r_236_headers_are_checked_field_by_field() {
    let dir = folder();
    let all = lines(&sample(dir.path()).await);
    for (from, to, why) in [
        ("\"type\":\"session\"", "\"type\":\"sessions\"", "not `session`"),
        ("\"version\":0", "\"version\":\"0\"", "no session header"),
        ("\"version\":0,", "", "version"),
        ("\"cwd\":\"/project\"", "\"cwd\":\"project\"", "not absolute"),
        ("\"cwd\":\"/project\"", "\"cwd\":7", "no session header"),
        ("\"created_at\":", "\"createdAt\":", "created_at"),
        ("\"type\":\"session\"", "\"type\":\"session\",\"type\":\"session\"", "twice"),
    ] {
        corrupt(dir.path(), &edited(&all, 0, from, to), why);
    }
    corrupt(dir.path(), &["".to_owned()], "header");
}

#[tokio::test]
async fn r_261_a_log_under_another_name_is_refused() {
    let dir = folder();
    let all = lines(&sample(dir.path()).await);
    let error = refused(dir.path(), &edited(&all, 0, "8000-000000000001", "8000-000000000002"));
    assert!(matches!(error, LogError::Identity { .. }), "{error}");
}
