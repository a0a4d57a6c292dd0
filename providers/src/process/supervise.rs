//! The life of one child: start, pump its pipes, notice the end or bring it about, drain, collect.
//!
//! The invariant: the run is over when the *process* is over; who still holds a pipe cannot delay it beyond
//! [`DRAIN`], and who ignores TERM cannot delay it beyond the grace and [`GONE`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::process::{Capture, End, ProcessSpec, RunOutput, StartProblem};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::group::{self, Job, Kind, Leash};
use super::leader::{self, Leader};
use super::spawn::Input;
use super::stream::Stream;

/// How long output that is still in the pipes is waited for once the process is over.
const DRAIN: Duration = Duration::from_millis(150);
/// How long a group that got KILL is waited for; only a process stuck in the kernel needs more.
const GONE: Duration = Duration::from_secs(2);
/// How often a dying group is looked at; there is no event for the death of a stranger's child.
const LOOK: Duration = Duration::from_millis(10);
/// Deadlines from here on are no deadlines (a year; the timer's range is not much larger).
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Runs the program and reports, and hands over what it left running. Dropping this future kills the group.
pub(super) async fn run(
    mut spec: ProcessSpec,
    stop: Cancel,
    started: Instant,
    job: &Job,
    warden: Option<&Arc<PathBuf>>,
) -> (RunOutput, Option<Leftover>) {
    let nothing = |end: End| {
        let output = RunOutput {
            end,
            stdout: Capture::default(),
            stderr: Capture::default(),
            took: started.elapsed(),
            pipe_still_held: false,
        };
        (output, None)
    };
    if stop.is_cancelled() || job.closed().is_cancelled() {
        return nothing(End::Cancelled);
    }
    let payload = std::mem::take(&mut spec.stdin);
    let keep = spec.keep;
    let (deadline, grace) = (spec.deadline, spec.grace);
    let input = if payload.is_empty() { Input::Closed } else { Input::Fed };
    let leader = match leader::start(spec, input, warden).await {
        Ok(leader) => leader,
        Err(problem) => return nothing(End::NotStarted(problem)),
    };
    let Some(group) = leader.group() else {
        let why = "the system gave it no process id".to_owned();
        return nothing(End::NotStarted(StartProblem::System { program: String::new(), why }));
    };
    // Before the next await, so that no moment exists in which the group is nobody's.
    let leash = job.hold(group, leader.kind());
    let mut pipes = Pipes::of(leader, payload, keep);
    let mut held = None;
    let end = match pipes.until_over(&stop, job.closed(), deadline, started).await {
        Over::ByItself(end) => {
            match pipes.leader.kind() {
                Kind::Plain => leash.release(),
                Kind::Warded => held = Some(leash),
            }
            end
        }
        Over::Stopped(end) => {
            pipes.kill(group, job.grace(grace)).await;
            // A group that outlived its KILL stays leashed: the drop sends it once more.
            if group::is_alive(group) {
                drop(leash)
            } else {
                leash.release()
            }
            end
        }
    };
    let _ = tokio::time::timeout(DRAIN, pipes.drain()).await;
    let Pipes { leader, out, err, .. } = pipes;
    let pipe_still_held = out.is_open() || err.is_open();
    let took = started.elapsed();
    let output = RunOutput { end, stdout: out.finish(), stderr: err.finish(), took, pipe_still_held };
    (output, held.and_then(|leash| Leftover::of(leader, leash, group, grace)))
}

/// What a command left running under its warden when it ended by itself.
pub(super) struct Leftover {
    leader: Leader,
    leash: Leash,
    group: Pid,
    grace: Duration,
}

impl Leftover {
    fn of(mut leader: Leader, leash: Leash, group: Pid, grace: Duration) -> Option<Self> {
        if leader.is_gone() {
            leash.release();
            return None;
        }
        Some(Self { leader, leash, group, grace })
    }

    /// Stays with it until it has ended by itself, or the provider ends.
    pub(super) async fn until_gone(mut self, job: &Job) {
        tokio::select! {
            biased;
            () = self.leader.gone() => {}
            _ = job.closed().cancelled() => end(&mut self.leader, self.group, job.grace(self.grace)).await,
        }
        if self.leader.is_gone() {
            self.leash.release();
        }
    }
}

