//! A case file as it is written, and how one case is played.
//!
//! The format is explained in `tests/cases/README.md`. Unknown fields are errors, so that a misspelt expectation cannot
//! pass. Folders and processes are the business of [`Place`](crate::place::Place).

mod expect;
mod setting;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::log::Log;
use crate::place::{Done, Place, has};
use crate::record;
use expect::Expect;
use setting::Entry;

/// What every run may use unasked, unless the case says otherwise.
const ALLOWED: [&str; 9] = ["Bash", "Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Glob", "Grep", "TodoWrite"];

/// One case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The field case and what it shows.
    pub(crate) name: String,
    /// Programs without which the case is skipped.
    #[serde(default)]
    needs: Vec<String>,
    /// Where the workspace is, below the case's own folder.
    #[serde(default)]
    workspace: Option<String>,
    /// Files of the workspace.
    #[serde(default)]
    files: BTreeMap<String, Value>,
    /// Files of the home folder.
    #[serde(default)]
    home: BTreeMap<String, Value>,
    /// Entries of `.claude/settings.json`.
    #[serde(default)]
    claude: Vec<Entry>,
    /// Entries of `.claude/settings.local.json`.
    #[serde(default)]
    local: Vec<Entry>,
    /// Entries of `~/.claude/settings.json`.
    #[serde(default)]
    user: Vec<Entry>,
    /// Entries of `.codex/hooks.json`.
    #[serde(default)]
    codex: Vec<Entry>,
    /// A shell script that is run in the workspace before anything else.
    #[serde(default)]
    setup: Option<String>,
    /// Variables of every run.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// What the model plays.
    #[serde(default)]
    script: Option<Value>,
    /// Runs, one after the other.
    runs: Vec<Run>,
}

/// One run of the program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    /// The arguments; a prompt and the model are added to those of `run`.
    #[serde(default)]
    args: Vec<String>,
    /// The whole command line instead.
    #[serde(default)]
    command: Option<Vec<String>>,
    /// Allow rules in place of the usual ones.
    #[serde(default)]
    allow: Option<Vec<String>>,
    /// Whether the project's hooks are accepted.
    #[serde(default = "yes")]
    trust: bool,
    /// A shell script that is run in the workspace before this run.
    #[serde(default)]
    before: Option<String>,
    #[serde(default)]
    stdin: Option<String>,
    /// The folder of the process, below the workspace or absolute.
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    expect: Expect,
}

fn yes() -> bool {
    true
}

/// Plays one case; true when it was played and not skipped.
#[track_caller]
pub(crate) fn play(case: &Case) -> bool {
    if let Some(missing) = case.needs.iter().find(|program| !has(program)) {
        println!("skipped: no {missing} ({})", case.name);
        return false;
    }
    let mut place = case.workspace.as_deref().map_or_else(Place::new, Place::named);
    for (name, value) in &case.env {
        let value = fill(&place, value);
        place.set(name, &value);
    }
    lay_out(case, &place);
    if let Some(setup) = &case.setup {
        shell(&place, setup);
    }
    let model = case.script.as_ref().map(|script| {
        let text = fill(&place, &script.to_string());
        place.script(&serde_json::from_str(&text).unwrap())
    });
    for run in &case.runs {
        let seen = record::read(&place.record()).len();
        let done = place.run(command(&place, run, model.as_deref()));
        keep(&case.name, &done);
        check(&place, run, &done, seen);
    }
    true
}

#[track_caller]
fn check(place: &Place, run: &Run, done: &Done, seen: usize) {
    let expect = &run.expect;
    if expect.leaves_processes {
        place.end_all();
    } else {
        place.assert_nothing_left();
    }
    for (what, text) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
        assert!(!text.contains('\u{1b}'), "{what} has escape codes: {text:?}");
        assert!(!text.contains("panicked"), "{what}: {text}");
        assert!(!text.to_lowercase().contains("broken pipe"), "{what}: {text}");
    }
    let lines: Vec<&str> = done.stderr.lines().collect();
    for pair in lines.windows(2) {
        assert_ne!(pair[0], pair[1], "a line is said twice: {}", done.stderr);
    }
    let requests = record::read(&place.record()).split_off(seen);
    for request in &requests {
        record::assert_valid(request);
    }
    // A case may put a log there that nobody can read.
    let readable = |path: &&std::path::PathBuf| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"{"));
    let log = place.logs().last().filter(readable).map(|path| Log::read(path));
    if let Some(log) = &log {
        log.assert_closed();
    }
    expect.check(place, done, log.as_ref(), &requests);
}

