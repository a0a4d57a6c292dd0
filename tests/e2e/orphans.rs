//! No orphans: whatever a proposed command started, in whatever session or group, is gone when it was stopped, and at
//! the latest with sluice, however that ends.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::log::Log;
use crate::place::{Place, Started, has, until};

/// A daemon in a session of its own, deaf to TERM, child of a process that is gone; and a plain child in the background.
const STRAYS: &str = "setsid sh -c 'trap \"\" TERM HUP INT; sleep 600; sleep 600' </dev/null >/dev/null 2>&1 & \
                      (setsid sh -c 'sleep 600; true' </dev/null >/dev/null 2>&1 &) ; sleep 600 >/dev/null 2>&1 & ";

fn bash(command: &str) -> Value {
    json!({"name": "Bash", "input": {"command": command}})
}

/// Starts a run whose call has made its strays and stays.
fn staying(place: &Place) -> Started {
    let line = format!("{STRAYS} touch started; wait; sleep 600");
    let model = place.script(&json!({"steps": [{"text": "go", "tool_calls": [bash(&line)]}, {"text": "done"}]}));
    let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"];
    let started = place.start(place.sluice(run));
    assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "the call has started");
    assert!(until(Duration::from_secs(30), || sleepers(place) >= 3), "{:?}", place.left_behind());
    started
}

/// How many `sleep`s of this place run.
fn sleepers(place: &Place) -> usize {
    place.left_behind().iter().filter(|(_, line)| line.starts_with("sleep ")).count()
}

#[test]
fn r_437_a_signal_takes_a_daemon_of_the_command_along() {
    for (which, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let place = Place::new();
        let started = staying(&place);
        started.signal(which);
        let done = started.wait();
        assert_eq!(done.code, code, "{done:?}");
        assert_eq!(place.left_behind(), [], "gone before sluice is");
    }
}

#[test]
fn r_437_a_killed_sluice_takes_its_commands_and_their_daemons_along() {
    let place = Place::new();
    let started = staying(&place);
    started.signal(Signal::KILL);
    assert_eq!(started.wait().code, 137);
    place.assert_nothing_left();
}

#[test]
fn a_killed_sluice_takes_along_a_server_of_tools_that_does_not_read() {
    let place = Place::new();
    let line = "(setsid sleep 600 &) ; touch started; sleep 600; true";
    let servers = json!({"mcpServers": {"deaf": {"command": "sh", "args": ["-c", line]}}});
    place.write("servers.json", &servers.to_string());
    let model = place.script(&json!({"steps": [{"text": "never"}]}));
    let started = place.start(place.sluice(["run", "hi", "--model", &model, "--mcp-config", "servers.json"]));
    assert!(until(Duration::from_secs(60), || place.work().join("started").exists()), "{}", started.stderr());
    assert!(until(Duration::from_secs(30), || sleepers(&place) >= 2), "{:?}", place.left_behind());
    started.signal(Signal::KILL);
    assert_eq!(started.wait().code, 137);
    place.assert_nothing_left();
}

#[test]
fn r_437_a_keeper_that_can_open_nothing_any_more_takes_all_along_all_the_same() {
    if !has("prlimit") {
        println!("skipped: no prlimit");
        return;
    }
    for which in [Signal::TERM, Signal::KILL] {
        let place = Place::new();
        let line = format!("prlimit --pid $PPID --nofile=0:0 && {{ {STRAYS} touch started; wait; sleep 600; }}");
        let model = place.script(&json!({"steps": [{"text": "go", "tool_calls": [bash(&line)]}, {"text": "done"}]}));
        let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions", "--sandbox", "off"];
        let started = place.start(place.sluice(run));
        assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "the call has started");
        assert!(until(Duration::from_secs(30), || sleepers(&place) >= 3), "{:?}", place.left_behind());
        started.signal(which);
        started.wait();
        place.assert_nothing_left();
    }
}

#[test]
fn r_430_a_timeout_takes_a_daemon_of_the_command_along() {
    let place = Place::new();
    let late = json!({"name": "Bash", "input": {"command": format!("{STRAYS} wait; sleep 600"), "timeout": 1500}});
    let model = place.script(&json!({"steps": [
        {"text": "go", "tool_calls": [late]},
        {"text": "look", "tool_calls": [bash("touch looking; until [ -e seen ]; do sleep 0.02; done")]},
        {"text": "done"}
    ]}));
    let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"];
    let started = place.start(place.sluice(run));
    assert!(until(Duration::from_secs(60), || place.work().join("looking").exists()), "{}", started.stderr());
    let strays: Vec<_> = place.left_behind().into_iter().filter(|(_, line)| line.contains("sleep 600")).collect();
    assert_eq!(strays, [], "gone when the call is over");
    place.write("seen", "");
    let done = started.wait();
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\n"), "{done:?}");
    place.assert_nothing_left();
}

#[test]
fn what_a_command_leaves_in_the_background_lives_as_long_as_the_session() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [
        {"text": "go", "tool_calls": [bash(STRAYS)]},
        {"text": "look", "tool_calls": [bash("touch looking; until [ -e seen ]; do sleep 0.02; done")]},
        {"text": "done"}
    ]}));
    let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"];
    let started = place.start(place.sluice(run));
    assert!(until(Duration::from_secs(60), || place.work().join("looking").exists()), "{}", started.stderr());
    assert!(until(Duration::from_secs(30), || sleepers(&place) >= 3), "{:?}", place.left_behind());
    place.write("seen", "");
    let done = started.wait();
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\n"), "{done:?}");
    assert_eq!(place.left_behind(), [], "gone before sluice is");
    Log::read(&place.logs()[0]).assert_closed();
}

#[test]
fn what_a_command_leaves_in_the_background_dies_with_a_killed_sluice() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [
        {"text": "go", "tool_calls": [bash(STRAYS)]}, {"text": "never", "delay_ms": 600_000}
    ]}));
    let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"];
    let started = place.start(place.sluice(run));
    assert!(until(Duration::from_secs(60), || sleepers(&place) >= 3), "{:?}", place.left_behind());
    started.signal(Signal::KILL);
    assert_eq!(started.wait().code, 137);
    place.assert_nothing_left();
}

#[test]
fn codes_and_signals_of_a_command_are_its_own() {
    let place = Place::new();
    let calls = ["exit 7", "kill -9 $$", "kill -USR1 $$", "exec no-such-program", "exit 126", "true"].map(bash);
    let model = place.script(&json!({"steps": [{"text": "go", "tool_calls": calls}, {"text": "done"}]}));
    let done = place.run_sluice(["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\n"), "{done:?}");
    let log = Log::read(&place.logs()[0]);
    let texts: Vec<String> = (1..=6).map(|n| log.result(&format!("call_{n}")).1).collect();
    let begins = [
        "Exit code 7",
        "Command was killed by signal 9",
        "Command was killed by signal 10",
        "Exit code 127",
        "Exit code 126",
        "(no output)",
    ];
    for (text, begin) in texts.iter().zip(begins) {
        assert!(text.starts_with(begin), "{begin}: {texts:?}");
    }
}

#[test]
fn the_hidden_word_alone_starts_nothing() {
    let place = Place::new();
    for words in [&["__warden"][..], &["__warden", "1"], &["__warden", "77"], &["__warden", "x"]] {
        let done = place.run_sluice(words);
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{words:?}: {done:?}");
    }
    place.assert_nothing_left();
}