/// TERM, grace, KILL to the whole group, and waits until it is gone.
pub(super) async fn end(leader: &mut Leader, group: Pid, grace: Duration) {
    group::signal(group, Signal::TERM);
    // A stopped process gets TERM only once it is told to continue.
    group::signal(group, Signal::CONT);
    if tokio::time::timeout(grace, gone(leader, group)).await.is_ok() {
        return;
    }
    group::signal(group, leader.kind().kill());
    if tokio::time::timeout(GONE, gone(leader, group)).await.is_ok() {
        return;
    }
    tracing::warn!(group = group.as_raw_nonzero().get(), "a killed process group did not go away");
    if leader.kind() == Kind::Warded {
        // It cannot do its work any more; the command itself goes with it.
        group::signal(group, Signal::KILL);
        let _ = tokio::time::timeout(GONE, gone(leader, group)).await;
    }
}

enum Over {
    ByItself(End),
    Stopped(End),
}

/// The child and its three pipes.
struct Pipes {
    leader: Leader,
    input: Feed,
    out: Stream<ChildStdout>,
    err: Stream<ChildStderr>,
}

impl Pipes {
    fn of(mut leader: Leader, payload: Vec<u8>, keep: sluice_harness::seam::process::Keep) -> Self {
        let (stdin, stdout, stderr) = leader.streams();
        let input = Feed { pipe: stdin, payload, sent: 0 };
        Self { leader, input, out: Stream::new(stdout, keep), err: Stream::new(stderr, keep) }
    }

    /// Pumps until the process ends by itself or is to be stopped.
    async fn until_over(
        &mut self,
        stop: &Cancel,
        closed: &Cancel,
        deadline: Option<Duration>,
        started: Instant,
    ) -> Over {
        let Self { leader, input, out, err } = self;
        let deadline = async {
            match deadline.filter(|d| *d < FOREVER) {
                Some(limit) => tokio::time::sleep(limit.saturating_sub(started.elapsed())).await,
                None => std::future::pending().await,
            }
        };
        let pump = async {
            tokio::join!(input.pump(), out.pump(), err.pump());
            std::future::pending::<Over>().await
        };
        tokio::select! {
            biased;
            end = leader.over() => match end {
                Some(end) => Over::ByItself(end),
                // The group is then ended like any stray.
                None => Over::Stopped(End::Cancelled),
            },
            _ = stop.cancelled() => Over::Stopped(End::Cancelled),
            _ = closed.cancelled() => Over::Stopped(End::Cancelled),
            () = deadline => Over::Stopped(End::TimedOut),
            never = pump => never,
        }
    }

    /// TERM, grace, KILL to the whole group, and waits until it is gone; goes on reading, so that what a handler for
    /// TERM prints is kept and a full pipe cannot keep anybody from dying.
    async fn kill(&mut self, group: Pid, grace: Duration) {
        let Self { leader, input, out, err } = self;
        // A program that waits for the end of its input has it now.
        input.pipe = None;
        let pump = async {
            tokio::join!(out.pump(), err.pump());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = end(leader, group, grace) => {}
            () = pump => {}
        }
    }

    /// Reads what is left in the pipes.
    async fn drain(&mut self) {
        self.input.pipe = None;
        tokio::join!(self.out.pump(), self.err.pump());
    }
}

/// Waits until the leader is collected and nobody of its group runs. Cancel-safe.
async fn gone(leader: &mut Leader, group: Pid) {
    leader.gone().await;
    while group::is_alive(group) {
        tokio::time::sleep(LOOK).await;
    }
}

/// The payload on its way into the child.
struct Feed {
    pipe: Option<ChildStdin>,
    payload: Vec<u8>,
    sent: usize,
}

impl Feed {
    /// Writes the payload and closes the pipe. A reader that went away is no error: exit code and output alone count.
    async fn pump(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            match self.payload.get(self.sent..).filter(|rest| !rest.is_empty()) {
                None => self.pipe = None,
                Some(rest) => match pipe.write(rest).await {
                    Ok(n) if n > 0 => self.sent += n,
                    Ok(_) | Err(_) => self.pipe = None,
                },
            }
        }
        self.payload = Vec::new();
    }
}
