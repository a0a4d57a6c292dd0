//! The life of one child: start, pump its pipes, notice the end or bring it about, drain, collect. What one does with
//! such a life is in [`run`] and in [`background`](super::background).
//!
//! The invariant: the run is over when the *process* is over; who still holds a pipe cannot delay it beyond
//! [`DRAIN`], and who ignores TERM cannot delay it beyond the grace and [`GONE`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::process::{End, Keep, ProcessSpec, RunOutput, StartProblem};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::group::{self, Job, Kind, Leash};
use super::leader::{self, Leader};
use super::spawn::Input;
use super::spill::SpillFile;
use super::stream::{Stream, Tap};

/// How long output that is still in the pipes is waited for once the process is over.
const DRAIN: Duration = Duration::from_millis(150);
/// How long a group that got KILL is waited for; only a process stuck in the kernel needs more.
const GONE: Duration = Duration::from_secs(2);
/// How often a dying group is looked at; there is no event for the death of a stranger's child.
const LOOK: Duration = Duration::from_millis(10);
/// The same for a group that may live as long as it likes.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// Deadlines from here on are no deadlines (a year; the timer's range is not much larger).
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Runs the program and reports, and hands over what it left running. Dropping this future kills the group.
pub(super) async fn run<'a>(
    spec: ProcessSpec,
    stop: Cancel,
    started: Instant,
    job: &'a Job,
    warden: Option<&Arc<PathBuf>>,
) -> (RunOutput, Option<Life<'a>>) {
    let taps = Taps::new(&spec.keep);
    let (mut pipe_still_held, mut leftover) = (false, None);
    let end = match Life::begin(spec, &taps, &stop, started, job, warden).await {
        Err(end) => end,
        Ok(mut life) => {
            let end = match life.until_over(&stop).await {
                Over::ByItself(end) => {
                    if life.pipes.leader.kind() == Kind::Plain {
                        life.release();
                    }
                    end
                }
                Over::Stopped(end) => {
                    life.kill().await;
                    end
                }
            };
            pipe_still_held = life.settle().await;
            leftover = life.leftover();
            end
        }
    };
    let (stdout, stderr) = (taps.out.since(0).await, taps.err.since(0).await);
    (RunOutput { end, stdout, stderr, took: started.elapsed(), pipe_still_held }, leftover)
}

/// What is kept of a child's outputs.
#[derive(Clone)]
pub(super) struct Taps {
    pub(super) out: Tap,
    pub(super) err: Tap,
}

impl Taps {
    pub(super) fn new(keep: &Keep) -> Self {
        Self { out: Tap::new(keep), err: Tap::new(keep) }
    }
}

/// A child that was started, with its group on a leash.
pub(super) struct Life<'a> {
    pipes: Pipes,
    group: Pid,
    leash: Option<Leash>,
    job: &'a Job,
    started: Instant,
    deadline: Option<Duration>,
    grace: Duration,
}

impl<'a> Life<'a> {
    /// Starts the child; how it ended, where it did not start.
    pub(super) async fn begin(
        mut spec: ProcessSpec,
        taps: &Taps,
        stop: &Cancel,
        started: Instant,
        job: &'a Job,
        warden: Option<&Arc<PathBuf>>,
    ) -> Result<Self, End> {
        if stop.is_cancelled() || job.closed().is_cancelled() {
            return Err(End::Cancelled);
        }
        let payload = std::mem::take(&mut spec.stdin);
        let (keep, deadline, grace) = (spec.keep.clone(), spec.deadline.filter(|d| *d < FOREVER), spec.grace);
        let input = if payload.is_empty() { Input::Closed } else { Input::Fed };
        let leader = leader::start(spec, input, warden).await.map_err(End::NotStarted)?;
        let Some(group) = leader.group() else {
            let why = "the system gave it no process id".to_owned();
            return Err(End::NotStarted(StartProblem::System { program: String::new(), why }));
        };
        // Before the next await, so that no moment exists in which the group is nobody's.
        let leash = Some(job.hold(group, leader.kind()));
        Ok(Self { pipes: Pipes::of(leader, payload, taps, &keep), group, leash, job, started, deadline, grace })
    }

    /// Pumps until the process ends by itself or is to be stopped.
    pub(super) async fn until_over(&mut self, stop: &Cancel) -> Over {
        let limits = Limits { stop, closed: self.job.closed(), deadline: self.deadline, started: self.started };
        self.pipes.until_over(limits).await
    }

    /// After the process ended by itself: pumps until nothing that it left runs; the end that was ordered meanwhile.
    pub(super) async fn until_deserted(&mut self, stop: &Cancel) -> Option<End> {
        let limits = Limits { stop, closed: self.job.closed(), deadline: self.deadline, started: self.started };
        let Self { pipes: Pipes { leader, out, err, .. }, group, .. } = self;
        let pump = async {
            tokio::join!(out.pump(), err.pump());
            std::future::pending::<Option<End>>().await
        };
        tokio::select! {
            biased;
            () = gone(leader, *group, LONGEST_LOOK) => None,
            end = limits.reached() => Some(end),
            never = pump => never,
        }
    }

