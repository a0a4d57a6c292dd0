//! Standard input in all its states: silent, closed, endless, full of bytes, a FIFO that nobody writes.

use std::time::Duration;

use serde_json::json;

use crate::place::Place;

/// Far more than the 3 s that a silent pipe has, far less than what it would have to say.
const SOON: Duration = Duration::from_secs(25);

fn echo() -> (Place, String) {
    let place = Place::new();
    let model = place.script(&json!({"steps": [{"echo": true}], "when_exhausted": "last"}));
    (place, model)
}

#[test]
fn a_prompt_does_not_wait_for_a_silent_pipe() {
    let (place, model) = echo();
    let done = place.run(place.shell(&format!("\"$SLUICE\" run hi --model '{model}' < <(sleep 100)")));
    assert_eq!(done.stdout, "hi\n");
    assert_eq!(done.stderr, "sluice: nothing came on standard input within 3 s; going on without it\n");
    assert!(done.took < SOON, "{:?}", done.took);
}

#[test]
fn a_prompt_does_not_wait_for_a_fifo_that_nobody_writes() {
    let (place, model) = echo();
    // Opened for both directions, for a shell would wait for a writer before it starts anything.
    let done = place.run(place.shell(&format!("mkfifo f; \"$SLUICE\" run hi --model '{model}' 0<> f")));
    assert_eq!((done.code, done.stdout.as_str()), (0, "hi\n"), "{done:?}");
    assert!(done.stderr.contains("going on without it"), "{}", done.stderr);
    assert!(done.took < SOON, "{:?}", done.took);
}

#[test]
fn an_empty_and_a_closed_stdin_are_nothing_to_wait_for() {
    let (place, model) = echo();
    for from in ["</dev/null", "<&-"] {
        let done = place.run(place.shell(&format!("\"$SLUICE\" run hi --model '{model}' {from}")));
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "hi\n", ""), "{from}");
    }
    let done = place.run(place.shell(&format!("\"$SLUICE\" run --model '{model}' <&-")));
    assert_eq!(done.code, 2, "{done:?}");
}

#[test]
fn without_a_prompt_stdin_is_waited_for_however_long_it_takes() {
    let (place, model) = echo();
    let done = place.run(place.shell(&format!("(sleep 4; echo late) | \"$SLUICE\" run --model '{model}'")));
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "late\n", ""));
}

#[test]
fn a_pipe_that_began_to_speak_is_read_to_its_end() {
    let (place, model) = echo();
    let line = format!("(echo one; sleep 4; echo two) | \"$SLUICE\" run hi --model '{model}'");
    let done = place.run(place.shell(&line));
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "hi\n\none\ntwo\n", ""));
}

#[test]
fn two_megabytes_of_prompt_reach_hook_and_model_whole() {
    let (place, model) = echo();
    place.write_home(
        ".claude/settings.json",
        r#"{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"wc -c > size"}]}]}}"#,
    );
    let line = format!(
        "head -c 2000000 /dev/zero | tr '\\0' a | \"$SLUICE\" run --model '{model}' | tr -d '\\n' | sha256sum; head -c 2000000 /dev/zero | tr '\\0' a | sha256sum"
    );
    let done = place.run(place.shell(&line));
    assert_eq!(done.code, 0, "{done:?}");
    let sums: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(sums[0], sums[1]);
    assert!(place.read("size").trim().parse::<usize>().unwrap() > 2_000_000);
}

#[test]
fn bytes_that_are_no_utf_8_are_replaced_and_the_rest_is_kept() {
    let (place, model) = echo();
    let done = place.run(place.shell(&format!("printf 'a\\377b' | \"$SLUICE\" run --model '{model}'")));
    assert_eq!((done.code, done.stdout.as_str()), (0, "a\u{fffd}b\n"), "{done:?}");
}

#[test]
fn no_terminal_is_needed() {
    let (place, model) = echo();
    let line = format!("unset TERM; setsid -w \"$SLUICE\" run hi --model '{model}' </dev/null");
    let done = place.run(place.shell(&line));
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "hi\n", ""));
}
