//! The child that a run waits for: the program itself, or the warden that keeps it.
//!
//! How a run ended is asked here and nowhere else. The invariant: what a program did and what became of its warden are
//! told apart; a warden that says nothing never passes for a program that ended well.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;

use rustix::process::Pid;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::process::{End, Owner, ProcessSpec, StartProblem};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::group::Kind;
use super::lookup::{self, Launch, Prepared};
use super::spawn::{self, Input, Role};
use crate::off_thread;
use crate::warden::channel::{Orders, Report};

/// A started child.
pub(super) struct Leader {
    child: Child,
    ward: Option<Ward>,
}

/// What a warden keeps for us.
struct Ward {
    reports: Lines<BufReader<UnixStream>>,
    launch: Arc<Launch>,
}

/// Starts what is wanted; what the model proposed, under the warden if there is one.
pub(super) async fn start(
    spec: ProcessSpec,
    input: Input,
    warden: Option<&Arc<PathBuf>>,
) -> Result<Leader, StartProblem> {
    let (warden, confinement) = match (&spec.owner, warden) {
        (Owner::User, _) => (None, None),
        (Owner::Model(confinement), None) if confinement.policy.must_confine() => {
            let why = "commands cannot be confined in this program: it has no warden".to_owned();
            return Err(StartProblem::SandboxUnavailable { why });
        }
        (Owner::Model(confinement), warden) => (warden.map(Arc::clone), Some(confinement.clone())),
    };
    let name = lookup::given_name(&spec.program);
    let lost = || StartProblem::System { program: name.clone(), why: "its start was interrupted".to_owned() };
    let cwd = spec.cwd.clone();
    let grace_ms = u64::try_from(spec.grace.as_millis()).unwrap_or(u64::MAX);
    let prepared = off_thread::run(&Cancel::new(), move |_| lookup::prepare(&spec)).await.map_err(|_| lost())??;
    let Prepared { launch, env } = prepared;
    let (Some(warden), Some(confinement)) = (warden, confinement) else {
        return match spawn::spawn(&launch, &cwd, &env, input, Role::Program).await {
            Ok(child) => Ok(Leader { child, ward: None }),
            Err(fault) => Err(explained(Arc::new(launch), Some(cwd), fault).await),
        };
    };
    let system = |fault: io::Error| StartProblem::System {
        program: name.clone(),
        why: format!("its warden could not be started: {}", lookup::words(&fault)),
    };
    let orders = Orders {
        path: launch.path.clone(),
        name: launch.name.clone(),
        args: launch.args.clone(),
        confinement,
        grace_ms,
    };
    let (socket, theirs) = pair().map_err(system)?;
    let args = vec![crate::warden::WORD.to_owned(), std::os::fd::AsRawFd::as_raw_fd(&theirs).to_string()];
    let own = Launch { path: warden.to_path_buf(), name: "sluice".into(), args };
    let child = spawn::spawn(&own, &cwd, &env, input, Role::Warden(&theirs)).await.map_err(system)?;
    drop(theirs);
    // Dropped before the end of this, the socket tells the warden to go without having started anything.
    let mut socket = BufReader::new(socket);
    let mut line = serde_json::to_string(&orders).map_err(|fault| system(fault.into()))?;
    line.push('\n');
    // A warden that does not listen has ended, which is seen where its reports are read.
    let _ = socket.write_all(line.as_bytes()).await;
    Ok(Leader { child, ward: Some(Ward { reports: socket.lines(), launch: Arc::new(launch) }) })
}

fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

async fn explained(launch: Arc<Launch>, cwd: Option<PathBuf>, fault: io::Error) -> StartProblem {
    let program = launch.name.to_string_lossy().into_owned();
    off_thread::run(&Cancel::new(), move |_| lookup::explain(&launch, cwd.as_deref(), &fault))
        .await
        .unwrap_or_else(|_| StartProblem::System { program, why: "its start was interrupted".to_owned() })
}

impl Leader {
    /// How it is killed.
    pub(super) fn kind(&self) -> Kind {
        if self.ward.is_some() { Kind::Warded } else { Kind::Plain }
    }

    /// The group that it leads.
    pub(super) fn group(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }

    /// Our ends of its three streams, once.
    pub(super) fn streams(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits until the program has ended by itself; `None` when that can no longer be known. Cancel-safe.
    pub(super) async fn over(&mut self) -> Option<End> {
        let Some(ward) = &mut self.ward else {
            // Only a wait that somebody else stole can fail.
            return self.child.wait().await.ok().map(end_of);
        };
        let report = match ward.reports.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).ok(),
            Ok(None) | Err(_) => None,
        };
        match report {
            Some(Report::Exited { code }) => Some(End::Exited(code)),
            Some(Report::Signalled { signal }) => Some(End::Signalled(signal)),
            Some(Report::NotStarted { errno }) => {
                let fault = io::Error::from_raw_os_error(errno);
                Some(End::NotStarted(explained(Arc::clone(&ward.launch), None, fault).await))
            }
            Some(Report::Unconfined { why }) => Some(End::NotStarted(StartProblem::SandboxUnavailable { why })),
            None => {
                let status = self.child.wait().await.ok()?;
                let program = ward.launch.name.to_string_lossy().into_owned();
                let why = format!("its warden ended early ({status})");
                Some(match status.signal() {
                    // Whoever kills the warden kills the command.
                    Some(signal) => End::Signalled(signal),
                    None => End::NotStarted(StartProblem::System { program, why }),
                })
            }
        }
    }

    /// Waits until the child is collected; a warden goes last of all that it keeps. Cancel-safe.
    pub(super) async fn gone(&mut self) {
        let _ = self.child.wait().await;
    }

    /// Whether the child is collected already.
    pub(super) fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        // A status that is neither cannot come from a finished wait; -1 is no exit code of any program.
        (None, None) => End::Exited(-1),
    }
}
