//! The local files: the suite for every provider, and what is about this one alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "suite/files.rs"]
mod suite;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{Expectation, FileKind, Files};
use sluice_harness::seam::host_files::{HostFiles, PathKind};
use sluice_providers::files::{LocalFiles, real_path};
use sluice_providers::host_files::LocalHostFiles;

const WATCHDOG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn the_local_files_pass_the_suite() {
    let folder = tempfile::tempdir().unwrap();
    let run = suite::run_all(Arc::new(LocalFiles::new()), folder.path());
    tokio::time::timeout(WATCHDOG, run).await.expect("the suite did not end");
}

#[tokio::test]
async fn a_pipe_is_refused_instead_of_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let files = LocalFiles::new();
    let cancel = Cancel::new();
    let read = tokio::time::timeout(WATCHDOG, files.read_text(&pipe, 10, &cancel)).await.expect("it waited");
    assert_eq!(read.unwrap_err().code(), "FS_NOT_REGULAR_FILE");
    assert_eq!(files.stat(&pipe, &cancel).await.unwrap().unwrap().kind, FileKind::Other);
    let write = files.write_text(&pipe, "x", Expectation::Any, &cancel).await;
    assert_eq!(write.unwrap_err().code(), "FS_NOT_REGULAR_FILE");
}

#[tokio::test]
async fn a_file_without_a_size_of_its_own_is_read_whole() {
    let files = LocalFiles::new();
    let text = files.read_text(Path::new("/proc/self/status"), 1 << 20, &Cancel::new()).await.unwrap().text;
    assert!(text.contains("Pid:"));
    let fault = files.read_text(Path::new("/proc/self/status"), 10, &Cancel::new()).await.unwrap_err();
    assert_eq!(fault.code(), "FS_TOO_LARGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn r_399_a_reader_never_sees_half_a_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let files = LocalFiles::new();
    let cancel = Cancel::new();
    let texts = ["a".repeat(700_000), "b".repeat(500_000)];
    files.write_text(&path, &texts[0], Expectation::Any, &cancel).await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let reader = {
        let (path, over, texts) = (path.clone(), Arc::clone(&over), texts.clone());
        std::thread::spawn(move || {
            let mut reads = 0;
            while !over.load(Ordering::Relaxed) || reads == 0 {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(texts.contains(&text), "{} bytes", text.len());
                reads += 1;
            }
        })
    };
    for round in 0..30 {
        files.write_text(&path, &texts[round % 2], Expectation::Any, &cancel).await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    reader.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn r_399_a_dropped_write_is_whole_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let files = LocalFiles::new();
    let cancel = Cancel::new();
    let text = "x".repeat(5_000_000);
    for round in 0..10u32 {
        let path = folder.path().join(round.to_string());
        let write = files.write_text(&path, &text, Expectation::Absent, &cancel);
        let _ = tokio::time::timeout(Duration::from_micros(u64::from(round) * 300), write).await;
        // The next write of the file waits for the abandoned one, so that after it nothing is under way any more.
        files.write_text(&path, "after", Expectation::Any, &cancel).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 10, "no staging file is left");
}

#[tokio::test]
async fn a_link_to_a_device_or_to_our_own_input_is_no_host_file() {
    let folder = tempfile::tempdir().unwrap();
    let files = LocalHostFiles::new();
    for device in ["/dev/zero", "/dev/stdin"] {
        let link = folder.path().join(device.replace('/', "_"));
        std::os::unix::fs::symlink(device, &link).unwrap();
        assert!(files.read(&link).await.is_err(), "{device}");
    }
}

#[test]
fn a_real_path_has_no_links_and_may_end_in_what_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(folder.path()).unwrap();
    std::fs::create_dir(root.join("secrets")).unwrap();
    std::os::unix::fs::symlink("secrets", root.join("door")).unwrap();
    assert_eq!(real_path(&root.join("door/new/k")), root.join("secrets/new/k"));
    assert_eq!(real_path(&root.join("door/../k")), root.join("k"));
}

#[tokio::test]
async fn host_files_are_made_for_their_owner_alone_and_appended_to() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let files = LocalHostFiles::new();
    let path = folder.path().join("a/b/log");
    assert_eq!(files.read(&path).await.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert_eq!(files.kind(&path).await, None);
    files.append(&path, b"one\n").await.unwrap();
    files.append(&path, b"two\n").await.unwrap();
    assert_eq!(files.read(&path).await.unwrap(), b"one\ntwo\n");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&folder.path().join("a")), mode(&folder.path().join("a/b"))), (0o600, 0o700, 0o700));
    assert_eq!(files.kind(&path).await, Some(PathKind::File));
    assert_eq!(files.kind(folder.path()).await, Some(PathKind::Folder));
    assert_eq!(files.kind(Path::new("/dev/null")).await, Some(PathKind::Other));
    std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
    let real = std::fs::canonicalize(&path).unwrap();
    assert_eq!(files.canonical(&folder.path().join("link")).await.unwrap(), real);
}
