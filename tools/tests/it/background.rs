//! Shells in the background: what `Bash` starts, `BashOutput` reads and `KillShell` ends, against real processes.
//!
//! Nothing waits by sleeping: what has to be waited for is looked at until it is there, under a watchdog.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::ids::Seq;
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::seam::conversation::Conversation;
use sluice_harness::seam::process::running::{Lasts, Mark, Output, Running};
use sluice_harness::seam::process::{End, ProcessSpec, Processes, RunOutput, StartProblem};
use sluice_tools::BashConfig;
use sluice_tools::jobs::ShellEnded;

use crate::world::{Done, World, keys};

const WATCHDOG: Duration = Duration::from_secs(60);

/// What was put into the conversation.
#[derive(Default)]
struct Heard(Mutex<Vec<ContextMessage>>);

impl Conversation for Heard {
    fn inject(&self, context: ContextMessage) {
        self.0.lock().unwrap().push(context);
    }
}

impl Heard {
    fn in_world(world: &World) -> Arc<Self> {
        let heard = Arc::new(Self::default());
        world.scene.context.provide::<dyn Conversation>(Arc::<Self>::clone(&heard)).unwrap();
        heard
    }

    fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|context| context.text.clone()).collect()
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < WATCHDOG, "not so in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn start(world: &World, command: &str) -> Done {
    world.call("Bash", &json!({"command": command, "run_in_background": true})).await
}

async fn read(world: &World, id: &str) -> Value {
    world.call("BashOutput", &json!({"bash_id": id})).await.value.unwrap()
}

