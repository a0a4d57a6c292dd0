//! What every provider of the file-system seam must do, as one function over any of them (R-395…R-402).
//!
//! A provider's test includes this file by path and calls [`run_all`] with a fresh provider and an empty folder that
//! the provider can reach. Nothing here is about one provider alone.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::files::{Expectation, FileFault, FileKind, FileStat, FileText, Files, Written};

const LIMIT: u64 = 1 << 20;

/// Runs the whole suite.
pub(crate) async fn run_all(files: Arc<dyn Files>, folder: &Path) {
    // Every case in a folder of its own.
    let place = |name: &str| {
        let place = folder.join(name);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::canonicalize(place).unwrap()
    };
    r_395_aliases_have_one_key(&*files, &place("aliases")).await;
    r_395_a_version_changes_with_every_write(&*files, &place("version")).await;
    r_396_each_failure_has_its_code(&*files, &place("codes")).await;
    r_397_text_is_strict_utf8_without_nul(&*files, &place("text")).await;
    r_399_a_write_is_whole_keeps_the_mode_and_leaves_nothing_beside_it(&*files, &place("write")).await;
    r_399_a_write_through_a_link_writes_its_target(&*files, &place("links")).await;
    r_399_a_cancelled_write_leaves_nothing(&*files, &place("cancelled")).await;
    r_400_expectations_are_checked_before_anything_changes(&*files, &place("expected")).await;
    r_400_four_states_and_three_expectations(&*files, &place("matrix")).await;
    r_401_line_ends_and_marks_are_written_as_given(&*files, &place("style")).await;
    what_is_no_text_is_refused_or_read_as_bytes(&*files, &place("bytes")).await;
    what_has_no_end_or_is_no_file_is_refused_at_once(&*files, &place("endless")).await;
    folders_are_made_for_a_write_and_the_file_is_not(&*files, &place("prepared")).await;
    r_402_one_of_many_guarded_writes_wins(&files, &place("race")).await;
}

async fn stat(files: &dyn Files, path: &Path) -> Option<FileStat> {
    files.stat(path, &Cancel::new()).await.unwrap()
}

async fn read(files: &dyn Files, path: &Path) -> Result<FileText, FileFault> {
    files.read_text(path, LIMIT, &Cancel::new()).await
}

async fn write(files: &dyn Files, path: &Path, text: &str, expected: Expectation) -> Result<Written, FileFault> {
    files.write_text(path, text, expected, &Cancel::new()).await
}

fn code<T: std::fmt::Debug>(result: Result<T, FileFault>) -> &'static str {
    result.expect_err("it was allowed").code()
}

async fn r_395_aliases_have_one_key(files: &dyn Files, at: &Path) {
    std::fs::create_dir_all(at.join("real/deep")).unwrap();
    std::fs::write(at.join("real/file"), "x").unwrap();
    symlink("real", at.join("folder-link")).unwrap();
    symlink("../file", at.join("real/deep/up-link")).unwrap();
    symlink(at.join("folder-link/file"), at.join("link-by-link")).unwrap();
    let key = stat(files, &at.join("real/file")).await.unwrap().key;
    for alias in ["folder-link/file", "real/deep/../file", "real/deep/up-link", "link-by-link", "./real/./file"] {
        assert_eq!(stat(files, &at.join(alias)).await.unwrap().key, key, "{alias}");
    }
    // What does not exist yet has the key that it will have.
    symlink(at.join("real/later"), at.join("dangling")).unwrap();
    assert_eq!(stat(files, &at.join("dangling")).await, None);
    let written = write(files, &at.join("folder-link/new/sub/../later"), "y", Expectation::Any).await.unwrap();
    assert_eq!(written.stat.key.0, at.join("real/new/later"));
    let written = write(files, &at.join("dangling"), "y", Expectation::Absent).await.unwrap();
    assert_eq!(written.stat.key.0, at.join("real/later"));
    assert!(std::fs::symlink_metadata(at.join("dangling")).unwrap().is_symlink());
    symlink("loop-b", at.join("loop-a")).unwrap();
    symlink("loop-a", at.join("loop-b")).unwrap();
    assert_eq!(code(read(files, &at.join("loop-a")).await), "FS_IO_ERROR");
}

async fn r_395_a_version_changes_with_every_write(files: &dyn Files, at: &Path) {
    let path = at.join("f");
    let first = write(files, &path, "same size", Expectation::Any).await.unwrap().stat;
    assert_eq!(stat(files, &path).await.unwrap(), first, "what a write reports is what is there");
    assert_eq!(read(files, &path).await.unwrap().stat, first);
    let second = write(files, &path, "same size", Expectation::Any).await.unwrap().stat;
    assert_ne!(first.version, second.version);
    std::fs::write(&path, "SAME SIZE").unwrap();
    assert_ne!(stat(files, &path).await.unwrap().version, second.version);
}

