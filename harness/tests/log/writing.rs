//! The typed handles: what they refuse, what they close when they are dropped.

use sluice_harness::agent::TurnEnd;
use sluice_harness::content::{Block, Role};
use sluice_harness::ids::Seq;
use sluice_harness::log::event::{ToolResult, TurnEnded};
use sluice_harness::log::{LogError, LogHandle, SessionLog};
use sluice_harness::point::prompt::ContextMessage;

use crate::fixture::{answer, call_id, create, done, folder, header, id, run, text_result, tool_use, turn};
use crate::validity::assert_provider_valid;

fn kinds(log: &LogHandle) -> Vec<String> {
    log.since(Seq(0)).iter().map(|event| event.kind.to_string()).collect()
}

fn codes(log: &LogHandle) -> Vec<(String, String)> {
    let results = log.since(Seq(0)).into_iter().filter_map(|event| event.decode::<ToolResult>());
    results.map(|r| (r.call_id.to_string(), r.error.map(|e| e.code).unwrap_or_default())).collect()
}

#[tokio::test]
async fn r_231_turns_and_steps_are_numbered_and_events_are_counted() {
    let dir = folder();
    let mut log = create(dir.path());
    for expected in 1..=3 {
        let mut turn = turn(&mut log);
        assert_eq!(turn.number().0, expected);
        for expected in 1..=2 {
            let step = turn.step().unwrap();
            assert_eq!(step.number().0, expected);
            step.end().unwrap();
        }
        turn.end(done()).unwrap();
    }
    let events = log.handle().since(Seq(0));
    assert_eq!(events.len(), 18);
    assert!(events.iter().enumerate().all(|(at, event)| event.seq == Seq(at as u64)));
    assert_eq!(log.handle().since(Seq(17)).len(), 1);
    assert!(log.handle().since(Seq(99)).is_empty());
}

#[tokio::test]
async fn r_235_the_history_is_every_visible_event_in_order() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    let mut turn = turn(&mut log);
    turn.received(vec![Block::text("as it came")]).unwrap();
    let step = turn.step().unwrap();
    step.user("user", vec![Block::text("as the model sees it")]).unwrap();
    let context = ContextMessage { source: "hook".into(), role: Role::System, text: "note".into() };
    step.context(&context).unwrap();
    step.sent(1, 0).unwrap();
    answer(&step, vec![Block::text("ok"), tool_use("a")]);
    run(&step, "a");
    step.end().unwrap();
    let step = turn.step().unwrap();
    answer(&step, Vec::new());
    step.end().unwrap();
    turn.blocked(vec![Block::text("no")], "because", "hook").unwrap();
    turn.end(done()).unwrap();
    let messages = handle.messages();
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::System, Role::Assistant, Role::Tool]);
    assert_eq!(messages[2].content, [Block::text("ok"), tool_use("a")]);
    assert_eq!(handle.requests_sent(), 1);
    assert_provider_valid(&messages);
}

#[tokio::test]
async fn r_155_a_call_id_is_used_once_in_a_session() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    let mut open = turn(&mut log);
    let step = open.step().unwrap();
    let len = handle.len();
    let twice = |content| step.assistant(content, "p", "m", None, None, false).unwrap_err();
    let refused = twice(vec![tool_use("a"), tool_use("a")]);
    assert!(matches!(&refused, LogError::DuplicateCall { call_id: id } if *id == call_id("a")), "{refused}");
    assert_eq!(handle.len(), len, "a refusal changes nothing (R-230)");
    assert!(!handle.is_call_id_used(&call_id("a")));
    answer(&step, vec![tool_use("a"), tool_use("b")]);
    assert!(handle.is_call_id_used(&call_id("a")));
    let call = step.call(&call_id("a"), "Read", "{}", None).unwrap();
    let refused = step.call(&call_id("a"), "Read", "{}", None).unwrap_err();
    assert!(matches!(refused, LogError::DuplicateCall { .. }), "{refused}");
    step.result(call, text_result("a")).unwrap();
    assert!(matches!(step.call(&call_id("a"), "Read", "{}", None), Err(LogError::DuplicateCall { .. })));
    let refused = step.call(&call_id("x"), "Read", "{}", None).unwrap_err();
    assert!(matches!(refused, LogError::Order { .. }), "{refused}");
    step.end().unwrap();
    let step = open.step().unwrap();
    assert!(matches!(step.call(&call_id("a"), "Read", "{}", None), Err(LogError::DuplicateCall { .. })));
    let refused = step.assistant(vec![tool_use("b")], "p", "m", None, None, false).unwrap_err();
    assert!(matches!(refused, LogError::DuplicateCall { .. }), "{refused}");
    drop(step);
    drop(open);
    assert_provider_valid(&handle.messages());
    drop(log);
    let (mut log, _) = SessionLog::open(dir.path(), &id()).unwrap();
    let mut open = turn(&mut log);
    let refused = open.step().unwrap().assistant(vec![tool_use("a")], "p", "m", None, None, false).unwrap_err();
    assert!(matches!(refused, LogError::DuplicateCall { .. }), "also after a resume: {refused}");
}

