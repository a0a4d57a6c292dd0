//! `Bash` against real shells: folders that persist, exits, limits, cancellation, environment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::plain_text;
use sluice_tools::{BashConfig, ShellFolder};

use crate::world::{World, keys};

#[tokio::test]
async fn a_success_has_exactly_the_captured_members() {
    let world = World::new();
    let done = world.bash("echo hello > a.txt; cat a.txt").await;
    let value = done.value.as_ref().unwrap();
    assert_eq!(keys(value), ["stdout", "stderr", "interrupted", "isImage", "noOutputExpected"]);
    assert_eq!((done.stdout(), done.stderr(), done.text.as_str()), ("hello", "", "hello"));
    assert_eq!(value["stdout"], "hello\n", "the value is exact; the model's text and the Claude dialect's are not");
    assert_eq!(world.bash("true").await.text, "(no output)");
    assert_eq!(world.bash("printf out; printf err >&2").await.text, "out\nerr");
}

#[tokio::test]
async fn a_failure_reads_as_captured_and_keeps_its_value() {
    let world = World::new();
    let done = world.bash("echo out; echo err >&2; exit 3").await;
    assert_eq!(done.failure.as_deref(), Some("Exit code 3\nout\nerr"));
    assert_eq!(done.text, "Exit code 3\nout\nerr");
    assert!(done.frozen.is_error());
    assert_eq!(done.value.unwrap()["exitCode"], 3);
}

#[tokio::test]
async fn the_folder_follows_the_command_however_it_ends() {
    let cases = [
        ("cd sub", 0),
        ("cd sub; exit 3", 3),
        ("set -e; cd sub; false; echo not reached", 1),
        ("cd sub # a comment at the end", 0),
        ("cd sub; cat <<END\nunterminated", 0),
        ("cd sub; set -x; set -v; true", 0),
        ("set -C; cd sub", 0),
        ("trap 'echo bye' EXIT; cd sub", 0),
        ("cd sub; nonesuch_command", 127),
        ("cd sub\nfalse", 1),
        ("cd sub && { sleep 3 & }", 0),
    ];
    for (command, code) in cases {
        let world = World::new();
        std::fs::create_dir(world.path("sub")).unwrap();
        let done = world.bash(command).await;
        assert_eq!(done.value.as_ref().unwrap()["exitCode"].as_i64().unwrap_or(0), code, "{command}: {done:?}");
        assert!(!done.stderr().contains("sluice") && !done.stderr().contains("pwd"), "{command}: {done:?}");
        assert_eq!(world.bash("pwd").await.stdout(), world.path("sub").display().to_string(), "{command}");
        assert_eq!(world.scene.session.cwd(), world.path("sub"), "{command}");
        assert_eq!(world.scene.log.last::<ShellFolder>().unwrap().cwd, world.path("sub"));
        let read = world.call("Read", &json!({"file_path": "x"})).await;
        assert_eq!(read.input["file_path"], world.path("sub/x").display().to_string());
    }
}

#[tokio::test]
async fn the_folder_stays_where_the_shell_was_replaced_or_broken() {
    let world = World::new();
    for command in ["cd /; exec true", "cd / (", "(cd /)", "trap 'echo bye' EXIT; cd /; exit 0", "kill -9 $$"] {
        world.bash(command).await;
        assert_eq!(world.scene.session.cwd(), world.root, "{command}");
    }
}

#[tokio::test]
async fn only_the_folder_persists() {
    let world = World::new();
    world.bash("export X=1; alias a=b; f() { :; }").await.assert_fine();
    assert_eq!(world.bash("echo \"[$X]\"; type f 2>/dev/null").await.stdout(), "[]");
}

#[tokio::test]
async fn a_session_that_starts_in_a_link_keeps_its_own_names() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(real.join("real/sub")).unwrap();
    std::os::unix::fs::symlink(real.join("real"), real.join("link")).unwrap();
    let world = World::in_folder(folder, real.join("link"), BashConfig::default());
    world.bash("true").await.assert_fine();
    assert_eq!(world.scene.session.cwd(), real.join("link"));
    world.bash("cd sub").await.assert_fine();
    assert_eq!(world.scene.session.cwd(), real.join("link/sub"));
}

#[tokio::test]
async fn a_vanished_folder_is_said_and_the_start_folder_takes_its_place() {
    let world = World::new();
    let gone = world.bash("mkdir z && cd z && rmdir ../z").await;
    gone.assert_fine();
    assert!(gone.stderr().contains("no longer exists"), "{gone:?}");
    world.bash("pwd").await.assert_fine();

    world.bash("mkdir y && cd y").await.assert_fine();
    std::fs::remove_dir(world.path("y")).unwrap();
    let next = world.bash("pwd").await;
    assert_eq!(next.stdout(), world.root.display().to_string());
    assert!(next.stderr().contains("y no longer exists; the command ran in"), "{next:?}");
    assert_eq!(world.bash("pwd").await.stderr(), "");
}

