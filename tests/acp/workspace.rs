//! A workspace with a home of its own, a script for the model, and hooks; gone with the test.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

/// One test's folders.
pub(crate) struct Workspace {
    _keep: TempDir,
    root: PathBuf,
}

impl Workspace {
    /// With a model that plays these steps.
    pub(crate) fn new(steps: Value) -> Self {
        let keep = TempDir::new().unwrap();
        let root = keep.path().canonicalize().unwrap();
        for folder in ["home", "state", "project"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        let script = json!({ "steps": steps, "when_exhausted": "stop", "record": root.join("requests.jsonl") });
        fs::write(root.join("script.json"), script.to_string()).unwrap();
        Self { _keep: keep, root }
    }

    /// Adds hooks of the Claude dialect: `(event, matcher, command)`.
    pub(crate) fn with_hooks(self, hooks: &[(&str, &str, &str)]) -> Self {
        let mut events = serde_json::Map::new();
        for (event, matcher, command) in hooks {
            let groups = events.entry(*event).or_insert_with(|| json!([]));
            let group = json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] });
            groups.as_array_mut().unwrap().push(group);
        }
        self.with_settings(&json!({ "hooks": events }))
    }

    /// Writes the project's settings of the Claude dialect.
    pub(crate) fn with_settings(self, settings: &Value) -> Self {
        fs::create_dir_all(self.project().join(".claude")).unwrap();
        fs::write(self.project().join(".claude/settings.json"), settings.to_string()).unwrap();
        self
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The flag that names the model.
    pub(crate) fn model(&self) -> String {
        format!("script:{}", self.root.join("script.json").display())
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.project().join(file).exists()
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.project().join(file)).unwrap()
    }

    /// The requests that the model was sent, in order.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.root.join("requests.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of the only session's log.
    pub(crate) fn log(&self) -> Vec<Value> {
        let mut found = Vec::new();
        collect(&self.root.join("state"), &mut found);
        assert_eq!(found.len(), 1, "one session log: {found:?}");
        let text = fs::read_to_string(&found[0]).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The session logs below a folder: files whose first line is a session's header.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "jsonl") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let first: Value = serde_json::from_str(text.lines().next().unwrap_or("{}")).unwrap_or_default();
            if first["type"] == "session" {
                found.push(path);
            }
        }
    }
}

/// A step of the script that calls a tool.
pub(crate) fn call(tool: &str, input: Value) -> Value {
    json!({ "tool_calls": [{ "name": tool, "input": input }] })
}

/// A step of the script that runs a command.
pub(crate) fn bash(command: &str) -> Value {
    call("Bash", json!({ "command": command }))
}

/// A step of the script that says something.
pub(crate) fn text(text: &str) -> Value {
    json!({ "text": text })
}