#[tokio::test]
async fn r_151_a_call_without_a_result_gets_an_honest_one_when_its_step_ends() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    let mut turn = turn(&mut log);
    let step = turn.step().unwrap();
    answer(&step, vec![tool_use("a"), tool_use("b"), tool_use("c")]);
    drop(step.call(&call_id("a"), "Read", "{}", None).unwrap());
    run(&step, "b");
    step.end().unwrap();
    let expected = [("b", ""), ("a", "TOOL_OUTCOME_UNKNOWN"), ("c", "TOOL_NOT_STARTED")];
    assert_eq!(codes(&handle), expected.map(|(id, code)| (id.to_owned(), code.to_owned())));
    assert_provider_valid(&handle.messages());
    turn.end(done()).unwrap();
}

#[tokio::test]
async fn r_151_a_dropped_turn_closes_itself_and_the_next_one_goes_on() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    {
        let mut turn = turn(&mut log);
        let step = turn.step().unwrap();
        answer(&step, vec![tool_use("a")]);
        let _open = step.call(&call_id("a"), "Read", "{}", None).unwrap();
    }
    assert!(matches!(handle.last::<TurnEnded>().unwrap().end, TurnEnd::Error { .. }));
    assert_provider_valid(&handle.messages());
    let mut leaked = turn(&mut log);
    std::mem::forget(leaked.step().unwrap());
    std::mem::forget(leaked);
    let next = turn(&mut log);
    assert_eq!(next.number().0, 3);
    drop(next);
    assert_eq!(kinds(&handle)[7..], ["turn/start", "step/start", "step/end", "turn/end", "turn/start", "turn/end"]);
    log.close().await.unwrap();
    let (_, report) = SessionLog::open(dir.path(), &id()).unwrap();
    assert!(report.is_clean());
}

#[tokio::test]
async fn a_cancelled_future_leaves_a_closed_turn() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    {
        let work = async {
            let mut turn = turn(&mut log);
            let step = turn.step().unwrap();
            answer(&step, vec![tool_use("a")]);
            let call = step.call(&call_id("a"), "Read", "{}", None).unwrap();
            std::future::pending::<()>().await;
            step.result(call, text_result("never")).unwrap();
        };
        let _: &dyn Send = &work;
        tokio::select! { biased; () = work => {}, () = std::future::ready(()) => {} }
    }
    assert_eq!(codes(&handle), [("a".to_owned(), "TOOL_OUTCOME_UNKNOWN".to_owned())]);
    assert_eq!(kinds(&handle).last().unwrap(), "turn/end");
}

#[tokio::test]
async fn r_151_nobody_speaks_between_a_call_and_its_result() {
    let dir = folder();
    let mut log = create(dir.path());
    let handle = log.handle();
    let mut turn = turn(&mut log);
    let step = turn.step().unwrap();
    answer(&step, vec![tool_use("a")]);
    let call = step.call(&call_id("a"), "Read", "{}", None).unwrap();
    let len = handle.len();
    let context = ContextMessage { source: "hook".into(), role: Role::System, text: "note".into() };
    assert!(matches!(step.context(&context), Err(LogError::Order { .. })));
    assert!(matches!(step.user("user", vec![Block::text("x")]), Err(LogError::Order { .. })));
    assert!(matches!(step.assistant(Vec::new(), "p", "m", None, None, false), Err(LogError::Order { .. })));
    assert_eq!(handle.len(), len);
    step.result(call, text_result("a")).unwrap();
    step.context(&context).unwrap();
    let forged = vec![Block::ToolResult { tool_use_id: "a".into(), content: Vec::new(), is_error: false }];
    assert!(matches!(step.user("user", forged), Err(LogError::Order { .. })));
    let wrong = ContextMessage { source: "hook".into(), role: Role::Assistant, text: "note".into() };
    assert!(matches!(step.context(&wrong), Err(LogError::Order { .. })));
}

#[test]
fn r_236_a_log_does_not_begin_with_a_bad_header() {
    let dir = folder();
    let mut relative = header(&id());
    relative.cwd = "project".into();
    let mut newer = header(&id());
    newer.version = 1;
    let mut other = header(&id());
    "sessions".clone_into(&mut other.r#type);
    for bad in [relative, newer, other] {
        assert!(matches!(SessionLog::create(dir.path(), bad), Err(LogError::BadHeader { .. })));
    }
}