#[tokio::test]
async fn the_wrapping_leaves_no_trace_in_the_command() {
    let world = World::new();
    let done = world
        .bash("env | grep -i sluice_c; set | grep -i '^sluice_[^t]'; echo $#; ls -A \"$HOME/nonesuch\" 2>/dev/null")
        .await;
    assert_eq!(done.stdout(), "0");
    assert_eq!(world.bash("pgrep -f 'a pattern of its own' || echo none").await.stdout(), "none");
    let left: Vec<_> = std::fs::read_dir(&world.scene.session.state_dir).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_timed_out_command_ends_with_its_children_and_gives_its_output_so_far() {
    let world = World::new();
    let began = Instant::now();
    let tick = "(while :; do echo tick; sleep 0.2; done) & echo $! > pid; wait";
    let done = world.call("Bash", &json!({"command": tick, "timeout": 2000})).await;
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(done.text.starts_with("Command timed out after 2s\ntick"), "{}", done.text);
    assert_eq!(done.value.as_ref().unwrap()["timedOut"], true);
    // An orphan that nobody has reaped yet is over all the same.
    let state = world.bash("ps -o stat= -p \"$(cat pid)\" || echo none").await;
    assert!(state.stdout() == "none" || state.stdout().starts_with('Z'), "{state:?}");
}

#[tokio::test]
async fn r_434_a_signal_is_told_apart_from_an_exit() {
    let done = World::new().bash("echo a; kill -9 $$").await;
    assert_eq!(done.text, "Command was killed by signal 9 (SIGKILL)\na");
    let value = done.value.unwrap();
    assert_eq!((value["signal"].as_i64(), value.get("exitCode")), (Some(9), None));
    assert_eq!(World::new().bash("trap '' TERM; kill $$; exit 0").await.failure, None);
}

#[tokio::test]
async fn a_cancelled_command_is_a_failure_with_its_output_so_far() {
    let world = World::new();
    let cancel = Cancel::new();
    world.bash("mkfifo started").await.assert_fine();
    let arguments = json!({"command": "echo begun; echo > started; sleep 600"});
    let (done, ()) = tokio::join!(world.call_under(&cancel, "Bash", &arguments), async {
        // Opening the pipe waits for the command to open its end.
        tokio::fs::read(world.path("started")).await.unwrap();
        cancel.cancel(CancelCause::User);
    });
    assert_eq!(done.failure.as_deref(), Some("command was cancelled by the user; output so far: begun"));
}

#[tokio::test]
async fn r_434_senseless_limits_are_refused_with_a_remedy() {
    let world = World::new();
    let refused = [
        (json!({"command": "true", "timeout": 600_001}), "the limit is 600000 ms"),
        (json!({"command": "true", "timeout": 0}), "from 1 to 600000"),
        (json!({"command": "a\0b"}), "NUL byte"),
    ];
    for (arguments, words) in refused {
        let done = world.call("Bash", &arguments).await;
        assert_eq!(done.code.as_deref(), Some("INVALID_ARGS"), "{done:?}");
        assert!(done.failure.as_ref().unwrap().contains(words), "{done:?}");
    }
    world.call("Bash", &json!({"command": "true", "timeout": 600_000})).await.assert_fine();
    world.call("Bash", &json!({"command": format!(": {}", "'".repeat(118_000))})).await.assert_fine();
}

#[tokio::test]
async fn a_command_too_long_for_a_variable_runs_and_leaves_no_trace_either() {
    let world = World::new();
    let long = "x".repeat(300_000);
    let command = format!(
        ": {long}; cat; env | grep -i sluice_c; set | grep -i '^sluice_[^t]'; ps -eo args | grep -c '[x]xxxxxxx'; \
         printf '%s' '{long}' | wc -c; cd /"
    );
    let done = world.bash(&command).await;
    done.assert_fine();
    assert_eq!(done.stdout().split_whitespace().collect::<Vec<_>>(), ["0", "300000"], "its input is empty too");
    assert_eq!(world.scene.session.cwd(), std::path::Path::new("/"));
    assert!(world.bash(&format!(": {long}; exit 3")).await.failure.unwrap().starts_with("Exit code 3"));
}

#[tokio::test]
async fn the_environment_is_inherited_less_the_keys_of_providers_plus_the_settings() {
    let prelude = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(prelude.path(), "TOK='a b'\n").unwrap();
    let path = prelude.path().to_owned();
    let config = BashConfig {
        without: vec!["CARGO_PKG_*".to_owned()],
        set: vec![("BAR".to_owned(), "2".to_owned())],
        preludes: Some(Arc::new(move |_| vec![path.clone(), "/nonesuch".into()])),
        ..BashConfig::default()
    };
    let world = World::with(config);
    let done = world
        .bash("echo \"$HOME|$CARGO_PKG_NAME|$CARGO_MANIFEST_DIR|$BAR|$TOK|$TERM|$PAGER|$GIT_TERMINAL_PROMPT\"")
        .await;
    let home = std::env::var("HOME").unwrap_or_default();
    assert_eq!(done.stdout(), format!("{home}||{}|2|a b|dumb|cat|0", env!("CARGO_MANIFEST_DIR")));
}

#[tokio::test]
async fn r_333_long_output_keeps_both_ends_and_says_how_long_it_was() {
    let world = World::new();
    let done = world.bash("echo first; yes x | head -c 100000; echo last").await;
    let text = plain_text(done.frozen.outcome().content());
    assert!(text.starts_with("first\n") && text.ends_with("last"), "{} characters", text.len());
    assert!(text.contains("of 100011 bytes left out"));
    assert!(text.len() < 31_000);
    let path = text.split_once("the whole output is in ").unwrap().1.split_once(" …]").unwrap().0;
    let whole = std::fs::read_to_string(path).unwrap();
    assert!(whole.starts_with("first\nx\n") && whole.ends_with("x\nlast\n"));
}
