//! Rules of the house that no compiler checks: which crate may know which, how files begin and how long they may be,
//! which words and shapes stay out, and that the documents tell the truth about themselves.
//!
//! Nothing here builds or runs the program; it reads the tree. Each failure says what to do about it. The invariant: a
//! rule is checked on every file that belongs to the project, so that nobody has to remember it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail bluntly"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const MEMBERS: [&str; 5] = ["protocol", "harness", "tools", "providers", "bridges"];

/// The longest file that is still one idea.
const MAX_LINES: usize = 600;

/// Files that may hold unsafe code; each writes its reason beside it.
const UNSAFE_ALLOWED: &[&str] = &["providers/src/process/spawn.rs", "providers/src/warden/target.rs"];

/// Folders that are not ours, or are made by tools.
const SKIPPED_FOLDERS: &[&str] = &["target", ".git", "cache", "node_modules", "__pycache__"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The whole of a file, with a name relative to the root.
struct Source {
    name: String,
    text: String,
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                walk(&path, found);
            }
        } else if name != ".git" {
            // A linked worktree has a file of that name, which says where the repository lies.
            found.push(path);
        }
    }
}

/// Every text file of the project.
fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    walk(root(), &mut paths);
    paths
        .into_iter()
        .filter_map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
            fs::read_to_string(&path).ok().map(|text| Source { name, text })
        })
        .collect()
}

fn rust_sources() -> Vec<Source> {
    sources().into_iter().filter(|source| source.name.ends_with(".rs")).collect()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name} cannot be read: {error}"))
}

/// Fails with all of them at once.
#[track_caller]
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "{} to put right:\n  {}\n", problems.len(), problems.join("\n  "));
}

/// Lines of a text with their numbers, from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

/// The names below each dependency table of a manifest, by the table's name.
fn dependencies(manifest: &str) -> BTreeMap<String, Vec<String>> {
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut table = String::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = header.to_owned();
        } else if table.ends_with("dependencies") && !line.starts_with('#') {
            let name: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect();
            if !name.is_empty() {
                tables.entry(table.clone()).or_default().push(name);
            }
        }
    }
    tables
}

#[test]
fn dependencies_between_crates_point_one_way() {
    let mut problems = Vec::new();
    for member in MEMBERS {
        let manifest = format!("{member}/Cargo.toml");
        for (table, names) in dependencies(&read(&manifest)) {
            let allowed: &[&str] = match (member, table.starts_with("dev-")) {
                ("protocol" | "harness", _) => &[],
                ("tools" | "bridges", true) => &["sluice-harness", "sluice-providers"],
                _ => &["sluice-harness"],
            };
            for name in names.iter().filter(|name| *name == "sluice" || name.starts_with("sluice-")) {
                if !allowed.contains(&name.as_str()) {
                    problems.push(format!(
                        "{manifest}: [{table}] names {name}; {member} may know {allowed:?} only. Put the seam into \
                         harness, or join the two in src/"
                    ));
                }
            }
        }
    }
    none(&problems);
    let own = dependencies(&read("Cargo.toml")).remove("dependencies").unwrap_or_default();
    for member in MEMBERS {
        assert!(
            own.contains(&format!("sluice-{member}")),
            "the program has to join sluice-{member}: add it to Cargo.toml"
        );
    }
}

#[test]
fn every_member_takes_the_workspace_lints() {
    let mut problems = Vec::new();
    for manifest in MEMBERS.iter().map(|member| format!("{member}/Cargo.toml")).chain(["Cargo.toml".to_owned()]) {
        let text = read(&manifest);
        let lints = text.split("\n[lints]").nth(1).and_then(|rest| rest.split("\n[").next());
        if !lints.is_some_and(|table| table.contains("workspace = true")) {
            problems.push(format!("{manifest}: add [lints] with workspace = true"));
        }
    }
    none(&problems);
}

#[test]
fn every_file_says_what_it_holds() {
    let missing = |source: &Source| !source.text.trim_start().starts_with("//!");
    let problems: Vec<_> = rust_sources()
        .iter()
        .filter(|source| missing(source))
        .map(|source| format!("{}: begin with `//!`: what lives here, what does not, what always holds", source.name))
        .collect();
    none(&problems);
}

#[test]
fn no_file_holds_two_ideas() {
    let problems: Vec<_> = rust_sources()
        .iter()
        .filter(|source| source.text.lines().count() > MAX_LINES)
        .map(|source| {
            let lines = source.text.lines().count();
            format!("{}: {lines} lines, more than {MAX_LINES}; find the second idea and give it a file", source.name)
        })
        .collect();
    none(&problems);
}

#[test]
fn no_test_is_left_out_and_no_code_is_left_open() {
    // Written apart, so that this file does not find itself.
    let words = [
        (concat!("#[", "ignore"), "run the test always; what it needs, it checks for, and says `skipped: no …`"),
        (concat!("#[should", "_panic"), "test the returned error"),
        (concat!("todo", "!("), "write it, or leave it out"),
        (concat!("unimpl", "emented!("), "write it, or leave it out"),
    ];
    let mut problems = Vec::new();
    for source in rust_sources() {
        for (number, line) in numbered(&source.text) {
            for (word, remedy) in words {
                if line.contains(word) {
                    problems.push(format!("{}:{number}: `{word}`: {remedy}", source.name));
                }
            }
        }
    }
    none(&problems);
}

