//! Captured effects of the Claude Code dialect, each case through real shells: did the tool run, what does the model
//! see, is the result an error, does the turn go on, how often did the hook run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use sluice_harness::agent::TurnEnd;
use sluice_harness::content::{Role, plain_text};
use sluice_harness::permission::Mode;
use sluice_harness::seam::live::NoticeLevel;

use crate::world::{Session, World, bash, results, text};

const CASES: &str = include_str!("../effects/claude-code.json");
const NOT_HELD: &str = include_str!("../effects/not-held.json");

/// Texts whose beginning is ours to match and whose rest is the other program's own wording.
const OWN_WORDING: &[&str] = &[
    "Hook output looks like a JSON object but is not valid JSON",
    "Hook JSON output validation failed",
    "Failed to run: Hook returned incorrect event name",
    "Error occurred while executing hook command",
    "returned updatedInput that failed schema validation",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captured_effects_hold() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let not_held = not_held();
    let mut failures = Vec::new();
    let (mut held, mut tried) = (0, 0);
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let excused = not_held.contains_key(id);
        tried += 1;
        let wrong = run(case).await;
        match (wrong.is_empty(), excused) {
            (true, false) => held += 1,
            (false, false) => failures.push(format!("{id}:\n    {}", wrong.join("\n    "))),
            (true, true) if !is_untried(case) => failures.push(format!("{id}: listed as not held, but it holds")),
            (_, true) => {}
        }
    }
    println!("claude-code: {held} of {tried} captured cases hold, {} are decided otherwise", not_held.len());
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
    let ids: Vec<&str> = cases.iter().map(|c| c["id"].as_str().unwrap()).collect();
    for id in not_held.keys() {
        assert!(ids.contains(&id.as_str()), "{id} is listed as not held and is no case");
    }
}

/// Cases of handlers that cannot be run may look right by accident.
fn is_untried(case: &Value) -> bool {
    let config = case["hook"]["config"].to_string();
    ["http", "mcp_tool", "prompt", "agent"].iter().any(|kind| config.contains(&format!("\"type\":\"{kind}\"")))
}

fn not_held() -> BTreeMap<String, String> {
    let groups: Vec<Value> = serde_json::from_str(NOT_HELD).unwrap();
    let mut ids = BTreeMap::new();
    for group in groups {
        for id in group["ids"].as_array().unwrap() {
            ids.insert(id.as_str().unwrap().to_owned(), group["reason"].as_str().unwrap().to_owned());
        }
    }
    ids
}

