//! The process seam against real shells, real pipes and real signals.
//!
//! Time limits here are watchdogs, several times what the behaviour needs; nothing waits by sleeping, and what has to
//! be waited for is looked at until it is there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::process::{
    End, Environment, Keep, Owner, ProcessSpec, Processes, Program, RunOutput, StartProblem,
};
use sluice_providers::process::LocalProcesses;

const WATCHDOG: Duration = Duration::from_secs(30);

fn spec(program: Program) -> ProcessSpec {
    ProcessSpec {
        program,
        owner: Owner::User,
        cwd: std::env::temp_dir(),
        environment: Environment::default(),
        stdin: Vec::new(),
        deadline: None,
        grace: Duration::from_millis(300),
        keep: Keep::Head(1 << 20),
    }
}

fn sh(line: &str) -> ProcessSpec {
    spec(Program::Shell { shell: "/bin/sh".to_owned(), line: line.to_owned() })
}

fn direct(program: &str, args: &[&str]) -> ProcessSpec {
    spec(Program::Direct { program: program.to_owned(), args: args.iter().map(|a| (*a).to_owned()).collect() })
}

async fn run(spec: ProcessSpec) -> RunOutput {
    run_on(&LocalProcesses::new(), spec, &Cancel::new()).await
}

async fn run_on(processes: &LocalProcesses, spec: ProcessSpec, cancel: &Cancel) -> RunOutput {
    tokio::time::timeout(WATCHDOG, processes.run(spec, cancel)).await.expect("the run did not end")
}

/// Looks until it is so.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WATCHDOG, "not so in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether the process runs; one that is dead and waits for its parent does not.
fn runs(pid: i32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

fn pid_in(file: &Path) -> Option<i32> {
    std::fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
}

fn script(folder: &Path, name: &str, text: &str, mode: u32) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn text(output: &RunOutput) -> String {
    output.stdout.text()
}

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let output = run(sh("printf out; printf err >&2; exit 3")).await;
    assert_eq!(output.end, End::Exited(3));
    assert_eq!((output.stdout.text().as_str(), output.stderr.text().as_str()), ("out", "err"));
    assert!(!output.pipe_still_held);
}

#[tokio::test]
async fn r_430_arguments_reach_a_program_as_they_are() {
    let output = run(direct("printf", &["%s|", "a b", "$HOME", "*", ""])).await;
    assert_eq!(text(&output), "a b|$HOME|*||");
}

#[tokio::test]
async fn r_434_a_signal_is_no_exit_code() {
    assert_eq!(run(sh("kill -9 $$")).await.end, End::Signalled(9));
}

#[tokio::test]
async fn r_430_the_child_leads_a_session_of_its_own_without_a_terminal() {
    let output = run(sh("cut -d' ' -f1,5,6,7 /proc/$$/stat; exec 3</dev/tty && echo terminal")).await;
    let fields: Vec<_> = text(&output).split_whitespace().map(str::to_owned).collect();
    assert_eq!(fields[0], fields[1], "leads its group");
    assert_eq!(fields[0], fields[2], "leads its session");
    assert_eq!(fields[3], "0", "has no terminal");
    assert!(!text(&output).contains("terminal"));
}

#[tokio::test]
async fn r_431_the_environment_is_ours_less_the_left_out_plus_the_set() {
    let mut wanted = sh("env");
    wanted.environment.without = vec!["HOM*".to_owned(), "PWDX".to_owned()];
    wanted.environment.set =
        vec![("A".to_owned(), "1".to_owned()), ("A".to_owned(), "2".to_owned()), ("B".to_owned(), "x=y".to_owned())];
    let env = text(&run(wanted).await);
    assert!(env.lines().any(|l| l == "A=2") && env.lines().any(|l| l == "B=x=y"), "{env}");
    assert!(!env.lines().any(|l| l.starts_with("HOME=") || l == "A=1"), "{env}");
    assert!(env.lines().any(|l| l.starts_with("PATH=")), "{env}");
}

#[tokio::test]
async fn the_program_is_looked_up_in_the_childs_path_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    script(folder.path(), "hello", "#!/bin/sh\necho from $0\n", 0o755);
    let mut by_path = direct("hello", &[]);
    by_path.environment.set = vec![("PATH".to_owned(), format!("/nowhere:{}", folder.path().display()))];
    assert!(text(&run(by_path).await).starts_with("from "));
    let mut by_folder = direct("./hello", &[]);
    by_folder.cwd = folder.path().to_owned();
    assert!(text(&run(by_folder).await).starts_with("from "));
}

