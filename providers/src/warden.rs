//! The warden: the program started once more, as the keeper of one command that the model proposed.
//!
//! It stands between sluice and the command, confines it ([`crate::sandbox`]), and is the reaper of every process that
//! descends from it, also of those that left its process group or session. What it is to start comes over a socket, and
//! how that ended goes back the same way, so that no exit code of the command can be mistaken for a failure of ours.
//! When the command has ended by itself and left something running, the warden stays with that.
//!
//! The invariant: when the warden is gone, so is everything it started. It ends on TERM (TERM to all, grace, KILL), on
//! QUIT (KILL at once), and when the other end of the socket closes, which is when sluice has gone, however it went.

pub(crate) mod channel;
mod sweep;
mod target;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, WaitOptions, WaitStatus};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use channel::{Orders, Report};

/// The first argument that makes the program a warden; the second is the number of the socket's descriptor.
pub const WORD: &str = "__warden";

/// How often what was killed is looked for again.
const AGAIN: Duration = Duration::from_millis(5);

/// Runs as a warden; `arguments` are those after [`WORD`]. Returns when nothing that it started is left.
#[must_use]
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let socket = arguments.next().and_then(|word| target::inherited_socket(word.to_str()?.parse().ok()?));
    let done = match socket {
        Some(socket) => keep(socket),
        None => Err(io::Error::other("not started by sluice")),
    };
    // Whoever started us learns of it by the silence of the socket.
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn keep(socket: OwnedFd) -> io::Result<()> {
    // One thread, so that forking is safe whatever the child does before it becomes the command.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stream = std::os::unix::net::UnixStream::from(socket);
        stream.set_nonblocking(true)?;
        let (read, write) = UnixStream::from_std(stream)?.into_split();
        let mut line = String::new();
        let mut read = BufReader::new(read);
        read.read_line(&mut line).await?;
        let orders: Orders = serde_json::from_str(&line)?;
        let mut watch = Watch::start(read, write)?;
        match target::start(&orders) {
            Ok(target) => {
                close_own_streams();
                watch.until_empty(target, orders.grace()).await
            }
            Err(report) => watch.say(&report).await,
        }
    })
}

/// The command alone holds the pipes; a warden that stays must not keep their readers waiting.
fn close_own_streams() {
    let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let _ = rustix::stdio::dup2_stdin(&null);
    let _ = rustix::stdio::dup2_stdout(&null);
    let _ = rustix::stdio::dup2_stderr(&null);
}

/// How far the end has come.
#[derive(Clone, Copy)]
enum Phase {
    /// Nobody asked for it.
    Running,
    /// All got TERM; at this moment they get KILL.
    Asked(Instant),
    /// Whoever is left gets KILL, again and again.
    Killing,
}

/// All that a warden waits for.
struct Watch {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
    child: Signal,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Watch {
    fn start(read: BufReader<OwnedReadHalf>, write: OwnedWriteHalf) -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        // A core of a proposed command would lie where nobody expects it.
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        Ok(Self {
            read,
            write,
            child: signal(SignalKind::child())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn say(&mut self, report: &Report) -> io::Result<()> {
        let mut line = serde_json::to_string(report)?;
        line.push('\n');
        self.write.write_all(line.as_bytes()).await
    }

    /// Reports the target's end when it comes, and returns when no descendant is left.
    async fn until_empty(&mut self, target: Pid, grace: Duration) -> io::Result<()> {
        let mut phase = Phase::Running;
        loop {
            let (ended, left) = collect(target);
            if let Some(report) = ended {
                // Nobody may be listening any more; then the socket says so too.
                let _ = self.say(&report).await;
            }
            if left == Left::Nobody {
                return Ok(());
            }
            if let Phase::Killing = phase {
                sweep::kill_all();
            }
            phase = self.next(phase, grace).await;
        }
    }

    /// Waits for the next thing to happen.
    async fn next(&mut self, phase: Phase, grace: Duration) -> Phase {
        let limit = match phase {
            Phase::Running => None,
            Phase::Asked(when) => Some(when),
            Phase::Killing => Some(Instant::now() + AGAIN),
        };
        let limit = async {
            match limit {
                Some(when) => tokio::time::sleep_until(when).await,
                None => std::future::pending().await,
            }
        };
        let mut word = [0; 16];
        let running = matches!(phase, Phase::Running);
        tokio::select! {
            biased;
            _ = self.quit.recv() => Phase::Killing,
            () = limit => Phase::Killing,
            _ = self.child.recv() => phase,
            _ = self.terminate.recv() => ask(phase, grace),
            _ = self.interrupt.recv() => ask(phase, grace),
            _ = self.hangup.recv() => ask(phase, grace),
            got = self.read.read(&mut word), if running => match got {
                // Nothing is ever said after the orders, so anything but the end is passed over.
                Ok(n) if n > 0 => phase,
                Ok(_) | Err(_) => ask(phase, grace),
            },
        }
    }
}

fn ask(phase: Phase, grace: Duration) -> Phase {
    match phase {
        Phase::Running => {
            sweep::ask_all();
            Phase::Asked(Instant::now() + grace)
        }
        Phase::Asked(_) | Phase::Killing => phase,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Somebody,
    Nobody,
}

/// Reaps whoever is dead, and tells whether anybody is left.
fn collect(target: Pid) -> (Option<Report>, Left) {
    let mut ended = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == target => ended = Some(end_of(status)),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return (ended, Left::Somebody),
            Err(_) => return (ended, Left::Nobody),
        }
    }
}

fn end_of(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited { code },
        (None, Some(signal)) => Report::Signalled { signal },
        // Only a stopped process is neither, and stops are not asked for.
        (None, None) => Report::Exited { code: -1 },
    }
}
