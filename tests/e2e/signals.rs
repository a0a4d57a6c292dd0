//! INT and TERM: the turn is cancelled, the log is closed, end hooks have run and children are gone.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::log::Log;
use crate::place::{Done, Place, until};
use crate::record;

/// Starts a run whose first call writes `started` and then stays.
fn interrupted(command: &str, format: &str, which: Signal) -> (Place, Done) {
    let place = Place::new();
    place.write_home(
        ".claude/settings.json",
        r#"{"hooks":{"SessionEnd":[{"hooks":[{"type":"command","command":"echo end >> marks"}]}],"Stop":[{"hooks":[{"type":"command","command":"echo stop >> marks"}]}]}}"#,
    );
    let model = place.script(&json!({"steps": [
        {"text": "long", "tool_calls": [{"name": "Bash", "input": {"command": command}}, {"name": "Bash", "input": {"command": "touch later"}}]},
        {"text": "on again"}
    ]}));
    let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions", "--output-format", format];
    let started = place.start(place.sluice(run));
    assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "the call has started");
    started.signal(which);
    let done = started.wait();
    place.assert_nothing_left();
    (place, done)
}

fn assert_cancelled(place: &Place, done: &Done, code: i32) {
    assert_eq!(done.code, code, "{done:?}");
    assert!(done.took < Duration::from_secs(30), "{:?}", done.took);
    assert!(!place.work().join("later").exists(), "the second call never runs");
    assert_eq!(place.read("marks"), "end\n", "the end hook has run, the stop hook has not");
    let log = Log::read(&place.logs()[0]);
    log.assert_closed();
    assert_eq!(log.of("turn/end")[0]["end"]["reason"], "cancelled", "{:#?}", log.of("turn/end"));
    for call in ["call_1", "call_2"] {
        assert_eq!(log.result(call).0["is_error"], true);
    }
}

#[test]
fn an_interrupt_is_130_and_the_stream_ends_with_a_result_that_says_so() {
    let (place, done) = interrupted("touch started; sleep 600 & sleep 600", "stream-json", Signal::INT);
    assert_cancelled(&place, &done, 130);
    let result = done.result();
    assert_eq!((&result["type"], &result["subtype"]), (&json!("result"), &json!("error_cancelled")));
    assert_eq!((&result["terminal_reason"], &result["is_error"]), (&json!("cancelled"), &Value::Bool(true)));
}

#[test]
fn a_termination_is_143_and_the_session_goes_on_later() {
    let (place, done) = interrupted("touch started; sh -c 'sleep 500 & sleep 500'", "text", Signal::TERM);
    assert_cancelled(&place, &done, 143);
    assert!(done.stderr.contains("[cancelled]"), "{}", done.stderr);
    let model = format!("script:{}", place.root().join("script.json").display());
    let again = place.run_sluice(["run", "go on", "--continue", "--model", &model]);
    assert_eq!((again.code, again.stdout.as_str(), again.stderr.as_str()), (0, "on again\n", ""));
    record::assert_valid(record::read(&place.record()).last().unwrap());
}

#[test]
fn a_command_that_ignores_signals_is_gone_all_the_same() {
    let (place, done) = interrupted("trap '' TERM INT HUP; touch started; sleep 600; sleep 600", "text", Signal::TERM);
    assert_cancelled(&place, &done, 143);
}

#[test]
fn a_signal_ends_a_silent_model() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [{"delay_ms": 600_000, "text": "never"}]}));
    let started = place.start(place.sluice(["run", "hi", "--model", &model, "--output-format", "json"]));
    assert!(until(Duration::from_secs(30), || !record::read(&place.record()).is_empty()), "the request was sent");
    started.signal(Signal::INT);
    let done = started.wait();
    assert_eq!(done.code, 130, "{done:?}");
    assert_eq!(done.result()["subtype"], "error_cancelled");
    Log::read(&place.logs()[0]).assert_closed();
}