    /// TERM, grace, KILL to the whole group; it is gone then.
    pub(super) async fn kill(&mut self) {
        self.pipes.kill(self.group, self.job.grace(self.grace)).await;
        if group::is_alive(self.group) {
            // One that outlived its KILL gets it once more.
            self.leash = None;
        } else {
            self.release();
        }
    }

    /// Lets go of whatever the process left running.
    fn release(&mut self) {
        if let Some(leash) = self.leash.take() {
            leash.release();
        }
    }

    /// Takes what is left in the pipes and closes them; true when somebody still holds one.
    pub(super) async fn settle(&mut self) -> bool {
        let _ = tokio::time::timeout(DRAIN, self.pipes.drain()).await;
        let held = self.pipes.out.is_open() || self.pipes.err.is_open();
        tokio::join!(self.pipes.out.close(), self.pipes.err.close());
        held
    }

    /// What the process left running, where it is still held.
    pub(super) fn leftover(mut self) -> Option<Self> {
        if self.pipes.leader.is_gone() && !group::is_alive(self.group) {
            self.release();
        }
        self.leash.is_some().then_some(self)
    }

    /// Stays with what was left until it has ended by itself, or the provider ends.
    pub(super) async fn until_gone(mut self) {
        let Self { pipes, group, job, grace, .. } = &mut self;
        tokio::select! {
            biased;
            () = gone(&mut pipes.leader, *group, LONGEST_LOOK) => {}
            _ = job.closed().cancelled() => end(&mut pipes.leader, *group, job.grace(*grace)).await,
        }
        if self.pipes.leader.is_gone() && !group::is_alive(self.group) {
            self.release();
        }
    }
}

/// What ends a child that does not end by itself.
struct Limits<'a> {
    stop: &'a Cancel,
    closed: &'a Cancel,
    deadline: Option<Duration>,
    started: Instant,
}

impl Limits<'_> {
    async fn reached(&self) -> End {
        let deadline = async {
            match self.deadline {
                Some(limit) => tokio::time::sleep(limit.saturating_sub(self.started.elapsed())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.stop.cancelled() => End::Cancelled,
            _ = self.closed.cancelled() => End::Cancelled,
            () = deadline => End::TimedOut,
        }
    }
}

/// TERM, grace, KILL to the whole group, and waits until it is gone.
pub(super) async fn end(leader: &mut Leader, group: Pid, grace: Duration) {
    group::signal(group, Signal::TERM);
    // A stopped process gets TERM only once it is told to continue.
    group::signal(group, Signal::CONT);
    if tokio::time::timeout(grace, gone(leader, group, LOOK)).await.is_ok() {
        return;
    }
    kill(leader, group).await;
}

/// KILL to the whole group, and waits until it is gone.
pub(super) async fn kill(leader: &mut Leader, group: Pid) {
    // The number of a child that is collected may be somebody else's by now, unless others hold the group.
    if leader.is_gone() && !group::is_alive(group) {
        return;
    }
    group::signal(group, leader.kind().kill());
    if tokio::time::timeout(GONE, gone(leader, group, LOOK)).await.is_ok() {
        return;
    }
    tracing::warn!(group = group.as_raw_nonzero().get(), "a killed process group did not go away");
    if leader.kind() == Kind::Warded {
        // It cannot do its work any more; the command itself goes with it.
        group::signal(group, Signal::KILL);
        let _ = tokio::time::timeout(GONE, gone(leader, group, LOOK)).await;
    }
}

/// How the process came to its end.
pub(super) enum Over {
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
    fn of(mut leader: Leader, payload: Vec<u8>, taps: &Taps, keep: &Keep) -> Self {
        let (stdin, stdout, stderr) = leader.streams();
        let input = Feed { pipe: stdin, payload, sent: 0 };
        let file = |name| match keep {
            Keep::AlsoInFile { spill, .. } => Some(SpillFile::new(spill.clone(), name)),
            Keep::Head(_) | Keep::HeadAndTail(_) => None,
        };
        let out = Stream::new(stdout, taps.out.clone(), file("stdout"));
        let err = Stream::new(stderr, taps.err.clone(), file("stderr"));
        Self { leader, input, out, err }
    }

    async fn until_over(&mut self, limits: Limits<'_>) -> Over {
        let Self { leader, input, out, err } = self;
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
            end = limits.reached() => Over::Stopped(end),
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

/// Waits until the leader is collected and nobody of its group runs; looks at least every so often. Cancel-safe.
async fn gone(leader: &mut Leader, group: Pid, longest: Duration) {
    leader.gone().await;
    let mut pause = LOOK;
    while group::is_alive(group) {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
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
