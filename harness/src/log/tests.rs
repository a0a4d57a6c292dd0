//! The relational rules that only the engine's inside can provoke (R-230, R-234): a corpus of event sequences, the
//! last of which is refused and changes nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use super::book::{Book, messages};
use super::line::{LineFault, Logged, kind_name};
use super::relation::Refusal;
use super::repair::closers_due;
use crate::ids::Seq;
use crate::json::Json;

const TURN: &str = r#"turn/start {"turn":1,"turn_id":"t","prompt_id":"p"}"#;
const STEP: &str = r#"step/start {"turn":1,"step":1}"#;
const ASKS_A: &str = r#"assistant/message {"turn":1,"step":1,"content":[{"type":"tool_use","id":"a","name":"Read","input":{}}],"provider":"p","model":"m","stop_reason":null,"usage":null,"interrupted":false}"#;
const CALL_A: &str = r#"tool/call {"turn":1,"step":1,"call_id":"a","name":"Read","arguments":"{}","input":{}}"#;
const RESULT_A: &str = r#"tool/result {"turn":1,"step":1,"call_id":"a","content":[{"type":"text","text":"ok"}],"is_error":false,"error":null,"denied_by":null,"meta":null,"call_seq":3}"#;
const ASKED: &str = r#"approval/asked {"turn":1,"id":"q","call_id":"a","tool":"Read","reason":null,"origin":"mode"}"#;
const DECIDED: &str = r#"approval/decided {"turn":1,"id":"q","by":"user","outcome":"allowed-once"}"#;
const REWRITE: &str = r#"tool/rewrite-dispatch {"turn":1,"call_id":"a","sub_call_id":"a/1","name":"Read","input":{}}"#;
const STEP_END: &str = r#"step/end {"turn":1,"step":1}"#;
const TURN_END: &str = r#"turn/end {"turn":1,"end":{"reason":"refused"}}"#;

fn admit(book: &mut Book, event: &str) -> Result<(), Refusal> {
    let (kind, data) = event.split_once(' ').unwrap();
    let data = Json::parse(data).unwrap();
    let event = Logged { seq: book.next_seq(), time_ms: 7, kind: kind_name(kind), ignorable: false, data };
    book.admit(event).map(|_| ())
}

fn book(events: &[&str]) -> Book {
    let mut book = Book::default();
    for event in events {
        admit(&mut book, event).unwrap_or_else(|why| panic!("{event}: {why:?}"));
    }
    book
}

/// After `events`, `last` is refused for a reason with `why` in it, and nothing has changed.
#[track_caller]
fn refused(events: &[&str], last: &str, why: &str) {
    let mut book = book(events);
    let before = format!("{book:?}");
    match admit(&mut book, last) {
        Err(Refusal::Order(told)) => assert!(told.contains(why), "`{told}` does not say `{why}`"),
        Err(Refusal::Duplicate(id)) => assert_eq!(why, format!("duplicate {id}")),
        Ok(()) => panic!("{last} was admitted"),
    }
    assert_eq!(format!("{book:?}"), before);
}

#[test]
fn r_234_events_in_their_relation_are_admitted() {
    let book = book(&[TURN, STEP, ASKS_A, CALL_A, ASKED, DECIDED, REWRITE, RESULT_A, STEP_END, TURN_END]);
    assert_eq!(messages(&book.visible()).len(), 2);
    assert_eq!(closers_due(book.relation()), 0);
}

#[test]
fn r_234_turns_and_steps_are_enclosed_and_numbered() {
    refused(&[], STEP, "no turn is open");
    refused(&[], &TURN.replace("\"turn\":1", "\"turn\":2"), "turn 1 is due");
    refused(&[TURN], TURN, "turn 1 is still open");
    refused(&[TURN], &STEP.replace("\"step\":1", "\"step\":2"), "step 1 is due");
    refused(&[TURN, STEP], STEP, "step 1 is still open");
    refused(&[TURN, STEP], TURN_END, "step 1 is still open");
    refused(&[TURN], STEP_END, "no step is open");
    refused(&[TURN, STEP], &STEP_END.replace("\"step\":1", "\"step\":2"), "step 1 is open");
    refused(&[TURN], &TURN_END.replace("\"turn\":1", "\"turn\":2"), "turn 1 is open");
    refused(&[TURN, TURN_END], TURN, "turn 2 is due");
    refused(&[TURN, STEP, ASKS_A], STEP_END, "has no result yet");
    refused(&[TURN], "step/start {\"turn\":1}", "malformed");
}