#[tokio::test]
async fn what_cannot_start_says_which_way() {
    let folder = tempfile::tempdir().unwrap();
    let plain = script(folder.path(), "plain", "#!/bin/sh\n", 0o644);
    let lost = script(folder.path(), "lost", "#!/no/such/interpreter -x\n", 0o755);
    let crlf = script(folder.path(), "crlf", "#!/bin/sh\r\necho\r\n", 0o755);
    let ends = |output: RunOutput| match output.end {
        End::NotStarted(problem) => problem,
        other => panic!("started: {other:?}"),
    };
    assert_eq!(
        ends(run(direct("no-such-program-here", &[])).await),
        StartProblem::NotFound { program: "no-such-program-here".to_owned() }
    );
    assert_eq!(
        ends(run(direct("/no/such/file", &[])).await),
        StartProblem::NotFound { program: "/no/such/file".to_owned() }
    );
    assert_eq!(ends(run(direct("", &[])).await), StartProblem::NotFound { program: String::new() });
    assert!(
        matches!(ends(run(direct(&plain, &[])).await), StartProblem::NotExecutable { why, .. } if why.contains("permission"))
    );
    assert!(
        matches!(ends(run(direct("/tmp", &[])).await), StartProblem::NotExecutable { why, .. } if why.contains("folder"))
    );
    let mut on_path = direct("plain", &[]);
    on_path.environment.set = vec![("PATH".to_owned(), folder.path().display().to_string())];
    assert!(matches!(ends(run(on_path).await), StartProblem::NotExecutable { .. }));
    let said = ends(run(direct(&lost, &[])).await);
    assert!(matches!(&said, StartProblem::NotFound { program } if program.contains("/no/such/interpreter")), "{said}");
    let said = ends(run(direct(&crlf, &[])).await);
    assert!(matches!(&said, StartProblem::NotFound { program } if program.contains(r"/bin/sh\r")), "{said}");
    let shell = Program::Shell { shell: "/no/shell".to_owned(), line: "true".to_owned() };
    assert!(matches!(ends(run(spec(shell)).await), StartProblem::NotFound { .. }));
    assert!(matches!(ends(run(direct("echo", &["a\0b"])).await), StartProblem::System { .. }));
}

#[tokio::test]
async fn a_command_not_found_inside_the_shell_is_127() {
    assert_eq!(run(sh("no-such-program-here")).await.end, End::Exited(127));
}

#[tokio::test]
async fn a_missing_working_folder_is_named() {
    let mut wanted = sh("true");
    wanted.cwd = "/no/such/folder".into();
    let End::NotStarted(StartProblem::Folder { cwd, .. }) = run(wanted).await.end else { panic!("started") };
    assert_eq!(cwd, "/no/such/folder");
    let mut file = sh("true");
    file.cwd = "/etc/passwd".into();
    assert!(
        matches!(run(file).await.end, End::NotStarted(StartProblem::Folder { why, .. }) if why.contains("not a folder"))
    );
}

#[tokio::test]
async fn a_script_without_a_first_line_runs_in_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(folder.path(), "bare", "echo bare\n", 0o755);
    assert_eq!(text(&run(direct(&path, &[])).await), "bare\n");
}

#[tokio::test]
async fn scripts_written_by_other_threads_at_the_same_time_start() {
    let folder = tempfile::tempdir().unwrap();
    let processes = LocalProcesses::new();
    let cancel = Cancel::new();
    for round in 0..20 {
        let runs = (0..8).map(|n| {
            let path = script(folder.path(), &format!("s{round}-{n}"), "#!/bin/sh\nexit 7\n", 0o755);
            run_on(&processes, direct(&path, &[]), &cancel)
        });
        for output in join_all(runs.collect()).await {
            assert_eq!(output.end, End::Exited(7));
        }
    }
}

