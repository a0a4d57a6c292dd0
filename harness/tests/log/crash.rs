//! What a crash leaves: torn tails, killed processes; and what opening makes of it.

use std::fs;
use std::io::{BufRead as _, BufReader};

use sluice_harness::content::{Block, Role};
use sluice_harness::ids::Seq;
use sluice_harness::log::event::{LogRepaired, ToolResult, TurnEnded};
use sluice_harness::log::{LogError, SessionLog};

use crate::fixture::{
    another_process, answer, call_id, child_dir, create, done, file, folder, id, lines, run, sample, text_result,
    tool_use, turn,
};
use crate::validity::assert_provider_valid;

#[tokio::test]
async fn r_240_r_259_r_260_a_log_cut_at_any_byte_is_repaired_once_and_for_all() {
    let dir = folder();
    let whole = sample(dir.path()).await;
    let path = file(dir.path());
    let header = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        if cut < header {
            let refused = SessionLog::open(dir.path(), &id()).unwrap_err();
            assert!(matches!(refused, LogError::Corrupt { line: 1, .. }), "{refused}");
            assert_eq!(fs::read(&path).unwrap(), &whole[..cut], "cut at {cut}");
            continue;
        }
        let (log, report) = SessionLog::open(dir.path(), &id()).unwrap();
        assert_provider_valid(&log.handle().messages());
        log.close().await.unwrap();
        let repaired = fs::read(&path).unwrap();
        let kept = whole[..cut].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        assert_eq!(report.torn_bytes, (cut - kept) as u64);
        assert_eq!(&repaired[..kept], &whole[..kept], "what was whole stays as it was; cut at {cut}");

        // Within a line the repaired logs differ in a count alone; a second look at one in sixteen is enough.
        if cut != kept && cut % 16 != 0 {
            continue;
        }
        let (mut log, report) = SessionLog::open(dir.path(), &id()).unwrap();
        assert!(report.is_clean(), "repaired twice; cut at {cut}");
        assert_eq!(fs::read(&path).unwrap(), repaired);
        let events = log.handle().since(Seq(0));
        assert!(events.iter().enumerate().all(|(at, event)| event.seq == Seq(at as u64)));
        let ended = events.iter().filter(|event| event.decode::<TurnEnded>().is_some()).count();
        assert_eq!(turn(&mut log).number().0 as usize, ended + 1);
    }
}

