//! The local search on real folders.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::search::{GlobQuery, GrepHits, GrepQuery, LetterCase, LineMode, Search, SearchFault};
use sluice_providers::search::LocalSearch;

/// A tree; each file is a minute older than the one before it.
fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap().join("root");
    let now = SystemTime::now();
    for (age, (name, text)) in files.iter().enumerate() {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(now - Duration::from_secs(60 * age as u64)).unwrap();
    }
    (folder, root)
}

fn below(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap().display().to_string()
}

async fn glob(root: &Path, pattern: &str) -> Vec<String> {
    let query = GlobQuery { pattern: pattern.to_owned(), root: root.to_owned(), limit: 100 };
    let hits = LocalSearch::new().glob(query, &Cancel::new()).await.unwrap();
    hits.files.iter().map(|file| below(root, file)).collect()
}

fn query(root: &Path, pattern: &str) -> GrepQuery {
    GrepQuery {
        pattern: pattern.to_owned(),
        root: root.to_owned(),
        glob: None,
        file_type: None,
        case: LetterCase::Sensitive,
        lines: LineMode::Single,
        before: 0,
        after: 0,
        limit: 1000,
    }
}

async fn hits(query: GrepQuery) -> GrepHits {
    LocalSearch::new().grep(query, &Cancel::new()).await.unwrap()
}

async fn grep(root: &Path, query: GrepQuery) -> String {
    let mut out = String::new();
    for line in hits(query).await.lines {
        let mark = if line.is_match { ':' } else { '-' };
        writeln!(out, "{}{mark}{}{mark}{}", below(root, &line.path), line.number, line.text).unwrap();
    }
    out
}

const FILES: &[(&str, &str)] = &[
    ("src/main.rs", "fn main() {\n    needle();\n}\n"),
    (".gitignore", "ignored/\n*.log\n"),
    ("ignored/a.rs", "needle\n"),
    (".hidden/b.rs", "needle\n"),
    ("src/deep/c.rs", "// Needle\n// needle\n"),
    (".git/config", "needle\n"),
    ("sub/.hg/x.rs", "needle\n"),
    ("notes.log", "needle\n"),
    ("README.md", "needle in text\n"),
];

#[tokio::test]
async fn r_463_glob_finds_hidden_and_ignored_files_newest_first_and_no_version_control() {
    let (_folder, root) = tree(FILES);
    assert_eq!(glob(&root, "**/*.rs").await, ["src/main.rs", "ignored/a.rs", ".hidden/b.rs", "src/deep/c.rs"]);
    assert_eq!(glob(&root, "*.rs").await, Vec::<String>::new(), "a star stays in its folder");
    assert_eq!(glob(&root, "./*.md").await, ["README.md"]);
    assert_eq!(glob(&root, "{src,ignored}/*.rs").await, ["src/main.rs", "ignored/a.rs"]);
    assert_eq!(glob(&root, &format!("{}/src/*.rs", root.display())).await, ["src/main.rs"]);
}

#[tokio::test]
async fn r_463_glob_says_when_there_was_more() {
    let (_folder, root) = tree(FILES);
    for (limit, expected) in [(3, true), (4, false), (0, true)] {
        let query = GlobQuery { pattern: "**/*.rs".to_owned(), root: root.clone(), limit };
        let hits = LocalSearch::new().glob(query, &Cancel::new()).await.unwrap();
        assert_eq!((hits.files.len(), hits.truncated), (limit, expected));
    }
}

#[tokio::test]
async fn r_464_grep_honours_ignore_rules_and_sees_hidden_files() {
    let (_folder, root) = tree(FILES);
    // Ignore rules count where git counts them, in a repository; `.git` here is one.
    assert_eq!(
        grep(&root, query(&root, "needle")).await,
        ".hidden/b.rs:1:needle\nREADME.md:1:needle in text\nsrc/deep/c.rs:2:// needle\nsrc/main.rs:2:    needle();\n"
    );
}

#[tokio::test]
async fn r_464_grep_is_narrowed_by_glob_and_type_and_case() {
    let (_folder, root) = tree(FILES);
    let rust = GrepQuery { file_type: Some("rust".to_owned()), ..query(&root, "needle") };
    assert_eq!(grep(&root, rust).await.lines().count(), 3);
    for (glob, expected) in [("*.md", 1), ("src/**", 2), ("*.{md,rs}", 4), ("!*.rs", 1), ("*.log", 0)] {
        let narrowed = GrepQuery { glob: Some(glob.to_owned()), ..query(&root, "needle") };
        assert_eq!(grep(&root, narrowed).await.lines().count(), expected, "{glob}");
    }
    let any_case = GrepQuery { case: LetterCase::Insensitive, ..query(&root.join("src"), "^// needle$") };
    assert_eq!(grep(&root, any_case).await, "src/deep/c.rs:1:// Needle\nsrc/deep/c.rs:2:// needle\n");
}

#[tokio::test]
async fn r_464_grep_shows_context_once_and_in_order() {
    let (_folder, root) = tree(&[("f", "1\n2 x\n3\n4\n5 x\r\n6\n")]);
    let with_context = GrepQuery { before: 1, after: 2, ..query(&root, "x") };
    assert_eq!(grep(&root, with_context).await, "f-1-1\nf:2:2 x\nf-3-3\nf-4-4\nf:5:5 x\nf-6-6\n");
}

