//! The file fence: the suite for every provider inside it, and what it keeps out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "suite/files.rs"]
mod suite;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{Expectation, FileFault, Files};
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};
use sluice_providers::files::{FencedFiles, LocalFiles};

const WATCHDOG: Duration = Duration::from_secs(120);

fn fenced(mode: SandboxMode, writable: &[&Path]) -> FencedFiles {
    let writable = writable.iter().map(PathBuf::from).collect();
    FencedFiles::new(Arc::new(LocalFiles::new()), &SandboxPolicy { mode, writable, ..SandboxPolicy::off() })
}

/// A folder that may be written, `inside`, beside one that may not, `outside`, which has a file.
fn places() -> (tempfile::TempDir, PathBuf) {
    let keep = tempfile::tempdir().unwrap();
    let root = keep.path().canonicalize().unwrap();
    for folder in ["inside/sub", "outside/sub", "inside-too"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("outside/file"), "kept").unwrap();
    (keep, root)
}

async fn write(files: &dyn Files, path: &Path) -> Result<(), FileFault> {
    files.write_text(path, "new", Expectation::Any, &Cancel::new()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fenced_files_pass_the_suite_inside_their_folders() {
    let folder = tempfile::tempdir().unwrap();
    let files = fenced(SandboxMode::WorkspaceWrite, &[folder.path()]);
    let run = suite::run_all(Arc::new(files), folder.path());
    tokio::time::timeout(WATCHDOG, run).await.expect("the suite did not end");
}

#[tokio::test]
async fn r_411_nothing_outside_is_changed_by_any_path() {
    let (_keep, root) = places();
    let inside = root.join("inside");
    symlink("../outside/file", inside.join("file-link")).unwrap();
    symlink("../outside", inside.join("folder-link")).unwrap();
    symlink(inside.join("folder-link"), inside.join("link-to-link")).unwrap();
    symlink(root.join("outside/later"), inside.join("dangling")).unwrap();
    let files = fenced(SandboxMode::WorkspaceWrite, &[&inside]);
    let escapes = [
        "outside/file",
        "outside/new",
        "new",
        "inside-too/new",
        "inside/../outside/file",
        "inside/sub/../../outside/new",
        "inside/file-link",
        "inside/folder-link/file",
        "inside/folder-link/new",
        "inside/folder-link/new/deep/er",
        "inside/link-to-link/sub/new",
        "inside/link-to-link/../outside/new",
        "inside/dangling",
        "inside/none/../../outside/new",
        "inside/folder-link/../new",
    ];
    for escape in escapes {
        let path = root.join(escape);
        let fault = write(&files, &path).await.expect_err(escape);
        assert_eq!(fault.code(), "FS_SANDBOX_DENIED", "{escape}");
        assert!(fault.to_string().contains("workspace-write") && fault.to_string().contains(escape), "{fault}");
        assert_eq!(files.prepare_write(&path, &Cancel::new()).await.unwrap_err(), fault, "{escape}");
    }
    let mut left: Vec<_> = walk(&root.join("outside"));
    left.extend(walk(&root.join("inside-too")));
    assert_eq!(left, ["file", "sub"]);
    assert_eq!(std::fs::read_to_string(root.join("outside/file")).unwrap(), "kept");
    assert!(!root.join("new").exists());
    // Reading is always let, and what only looks like an escape is none.
    assert_eq!(files.read_text(&inside.join("file-link"), 10, &Cancel::new()).await.unwrap().text, "kept");
    symlink(&inside, root.join("outside/back")).unwrap();
    for fine in ["inside/new", "inside/a/b/new", "inside/sub/../x", "outside/back/y", "inside/folder-link/back/z"] {
        write(&files, &root.join(fine)).await.expect(fine);
    }
}

#[tokio::test]
async fn r_411_read_only_denies_every_change_and_off_none() {
    let (_keep, root) = places();
    let files = fenced(SandboxMode::ReadOnly, &[&root]);
    for path in ["inside/new", "outside/file"] {
        let fault = write(&files, &root.join(path)).await.unwrap_err();
        assert_eq!(fault.code(), "FS_SANDBOX_DENIED");
        assert!(fault.to_string().contains("read-only"), "{fault}");
    }
    assert!(walk(&root.join("inside")) == ["sub"]);
    write(&fenced(SandboxMode::Off, &[]), &root.join("outside/file")).await.unwrap();
}

#[tokio::test]
async fn r_411_a_folder_of_the_policy_that_becomes_a_link_opens_nothing() {
    let (_keep, root) = places();
    let files = fenced(SandboxMode::WorkspaceWrite, &[&root.join("inside"), &root.join("later")]);
    std::fs::rename(root.join("inside"), root.join("moved")).unwrap();
    symlink(root.join("outside"), root.join("inside")).unwrap();
    symlink(root.join("outside"), root.join("later")).unwrap();
    for path in ["inside/file", "later/file"] {
        assert_eq!(write(&files, &root.join(path)).await.unwrap_err().code(), "FS_SANDBOX_DENIED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r_411_a_link_put_into_the_path_meanwhile_leads_nowhere() {
    let (_keep, root) = places();
    let swapped = root.join("inside/sub");
    symlink(root.join("outside"), root.join("spare")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (over, swapped, spare) = (Arc::clone(&over), swapped.clone(), root.join("spare"));
        std::thread::spawn(move || {
            let mut swaps = 0_u64;
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &swapped, CWD, &spare, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let files = fenced(SandboxMode::WorkspaceWrite, &[&root.join("inside")]);
    let mut denied = 0;
    for round in 0.. {
        if round >= 400 && denied > 0 {
            break;
        }
        assert!(round < 40_000, "never met the link");
        let path = swapped.join(format!("new-{round}/file"));
        match write(&files, &path).await {
            // Landed while the folder was the real one, wherever that is by now.
            Ok(()) => {}
            Err(fault) => {
                denied += 1;
                assert!(matches!(fault.code(), "FS_SANDBOX_DENIED" | "FS_IO_ERROR" | "FS_NOT_FOUND"), "{fault}");
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    assert_eq!(walk(&root.join("outside")), ["file", "sub"], "{swaps} swaps, {denied} denied");
}

/// The names in a folder.
fn walk(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