async fn r_396_each_failure_has_its_code(files: &dyn Files, at: &Path) {
    std::fs::write(at.join("file"), "0123456789").unwrap();
    assert_eq!(code(read(files, &at.join("none")).await), "FS_NOT_FOUND");
    assert_eq!(code(read(files, &at.join("file/below")).await), "FS_NOT_DIRECTORY");
    assert_eq!(code(write(files, &at.join("file/below"), "x", Expectation::Any).await), "FS_NOT_DIRECTORY");
    assert_eq!(code(read(files, at).await), "FS_NOT_REGULAR_FILE");
    assert_eq!(code(write(files, at, "x", Expectation::Any).await), "FS_NOT_REGULAR_FILE");
    assert_eq!(code(files.read_text(&at.join("file"), 9, &Cancel::new()).await), "FS_TOO_LARGE");
    assert_eq!(files.read_text(&at.join("file"), 10, &Cancel::new()).await.unwrap().text, "0123456789");
    assert_eq!(code(read(files, Path::new("relative")).await), "FS_IO_ERROR");
    let fired = Cancel::new();
    fired.cancel(CancelCause::User);
    assert_eq!(code(files.read_text(&at.join("file"), LIMIT, &fired).await), "FS_ABORTED");
    assert_eq!(stat(files, at).await.unwrap().kind, FileKind::Folder);
    assert_eq!(stat(files, &at.join("file")).await.unwrap().kind, FileKind::File);
    assert_eq!(stat(files, &at.join("none")).await, None);
    // A privileged process may do anything, so that this only shows for others.
    if !rustix::process::geteuid().is_root() {
        std::fs::set_permissions(at.join("file"), std::fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(code(read(files, &at.join("file")).await), "FS_PERMISSION_DENIED");
        std::fs::set_permissions(at.join("file"), std::fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(code(write(files, &at.join("file"), "x", Expectation::Any).await), "FS_PERMISSION_DENIED");
    }
}

async fn r_397_text_is_strict_utf8_without_nul(files: &dyn Files, at: &Path) {
    let path = at.join("f");
    for nul_at in [0, 8191, 8192, 500_000] {
        let mut bytes = vec![b'a'; 600_000];
        bytes[nul_at] = 0;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(code(read(files, &path).await), "FS_NOT_TEXT", "NUL at {nul_at}");
    }
    for broken in [&b"\xff"[..], b"abc\xc3", b"\xed\xa0\x80"] {
        std::fs::write(&path, broken).unwrap();
        assert_eq!(code(read(files, &path).await), "FS_NOT_TEXT");
    }
    // A character of two bytes on every boundary that a reader may cut at.
    let long = format!("a{}", "é".repeat(300_000));
    std::fs::write(&path, &long).unwrap();
    assert_eq!(read(files, &path).await.unwrap().text, long);
    std::fs::write(&path, "\u{feff}a\r\nb\n").unwrap();
    assert_eq!(read(files, &path).await.unwrap().text, "\u{feff}a\r\nb\n", "nothing is normalised");
    assert_eq!(code(write(files, &path, "a\0b", Expectation::Any).await), "FS_NOT_TEXT");
}

async fn r_399_a_write_is_whole_keeps_the_mode_and_leaves_nothing_beside_it(files: &dyn Files, at: &Path) {
    let path = at.join("f");
    std::fs::write(&path, "old").unwrap();
    for mode in [0o600, 0o644, 0o755, 0o664] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let written = write(files, &path, "new", Expectation::Any).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
        assert_eq!(written.stat.size, 3);
    }
    let fresh = at.join("a/b/fresh");
    let written = write(files, &fresh, "text", Expectation::Absent).await.unwrap();
    assert_eq!((written.before, std::fs::read_to_string(&fresh).unwrap().as_str()), (None, "text"));
    assert_eq!(std::fs::metadata(&fresh).unwrap().permissions().mode() & 0o111, 0, "a new file is not executable");
    assert_eq!(write(files, &path, "newer", Expectation::Any).await.unwrap().before.as_deref(), Some("new"));
    std::fs::write(&path, b"\xff").unwrap();
    assert_eq!(write(files, &path, "", Expectation::Any).await.unwrap().before, None, "no text, no former text");
    assert_eq!(entries(at), ["a", "f"]);
    assert_eq!(entries(&at.join("a/b")), ["fresh"]);
}

async fn r_399_a_write_through_a_link_writes_its_target(files: &dyn Files, at: &Path) {
    std::fs::write(at.join("target"), "old").unwrap();
    symlink("target", at.join("link")).unwrap();
    write(files, &at.join("link"), "new", Expectation::Any).await.unwrap();
    assert!(std::fs::symlink_metadata(at.join("link")).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(at.join("target")).unwrap(), "new");
    assert_eq!(code(write(files, &at.join("link"), "x", Expectation::Absent).await), "FS_NOT_OBSERVED");
}

async fn r_399_a_cancelled_write_leaves_nothing(files: &dyn Files, at: &Path) {
    let fired = Cancel::new();
    fired.cancel(CancelCause::User);
    let result = files.write_text(&at.join("f"), "text", Expectation::Any, &fired).await;
    assert_eq!(code(result), "FS_ABORTED");
    assert!(entries(at).is_empty());
}

async fn r_400_expectations_are_checked_before_anything_changes(files: &dyn Files, at: &Path) {
    let path = at.join("f");
    let version = |stat: FileStat| Expectation::Version(stat.version);
    let gone = write(files, &path, "1", Expectation::Absent).await.unwrap().stat;
    assert_eq!(code(write(files, &path, "x", Expectation::Absent).await), "FS_NOT_OBSERVED");
    let now = write(files, &path, "2", version(gone.clone())).await.unwrap();
    assert_eq!(now.before.as_deref(), Some("1"));
    assert_eq!(code(write(files, &path, "x", version(gone.clone())).await), "FS_STALE_VERSION");
    std::fs::write(&path, "somebody else").unwrap();
    assert_eq!(code(write(files, &path, "x", version(now.stat.clone())).await), "FS_STALE_VERSION");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody else");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(code(write(files, &path, "x", version(now.stat)).await), "FS_STALE_VERSION");
    assert_eq!(code(write(files, &at.join("no/such/f"), "x", version(gone)).await), "FS_STALE_VERSION");
    assert!(entries(at).is_empty(), "not even a folder was made");
    write(files, &path, "3", Expectation::Any).await.unwrap();
}

/// What happened to the file since it was first written.
#[derive(Debug, Clone, Copy)]
enum Since {
    NeverThere,
    Nothing,
    Changed,
    Removed,
}

async fn r_400_four_states_and_three_expectations(files: &dyn Files, at: &Path) {
    let table = [
        // what happened, then the outcome when nothing, absence, and the first version is expected
        (Since::NeverThere, ["ok", "ok", "FS_STALE_VERSION"]),
        (Since::Nothing, ["ok", "FS_NOT_OBSERVED", "ok"]),
        (Since::Changed, ["ok", "FS_NOT_OBSERVED", "FS_STALE_VERSION"]),
        (Since::Removed, ["ok", "ok", "FS_STALE_VERSION"]),
    ];
    let strange = write(files, &at.join("another"), "x", Expectation::Any).await.unwrap().stat.version;
    for (since, outcomes) in table {
        for (column, outcome) in outcomes.into_iter().enumerate() {
            let path = at.join(format!("{since:?}-{column}"));
            let first = match since {
                Since::NeverThere => strange.clone(),
                Since::Nothing | Since::Changed | Since::Removed => {
                    write(files, &path, "first", Expectation::Any).await.unwrap().stat.version
                }
            };
            match since {
                Since::NeverThere | Since::Nothing => {}
                Since::Changed => std::fs::write(&path, "other").unwrap(),
                Since::Removed => std::fs::remove_file(&path).unwrap(),
            }
            let there = std::fs::read_to_string(&path).ok();
            let expected = [Expectation::Any, Expectation::Absent, Expectation::Version(first)][column].clone();
            let result = write(files, &path, "new", expected.clone()).await;
            let after = std::fs::read_to_string(&path).ok();
            match result {
                Ok(written) => {
                    assert_eq!(outcome, "ok", "{since:?} {expected:?}");
                    assert_eq!(written.before, there, "{since:?} {expected:?}");
                    assert_eq!(after.as_deref(), Some("new"), "{since:?} {expected:?}");
                }
                Err(fault) => {
                    assert_eq!(fault.code(), outcome, "{since:?} {expected:?}");
                    assert_eq!(after, there, "{since:?} {expected:?}: nothing changes");
                }
            }
        }
    }
}

async fn r_401_line_ends_and_marks_are_written_as_given(files: &dyn Files, at: &Path) {
    for text in ["a\r\nb\r\n", "a\nb", "a\r\nb\nc\r", "\u{feff}a\r\n", "", "\u{feff}", "é\u{10ffff}"] {
        let path = at.join("f");
        write(files, &path, text, Expectation::Any).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), text.as_bytes());
        assert_eq!(read(files, &path).await.unwrap().text, text);
    }
}