/// Reads until the shell has ended; all that it printed meanwhile, and the last value.
async fn read_to_the_end(world: &World, id: &str) -> (String, Value) {
    let began = Instant::now();
    let mut all = String::new();
    loop {
        let value = read(world, id).await;
        all.push_str(value["stdout"].as_str().unwrap());
        if value["status"] != "running" {
            return (all, value);
        }
        assert!(began.elapsed() < WATCHDOG, "{id} does not end: {all}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn ended(world: &World) -> Vec<ShellEnded> {
    world.scene.log.since(Seq(0)).iter().filter_map(|event| event.decode::<ShellEnded>()).collect()
}

/// Whether the process whose id is in a file runs; one that is dead and waits for its parent does not.
fn runs(file: &Path) -> bool {
    let Ok(pid) = std::fs::read_to_string(file) else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

#[tokio::test]
async fn r_465_a_command_in_the_background_returns_at_once_with_its_id_and_is_read_later() {
    let world = World::new();
    let heard = Heard::in_world(&world);
    world.bash("mkfifo go").await.assert_fine();
    let done = start(&world, "echo one; echo oops >&2; read x < go; echo two; exit 3").await;
    let value = done.value.as_ref().unwrap();
    let members = ["stdout", "stderr", "interrupted", "isImage", "noOutputExpected", "backgroundTaskId"];
    assert_eq!(keys(value), members, "{value}");
    assert_eq!((value["backgroundTaskId"].as_str(), value["stdout"].as_str()), (Some("bash_1"), Some("")));
    assert!(done.text.contains("bash_1") && done.text.contains("BashOutput"), "{}", done.text);

    let began = Instant::now();
    let mut seen = String::new();
    while seen != "one\noops\n" {
        let value = read(&world, "bash_1").await;
        assert_eq!(keys(&value), ["shellId", "status", "exitCode", "stdout", "stderr"]);
        assert_eq!((value["status"].as_str(), &value["exitCode"]), (Some("running"), &Value::Null));
        seen = format!("{seen}{}{}", value["stdout"].as_str().unwrap(), value["stderr"].as_str().unwrap());
        assert!(began.elapsed() < WATCHDOG, "{seen}");
        tokio::task::yield_now().await;
    }
    let nothing = world.call("BashOutput", &json!({"bash_id": "bash_1"})).await;
    assert_eq!(nothing.text, "bash_1 is running. (no new output)");
    assert!(heard.texts().is_empty(), "{:?}", heard.texts());

    world.bash("echo > go").await.assert_fine();
    let (rest, last) = read_to_the_end(&world, "bash_1").await;
    assert_eq!((rest.as_str(), last["status"].as_str(), last["exitCode"].as_i64()), ("two\n", Some("failed"), Some(3)));
    until("its end is told", || !ended(&world).is_empty()).await;
    let texts = heard.texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].contains("bash_1") && texts[0].contains("exit code 3"), "{texts:?}");
    assert_eq!(heard.0.lock().unwrap()[0].source, "Bash:background");
    let again = world.call("BashOutput", &json!({"bash_id": "bash_1"})).await;
    assert_eq!(again.text, "bash_1 has ended with exit code 3. (no new output)");
}

#[tokio::test]
async fn a_shell_in_the_background_begins_where_the_session_is_and_does_not_move_it() {
    let prelude = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(prelude.path(), "TOK='a b'\n").unwrap();
    let path = prelude.path().to_owned();
    let config = BashConfig { preludes: Some(Arc::new(move |_| vec![path.clone()])), ..BashConfig::default() };
    let world = World::with(config);
    world.bash("mkdir sub; cd sub").await.assert_fine();
    start(&world, "pwd; echo \"$TOK\"; env | grep -c SLUICE_COMMAND; cd /").await.assert_fine();
    let (all, _) = read_to_the_end(&world, "bash_1").await;
    assert_eq!(all, format!("{}\na b\n0\n", world.path("sub").display()));
    assert_eq!(world.scene.session.cwd(), world.path("sub"));
}

#[tokio::test]
async fn r_430_killing_a_shell_takes_children_that_ignore_signals() {
    let world = World::new();
    let heard = Heard::in_world(&world);
    let stubborn =
        "trap '' TERM; (trap '' TERM; sleep 600 & echo $! > child; wait) & echo $$ > leader; wait; sleep 600";
    start(&world, stubborn).await.assert_fine();
    until("both run", || runs(&world.path("leader")) && runs(&world.path("child"))).await;
    let killed = world.call("KillShell", &json!({"shell_id": "bash_1"})).await;
    assert_eq!(keys(killed.value.as_ref().unwrap()), ["message", "shell_id"]);
    assert!(killed.text.contains("bash_1") && killed.text.contains("was stopped"), "{}", killed.text);
    assert!(!runs(&world.path("leader")) && !runs(&world.path("child")));
    assert_eq!(read(&world, "bash_1").await["status"], "killed");
    until("its end is logged", || !ended(&world).is_empty()).await;
    assert!(heard.texts().is_empty(), "who asked for the end is not told of it: {:?}", heard.texts());
    let again = world.call("KillShell", &json!({"shell_id": "bash_1"})).await;
    assert_eq!(again.text, "bash_1 had ended already: stopped.");
}

#[tokio::test]
async fn a_shell_lasts_as_long_as_anybody_in_its_group() {
    let world = World::new();
    start(&world, "echo $$ > leader; sleep 600 & echo $! > child").await.assert_fine();
    until("the child runs", || runs(&world.path("child"))).await;
    until("its parent is gone", || !runs(&world.path("leader"))).await;
    assert_eq!(read(&world, "bash_1").await["status"], "running", "its child does");
    world.call("KillShell", &json!({"shell_id": "bash_1"})).await.assert_fine();
    assert!(!runs(&world.path("child")));
}

#[tokio::test]
async fn r_436_the_end_of_the_scope_ends_its_shells() {
    let world = World::new();
    let heard = Heard::in_world(&world);
    start(&world, "trap '' TERM; echo $$ > pid; while :; do sleep 1; done").await.assert_fine();
    until("it runs", || runs(&world.path("pid"))).await;
    let report = world.scene.context.dispose(Duration::from_secs(20)).await;
    assert!(report.aborted.is_empty(), "{report:?}");
    assert!(!runs(&world.path("pid")));
    assert_eq!(ended(&world).iter().map(|ended| ended.how.as_str()).collect::<Vec<_>>(), ["stopped"]);
    assert!(heard.texts().is_empty());
}

#[tokio::test]
async fn an_unknown_shell_is_refused_by_naming_those_that_are_there() {
    let world = World::new();
    for tool in [("BashOutput", "bash_id"), ("KillShell", "shell_id")] {
        let done = world.call(tool.0, &json!({tool.1: "bash_7"})).await;
        assert_eq!(done.code.as_deref(), Some("SHELL_NOT_FOUND"));
        assert!(done.text.contains("no background shell \"bash_7\"; there is none"), "{}", done.text);
    }
    start(&world, "sleep 600").await.assert_fine();
    start(&world, "true").await.assert_fine();
    read_to_the_end(&world, "bash_2").await;
    let done = world.call("BashOutput", &json!({"bash_id": "bash_7"})).await;
    assert!(done.text.contains("there are bash_1 (running), bash_2 (ended)"), "{}", done.text);
}

#[tokio::test]
async fn so_many_run_at_once_and_no_more() {
    let world = World::new();
    for _ in 0..16 {
        start(&world, "sleep 600").await.assert_fine();
    }
    let one_more = start(&world, "touch made").await;
    assert_eq!(one_more.code.as_deref(), Some("SHELL_LIMIT"), "{one_more:?}");
    assert!(!world.path("made").exists());
    world.call("KillShell", &json!({"shell_id": "bash_3"})).await.assert_fine();
    start(&world, "sleep 600").await.assert_fine();
    assert_eq!(read(&world, "bash_17").await["status"], "running");
}

#[tokio::test]
async fn a_filter_shows_its_lines_and_a_bad_one_is_refused() {
    let world = World::new();
    start(&world, "echo ok 1; echo fail 2; echo ok 3").await.assert_fine();
    until("it has ended", || !ended(&world).is_empty()).await;
    let bad = world.call("BashOutput", &json!({"bash_id": "bash_1", "filter": "("})).await;
    assert_eq!(bad.code.as_deref(), Some("INVALID_ARGS"));
    assert!(bad.text.contains("escape special characters"), "{}", bad.text);
    let done = world.call("BashOutput", &json!({"bash_id": "bash_1", "filter": "^ok"})).await;
    assert_eq!(done.value.unwrap()["stdout"], "ok 1\nok 3\n");
    assert_eq!(read(&world, "bash_1").await["stdout"], "", "the others count as read");
}

#[tokio::test]
async fn a_time_limit_of_its_own_ends_a_shell_in_the_background() {
    let world = World::new();
    let heard = Heard::in_world(&world);
    let arguments = json!({"command": "echo so far; sleep 600", "run_in_background": true, "timeout": 1000});
    world.call("Bash", &arguments).await.assert_fine();
    let (all, last) = read_to_the_end(&world, "bash_1").await;
    assert_eq!(
        (all.as_str(), last["status"].as_str(), last["timedOut"].as_bool()),
        ("so far\n", Some("failed"), Some(true))
    );
    until("it is told", || !heard.texts().is_empty()).await;
    assert!(heard.texts()[0].contains("time limit"), "{:?}", heard.texts());
}

#[tokio::test]
async fn r_433_r_474_long_output_is_whole_in_a_file_of_its_owner_which_read_may_read() {
    let world = World::new();
    start(&world, "echo first; yes x | head -c 3000000; echo last").await.assert_fine();
    until("it has ended", || !ended(&world).is_empty()).await;
    let done = world.call("BashOutput", &json!({"bash_id": "bash_1"})).await;
    assert!(done.text.len() < 31_000, "{}", done.text.len());
    assert!(done.text.contains("first\nx\n") && done.text.ends_with("x\nlast"));
    let path = done.text.split_once("the whole output is in ").unwrap().1.split_once(" …]").unwrap().0;
    assert!(Path::new(path).starts_with(&world.scene.session.state_dir), "{path}");
    let meta = std::fs::metadata(path).unwrap();
    assert_eq!((meta.len(), meta.permissions().mode() & 0o777), (3_000_011, 0o600));
    let tail = world.call("Read", &json!({"file_path": path, "offset": 1_500_002})).await;
    assert!(tail.text.contains("last"), "{}", tail.text);
}

#[tokio::test]
async fn r_434_a_foreground_time_limit_ends_a_tree_that_ignores_signals_and_gives_its_output() {
    let world = World::new();
    let stubborn =
        "trap '' TERM; echo begun; (trap '' TERM; echo $BASHPID > child; while :; do sleep 1; done) & wait; wait";
    let done = world.call("Bash", &json!({"command": stubborn, "timeout": 1000})).await;
    assert_eq!(done.failure.as_deref(), Some("Command timed out after 1s\nbegun"));
    assert!(!runs(&world.path("child")));
}

/// A seam whose programs are found unable to start only after they were taken.
struct StartsLate;

struct NeverStarted;

impl Running for NeverStarted {
    fn end(&self) -> Option<End> {
        Some(End::NotStarted(StartProblem::SandboxUnavailable { why: "nothing here confines".to_owned() }))
    }

    fn ended(&self) -> Fut<'_, End> {
        Box::pin(async { self.end().unwrap() })
    }

    fn stop(&self) {}

    fn output(&self, _: Mark) -> Fut<'_, Output> {
        Box::pin(async { Output::default() })
    }
}