#[tokio::test]
async fn r_240_the_same_damage_gives_the_same_bytes_with_the_last_time_stamp() {
    let dir = folder();
    let whole = sample(dir.path()).await;
    let path = file(dir.path());
    let cut = lines(&whole).iter().position(|line| line.contains(r#""call_id":"d""#)).unwrap();
    let kept: Vec<u8> = lines(&whole)[..=cut].join("\n").into_bytes();
    let kept = [kept, b"\n{\"seq\":99,\"ti".to_vec()].concat();
    let mut results = Vec::new();
    for _ in 0..2 {
        fs::write(&path, &kept).unwrap();
        let (log, report) = SessionLog::open(dir.path(), &id()).unwrap();
        assert_eq!((report.torn_bytes, report.synthetic), (13, 5), "three results, a step's end, a turn's end");
        let events = log.handle().since(Seq(0));
        let last_real = events.iter().rev().nth(6).unwrap();
        assert!(events.iter().rev().take(6).all(|event| event.time_ms == last_real.time_ms));
        log.close().await.unwrap();
        results.push(fs::read(&path).unwrap());
    }
    assert_eq!(results[0], results[1]);
}

#[tokio::test]
async fn r_241_recorded_calls_are_unknown_and_unrecorded_ones_not_started() {
    let dir = folder();
    let whole = sample(dir.path()).await;
    let path = file(dir.path());
    let all = lines(&whole);
    let cut = all.iter().position(|line| line.contains(r#""call_id":"d""#)).unwrap();
    fs::write(&path, all[..=cut].join("\n") + "\n").unwrap();
    let (log, report) = SessionLog::open(dir.path(), &id()).unwrap();
    let log = log.handle();
    assert_eq!(report.closed_turn.map(|turn| turn.0), Some(2));
    let results: Vec<ToolResult> = log.since(Seq(0)).iter().filter_map(|event| event.decode()).collect();
    let told: Vec<_> = results
        .iter()
        .skip(2)
        .map(|r| (r.call_id.as_str(), r.is_error, r.error.as_ref().unwrap().code.as_str(), r.call_seq.is_some()))
        .collect();
    assert_eq!(
        told,
        [
            ("c", true, "TOOL_OUTCOME_UNKNOWN", true),
            ("d", true, "TOOL_OUTCOME_UNKNOWN", true),
            ("e", true, "TOOL_NOT_STARTED", false),
        ]
    );
    assert_eq!(results[2].error.as_ref().unwrap().name, "ToolOutcomeUnknownError");
    assert_eq!(results[4].error.as_ref().unwrap().name, "ToolNotStartedError");
    let text = |at: usize| match results[at].content.as_slice() {
        [Block::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    assert!(text(2).contains("idempotent") && text(2).contains("verify"), "{}", text(2));
    assert!(text(4).contains("not started") && text(4).contains("may be retried"), "{}", text(4));
    assert_eq!(log.last::<LogRepaired>(), Some(LogRepaired { torn_bytes: 0, synthetic: 5 }));
    let end = log.last::<TurnEnded>().unwrap();
    assert_eq!(serde_json::to_string(&end.end).unwrap(), r#"{"reason":"interrupted"}"#);
}

#[tokio::test]
async fn r_242_r_243_balanced_logs_are_left_alone_and_go_on() {
    let dir = folder();
    let whole = sample(dir.path()).await;
    let (mut log, report) = SessionLog::open(dir.path(), &id()).unwrap();
    assert!(report.is_clean());
    assert_eq!(fs::read(file(dir.path())).unwrap(), whole);
    let handle = log.handle();
    assert_eq!(handle.requests_sent(), 4);
    assert_eq!(handle.last_request_header().unwrap().system, "be brief");
    let before = handle.messages();
    let next = turn(&mut log);
    assert_eq!(next.number().0, 3);
    next.user("user", vec![Block::text("go on")]).unwrap();
    next.end(done()).unwrap();
    let after = handle.messages();
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!((after.last().unwrap().role, after.len()), (Role::User, before.len() + 1));
    log.close().await.unwrap();
    let (log, _) = SessionLog::open(dir.path(), &id()).unwrap();
    assert_eq!(log.handle().messages(), after);
}

#[test]
fn child_appends_until_it_is_killed() {
    let Some(dir) = child_dir() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut log = create(&dir);
        let handle = log.handle();
        for round in 0.. {
            let mut turn = turn(&mut log);
            let step = turn.step().unwrap();
            let ids = [format!("{round}-a"), format!("{round}-b"), format!("{round}-c")];
            answer(&step, ids.iter().map(|id| tool_use(id)).collect());
            run(&step, &ids[0]);
            let open = step.call(&call_id(&ids[1]), "Read", "{}", None).unwrap();
            handle.durable().await.unwrap();
            println!("durable {}", handle.len());
            step.result(open, text_result("b")).unwrap();
            run(&step, &ids[2]);
            step.end().unwrap();
            turn.end(done()).unwrap();
        }
    });
}

#[test]
fn r_263_what_was_durable_survives_kill_9() {
    for round in 0..5 * crate::random::long() {
        let dir = folder();
        let mut child = another_process("crash::child_appends_until_it_is_killed", dir.path()).spawn().unwrap();
        let reports = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let durable: u64 = reports
            .filter_map(|line| line.split_once("durable ").and_then(|(_, n)| n.trim().parse().ok()))
            .nth(20 + (round % 20) * 7)
            .expect("the child reports");
        child.kill().unwrap();
        child.wait().unwrap();
        let (log, _) = SessionLog::open(dir.path(), &id()).unwrap();
        assert!(log.handle().len() >= durable, "{} of {durable}", log.handle().len());
        assert_provider_valid(&log.handle().messages());
    }
}