/// Runs one case; what is wrong with it.
async fn run(case: &Value) -> Vec<String> {
    let mut world = World::new();
    let lab = world.home.join("lab");
    fs::create_dir_all(&lab).unwrap();
    let event = case["event"].as_str().filter(|e| *e != "-").unwrap_or("PreToolUse");
    let id = case["id"].as_str().unwrap();
    let event = if event.contains('.') || event == "onFailure" { "PreToolUse" } else { event };
    let hooks = hooks_of(&world, &lab, event, case);
    world.claude(&json!({ "hooks": hooks }));
    let noexec = world.file("noexec.sh", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(noexec, fs::Permissions::from_mode(0o644)).unwrap();
    let scenario = case["scenario"].as_str().unwrap_or("tool");
    if scenario == "perm" {
        world.set_mode(Mode::Default);
    }
    let mut plays = match scenario {
        "plain" | "plain_mcp" => vec![],
        "fail" => vec![bash("touch ran.txt; echo out; exit 3")],
        _ => vec![bash("touch ran.txt; echo OUT1")],
    };
    let observed = &case["observed"];
    let diff = observed["model_sees_diff"].to_string();
    if diff.contains("sleep 2") {
        plays.push(bash("true"));
    }
    if id == "onFailure.siblings" {
        plays = vec![crate::world::Play::Calls(vec![
            ("Bash".to_owned(), json!({ "command": "touch ran.txt; echo OUT1" })),
            ("Bash".to_owned(), json!({ "command": "touch other.txt; echo OK2" })),
        ])];
    }
    plays.push(text("FINAL"));
    let session = world.session(plays).await;
    let report = session.prompt("MAINPROMPT go").await;
    if let Some(runs) = observed["hook_runs"].as_u64().filter(|_| case["hook"].to_string().contains("\"async\":true")) {
        // Nobody waits for these: they are seen when they have begun.
        let marks = lab.join("runs");
        let begun = || fs::read_to_string(&marks).unwrap_or_default().lines().count() as u64 >= runs;
        let all = async {
            while !begun() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(crate::world::WATCHDOG, all).await;
    }
    let wrong = Check { world: &world, session: &session, end: &report.end, lab: &lab, wrong: Vec::new() };
    let wrong = wrong.all(case, report.denials.len());
    session.close().await;
    wrong
}

/// The case's hooks as a settings value, its handlers as shell scripts.
fn hooks_of(world: &World, lab: &Path, event: &str, case: &Value) -> Value {
    let hook = &case["hook"];
    if let Some(answers) = hook["answers"].as_object() {
        // Handlers without an answer of their own are silent.
        for name in ["A", "B", "a", "b"] {
            write_script(lab, name, &[json!({})]);
        }
        for (name, answer) in answers {
            match answer["seq"].as_array() {
                Some(sequence) => write_script(lab, name, sequence),
                None => write_script(lab, name, std::slice::from_ref(answer)),
            }
        }
        return renamed(&hook["config"], lab, world);
    }
    let mut handler = Map::new();
    let kind = hook["config"]["type"].as_str().unwrap_or("command");
    handler.insert("type".to_owned(), json!(kind));
    if kind == "command" {
        let command = match hook["command"].as_str() {
            Some(command) => command.to_owned(),
            None => {
                let silent = json!({});
                let plays = if case["only_first_call"] == true || hook["only_first_call"] == true {
                    vec![hook.clone(), silent]
                } else {
                    vec![hook.clone()]
                };
                write_script(lab, event, &plays);
                script_command(lab, event)
            }
        };
        handler.insert("command".to_owned(), json!(command));
    }
    for (key, value) in hook["config"].as_object().into_iter().flatten() {
        handler.insert(key.clone(), value.clone());
    }
    json!({ event: [{ "hooks": [handler] }] })
}

fn script_command(lab: &Path, name: &str) -> String {
    format!("sh {}/{name}.sh", lab.display())
}

/// A captured configuration with its commands replaced by ours.
fn renamed(config: &Value, lab: &Path, world: &World) -> Value {
    let mut text = config.to_string();
    for name in ["A", "B", "a", "b"] {
        let ours = script_command(lab, name);
        text = text.replace(&format!("\"python3 $LAB/dump.py {name}\""), &json!(ours).to_string());
    }
    let _ = world;
    serde_json::from_str(&text).unwrap()
}

/// A script that plays its answers call by call, the last one again and again.
fn write_script(lab: &Path, name: &str, answers: &[Value]) {
    let runs = lab.join("runs");
    let mut script = format!("cat >/dev/null\necho {name} >> {0}\nn=$(grep -c '^{name}$' {0})\n", runs.display());
    for (at, answer) in answers.iter().enumerate() {
        let last = at + 1 == answers.len();
        let out = lab.join(format!("{name}.{at}.out"));
        let err = lab.join(format!("{name}.{at}.err"));
        fs::write(&out, output_of(answer)).unwrap();
        fs::write(&err, repeated(answer, "stderr")).unwrap();
        let sleep = answer["sleep_s"].as_f64().or_else(|| answer["sleep"].as_f64()).unwrap_or(0.0);
        let test = if last { "true".to_owned() } else { format!("[ \"$n\" -eq {} ]", at + 1) };
        script.push_str(&format!(
            "if {test}; then\n sleep {sleep}\n cat {}\n cat {} >&2\n exit {}\nfi\n",
            out.display(),
            err.display(),
            answer["exit"].as_i64().unwrap_or(0)
        ));
    }
    fs::write(lab.join(format!("{name}.sh")), script).unwrap();
}

fn output_of(answer: &Value) -> String {
    if let Some(repeat) = answer["context_repeat"].as_array() {
        let context = repeat[0].as_str().unwrap().repeat(usize::try_from(repeat[1].as_u64().unwrap()).unwrap());
        let event = repeat[2].as_str().unwrap();
        return json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": context } }).to_string();
    }
    match &answer["stdout"] {
        Value::Object(object) => Value::Object(object.clone()).to_string(),
        _ => repeated(answer, "stdout"),
    }
}

fn repeated(answer: &Value, key: &str) -> String {
    match answer[format!("{key}_repeat")].as_array() {
        Some(repeat) => repeat[0].as_str().unwrap().repeat(usize::try_from(repeat[1].as_u64().unwrap()).unwrap()),
        None => answer[key].as_str().unwrap_or_default().to_owned(),
    }
}

struct Check<'a> {
    world: &'a World,
    session: &'a Session,
    end: &'a TurnEnd,
    lab: &'a Path,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, expected: T, found: T) {
        if expected != found {
            self.wrong.push(format!("{what}: expected {expected:?}, found {found:?}"));
        }
    }

    fn all(mut self, case: &Value, denials: usize) -> Vec<String> {
        let observed = &case["observed"];
        if let Some(ran) = observed["tool_ran"].as_bool() {
            let found = self.world.has("ran.txt");
            self.same("the tool ran", ran, found);
        }
        if let Some(ran) = observed["rewritten_input_ran"].as_bool() {
            let found = self.world.has("ran2.txt");
            self.same("the rewritten input ran", ran, found);
        }
        if let Some(requests) = observed["model_requests"].as_u64() {
            let found = self.session.requests() as u64;
            self.same("model requests", requests, found);
        }
        // An empty command runs and leaves no mark.
        if let Some(runs) = observed["hook_runs"].as_u64().filter(|_| case["hook"]["command"] != "") {
            let found = fs::read_to_string(self.lab.join("runs")).unwrap_or_default().lines().count() as u64;
            self.same("hook runs", runs, found);
        }
        if let Some(count) = observed["permission_denials"].as_u64() {
            self.same("denials", count, denials as u64);
        }
        if let Some(is_error) = observed["is_error"].as_bool() {
            let found = results(&self.session.history()).first().map(|r| r.1);
            self.same("the result is an error", Some(is_error), found);
        }
        self.ending(&observed["result"]);
        let lines: Vec<&str> =
            observed["model_sees_diff"].as_array().into_iter().flatten().map(|l| l.as_str().unwrap()).collect();
        self.seen(&lines);
        for notice in observed["user_notices"].as_array().into_iter().flatten() {
            self.notice(notice.as_str().unwrap());
        }
        self.wrong
    }

    fn ending(&mut self, result: &Value) {
        if let Some(reason) = result["terminal_reason"].as_str() {
            let found = self.end.terminal_reason().unwrap_or_default();
            self.same("the end", reason, found);
        } else if let TurnEnd::Rejected { text, .. } = self.end {
            // A vetoed prompt: the text is the captured one.
            let expected = self.ours(result["result"].as_str().unwrap_or_default());
            let text = text.clone();
            if !matches(&expected, &text) {
                self.same("the veto", expected, text);
            }
        } else if result["result"].is_string() {
            self.wrong.push(format!("the prompt was not vetoed but ended as {:?}", self.end));
        }
    }

    /// A captured text in this run's own names.
    fn ours(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for name in [
            "SessionStart",
            "UserPromptSubmit",
            "PermissionRequest",
            "PreToolUse",
            "PostToolUseFailure",
            "PostToolUse",
            "Stop",
            "A",
            "B",
            "a",
            "b",
        ] {
            for end in ["]", "\""] {
                let ours = format!("{}{end}", script_command(self.lab, name));
                out = out.replace(&format!("python3 $LAB/dump.py {name}{end}"), &ours);
            }
        }
        out
    }

    fn seen(&mut self, lines: &[&str]) {
        let last = self.session.requests().saturating_sub(1);
        let messages = self.session.messages(last);
        let mut system = Vec::new();
        let mut users = Vec::new();
        for message in &messages {
            let text = plain_text(&message.content);
            match message.role {
                Role::System => system.extend(text.lines().map(str::to_owned)),
                Role::User => users.extend(text.lines().map(str::to_owned)),
                Role::Assistant | Role::Developer | Role::Tool => {}
            }
        }
        let tools: Vec<String> =
            results(&messages).iter().flat_map(|(t, _)| t.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
        let mut expects_system = false;
        let mut foreign = false;
        for line in lines {
            let Some((head, text)) = line.split_once("| ") else { continue };
            let text = self.ours(text);
            foreign |= OWN_WORDING.iter().any(|own| text.contains(own));
            let (found, role) = if head.starts_with("+ system") {
                expects_system = true;
                (&system, "system")
            } else if head.starts_with("+ user/tool_result") {
                (&tools, "tool")
            } else if head.starts_with("+ user/text") && !text.starts_with("<fixed paragraph") {
                (&users, "user")
            } else if head.starts_with("- user/tool_result") && text == "OUT1" {
                if tools.iter().any(|t| t == "OUT1") && last > 0 {
                    self.wrong.push("the model still sees OUT1".to_owned());
                }
                continue;
            } else {
                continue;
            };
            let compared = !foreign || OWN_WORDING.iter().any(|own| text.contains(own));
            if compared && !found.iter().any(|f| matches(&text, f)) {
                self.wrong.push(format!("the model does not see ({role}) {text:?}; it sees {found:?}"));
            }
        }
        if !expects_system && !system.is_empty() {
            self.wrong.push(format!("the model sees {system:?}"));
        }
    }

    fn notice(&mut self, captured: &str) {
        let notices = self.session.notices();
        let fine = if let Some((source, text)) = captured.split_once(" says: ") {
            notices.iter().any(|n| n.level == NoticeLevel::Info && n.source == source && n.text == text)
        } else if captured.starts_with("A hook gave no usable answer")
            || captured.starts_with("A hook didn't answer in time")
        {
            notices.iter().any(|n| n.level == NoticeLevel::Warning)
        } else if captured.starts_with("A hook blocked the turn from ending") {
            notices.iter().any(|n| n.level == NoticeLevel::Warning && n.text.contains("in a row"))
        } else {
            // Titles, questions and vetoes reach the user by other ways here.
            true
        };
        if !fine {
            self.wrong.push(format!("no notice like {captured:?} among {notices:?}"));
        }
    }
}

/// Whether a found text is the expected one, as far as the wording is fixed.
fn matches(expected: &str, found: &str) -> bool {
    if let Some(own) = OWN_WORDING.iter().find(|own| expected.contains(*own)) {
        let head = expected.split(own).next().unwrap_or_default();
        return found.contains(own) && found.starts_with(head);
    }
    if expected.starts_with("Output too large (9.8KB). Full output saved to: ") {
        return found.starts_with("Output too large (9.8KB). Full output saved to: ");
    }
    if let Some((head, _)) = expected.split_once("…(repeated)") {
        return found.starts_with(&head.repeat(2000));
    }
    expected == found
}