#[test]
fn files_are_named_after_what_they_are_about() {
    let banned = ["utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "mod"];
    let problems: Vec<_> = rust_sources()
        .iter()
        .filter(|source| {
            source.name.trim_end_matches(".rs").split('/').any(|part| banned.contains(&part.to_lowercase().as_str()))
        })
        .map(|source| format!("{}: name it after the thing in it, and use `name.rs` beside `name/`", source.name))
        .collect();
    none(&problems);
}

#[test]
fn unsafe_code_stays_in_its_file() {
    let keyword = concat!("un", "safe");
    let opens = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        ["{", "fn", "impl", "extern", "trait"].iter().any(|next| code.contains(&format!("{keyword} {next}")))
    };
    let mut problems = Vec::new();
    for source in rust_sources().iter().filter(|source| !UNSAFE_ALLOWED.contains(&source.name.as_str())) {
        for (number, line) in numbered(&source.text).filter(|(_, line)| opens(line)) {
            problems.push(format!("{}:{number}: `{}`: only {UNSAFE_ALLOWED:?} may", source.name, line.trim()));
        }
    }
    none(&problems);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let paths = [
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/main"),
        concat!("/wo", "rk/notes"),
        concat!("/wo", "rk/target"),
        concat!("/wo", "rk/shared"),
        concat!("../sha", "red"),
        concat!("/ho", "me/runner"),
    ];
    let mut problems = Vec::new();
    for source in sources() {
        for (number, line) in numbered(&source.text) {
            for path in paths.iter().filter(|path| names_path(line, path)) {
                problems.push(format!("{}:{number}: `{path}`: name no place that only one machine has", source.name));
            }
        }
    }
    none(&problems);
}

/// Whether a line holds a path as such, and not as the end of a longer one.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.}$~/".contains(c))
    })
}

/// The Markdown files for people.
fn documents() -> Vec<Source> {
    let readable = |source: &Source| source.name.ends_with(".md") && !source.name.contains("/fixtures/");
    sources().into_iter().filter(readable).collect()
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut problems = Vec::new();
    for document in documents() {
        let folder = root().join(&document.name).parent().unwrap().to_owned();
        let mut fenced = false;
        for (number, line) in numbered(&document.text) {
            fenced ^= line.trim_start().starts_with("```");
            for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let (path, heading) = target.split_once('#').map_or((target, None), |(path, at)| (path, Some(at)));
                if fenced || path.contains("://") {
                    continue;
                }
                let file = if path.is_empty() { root().join(&document.name) } else { folder.join(path) };
                if !file.exists() {
                    problems.push(format!("{}:{number}: {target} does not exist", document.name));
                } else if let Some(heading) = heading
                    && !headings(&fs::read_to_string(&file).unwrap()).iter().any(|known| known == heading)
                {
                    problems.push(format!("{}:{number}: {target}: no such heading", document.name));
                }
            }
        }
    }
    none(&problems);
}

/// The anchors of a text's headings, as forges make them.
fn headings(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
        })
        .collect()
}

#[test]
fn every_shell_example_says_who_runs_it() {
    let ci = read(".ci/run");
    let mut problems = Vec::new();
    for document in documents().iter().filter(|it| it.name == "README.md" || it.name.starts_with("docs/")) {
        let mut mark = "";
        let mut step = false;
        for (number, line) in numbered(&document.text) {
            let line = line.trim();
            if step && line != "```" {
                if !ci.contains(line) {
                    problems.push(format!("{}:{number}: .ci/run has no step `{line}`", document.name));
                }
                continue;
            }
            step = false;
            if line == "```sh" {
                step = mark == "step";
                if !(step || mark == "run" || mark.starts_with("run, exits ") || mark.starts_with("prose, ")) {
                    problems.push(format!(
                        "{}:{number}: put `<!-- ci: run -->`, `<!-- ci: step -->` or `<!-- ci: prose, WHY -->` before it",
                        document.name
                    ));
                }
            }
            if !line.is_empty() {
                let marked = line.strip_prefix("<!-- ci: ").and_then(|rest| rest.strip_suffix(" -->"));
                mark = marked.unwrap_or_default();
            }
        }
    }
    none(&problems);
}

#[test]
fn the_change_log_has_a_place_for_the_next_change() {
    let log = read("CHANGELOG.md");
    assert!(log.lines().any(|line| line.trim() == "## Unreleased"), "CHANGELOG.md: add `## Unreleased` at the top");
}

#[test]
fn both_licences_are_there() {
    assert!(read("LICENSE-MIT").contains("Permission is hereby granted"), "LICENSE-MIT has to hold the licence's text");
    assert!(read("LICENSE-APACHE").contains("Version 2.0"), "LICENSE-APACHE has to hold the licence's text");
    assert!(read("Cargo.toml").contains("license = \"MIT OR Apache-2.0\""), "Cargo.toml has to name both licences");
}