async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pinned: Vec<_> = futures.into_iter().map(|f| (Box::pin(f), None)).collect();
    std::future::poll_fn(|cx| {
        let mut waiting = false;
        for (future, output) in &mut pinned {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    pinned.into_iter().map(|(_, output)| output.unwrap()).collect()
}

#[tokio::test]
async fn stdin_gets_the_payload_and_then_its_end() {
    let mut wanted = sh("cat; echo end");
    wanted.stdin = vec![b'x'; 300_000];
    let output = run(wanted).await;
    assert_eq!(output.stdout.total, 300_004);
    assert_eq!(text(&run(sh("cat; echo end")).await), "end\n", "an empty payload is an end at once");
}

#[tokio::test]
async fn a_payload_that_is_never_read_is_no_error() {
    for line in ["exit 5", "exec <&-; echo deny; exit 5"] {
        let mut wanted = sh(line);
        wanted.stdin = vec![b'x'; 200_000];
        let output = run(wanted).await;
        assert_eq!(output.end, End::Exited(5), "{line}");
        assert_eq!(output.stderr.text(), "", "{line}");
    }
}

#[tokio::test]
async fn parallel_children_do_not_hold_each_others_stdin() {
    let processes = LocalProcesses::new();
    let cancel = Cancel::new();
    let runs = (0..12).map(|n| {
        let mut wanted = sh("cat >/dev/null; exec ls -l /proc/self/fd");
        wanted.stdin = vec![b'x'; 100_000 + n];
        run_on(&processes, wanted, &cancel)
    });
    let mut own = Vec::new();
    let mut further = Vec::new();
    for output in join_all(runs.collect()).await {
        assert_eq!(output.end, End::Exited(0), "its stdin ended");
        for (number, target) in text(&output).lines().filter_map(descriptor) {
            if number <= 2 { own.push(target) } else { further.push(target) }
        }
    }
    assert_eq!(own.len(), 36, "{own:?}");
    // Whoever started the tests may have left open descriptors of its own, which are no business of this.
    assert!(!further.iter().any(|target| own.contains(target)), "{further:?} among {own:?}");
}

/// A line of `ls -l /proc/self/fd`: the number, and what it is.
fn descriptor(line: &str) -> Option<(u32, String)> {
    let (before, target) = line.split_once(" -> ")?;
    Some((before.rsplit(' ').next()?.parse().ok()?, target.to_owned()))
}

#[tokio::test]
async fn r_433_large_outputs_are_counted_and_bounded() {
    let mut wanted = sh("yes e | head -c 20000000 >&2; yes o | head -c 50000000; cat >/dev/null; printf END");
    wanted.keep = Keep::HeadAndTail(1000);
    wanted.stdin = vec![b'x'; 5_000_000];
    let output = run(wanted).await;
    assert_eq!(
        (output.end.clone(), output.stdout.total, output.stderr.total),
        (End::Exited(0), 50_000_003, 20_000_000)
    );
    assert_eq!((output.stdout.head.len(), output.stdout.tail.len()), (1000, 1000));
    assert!(output.stdout.tail.ends_with(b"o\nEND"));
    assert!(output.stdout.is_truncated() && output.stdout.text().contains("of 50000003 bytes"));
}

#[tokio::test]
async fn bytes_that_are_no_text_come_back_as_bytes() {
    let output = run(sh(r"printf 'a\377\000b'")).await;
    assert_eq!(output.stdout.head, b"a\xff\x00b");
    assert_eq!(text(&output), "a\u{fffd}\0b");
}

#[tokio::test]
async fn a_helper_left_behind_keeps_running_and_delays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (name, redirect, held) in [
        ("none", "", true),
        ("out", ">/dev/null", true),
        ("err", "2>/dev/null", true),
        ("both", ">/dev/null 2>&1", false),
    ] {
        let file = folder.path().join(name);
        let line = format!("sleep 300 {redirect} & echo $! >{}; echo done", file.display());
        let started = Instant::now();
        let output = run(sh(&line)).await;
        assert!(started.elapsed() < Duration::from_secs(5), "{name}: {:?}", started.elapsed());
        assert_eq!(
            (output.end.clone(), text(&output).as_str(), output.pipe_still_held),
            (End::Exited(0), "done\n", held)
        );
        let helper = pid_in(&file).unwrap();
        assert!(runs(helper), "{name}: the helper was killed");
        rustix::process::kill_process(Pid::from_raw(helper).unwrap(), rustix::process::Signal::KILL).unwrap();
    }
}

#[tokio::test]
async fn r_434_a_deadline_ends_whatever_the_program_does() {
    for line in [
        "sleep 600",
        "trap '' TERM; sleep 600",
        "exec 4<&0; cat <&4 >/dev/null; sleep 600",
        "while :; do :; done",
        "kill -STOP $$; sleep 600",
        "yes",
    ] {
        let mut wanted = sh(line);
        wanted.deadline = Some(Duration::from_millis(400));
        let output = run(wanted).await;
        assert_eq!(output.end, End::TimedOut, "{line}");
        assert!(output.took < Duration::from_secs(8), "{line}: {:?}", output.took);
    }
}

#[tokio::test]
async fn r_430_a_deadline_takes_grandchildren_and_keeps_the_output_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let line = format!(
        "echo before; sh -c 'trap \"\" TERM; echo $$ >{0}; while :; do sleep 1; done' & trap 'echo caught; exit 0' TERM; while :; do sleep 1; done",
        file.display()
    );
    let mut wanted = sh(&line);
    wanted.deadline = Some(Duration::from_secs(1));
    wanted.grace = Duration::from_secs(2);
    let output = run(wanted).await;
    assert_eq!(output.end, End::TimedOut, "an exit in the TERM handler is no success");
    assert!(text(&output).starts_with("before\n") && text(&output).contains("caught"), "{}", text(&output));
    assert!(!runs(pid_in(&file).expect("the grandchild started")), "the stubborn grandchild lives");
}

#[tokio::test]
async fn a_huge_deadline_is_none() {
    let mut wanted = sh("echo quick");
    wanted.deadline = Some(Duration::MAX);
    assert_eq!(run(wanted).await.end, End::Exited(0));
}

