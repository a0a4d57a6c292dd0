//! The program in real shell pipelines: what is piped in, what is piped on, and readers that go away or are slow.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::log::Log;
use crate::place::{Place, has, until};

fn look() -> serde_json::Value {
    json!({"steps": [
        {"text": "Let me look.", "tool_calls": [{"name": "Bash", "input": {"command": "ls"}}]},
        {"expect": {"contains": ["README.md", "what is here?"]}, "text": "There is a README."}
    ]})
}

#[test]
fn a_prompt_is_piped_in_and_the_answer_is_piped_on() {
    if !has("jq") {
        println!("skipped: no jq");
        return;
    }
    let place = Place::new();
    place.write("README.md", "# Here\n");
    place.script(&look());
    let done = place.run(place.shell(
        "echo 'what is here?' | \"$SLUICE\" run --model script:../script.json --output-format json | jq -r .result",
    ));
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "There is a README.\n", ""));
}

#[test]
fn the_short_form_takes_its_prompt_anywhere() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [{"echo": true}], "when_exhausted": "last"}));
    for args in [["-p", "say", "--model", &model], ["--model", &model, "-p", "say"], ["-p", "--model", &model, "say"]] {
        let done = place.run_sluice(args);
        assert_eq!((done.code, done.stdout.as_str()), (0, "say\n"), "{args:?}: {done:?}");
    }
    let done = place.run_sluice(["run", "--model", &model, "--", "--odd"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "--odd\n"), "{done:?}");
}

#[test]
fn a_veto_fails_the_pipeline_with_its_code_and_its_reason() {
    let place = Place::new();
    place.write_home(
        ".claude/settings.json",
        r#"{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"cat ../why >&2; exit 2"}]}]}}"#,
    );
    crate::place::write(&place.root().join("why"), "no secrets in prompts\n");
    place.script(&look());
    let line = "echo 'my password is x' | \"$SLUICE\" run --model script:../script.json --output-format json > out; echo \"code $?\"";
    let done = place.run(place.shell(line));
    assert_eq!(done.stdout, "code 3\n");
    assert_eq!(done.stderr.matches("no secrets in prompts").count(), 1, "{}", done.stderr);
    assert!(!done.stderr.contains("password"), "the prompt is not repeated: {}", done.stderr);
    assert!(place.read("out").contains("\"is_error\":true"));
}

#[test]
fn a_reader_that_leaves_early_ends_the_run_quietly_with_its_log_closed() {
    let place = Place::new();
    let call = json!({"text": "again", "tool_calls": [{"name": "Bash", "input": {"command": "echo x"}}]});
    place.script(&json!({"steps": [call], "when_exhausted": "loop"}));
    for format in ["stream-json", "events"] {
        let line = format!(
            "\"$SLUICE\" run hi --model script:../script.json --max-turns 2000 --output-format {format} | head -n 1; echo \"${{PIPESTATUS[0]}}\""
        );
        let done = place.run(place.shell(&line));
        assert_eq!(done.stderr, "", "{format}");
        assert!(done.stdout.ends_with("\n141\n"), "as `cat` would end: {done:?}");
        place.assert_nothing_left();
        Log::read(place.logs().last().unwrap()).assert_closed();
    }
}

#[test]
fn a_full_disk_behind_stdout_is_one_line_and_exit_1() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [{"text": "done"}]}));
    let line = format!("\"$SLUICE\" run hi --model '{model}' > /dev/full");
    let done = place.run(place.shell(&line));
    assert_eq!(done.code, 1, "{done:?}");
    assert_eq!(done.stderr.lines().next(), Some("sluice: cannot write to standard output: no space left on device"));
    Log::read(place.logs().last().unwrap()).assert_closed();
}

#[test]
fn three_megabytes_pass_a_slow_pipe_whole_in_every_format() {
    let place = Place::new();
    // 3 bytes a chunk.
    place.script(&json!({"steps": [{"repeat": {"chunk": "ab ", "times": 1_000_000}}], "when_exhausted": "last"}));
    for (format, check) in [
        ("text", "wc -c | grep -qx 3000001"),
        ("json", "tail -n 1 | wc -c | awk '{exit !($1 > 3000000)}'"),
        ("stream-json", "tail -n 1 | grep -q '^{\"type\":\"result\".*}$'"),
    ] {
        let line =
            format!("\"$SLUICE\" run hi --model script:../script.json --output-format {format} | (sleep 0.5; {check})");
        let done = place.run(place.shell(&line));
        assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{format}");
    }
}

#[test]
fn each_line_of_a_stream_is_there_before_the_next_step_is_over() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [
        {"text": "first", "tool_calls": [{"name": "Bash", "input": {"command": "ls"}}]},
        {"delay_ms": 600_000, "text": "never"}
    ]}));
    for format in ["stream-json", "events"] {
        let run = place.start(place.sluice(["run", "hi", "--model", &model, "--output-format", format]));
        // The tool's result is there while the model is still silent.
        let there = until(Duration::from_secs(30), || run.stdout().contains("no output"));
        run.signal(Signal::INT);
        let done = run.wait();
        assert!(there, "{format}: {done:?}");
        assert_eq!(done.code, 130, "{format}");
    }
}
