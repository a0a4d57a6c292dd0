//! The policy from made-up surroundings, and git folders as git itself makes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::fs;
use std::process::Command;

use super::*;

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_linked_work_tree_may_write_its_repository_and_a_forged_one_nothing() {
    if Command::new("git").arg("--version").output().is_err() {
        println!("skipped: no git");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (main, tree, nowhere) = (root.join("main"), root.join("tree"), root.join("home"));
    fs::create_dir_all(main.join("deep/er")).unwrap();
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&main, &["worktree", "add", "-q", "../tree"]);
    assert_eq!(git_folders(&nowhere, &main.join("deep/er")), [main.join(".git")], "of a folder deep inside");
    assert_eq!(git_folders(&nowhere, &tree), [main.join(".git")]);
    // A home folder that is a work tree itself is not opened from below.
    assert_eq!(git_folders(&main, &main.join("deep")), Vec::<PathBuf>::new());
    assert_eq!(git_folders(&main, &main), [main.join(".git")]);

    let forged = root.join("forged");
    fs::create_dir_all(&forged).unwrap();
    for target in [main.join(".git/worktrees/tree"), main.join(".git"), root.join("home")] {
        fs::write(forged.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
        assert_eq!(git_folders(&nowhere, &forged), Vec::<PathBuf>::new(), "{target:?} does not name it back");
    }
}

#[test]
fn caches_follow_their_variables_and_hold_no_programs() {
    let folder = tempfile::tempdir().unwrap();
    let moved = folder.path().join("moved");
    let environment = Environment::made_up(
        folder.path(),
        &[("CARGO_HOME", moved.to_str().unwrap()), ("GOPATH", "relative"), ("npm_config_cache", "/")],
    );
    let folders = caches::folders(&environment);
    let home = folder.path().join("home");
    for expected in [moved.join("registry"), home.join(".cache"), home.join(".npm"), home.join("go/pkg/mod")] {
        assert!(folders.contains(&expected), "{expected:?} in {folders:?}");
    }
    assert!(folders.iter().all(|path| path.is_absolute() && !path.ends_with("bin")), "{folders:?}");
    for closed in [moved, home.join(".cargo"), home.join("go"), home, PathBuf::from("/")] {
        assert!(!folders.contains(&closed), "{closed:?}");
    }
}