#[tokio::test]
async fn cancelling_ends_the_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let processes = LocalProcesses::new();
    let cancel = Cancel::new();
    let line = format!("echo so far; sleep 300 & echo $! >{}; wait", file.display());
    let (output, ()) = tokio::join!(run_on(&processes, sh(&line), &cancel), async {
        until("the child runs", || pid_in(&file).is_some()).await;
        cancel.cancel(CancelCause::User);
    });
    assert_eq!((output.end.clone(), text(&output).as_str()), (End::Cancelled, "so far\n"));
    assert!(!runs(pid_in(&file).unwrap()));
    assert_eq!(processes.running(), 0);
    let output = run_on(&processes, sh("echo no"), &cancel).await;
    assert_eq!((output.end.clone(), output.stdout.total), (End::Cancelled, 0), "cancelled before it began");
}

#[tokio::test]
async fn dropping_the_run_kills_the_group_and_leaves_no_zombie() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pids");
    let processes = LocalProcesses::new();
    let cancel = Cancel::new();
    let line = format!("trap '' TERM; sleep 300 & echo \"$$ $!\" >{}; wait; sleep 300", file.display());
    let mut run = processes.run(sh(&line), &cancel);
    let pids = || -> Option<(i32, i32)> {
        let text = std::fs::read_to_string(&file).ok()?;
        let (leader, child) = text.trim().split_once(' ')?;
        Some((leader.parse().ok()?, child.parse().ok()?))
    };
    tokio::select! {
        output = &mut run => panic!("ended: {output:?}"),
        () = until("the child runs", || pids().is_some()) => {}
    }
    drop(run);
    let (leader, child) = pids().unwrap();
    until("the leader is collected", || state(leader).is_none()).await;
    until("its child is dead", || !runs(child)).await;
    until("nothing is registered", || processes.running() == 0).await;
}

#[tokio::test]
async fn no_zombie_is_left_after_any_end() {
    let processes = LocalProcesses::new();
    let cancel = Cancel::new();
    for line in ["exit 0", "kill -9 $$", "sleep 300"] {
        let mut wanted = sh(&format!("echo $$; {line}"));
        wanted.deadline = Some(Duration::from_millis(500));
        let output = run_on(&processes, wanted, &cancel).await;
        let leader: i32 = text(&output).trim().parse().unwrap();
        assert_eq!(state(leader), None, "{line}");
    }
}

#[tokio::test]
async fn r_436_shutting_down_ends_all_and_lets_nothing_start() {
    let folder = tempfile::tempdir().unwrap();
    let processes = LocalProcesses::new();
    let cancel = Cancel::new();
    let files: Vec<_> = (0..3).map(|n| folder.path().join(n.to_string())).collect();
    let runs_all = join_all(
        files
            .iter()
            .map(|file| {
                let mut wanted = sh(&format!("trap '' TERM; echo $$ >{}; while :; do sleep 1; done", file.display()));
                wanted.grace = Duration::from_secs(600);
                run_on(&processes, wanted, &cancel)
            })
            .collect(),
    );
    let (outputs, ()) = tokio::join!(runs_all, async {
        until("all run", || files.iter().all(|f| pid_in(f).is_some())).await;
        processes.shut_down(Duration::from_millis(200)).await;
        assert!(files.iter().all(|f| !runs(pid_in(f).unwrap())));
    });
    assert!(outputs.iter().all(|o| o.end == End::Cancelled));
    assert_eq!(run_on(&processes, sh("true"), &cancel).await.end, End::Cancelled);
}

#[tokio::test]
async fn r_436_killing_all_is_immediate_and_needs_no_runtime_turn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let processes = LocalProcesses::new();
    let cancel = Cancel::new();
    let line = format!("trap '' TERM; echo $$ >{}; while :; do sleep 1; done", file.display());
    let (output, ()) = tokio::join!(run_on(&processes, sh(&line), &cancel), async {
        until("it runs", || pid_in(&file).is_some()).await;
        processes.kill_all();
    });
    assert_eq!(output.end, End::Cancelled);
    assert!(!runs(pid_in(&file).unwrap()));
}

#[test]
fn a_runtime_that_goes_away_takes_its_children_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let processes = LocalProcesses::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let cancel = Cancel::new();
        let line = format!("sleep 300 & echo $! >{}; wait", file.display());
        tokio::select! {
            output = processes.run(sh(&line), &cancel) => panic!("ended: {output:?}"),
            () = until("it runs", || pid_in(&file).is_some()) => {}
        }
    });
    drop(runtime);
    let started = Instant::now();
    while runs(pid_in(&file).unwrap()) {
        assert!(started.elapsed() < WATCHDOG);
        std::thread::yield_now();
    }
}