#[tokio::test]
async fn r_464_grep_spans_lines_when_asked() {
    let (_folder, root) = tree(&[("f", "a\nbegin\nmiddle\nend\nz\n")]);
    let multi = GrepQuery { lines: LineMode::Multi, ..query(&root, "begin.*end") };
    assert_eq!(grep(&root, multi).await, "f:2:begin\nf:3:middle\nf:4:end\n");
    assert_eq!(grep(&root, query(&root, "begin.*end")).await, "");
}

#[tokio::test]
async fn r_464_grep_leaves_out_binary_files_whole() {
    let (_folder, root) = tree(&[("bin", "needle\n\0\nneedle\n"), ("text", "needle \u{fffd}\n")]);
    std::fs::write(root.join("odd"), b"needle \xff\n").unwrap();
    assert_eq!(grep(&root, query(&root, "needle")).await, "odd:1:needle \u{fffd}\ntext:1:needle \u{fffd}\n");
}

#[tokio::test]
async fn r_464_grep_stops_at_its_limit() {
    let (_folder, root) = tree(&[("a", "x\nx\n"), ("b", "x\nx\n")]);
    for (limit, lines, truncated) in [(1, 1, true), (2, 2, true), (3, 3, true), (4, 4, false), (9, 4, false)] {
        let found = hits(GrepQuery { limit, ..query(&root, "x") }).await;
        assert_eq!((found.lines.len(), found.truncated), (lines, truncated), "limit {limit}");
    }
}

#[tokio::test]
async fn a_single_file_and_a_linked_root_are_searched() {
    let (folder, root) = tree(&[("a.txt", "needle\n")]);
    assert_eq!(grep(&root, query(&root.join("a.txt"), "needle")).await, "a.txt:1:needle\n");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&root, &link).unwrap();
    assert_eq!(grep(&link, query(&link, "needle")).await, "a.txt:1:needle\n");
    assert_eq!(glob(&link, "*").await, ["a.txt"]);
}

#[tokio::test]
async fn r_464_what_cannot_be_searched_says_why() {
    let (_folder, root) = tree(&[("a.txt", "needle\n")]);
    let search = LocalSearch::new();
    let cancel = Cancel::new();
    let fault = |result: Result<GrepHits, SearchFault>| result.unwrap_err();
    let invalid = fault(search.grep(query(&root, "("), &cancel).await);
    assert_eq!(invalid.code(), "SEARCH_INVALID_PATTERN");
    let newline = fault(search.grep(query(&root, "a\\nb"), &cancel).await);
    assert_eq!(newline.code(), "SEARCH_INVALID_PATTERN");
    let typed = GrepQuery { file_type: Some("nonsense".to_owned()), ..query(&root, "x") };
    assert_eq!(fault(search.grep(typed, &cancel).await).code(), "SEARCH_INVALID_PATTERN");
    let globbed = GrepQuery { glob: Some("{a".to_owned()), ..query(&root, "x") };
    assert_eq!(fault(search.grep(globbed, &cancel).await).code(), "SEARCH_INVALID_PATTERN");
    assert_eq!(fault(search.grep(query(&root.join("none"), "x"), &cancel).await).code(), "SEARCH_NOT_FOUND");
    let glob = |pattern: &str, root: &Path| GlobQuery { pattern: pattern.to_owned(), root: root.to_owned(), limit: 9 };
    assert_eq!(search.glob(glob("[", &root), &cancel).await.unwrap_err().code(), "SEARCH_INVALID_PATTERN");
    assert_eq!(search.glob(glob("/etc/*", &root), &cancel).await.unwrap_err().code(), "SEARCH_INVALID_PATTERN");
    assert_eq!(search.glob(glob("*", &root.join("a.txt")), &cancel).await.unwrap_err().code(), "SEARCH_FAILED");
    cancel.cancel(CancelCause::User);
    assert_eq!(fault(search.grep(query(&root, "x"), &cancel).await).code(), "SEARCH_ABORTED");
    assert_eq!(search.glob(glob("*", &root), &cancel).await.unwrap_err().code(), "SEARCH_ABORTED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_in_one_endless_line_stops_at_the_signal() {
    let (_folder, root) = tree(&[("a", "")]);
    // A file of nothing but spaces, far larger than can be searched before the signal.
    let file = std::fs::File::create(root.join("large")).unwrap();
    file.set_len(0).unwrap();
    let line = vec![b' '; 1 << 20];
    for _ in 0..48 {
        std::io::Write::write_all(&mut &file, &line).unwrap();
    }
    let cancel = Cancel::new();
    let search = LocalSearch::new();
    let found = tokio::select! {
        biased;
        found = search.grep(query(&root, "(a+ )+b"), &cancel) => found,
        () = async {
            tokio::task::yield_now().await;
            cancel.cancel(CancelCause::User);
            std::future::pending::<()>().await;
        } => unreachable!(),
    };
    // Either it was stopped or it was quick; it must not hang or answer wrongly.
    assert!(matches!(found, Err(SearchFault::Aborted)) || found.unwrap().lines.is_empty());
}
