//! A program that was killed in the middle: its log is mended when the session goes on, and the next request is valid.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::log::Log;
use crate::place::{Place, until};
use crate::record;

/// Kills a run in the middle of its second of three calls.
fn killed() -> (Place, String) {
    let place = Place::new();
    let model = place.script(&json!({"steps": [
        {"text": "three calls", "tool_calls": [
            {"id": "a", "name": "Bash", "input": {"command": "echo first"}},
            {"id": "b", "name": "Bash", "input": {"command": "touch started; sleep 600"}},
            {"id": "c", "name": "Bash", "input": {"command": "touch later"}}
        ]},
        {"text": "on again"}, {"text": "and again"}
    ]}));
    let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"];
    let started = place.start(place.sluice(run));
    assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "the call has started");
    started.signal(Signal::KILL);
    assert_eq!(started.wait().code, 137);
    (place, model)
}

fn session(place: &Place) -> String {
    place.logs()[0].file_stem().unwrap().to_string_lossy().into_owned()
}

#[test]
fn after_a_kill_the_session_is_mended_and_goes_on_with_a_valid_request() {
    let (place, model) = killed();
    place.end_all();
    let done = place.run_sluice(["run", "go on", "--model", &model, "--resume", &session(&place)]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "on again\n"), "{done:?}");
    assert_eq!(done.stderr.lines().count(), 1, "that it was mended is said once: {}", done.stderr);
    assert!(done.stderr.contains("repaired") && done.stderr.contains("turn 1"), "{}", done.stderr);

    let log = Log::read(&place.logs()[0]);
    log.assert_closed();
    assert_eq!(log.result("a").0["is_error"], false);
    let (cut, text) = log.result("b");
    assert_eq!((&cut["is_error"], &cut["error"]["code"]), (&json!(true), &json!("TOOL_OUTCOME_UNKNOWN")), "{text}");
    assert_eq!(log.result("c").0["is_error"], true);
    assert!(!place.work().join("later").exists());
    let ends = log.of("turn/end");
    assert_eq!((&ends[0]["end"]["reason"], &ends[1]["end"]["reason"]), (&json!("interrupted"), &json!("completed")));
    assert_eq!(log.of("log/repaired").len(), 1, "{:?}", log.kinds());

    let requests = record::read(&place.record());
    record::assert_valid(requests.last().unwrap());
    let again = place.run_sluice(["run", "more", "--model", &model, "--continue"]);
    assert_eq!((again.code, again.stdout.as_str(), again.stderr.as_str()), (0, "and again\n", ""), "mended once");
}

#[test]
fn a_line_that_was_half_written_is_cut_off_and_said() {
    let (place, model) = killed();
    place.end_all();
    let path = &place.logs()[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes.extend_from_slice(b"{\"seq\":99,\"time\":1,\"ty");
    std::fs::write(path, bytes).unwrap();
    let show = place.run_sluice(["sessions", "show", &session(&place)]);
    assert_eq!(show.code, 0, "{show:?}");
    assert!(show.stderr.contains("22 bytes"), "{}", show.stderr);
    let done = place.run_sluice(["run", "go on", "--model", &model, "--continue"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "on again\n"), "{done:?}");
    assert!(done.stderr.contains("22 bytes"), "{}", done.stderr);
    Log::read(path).assert_closed();
}

#[test]
fn a_session_that_runs_is_not_opened_twice() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [
        {"tool_calls": [{"name": "Bash", "input": {"command": "touch started; until [ -e go ]; do sleep 0.05; done"}}]},
        {"text": "done"}
    ]}));
    let run = ["run", "hi", "--model", &model, "--permission-mode", "bypassPermissions"];
    let first = place.start(place.sluice(run));
    assert!(until(Duration::from_secs(30), || place.work().join("started").exists()), "the call has started");
    let before = std::fs::read(&place.logs()[0]).unwrap();
    // In a place of its own for the output, but on the same state.
    let line =
        format!("\"$SLUICE\" run hi --model '{model}' --resume {} > second 2>&1; echo $? > code", session(&place));
    let mut command = place.shell(&line);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    assert!(command.status().unwrap().success());
    let said = place.read("second");
    assert_eq!(place.read("code").trim(), "2", "{said}");
    assert!(said.contains(&session(&place)) && said.contains("open in another process"), "{said}");
    assert_eq!(std::fs::read(&place.logs()[0]).unwrap(), before, "its log is untouched");
    place.write("go", "");
    let done = first.wait();
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\n"), "{done:?}");
    Log::read(&place.logs()[0]).assert_closed();
}

#[test]
fn a_home_folder_that_cannot_be_written_is_a_warning_at_most() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut place = Place::new();
    let model = place.script(&json!({"steps": [{"text": "done"}]}));
    place.set("XDG_STATE_HOME", "");
    let read_only = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(place.home(), read_only).unwrap();
    // The superuser may write everywhere; for it a file in the way is what makes the place unusable.
    if rustix::process::geteuid().is_root() {
        std::fs::write(place.home().join(".local"), "").unwrap();
    }
    let done = place.run_sluice(["run", "hi", "--model", &model]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "done\n"), "{done:?}");
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
}