#[test]
fn r_232_r_234_a_result_cites_and_answers_one_open_call_of_its_step() {
    let calls = [TURN, STEP, ASKS_A, CALL_A];
    refused(&[TURN, STEP], RESULT_A, "no call `a`");
    refused(&[TURN, STEP, ASKS_A], RESULT_A, "never recorded");
    refused(&calls, &RESULT_A.replace("\"call_seq\":3", "\"call_seq\":2"), "cites another");
    refused(&calls, &RESULT_A.replace("\"call_seq\":3", "\"call_seq\":null"), "cites another");
    refused(&[TURN, STEP, ASKS_A, CALL_A, RESULT_A], RESULT_A, "its one result already");
    refused(&[TURN, STEP], CALL_A, "does not ask");
    refused(&calls, CALL_A, "duplicate a");
    let not_started = RESULT_A
        .replace("\"error\":null", r#""error":{"name":"ToolNotStartedError","code":"TOOL_NOT_STARTED"}"#)
        .replace("\"call_seq\":3", "\"call_seq\":null");
    book(&[TURN, STEP, ASKS_A, &not_started, STEP_END, TURN_END]);
    refused(&[TURN, STEP, ASKS_A, &not_started], CALL_A, "duplicate a");
}

#[test]
fn r_233_a_message_names_its_speaker_and_holds_only_what_that_one_may_say() {
    const SAID: &str = r#"user/message {"turn":1,"source":"user","content":[{"type":"text","text":"x"}]}"#;
    const ADDED: &str = r#"context/message {"turn":1,"source":"s","role":"system","text":"x"}"#;
    const USE: &str = r#"{"type":"tool_use","id":"b","name":"Read","input":{}}"#;
    const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"b","content":[],"is_error":false}"#;
    let text = r#"{"type":"text","text":"x"}"#;
    book(&[TURN, SAID, ADDED, STEP, ASKS_A]);
    for block in [USE, RESULT] {
        refused(&[TURN], &SAID.replace(text, block), "neither calls nor results");
    }
    refused(
        &[TURN, STEP],
        &ASKS_A.replace(r#"{"type":"tool_use","id":"a","name":"Read","input":{}}"#, RESULT),
        "no results",
    );
    for role in ["assistant", "tool"] {
        refused(&[TURN], &ADDED.replace("system", role), "neither for the model nor for a tool");
    }
    for (event, open, field) in [
        (SAID, &[TURN][..], r#""source":"user","#),
        (ADDED, &[TURN], r#""source":"s","#),
        (ADDED, &[TURN], r#""role":"system","#),
        (ASKS_A, &[TURN, STEP], r#""provider":"p","#),
        (ASKS_A, &[TURN, STEP], r#""model":"m","#),
        (RESULT_A, &[TURN, STEP, ASKS_A, CALL_A], r#""call_id":"a","#),
    ] {
        refused(open, &event.replace(field, ""), "malformed");
    }
    refused(&[TURN], &SAID.replace(r#"[{"type":"text","text":"x"}]"#, r#""x""#), "malformed");
    refused(&[TURN, STEP, ASKS_A, CALL_A], &RESULT_A.replace(r#""call_id":"a""#, r#""call_id":"b""#), "no call `b`");
}

#[test]
fn r_234_questions_are_unique_and_answered_once_in_their_turn() {
    let open = [TURN, STEP, ASKS_A, CALL_A, ASKED];
    refused(&[], ASKED, "no turn is open");
    refused(&open, ASKED, "asked before");
    refused(&[TURN, STEP, ASKS_A, CALL_A], DECIDED, "not open");
    refused(&[TURN, STEP, ASKS_A, CALL_A, ASKED, DECIDED], DECIDED, "not open");
    let next = TURN.replace("\"turn\":1", "\"turn\":2");
    let late = DECIDED.replace("\"turn\":1", "\"turn\":2");
    refused(&[TURN, ASKED, TURN_END, &next], &late, "not open");
}

#[test]
fn r_234_a_rewrite_belongs_to_an_open_call_and_takes_an_id_of_its_own() {
    refused(&[TURN, STEP, ASKS_A], REWRITE, "is not open");
    refused(&[TURN, STEP, ASKS_A, CALL_A, RESULT_A], REWRITE, "is not open");
    refused(&[TURN, STEP, ASKS_A, CALL_A, REWRITE], REWRITE, "duplicate a/1");
    refused(&[TURN, STEP, ASKS_A, CALL_A], &REWRITE.replace("a/1", "a"), "duplicate a");
}

#[test]
fn r_231_positions_have_no_gap() {
    let mut book = book(&[TURN]);
    let mut event = (**book.events().first().unwrap()).clone();
    event.seq = Seq(2);
    assert!(matches!(book.admit(event), Err(Refusal::Order(why)) if why.contains("event 1 is due")));
}

#[test]
fn r_267_lines_are_read_strictly_and_spelled_back_exactly() {
    let line = r#"{"seq":3,"time":9,"type":"x/y","ignorable":true,"data":{"z":1.00,"a":1E+2,"b":"é\n"}}"#;
    assert_eq!(Logged::read(line.as_bytes()).unwrap().line(), line);
    let (whole, cut) = (line.as_bytes(), line.len());
    for at in 0..cut {
        assert!(matches!(Logged::read(&whole[..at]), Err(LineFault::Torn(_))), "cut at {at}");
    }
    for (wrong, why) in [
        (r#"{"seq":3,"time":9,"type":"x","data":{}} {}"#, "after the event"),
        (r#"{"seq":3,"time":9,"type":"x","data":{"a":1,"a":1}}"#, "twice"),
        (r#"{"seq":3,"seq":3,"time":9,"type":"x","data":{}}"#, "duplicate"),
        (r#"{"seq":3.0,"time":9,"type":"x","data":{}}"#, "invalid type"),
        (r#"{"seq":-3,"time":9,"type":"x","data":{}}"#, "invalid value"),
        (r#"{"seq":3,"time":9,"type":"x","data":[]}"#, "no object"),
        (r#"{"seq":3,"time":9,"type":"x"}"#, "missing field"),
        (r#"{"seq":3,"time":9,"type":"x","data":{"a":-0}}"#, "losslessly"),
        (r#"{"seq":3,"time":9,"type":"x","data":{"a":"\ud800"}}"#, "no character"),
        (r"[1]", "invalid"),
    ] {
        match Logged::read(wrong.as_bytes()) {
            Err(LineFault::Corrupt(told)) => assert!(told.contains(why), "`{told}` does not say `{why}`"),
            other => panic!("{wrong}: {other:?}"),
        }
    }
}
