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

/// A folder beside the built tests, which lie in no temporary folder.
fn out_of_temp() -> tempfile::TempDir {
    tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
}

#[test]
fn a_link_that_a_command_may_have_made_leads_to_no_grant() {
    let folder = out_of_temp();
    let root = folder.path().canonicalize().unwrap();
    let home = root.join("home");
    for name in ["home/.cache/uv", "home/go/pkg", "home/.npm", "data/m2", "outside", "tmp/mine"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    link(&root.join("data/m2"), "home/.ccache");
    link(&root.join("outside"), "home/go/pkg/mod");
    link(Path::new("/"), "home/.cache/pip");
    link(&root.join("outside"), "data/linked");
    let linked = root.join("data/linked").display().to_string();
    let variables = [("CCACHE_DIR", ""), ("SCCACHE_DIR", linked.as_str())];
    let (writable, _) = folders(&Environment::made_up(&root, &variables));
    for expected in ["home/.cache", "home/.cache/uv", "home/go/pkg", "home/.npm", "data/m2", "tmp"] {
        assert!(writable.contains(&root.join(expected)), "{expected} in {writable:?}");
    }
    for closed in [root.join("outside"), PathBuf::from("/"), home] {
        assert!(!writable.contains(&closed), "{closed:?} in {writable:?}");
    }
    // A folder that was closed by a command is the command's all the same.
    fs::set_permissions(root.join("home/go/pkg"), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let (writable, _) = folders(&Environment::made_up(&root, &[]));
    assert!(!writable.contains(&root.join("outside")), "{writable:?}");
    // In a home folder that is temporary itself, commands make what they like; and `$TMPDIR` is a link in such a folder.
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    fs::create_dir(temporary.path().join("home")).unwrap();
    std::os::unix::fs::symlink(root.join("outside"), temporary.path().join("home/.npm")).unwrap();
    std::os::unix::fs::symlink(root.join("outside"), temporary.path().join("tmp")).unwrap();
    let (writable, _) = folders(&Environment::made_up(temporary.path(), &[]));
    assert!(!writable.contains(&root.join("outside")), "{writable:?}");
}

#[test]
fn a_further_folder_is_not_reached_by_a_link_in_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["work", "outside", "mine/deep"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("../outside", root.join("work/added")).unwrap();
    std::os::unix::fs::symlink("deep", root.join("mine/link")).unwrap();
    let bare = SandboxPolicy {
        mode: SandboxMode::WorkspaceWrite,
        writable: Vec::new(),
        protected: Vec::new(),
        network: true,
        required: Required { mode: false, network: false },
    };
    let work = root.join("work");
    let made = of_session(bare, &root.join("nowhere"), &work, &[work.join("added"), root.join("mine/link")]);
    assert_eq!(made.writable, [work, root.join("mine/deep")]);
}

#[test]
fn what_runs_later_is_protected_where_the_variables_put_it() {
    let root = out_of_temp();
    let root = root.path().canonicalize().unwrap();
    let config = root.join("config").display().to_string();
    let (_, protected) = folders(&Environment::made_up(&root, &[("XDG_CONFIG_HOME", &config)]));
    for name in
        ["home/.tcshrc", "home/.cargo/bin", "home/bin", "home/.local/share/systemd", "config/git", "config/fish"]
    {
        assert!(protected.contains(&root.join(name)), "{name} in {protected:?}");
    }
}
