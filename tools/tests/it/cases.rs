//! Data-driven cases: `tests/cases/*.json`, one conversation of calls each.
//!
//! A case has `files` (name → text) and `steps`. A step is a call (`tool`, `input`, and the expected `outcome`) or a
//! change by somebody else (`write`, `remove`). `after` lists the files at the end. `$DIR` stands for the session's
//! folder. With `UPDATE_EXPECT=1` outcomes and `after` are written anew.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::world::{Done, World};

fn case_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ext| ext == "json"));
    files.sort();
    files
}

fn replaced(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(from, to)),
        Value::Array(list) => list.iter().map(|item| replaced(item, from, to)).collect(),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, item)| (key.clone(), replaced(item, from, to))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn outcome(done: &Done, root: &str) -> Value {
    let mut outcome = Map::new();
    outcome.insert("input".to_owned(), done.input.clone());
    if let Some(mut value) = done.value.clone() {
        if let Some(duration) = value.get_mut("durationMs") {
            *duration = json!(0);
        }
        outcome.insert("value".to_owned(), value);
    }
    outcome.insert("text".to_owned(), json!(done.text));
    if let Some(failure) = &done.failure {
        outcome.insert("failure".to_owned(), json!(failure));
    }
    if let Some(code) = &done.code {
        outcome.insert("code".to_owned(), json!(code));
    }
    replaced(&Value::Object(outcome), root, "$DIR")
}

fn texts(value: Option<&Value>) -> Vec<(String, String)> {
    let object = value.and_then(Value::as_object);
    object.into_iter().flatten().map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect()
}

fn files_under(world: &World, folder: &Path, found: &mut Map<String, Value>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files_under(world, &path, found);
        } else {
            let name = path.strip_prefix(&world.root).unwrap().display().to_string();
            found.insert(name, json!(String::from_utf8_lossy(&std::fs::read(&path).unwrap())));
        }
    }
}

/// Runs a case and returns it with what really happened.
async fn run(case: &Value) -> Value {
    let world = World::new();
    let root = world.root.display().to_string();
    for (name, text) in texts(case.get("files")) {
        world.write(&name, &text);
    }
    let mut seen = case.clone();
    for step in seen["steps"].as_array_mut().unwrap() {
        for (name, text) in texts(step.get("write")) {
            world.write(&name, &text);
        }
        if let Some(name) = step.get("remove").and_then(Value::as_str) {
            std::fs::remove_file(world.path(name)).unwrap();
        }
        if let Some(tool) = step.get("tool").and_then(Value::as_str) {
            let done = world.call(tool, &replaced(&step["input"], "$DIR", &root)).await;
            step["outcome"] = outcome(&done, &root);
        }
    }
    let mut after = Map::new();
    files_under(&world, &world.root, &mut after);
    seen["after"] = Value::Object(after);
    seen
}

#[tokio::test]
async fn every_case_comes_out_as_written() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for file in case_files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let case: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let seen = run(&case).await;
        // Compared as text, because the order of keys is part of a value's shape.
        let seen = serde_json::to_string_pretty(&seen).unwrap() + "\n";
        if seen == text {
            continue;
        }
        if update {
            std::fs::write(&file, seen).unwrap();
        } else {
            wrong.push(format!("{}:\n{seen}", file.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "these cases came out differently (UPDATE_EXPECT=1 takes them over):\n{}",
        wrong.join("\n")
    );
}
