//! Started processes against real shells: reading while they run, ending them, what they leave, files of long output.
//!
//! Nothing waits by sleeping; what has to be waited for is looked at until it is there, under a watchdog.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sluice_harness::seam::process::running::{Lasts, Mark, Running};
use sluice_harness::seam::process::{
    Capture, End, Environment, Keep, Owner, ProcessSpec, Processes, Program, Saved, Spill, StartProblem,
};
use sluice_providers::process::LocalProcesses;

const WATCHDOG: Duration = Duration::from_secs(60);

fn sh(line: &str) -> ProcessSpec {
    ProcessSpec {
        program: Program::Shell { shell: "/bin/sh".to_owned(), line: line.to_owned() },
        owner: Owner::User,
        cwd: std::env::temp_dir(),
        environment: Environment::default(),
        stdin: Vec::new(),
        deadline: None,
        grace: Duration::from_millis(300),
        keep: Keep::HeadAndTail(1000),
    }
}

fn kept_in(folder: &Path, line: &str, limit: u64) -> ProcessSpec {
    let spill = Spill { folder: folder.to_owned(), stem: "job".to_owned(), limit };
    ProcessSpec { keep: Keep::AlsoInFile { ends: 1000, spill }, ..sh(line) }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < WATCHDOG, "not so in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn ended(running: &dyn Running) -> End {
    tokio::time::timeout(WATCHDOG, running.ended()).await.expect("it does not end")
}

async fn stdout_to_the_end(processes: &LocalProcesses, spec: ProcessSpec) -> Capture {
    let running = processes.start(spec, Lasts::Leader).await.unwrap();
    assert_eq!(ended(&*running).await, End::Exited(0));
    running.output(Mark::default()).await.stdout
}

/// Whether the process whose id is in a file runs; one that is dead and waits for its parent does not.
fn runs(file: &Path) -> bool {
    let Ok(pid) = std::fs::read_to_string(file) else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

#[tokio::test]
async fn output_can_be_read_from_any_position_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    rustix::fs::mknodat(rustix::fs::CWD, &go, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let processes = LocalProcesses::new();
    let line = format!("echo one; echo err >&2; read x <{}; echo two; exit 4", go.display());
    let running = processes.start(sh(&line), Lasts::Leader).await.unwrap();
    let began = Instant::now();
    loop {
        let output = running.output(Mark::default()).await;
        if (output.stdout.total, output.stderr.total) == (4, 4) {
            assert_eq!((output.stdout.text().as_str(), output.stderr.text().as_str()), ("one\n", "err\n"));
            break;
        }
        assert!(began.elapsed() < WATCHDOG, "{output:?}");
        tokio::task::yield_now().await;
    }
    assert_eq!(running.end(), None);
    std::fs::write(&go, "\n").unwrap();
    assert_eq!(ended(&*running).await, End::Exited(4));
    assert_eq!(running.end(), Some(End::Exited(4)));
    let rest = running.output(Mark { stdout: 4, stderr: 4 }).await;
    assert_eq!((rest.stdout.text().as_str(), rest.stderr.total), ("two\n", 0));
    until("nothing is registered", || processes.running() == 0).await;
}

#[tokio::test]
async fn what_cannot_start_is_an_error() {
    let processes = LocalProcesses::new();
    let mut spec = sh("true");
    spec.cwd = "/nonesuch".into();
    let fault = processes.start(spec, Lasts::Leader).await.err().unwrap();
    assert!(matches!(fault, StartProblem::Folder { .. }), "{fault}");
    processes.shut_down(Duration::from_millis(100)).await;
    assert!(matches!(processes.start(sh("true"), Lasts::Leader).await.err(), Some(StartProblem::System { .. })));
}

#[tokio::test]
async fn r_430_stopping_takes_a_group_that_ignores_term_and_a_dropped_handle_does_too() {
    let folder = tempfile::tempdir().unwrap();
    for lasts in [Lasts::Leader, Lasts::Group] {
        for dropped in [false, true] {
            let file = folder.path().join(format!("{lasts:?} {dropped}"));
            let processes = LocalProcesses::new();
            let line = format!(
                "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >\"{0}\"; while :; do sleep 1; done' & wait; wait",
                file.display()
            );
            let running = processes.start(sh(&line), lasts).await.unwrap();
            until("the child runs", || runs(&file)).await;
            if dropped {
                drop(running);
                until("it is dead", || !runs(&file)).await;
            } else {
                running.stop();
                running.stop();
                assert_eq!(ended(&*running).await, End::Cancelled);
                assert!(!runs(&file));
            }
            until("nothing is registered", || processes.running() == 0).await;
        }
    }
}

#[tokio::test]
async fn r_436_what_a_started_process_leaves_running_dies_with_the_provider() {
    let folder = tempfile::tempdir().unwrap();
    for politely in [true, false] {
        let file = folder.path().join(politely.to_string());
        let processes = LocalProcesses::new();
        let line = format!("sh -c 'trap \"\" TERM; echo $$ >{}; while :; do sleep 1; done' & exit 0", file.display());
        let running = processes.start(sh(&line), Lasts::Leader).await.unwrap();
        assert_eq!(ended(&*running).await, End::Exited(0), "the process itself is over");
        drop(running);
        until("the child runs", || runs(&file)).await;
        assert_eq!(processes.running(), 1, "it is still owned");
        if politely {
            processes.shut_down(Duration::from_millis(100)).await;
            assert!(!runs(&file));
        } else {
            drop(processes);
            until("it is dead", || !runs(&file)).await;
        }
    }
}

#[tokio::test]
async fn a_group_that_empties_by_itself_is_let_go() {
    let processes = LocalProcesses::new();
    let running = processes.start(sh("sleep 0.2 & exit 7"), Lasts::Group).await.unwrap();
    assert_eq!(ended(&*running).await, End::Exited(7), "the end is the process's own");
    until("nothing is registered", || processes.running() == 0).await;
}

#[tokio::test]
async fn r_434_a_deadline_counts_also_when_only_a_child_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut spec = sh(&format!("sleep 600 & echo $! >{}; exit 0", file.display()));
    spec.deadline = Some(Duration::from_secs(1));
    let processes = LocalProcesses::new();
    let running = processes.start(spec, Lasts::Group).await.unwrap();
    assert_eq!(ended(&*running).await, End::TimedOut);
    assert!(!runs(&file));
}

