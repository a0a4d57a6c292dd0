//! The life of one child: start, pump its pipes, notice the end or bring it about, drain, collect.
//!
//! The invariant: the run is over when the *process* is over; who still holds a pipe cannot delay it beyond
//! [`DRAIN`], and who ignores TERM cannot delay it beyond the grace and [`GONE`].

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::process::{Capture, End, ProcessSpec, RunOutput, StartProblem};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::group::{self, Job};
use super::lookup;
use super::spawn::{self, Input};
use super::stream::Stream;
use crate::off_thread;

/// How long output that is still in the pipes is waited for once the process is over.
const DRAIN: Duration = Duration::from_millis(150);
/// How long a group that got KILL is waited for; only a process stuck in the kernel needs more.
const GONE: Duration = Duration::from_secs(2);
/// How often a dying group is looked at; there is no event for the death of a stranger's child.
const LOOK: Duration = Duration::from_millis(10);
/// Deadlines from here on are no deadlines (a year; the timer's range is not much larger).
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Runs the program and reports. Dropping this future kills the group.
pub(super) async fn run(mut spec: ProcessSpec, stop: Cancel, started: Instant, job: &Job) -> RunOutput {
    let nothing = |end: End| RunOutput {
        end,
        stdout: Capture::default(),
        stderr: Capture::default(),
        took: started.elapsed(),
        pipe_still_held: false,
    };
    if stop.is_cancelled() || job.closed().is_cancelled() {
        return nothing(End::Cancelled);
    }
    let payload = std::mem::take(&mut spec.stdin);
    let keep = spec.keep;
    let (deadline, grace) = (spec.deadline, spec.grace);
    let child = match start(spec, if payload.is_empty() { Input::Closed } else { Input::Fed }).await {
        Ok(child) => child,
        Err(problem) => return nothing(End::NotStarted(problem)),
    };
    let Some(group) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
        let why = "the system gave it no process id".to_owned();
        return nothing(End::NotStarted(StartProblem::System { program: String::new(), why }));
    };
    // Before the first await, so that no moment exists in which the group is nobody's.
    let leash = job.hold(group);
    let mut pipes = Pipes::of(child, payload, keep);
    let end = match pipes.until_over(&stop, job.closed(), deadline, started).await {
        Over::ByItself(status) => {
            leash.release();
            end_of(status)
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
    let pipe_still_held = pipes.out.is_open() || pipes.err.is_open();
    RunOutput { end, stdout: pipes.out.finish(), stderr: pipes.err.finish(), took: started.elapsed(), pipe_still_held }
}

async fn start(spec: ProcessSpec, input: Input) -> Result<Child, StartProblem> {
    let name = lookup::given_name(&spec.program);
    let lost = || StartProblem::System { program: name.clone(), why: "its start was interrupted".to_owned() };
    let cwd = spec.cwd.clone();
    let prepared = off_thread::run(&Cancel::new(), move |_| lookup::prepare(&spec)).await.map_err(|_| lost())??;
    match spawn::spawn(&prepared.launch, &cwd, &prepared.env, input).await {
        Ok(child) => Ok(child),
        Err(fault) => Err(off_thread::run(&Cancel::new(), move |_| lookup::explain(&prepared.launch, &fault))
            .await
            .unwrap_or_else(|_| lost())),
    }
}

enum Over {
    ByItself(ExitStatus),
    Stopped(End),
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        // A status that is neither cannot come from a finished wait; -1 is no exit code of any program.
        (None, None) => End::Exited(-1),
    }
}

/// The child and its three pipes.
struct Pipes {
    child: Child,
    input: Feed,
    out: Stream<ChildStdout>,
    err: Stream<ChildStderr>,
}

impl Pipes {
    fn of(mut child: Child, payload: Vec<u8>, keep: sluice_harness::seam::process::Keep) -> Self {
        let input = Feed { pipe: child.stdin.take(), payload, sent: 0 };
        let out = Stream::new(child.stdout.take(), keep);
        let err = Stream::new(child.stderr.take(), keep);
        Self { child, input, out, err }
    }

    /// Pumps until the process ends by itself or is to be stopped.
    async fn until_over(
        &mut self,
        stop: &Cancel,
        closed: &Cancel,
        deadline: Option<Duration>,
        started: Instant,
    ) -> Over {
        let Self { child, input, out, err } = self;
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
            status = child.wait() => match status {
                Ok(status) => Over::ByItself(status),
                // Only a wait that somebody else stole can fail; the group is then ended like any stray.
                Err(_) => Over::Stopped(End::Cancelled),
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
        let Self { child, input, out, err } = self;
        // A program that waits for the end of its input has it now.
        input.pipe = None;
        let pump = async {
            tokio::join!(out.pump(), err.pump());
            std::future::pending::<()>().await;
        };
        let end = async {
            group::signal(group, Signal::TERM);
            // A stopped process gets TERM only once it is told to continue.
            group::signal(group, Signal::CONT);
            if tokio::time::timeout(grace, gone(child, group)).await.is_err() {
                group::signal(group, Signal::KILL);
                if tokio::time::timeout(GONE, gone(child, group)).await.is_err() {
                    tracing::warn!(group = group.as_raw_nonzero().get(), "a killed process group did not go away");
                }
            }
        };
        tokio::select! {
            biased;
            () = end => {}
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
async fn gone(child: &mut Child, group: Pid) {
    let _ = child.wait().await;
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