impl Processes for StartsLate {
    fn run<'a>(&'a self, _: ProcessSpec, _: &'a Cancel) -> Fut<'a, RunOutput> {
        unreachable!("tools start their commands")
    }

    fn start<'a>(&'a self, _: ProcessSpec, _: Lasts) -> Fut<'a, Result<Box<dyn Running>, StartProblem>> {
        Box::pin(async { Ok(Box::new(NeverStarted) as Box<dyn Running>) })
    }
}

#[tokio::test]
async fn r_412_a_shell_that_turns_out_not_to_start_says_why_in_the_fore_and_in_the_background() {
    let mut world = World::new();
    let inner = world.scene.context.child("inner").unwrap();
    inner.provide::<dyn Processes>(Arc::new(StartsLate)).unwrap();
    world.scene.context = inner;
    let heard = Heard::in_world(&world);
    let done = world.bash("true").await;
    assert_eq!(done.code.as_deref(), Some("SANDBOX_UNAVAILABLE"), "{done:?}");
    start(&world, "true").await.assert_fine();
    let read = world.call("BashOutput", &json!({"bash_id": "bash_1"})).await;
    assert_eq!(read.value.as_ref().unwrap()["status"], "failed");
    assert!(read.text.contains("bash_1 did not start") && read.text.contains("nothing here confines"), "{}", read.text);
    until("it is told", || !heard.texts().is_empty()).await;
    assert!(heard.texts()[0].contains("nothing here confines"), "{:?}", heard.texts());
}