#[tokio::test]
async fn r_433_only_output_over_the_cap_makes_a_file_and_that_has_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path().join("new")).map(|entries| entries.count()).unwrap_or(0);
    let processes = LocalProcesses::new();
    let place = folder.path().join("new");
    let fits = stdout_to_the_end(&processes, kept_in(&place, "yes x | head -c 2000", 1 << 20)).await;
    assert_eq!((fits.total, fits.head.len(), fits.saved, files()), (2000, 2000, None, 0));

    let over = stdout_to_the_end(&processes, kept_in(&place, "yes x | head -c 1999; printf END", 1 << 20)).await;
    assert_eq!((over.total, over.head.len(), over.tail.len(), files()), (2002, 1000, 1000, 1));
    let Some(Saved::Whole(path)) = &over.saved else { panic!("{over:?}") };
    let whole = std::fs::read(path).unwrap();
    assert_eq!((whole.len(), whole.ends_with(b"xEND")), (2002, true));
    assert!(over.text().contains(&path.display().to_string()));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(path), mode(&place)), (0o600, 0o700));
}

#[tokio::test]
async fn r_433_a_file_takes_no_more_than_its_limit_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let processes = LocalProcesses::new();
    for (bytes, whole) in [(5_000_000u64, true), (5_000_001, false)] {
        let line = format!("yes abcdefg | head -c {bytes}");
        let output = stdout_to_the_end(&processes, kept_in(folder.path(), &line, 5_000_000)).await;
        assert_eq!(output.total, bytes);
        let path = output.saved.as_ref().unwrap().path().unwrap().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 5_000_000);
        let expected =
            if whole { Saved::Whole(path.clone()) } else { Saved::Beginning { path: path.clone(), bytes: 5_000_000 } };
        assert_eq!(output.saved, Some(expected));
        let said = if whole { "the whole output is in" } else { "the first 5000000 bytes of the output are in" };
        assert!(output.text().contains(said), "{}", output.note().unwrap());
    }
}

#[tokio::test]
async fn r_474_a_file_that_cannot_be_made_costs_nothing_but_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let processes = LocalProcesses::new();
    let output = stdout_to_the_end(&processes, kept_in(&blocked, "yes x | head -c 9000; printf END", 1 << 20)).await;
    assert_eq!((output.total, output.head.len(), output.tail.len()), (9003, 1000, 1000));
    assert!(matches!(output.saved, Some(Saved::Failed { .. })), "{:?}", output.saved);
    assert!(output.note().unwrap().contains("could not be saved"));
}

#[tokio::test]
async fn the_middle_of_a_long_output_is_read_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let processes = LocalProcesses::new();
    let line = "i=10000; while [ $i -lt 12000 ]; do echo $i; i=$((i+1)); done";
    let running = processes.start(kept_in(folder.path(), line, 1 << 20), Lasts::Leader).await.unwrap();
    ended(&*running).await;
    let middle = running.output(Mark { stdout: 6000, stderr: 0 }).await.stdout;
    assert_eq!((middle.total, middle.head.len(), middle.tail.len()), (6000, 1000, 1000));
    assert!(middle.head.starts_with(b"11000\n11001\n") && middle.tail.ends_with(b"\n11999\n"));
    let near = running.output(Mark { stdout: 10_500, stderr: 0 }).await.stdout;
    assert!(!near.is_truncated(), "head and tail meet: {near:?}");
    assert_eq!((near.total, near.tail.len()), (1500, 0));
    assert!(near.head.starts_with(b"11750\n") && near.head.ends_with(b"11999\n"));
}