fn command(place: &Place, run: &Run, model: Option<&str>) -> std::process::Command {
    let mut args: Vec<String> = Vec::new();
    if let Some(command) = &run.command {
        args.extend(command.iter().map(|arg| fill(place, arg)));
    } else {
        args.push("run".to_owned());
        args.extend(run.args.iter().map(|arg| fill(place, arg)));
        if let Some(model) = model
            && !run.args.iter().any(|arg| arg == "--model")
        {
            args.extend(["--model".to_owned(), model.to_owned()]);
        }
        if run.trust {
            args.push("--trust-hooks".to_owned());
        }
        let usual = || ALLOWED.map(str::to_owned).to_vec();
        let allow = run.allow.clone().unwrap_or_else(usual);
        args.extend(allow.iter().flat_map(|rule| ["--allowed-tools".to_owned(), fill(place, rule)]));
    }
    let mut command = place.sluice(args);
    if let Some(before) = &run.before {
        shell(place, before);
    }
    if let Some(cwd) = &run.cwd {
        command.current_dir(place.work().join(fill(place, cwd)));
    }
    if let Some(stdin) = &run.stdin {
        let path = place.root().join("stdin");
        std::fs::write(&path, fill(place, stdin)).unwrap();
        command.stdin(std::fs::File::open(path).unwrap());
    }
    command
}

fn lay_out(case: &Case, place: &Place) {
    for (name, content) in &case.files {
        place.write(name, &setting::file_text(name, content));
    }
    for (name, content) in &case.home {
        place.write_home(name, &fill(place, &setting::file_text(name, content)));
    }
    let claude: [(&[Entry], &str); 2] =
        [(&case.claude, ".claude/settings.json"), (&case.local, ".claude/settings.local.json")];
    for (entries, name) in claude.into_iter().filter(|(entries, _)| !entries.is_empty()) {
        place.write(name, &setting::settings(entries));
    }
    if !case.user.is_empty() {
        place.write_home(".claude/settings.json", &setting::settings(&case.user));
    }
    if !case.codex.is_empty() {
        place.write(".codex/hooks.json", &setting::settings(&case.codex));
    }
}

/// Runs a script of the case itself; it has to succeed.
#[track_caller]
fn shell(place: &Place, line: &str) {
    let mut command = place.command("bash");
    command.args(["-ec", line]).env("P", place.work()).env("H", place.home()).env_remove("SLUICE_E2E");
    let done = place.run(command);
    assert_eq!(done.code, 0, "the setup failed: {done:?}");
}

/// Puts the case's folders and its last session's id in place of their names.
fn fill(place: &Place, text: &str) -> String {
    let path = |path: &Path| path.display().to_string();
    let mut text = text
        .replace("@P@", &path(&place.work()))
        .replace("@H@", &path(&place.home()))
        .replace("@ROOT@", &path(&place.root()))
        .replace("@TESTS@", concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    if text.contains("@SESSION@") {
        let log = place.logs().pop().expect("a session before this run");
        text = text.replace("@SESSION@", &log.file_stem().unwrap().to_string_lossy());
    }
    text
}

/// With `KEEP_OUTPUT` set to a file: what each run printed, for people to read.
fn keep(name: &str, done: &Done) {
    use std::io::Write as _;
    let Some(path) = std::env::var_os("KEEP_OUTPUT") else { return };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    let cut = |text: &str| text.chars().take(4000).collect::<String>();
    let (out, err, took) = (cut(&done.stdout), cut(&done.stderr), done.took);
    writeln!(file, "=== {name} (exit {}, {took:?})\n--- stdout\n{out}\n--- stderr\n{err}", done.code).unwrap();
}