#[test]
fn a_signal_ends_a_hook_that_hangs() {
    let place = Place::new();
    place.write_home(
        ".claude/settings.json",
        r#"{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"touch started; sleep 600"}]}]}}"#,
    );
    let model = place.script(&json!({"steps": [{"text": "never"}]}));
    let started = place.start(place.sluice(["run", "hi", "--model", &model]));
    assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "the hook has started");
    started.signal(Signal::TERM);
    let done = started.wait();
    assert_eq!((done.code, done.stdout.as_str()), (143, ""), "{done:?}");
    place.assert_nothing_left();
    Log::read(&place.logs()[0]).assert_closed();
    assert_eq!(record::read(&place.record()).len(), 0, "no request was sent");
}

#[test]
fn a_signal_between_prompts_ends_the_run() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [{"text": "one"}]}));
    let line = format!(
        "exec 3> >(exec \"$SLUICE\" run --model '{model}' --input-format stream-json > out; echo $? > code); \
         echo '{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"1\"}}}}' >&3; \
         until grep -q one out 2>/dev/null; do sleep 0.05; done; pkill -TERM -P $! ; kill -TERM $!; \
         while kill -0 $! 2>/dev/null; do sleep 0.05; done"
    );
    let done = place.run(place.shell(&line));
    assert_eq!(place.read("out"), "one\n", "{done:?}");
    place.assert_nothing_left();
    Log::read(&place.logs()[0]).assert_closed();
}

#[test]
fn a_second_signal_stops_the_end_hooks_too() {
    let place = Place::new();
    place.write_home(
        ".claude/settings.json",
        r#"{"hooks":{"SessionEnd":[{"hooks":[{"type":"command","command":"touch ending; sleep 600","timeout":600}]}]}}"#,
    );
    let model = place.script(&json!({"steps": [{"text": "done"}]}));
    let started = place.start(place.sluice(["run", "hi", "--model", &model]));
    assert!(until(Duration::from_secs(30), || place.work().join("ending").exists()), "the end hook has started");
    started.signal(Signal::INT);
    let said = until(Duration::from_secs(30), || started.stderr().contains("once more"));
    assert!(said, "what a second signal would do is said");
    started.signal(Signal::INT);
    let done = started.wait();
    assert_eq!((done.code, done.stdout.as_str()), (130, "done\n"), "{done:?}");
    place.assert_nothing_left();
    Log::read(&place.logs()[0]).assert_closed();
}

#[test]
fn a_signal_ends_a_session_start_that_hangs() {
    let place = Place::new();
    place.write_home(
        ".claude/settings.json",
        r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch started; sleep 600"}]}]}}"#,
    );
    let model = place.script(&json!({"steps": [{"text": "never"}]}));
    let started = place.start(place.sluice(["run", "hi", "--model", &model]));
    assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "the hook has started");
    started.signal(Signal::INT);
    let done = started.wait();
    assert_eq!((done.code, done.stdout.as_str()), (130, ""), "{done:?}");
    place.assert_nothing_left();
    assert_eq!(Log::read(&place.logs()[0]).of("turn/end")[0]["end"]["reason"], "cancelled");
}

#[test]
fn a_signal_ends_shells_in_the_background_that_ignore_it() {
    for (which, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let place = Place::new();
        let stubborn = "trap '' TERM INT HUP; (trap '' TERM; sleep 600) & echo > running; wait; sleep 600";
        let model = place.script(&json!({"steps": [{"tool_calls": [
            {"name": "Bash", "input": {"command": stubborn, "run_in_background": true}},
            {"name": "Bash", "input": {"command": "until [ -e running ]; do sleep 0.05; done; touch started; sleep 600"}}
        ]}]}));
        let started =
            place.start(place.sluice(["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"]));
        assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "both calls have started");
        started.signal(which);
        let done = started.wait();
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.took < Duration::from_secs(30), "{:?}", done.took);
        assert!(done.stderr.contains("bash_1") && done.stderr.contains("was still running"), "{}", done.stderr);
        place.assert_nothing_left();
        let log = Log::read(&place.logs()[0]);
        log.assert_closed();
        assert_eq!(log.of("shell/ended")[0]["how"], "stopped");
    }
}