async fn what_is_no_text_is_refused_or_read_as_bytes(files: &dyn Files, at: &Path) {
    let path = at.join("f");
    let bytes = |limit| async move { files.read_bytes(&at.join("f"), limit, &Cancel::new()).await };
    for wide in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a"] {
        std::fs::write(&path, wide).unwrap();
        let fault = read(files, &path).await.unwrap_err();
        assert_eq!(fault.code(), "FS_NOT_TEXT");
        assert!(fault.to_string().contains("UTF-16"), "{fault}");
        let read = bytes(4).await.unwrap();
        assert_eq!((read.bytes.as_slice(), read.stat.size), (wide, 4));
        assert_eq!(stat(files, &path).await.unwrap().version, read.stat.version);
    }
    assert_eq!(code(bytes(3).await), "FS_TOO_LARGE");
    assert_eq!(code(files.read_bytes(at, 9, &Cancel::new()).await), "FS_NOT_REGULAR_FILE");
    assert_eq!(code(files.read_bytes(&at.join("none"), 9, &Cancel::new()).await), "FS_NOT_FOUND");
}

async fn what_has_no_end_or_is_no_file_is_refused_at_once(files: &dyn Files, at: &Path) {
    let sparse = at.join("sparse");
    std::fs::File::create(&sparse).unwrap().set_len(2 << 30).unwrap();
    assert_eq!(code(read(files, &sparse).await), "FS_TOO_LARGE");
    assert_eq!(code(files.read_bytes(&sparse, LIMIT, &Cancel::new()).await), "FS_TOO_LARGE");
    assert_eq!(stat(files, &sparse).await.unwrap().size, 2 << 30);
    let pipe = at.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for odd in [Path::new("/dev/zero"), Path::new("/dev/tty"), &pipe] {
        assert_eq!(code(read(files, odd).await), "FS_NOT_REGULAR_FILE", "{}", odd.display());
        assert_eq!(code(files.read_bytes(odd, LIMIT, &Cancel::new()).await), "FS_NOT_REGULAR_FILE");
        assert_eq!(stat(files, odd).await.unwrap().kind, FileKind::Other);
    }
    assert_eq!(code(write(files, &pipe, "x", Expectation::Any).await), "FS_NOT_REGULAR_FILE");
    assert_eq!(write(files, &sparse, "x", Expectation::Any).await.unwrap().before, None);
    assert_eq!(std::fs::read(&sparse).unwrap(), b"x");
}

