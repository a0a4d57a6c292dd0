//! The four output formats of one run, hook lines, and several prompts on stdin.

use serde_json::{Value, json};

use crate::log::Log;
use crate::place::{Done, Place};

/// A run with a call, a denied call, hooks that allow and deny, and a final text.
fn run(format: &str, more: &[&str]) -> (Place, Done) {
    let place = Place::new();
    place.write_home(
        ".claude/settings.json",
        &json!({"hooks": {"PreToolUse": [
            {"matcher": "Write", "hooks": [{"type": "command", "command": "echo 'no files' >&2; exit 2"}]},
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo '{\"systemMessage\":\"seen\"}'"}]}
        ]}})
        .to_string(),
    );
    let model = place.script(&json!({"steps": [
        {"text": "Two calls.", "tool_calls": [
            {"name": "Bash", "input": {"command": "echo é"}},
            {"name": "Write", "input": {"file_path": "f", "content": "x"}}
        ], "usage": {"input_tokens": 10, "output_tokens": 3, "cached_input_tokens": 4}},
        {"text": "Done.", "usage": {"input_tokens": 20, "output_tokens": 2}}
    ]}));
    let mut args = vec!["run", "go", "--model", &model, "--output-format", format];
    args.extend(more);
    let done = place.run_sluice(args);
    assert_eq!(done.code, 0, "{done:?}");
    place.assert_nothing_left();
    (place, done)
}

fn lines(done: &Done) -> Vec<Value> {
    done.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn kinds(lines: &[Value]) -> Vec<String> {
    let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let of = |line: &Value| match word(line, "subtype") {
        subtype if subtype.is_empty() => word(line, "type"),
        subtype => format!("{}/{subtype}", word(line, "type")),
    };
    lines.iter().map(of).collect()
}

#[test]
fn text_is_the_final_text_alone() {
    let (_place, done) = run("text", &[]);
    assert_eq!(done.stdout, "Done.\n");
    let said: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(said.len(), 2, "the message of the hook, and its denial: {}", done.stderr);
    assert!(
        said[1].starts_with("sluice: a hook denied a call of Write: ") && said[1].ends_with("no files"),
        "{}",
        said[1]
    );
}

#[test]
fn json_is_one_object_with_the_documented_members() {
    let (place, done) = run("json", &[]);
    assert_eq!(done.stdout.lines().count(), 1);
    let result = done.result();
    let expected = json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 2, "result": "Done.",
        "stop_reason": "end_turn", "terminal_reason": "completed",
        "usage": {"input_tokens": 26, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 4, "output_tokens": 5},
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&result[name], value, "{name} of {result:#}");
    }
    let denial = &result["permission_denials"][0];
    assert_eq!((&denial["tool_name"], &denial["by"]), (&json!("Write"), &json!("hook")));
    assert_eq!(denial["tool_input"]["content"], "x", "{denial:#}");
    assert!(denial["reason"].as_str().unwrap().contains("no files"), "{denial:#}");
    let session = result["session_id"].as_str().unwrap();
    assert_eq!(place.logs().pop().unwrap().file_stem().unwrap().to_str(), Some(session));
    for absent in ["errors", "stop_hook_capped", "structured_output", "deferred_tool_use"] {
        assert!(result.get(absent).is_none(), "{absent} has nothing to say here: {result:#}");
    }
}

#[test]
fn stream_json_has_the_shapes_that_scripts_parse() {
    let (place, done) = run("stream-json", &[]);
    let lines = lines(&done);
    assert_eq!(
        kinds(&lines),
        ["system/init", "assistant", "system/informational", "user", "user", "assistant", "result/success"]
    );
    let session = &lines[0]["session_id"];
    assert!(lines.iter().all(|line| &line["session_id"] == session), "one session in every line");
    assert_eq!(lines[0]["cwd"], place.work().display().to_string());
    assert_eq!(lines[0]["permissionMode"], "default");
    assert!(lines[0]["tools"].as_array().unwrap().contains(&json!("Bash")));
    let content = &lines[1]["message"]["content"];
    assert_eq!(content[0], json!({"type": "text", "text": "Two calls."}));
    assert_eq!(content[1]["input"], json!({"command": "echo é"}));
    assert_eq!(lines[1]["message"]["role"], "assistant");
    let results: Vec<&Value> = lines.iter().filter(|line| line["type"] == "user").collect();
    assert_eq!(results[0]["message"]["content"][0]["tool_use_id"], "call_1");
    assert_eq!(results[0]["message"]["content"][0]["content"], "é");
    assert_eq!(results[1]["message"]["content"][0]["is_error"], true);
    assert_eq!(lines.last().unwrap()["result"], "Done.");
}

#[test]
fn stream_json_with_hook_lines_shows_start_and_result_of_each_hook() {
    let (_place, done) = run("stream-json", &["--include-hook-events"]);
    let lines = lines(&done);
    let started: Vec<&Value> = lines.iter().filter(|line| line["subtype"] == "hook_started").collect();
    let ended: Vec<&Value> = lines.iter().filter(|line| line["subtype"] == "hook_response").collect();
    assert_eq!((started.len(), ended.len()), (2, 2), "{:?}", kinds(&lines));
    let find =
        |name: &str| *ended.iter().find(|line| line["hook_name"] == name).unwrap_or_else(|| panic!("{ended:#?}"));
    let (bash, write) = (find("PreToolUse:Bash"), find("PreToolUse:Write"));
    assert_eq!(
        (&bash["outcome"], &bash["exit_code"], &bash["hook_event"]),
        (&json!("success"), &json!(0), &json!("PreToolUse"))
    );
    assert_eq!(bash["dialect"], "claude-code");
    assert!(bash["source"].as_str().unwrap().ends_with("settings.json"));
    assert!(bash["stdout"].as_str().unwrap().contains("seen"));
    assert_eq!((&write["exit_code"], &write["stderr"]), (&json!(2), &json!("no files\n")));
}

#[test]
fn events_are_the_log_itself() {
    let (place, done) = run("events", &[]);
    let log = std::fs::read_to_string(place.logs().pop().unwrap()).unwrap();
    assert_eq!(done.stdout, log);
}

#[test]
fn several_prompts_are_turns_of_one_session_and_the_last_one_gives_the_code() {
    let place = Place::new();
    let model = place.script(&json!({"steps": [{"text": "one"}, {"text": "two"}, {"error": {"kind": "auth"}}]}));
    let line = |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}}).to_string();
    let input = [line("1"), String::new(), line("2"), line("3")].join("\n");
    std::fs::write(place.root().join("lines"), input).unwrap();
    let mut command =
        place.sluice(["run", "--model", &model, "--input-format", "stream-json", "--output-format", "stream-json"]);
    command.stdin(std::fs::File::open(place.root().join("lines")).unwrap());
    let done = place.run(command);
    assert_eq!(done.code, 1, "{done:?}");
    let results: Vec<Value> = lines(&done).into_iter().filter(|line| line["type"] == "result").collect();
    let texts: Vec<&Value> = results.iter().map(|result| &result["result"]).collect();
    assert_eq!(texts, ["one", "two", ""]);
    assert_eq!(results[2]["errors"][0]["code"], "auth");
    assert_eq!(place.logs().len(), 1);
    let log = Log::read(&place.logs()[0]);
    log.assert_closed();
    assert_eq!(log.of("turn/end").len(), 3);
}
