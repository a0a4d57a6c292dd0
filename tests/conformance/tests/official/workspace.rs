//! A workspace whose hooks, of both dialects and on every event, keep what they were given; and the reading of what they
//! kept, with ids, times and paths taken out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Five events that both dialects have, and one that the Claude dialect has alone in this build.
const EVENTS: [&str; 6] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"];

pub(crate) struct Workspace {
    _keep: TempDir,
    root: PathBuf,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let keep = TempDir::new().unwrap();
        let root = keep.path().canonicalize().unwrap();
        for folder in ["home", "state", "kept", "project/.claude", "project/.codex"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        // The folder is named in the commands, so each workspace has its own.
        let hooks = |dialect: &str, events: &[&str]| {
            let groups = |event: &str| {
                let kept = root.join("kept").join(format!("{dialect}-{event}.jsonl"));
                let command = format!("cat >> '{0}'; echo >> '{0}'", kept.display());
                json!([{ "hooks": [{ "type": "command", "command": command }] }])
            };
            let events: serde_json::Map<_, _> = events.iter().map(|e| ((*e).to_owned(), groups(e))).collect();
            json!({ "hooks": events }).to_string()
        };
        fs::write(root.join("project/.claude/settings.json"), hooks("claude", &EVENTS)).unwrap();
        fs::write(root.join("project/.codex/hooks.json"), hooks("codex", &EVENTS[..5])).unwrap();
        let script = json!({ "steps": [
            { "text": "Looking.",
              "tool_calls": [{ "name": "Bash", "input": { "command": "touch b.txt; printf 'one\\ntwo'" } }] },
            { "tool_calls": [{ "name": "Write", "input": { "file_path": "w.txt", "content": "written\n" } }] },
            { "text": "All done." },
        ] });
        fs::write(root.join("script.json"), script.to_string()).unwrap();
        Self { _keep: keep, root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    pub(crate) fn model(&self) -> String {
        format!("script:{}", self.root.join("script.json").display())
    }

    /// What each hook was given: which one, and its payload.
    pub(crate) fn payloads(&self) -> Vec<(String, Value)> {
        let mut files: Vec<_> = fs::read_dir(self.root.join("kept")).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        let mut payloads = Vec::new();
        let mut names = Names::default();
        for file in files {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            for line in fs::read_to_string(&file).unwrap().lines().filter(|line| !line.is_empty()) {
                payloads.push((name.clone(), self.plain(serde_json::from_str(line).unwrap(), &mut names)));
            }
        }
        payloads
    }

    /// What the session's log keeps of hooks, in order.
    pub(crate) fn records(&self) -> Vec<Value> {
        let folder = self.root.join("state/sluice/sessions");
        let logs: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
            .collect();
        assert_eq!(logs.len(), 1, "{logs:?}");
        let events = fs::read_to_string(&logs[0]).unwrap();
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_hooks = |event: &Value| ["hook/invoked", "hook/result"].contains(&event["type"].as_str().unwrap_or("-"));
        let mut records: Vec<_> = events.filter(of_hooks).collect();
        // The dialects begin a session side by side, so their records of that event come in any order.
        let starts: Vec<(Value, bool)> = records
            .iter()
            .filter(|record| record["data"]["event"] == "SessionStart")
            .map(|record| (record["data"]["run_id"].clone(), record["data"]["dialect"] == "codex"))
            .collect();
        records.sort_by_key(|record| {
            let start = starts.iter().find(|(run, _)| *run == record["data"]["run_id"]);
            start.map_or(2, |(_, codex)| u8::from(*codex))
        });
        let mut names = Names::default();
        records.into_iter().map(|record| self.plain(record, &mut names)).collect()
    }

    /// The value without what differs between any two sessions.
    fn plain(&self, value: Value, names: &mut Names) -> Value {
        match value {
            Value::String(text) => {
                let text = text.replace(self.root.to_str().unwrap(), "$ROOT");
                // The Codex dialect's transcript carries the second it began in its name.
                let text = match text.split_once("/rollout-") {
                    Some((before, name)) => format!("{before}/rollout-$TIME{}", &name["YYYY-MM-DDThh-mm-ss".len()..]),
                    None => text,
                };
                Value::String(names.replace(&text))
            }
            Value::Array(items) => items.into_iter().map(|item| self.plain(item, names)).collect(),
            Value::Object(members) => {
                let members = members.into_iter().map(|(key, value)| {
                    let time = ["time", "seq", "duration_ms", "durationMs"].contains(&key.as_str());
                    let value = if time { json!("$TIME") } else { self.plain(value, names) };
                    (key, value)
                });
                Value::Object(members.collect())
            }
            other => other,
        }
    }
}

/// Ids in order of appearance, so that what was one id stays one.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn replace(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = (0..rest.len()).find(|at| rest.get(*at..*at + 36).is_some_and(is_uuid)) {
            let next = self.0.len();
            let number = *self.0.entry(rest[at..at + 36].to_owned()).or_insert(next);
            out.push_str(&rest[..at]);
            out.push_str(&format!("$ID{number}"));
            rest = &rest[at + 36..];
        }
        out + rest
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