async fn folders_are_made_for_a_write_and_the_file_is_not(files: &dyn Files, at: &Path) {
    files.prepare_write(&at.join("a/b/f"), &Cancel::new()).await.unwrap();
    assert!(at.join("a/b").is_dir() && entries(&at.join("a/b")).is_empty());
    assert_eq!(code(files.prepare_write(&at.join("a/b"), &Cancel::new()).await), "FS_NOT_REGULAR_FILE");
    std::fs::write(at.join("file"), "").unwrap();
    assert_eq!(code(files.prepare_write(&at.join("file/f"), &Cancel::new()).await), "FS_NOT_DIRECTORY");
}

async fn r_402_one_of_many_guarded_writes_wins(files: &Arc<dyn Files>, at: &Path) {
    let path = at.join("f");
    let mut expected = Expectation::Absent;
    for round in 0..5 {
        let mut writes = tokio::task::JoinSet::new();
        for n in 0..50 {
            let (files, path, expected) = (Arc::clone(files), path.clone(), expected.clone());
            writes.spawn(async move { (n, write(&*files, &path, &format!("{round}-{n}"), expected).await) });
        }
        let mut won = Vec::new();
        for (n, result) in writes.join_all().await {
            match result {
                Ok(written) => won.push((n, written)),
                Err(fault) => assert!(matches!(fault.code(), "FS_STALE_VERSION" | "FS_NOT_OBSERVED"), "{fault}"),
            }
        }
        let [(n, written)] = won.as_slice() else { panic!("{} writes won in round {round}", won.len()) };
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{round}-{n}"));
        expected = Expectation::Version(written.stat.version.clone());
    }
    assert_eq!(entries(at), ["f"]);
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
