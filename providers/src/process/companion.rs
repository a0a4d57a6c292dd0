//! A child that lives beside the session and is spoken to, such as a server on standard streams.
//!
//! It is nobody's proposal and so not confined, but it runs under the warden, if there is one: it dies with the provider,
//! and with the program however that ends. Dropping [`Life`] ends it too (TERM, grace, KILL). Unlike a command, a
//! companion leaves nobody behind: what it has started and left running when it ends by itself is killed, for nobody
//! would ever speak to it again. Its stderr is read to the end whatever happens, each line into the
//! diagnostics, the last of it kept for error messages.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::process::{Confinement, End, Environment, Keep, Owner, ProcessSpec, Program, StartProblem};
use sluice_harness::seam::sandbox::SandboxPolicy;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;

use super::group::{self, Job, Kind, Leash};
use super::leader::{self, Leader};
use super::spawn::Input;
use super::{LocalProcesses, supervise};
use crate::secret::Secret;

/// How much of the end of stderr is kept.
const TAIL: usize = 2048;
/// A longer line is cut in the diagnostics.
const LINE: usize = 4096;
/// How long the last of stderr is waited for once the process is over.
const DRAIN: Duration = Duration::from_millis(150);

/// What to start.
pub(crate) struct CompanionSpec {
    /// How its lines are marked in the diagnostics.
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// Must exist.
    pub(crate) cwd: PathBuf,
    pub(crate) environment: Environment,
    /// How long after TERM the group is killed.
    pub(crate) grace: Duration,
    /// Texts that are taken out of what it prints.
    pub(crate) secrets: Vec<Secret>,
}

/// A running companion: its streams, and its life.
pub(crate) struct Companion {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) life: Life,
}

/// The hold on a companion; dropping it ends the process.
pub(crate) struct Life {
    end: watch::Receiver<Option<End>>,
    stop: Cancel,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    secrets: Vec<Secret>,
}

impl Life {
    /// Waits until it is over. Cancel-safe.
    pub(crate) async fn ended(&self) -> End {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(End::Cancelled),
            // Its supervisor went away with the provider, which kills.
            Err(_) => End::Cancelled,
        }
    }

    /// Ends it and waits until it is gone.
    pub(crate) async fn stop(&self) {
        self.stop.cancel(CancelCause::Disposed);
        self.ended().await;
    }

    /// The last lines of its stderr, on one line.
    pub(crate) fn last_words(&self) -> String {
        let bytes: Vec<u8> = lock(&self.stderr).iter().copied().collect();
        let text = cleaned(&String::from_utf8_lossy(&bytes), &self.secrets);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default();
        last.join(" / ")
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.stop.cancel(CancelCause::Disposed);
    }
}

fn lock(tail: &Mutex<VecDeque<u8>>) -> std::sync::MutexGuard<'_, VecDeque<u8>> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Without secrets and control characters.
fn cleaned(text: &str, secrets: &[Secret]) -> String {
    let text = secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text));
    text.chars().filter(|c| !c.is_control() || *c == '\n').collect()
}

impl LocalProcesses {
    /// Starts a companion. Dropping the future before it is ready leaves nothing behind.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) async fn open(&self, spec: CompanionSpec) -> Result<Companion, StartProblem> {
        let CompanionSpec { name, program, args, cwd, environment, grace, secrets } = spec;
        let lost = |why: &str| StartProblem::System { program: program.clone(), why: why.to_owned() };
        let job = self.registry.enter();
        if job.closed().is_cancelled() {
            return Err(lost("the program is shutting down"));
        }
        let launch = ProcessSpec {
            program: Program::Direct { program: program.clone(), args },
            // The warden's keeping is what is wanted of it.
            owner: Owner::Model(Confinement { policy: SandboxPolicy::off(), files: Vec::new() }),
            cwd,
            environment,
            stdin: Vec::new(),
            deadline: None,
            grace,
            keep: Keep::Head(0),
        };
        let mut leader = leader::start(launch, Input::Fed, self.warden.as_ref()).await?;
        let (stdin, stdout, stderr) = leader.streams();
        let (Some(group), Some(stdin), Some(stdout)) = (leader.group(), stdin, stdout) else {
            return Err(lost("the system gave it no process id or no pipes"));
        };
        // Before the first await, so that no moment exists in which the group is nobody's.
        let leash = job.hold(group, leader.kind());
        let (pipe, kept) = (stderr, Arc::default());
        let stderr = Stderr { name, pipe, kept, secrets: secrets.clone(), line: Vec::new() };
        let kept = Arc::clone(&stderr.kept);
        let stop = Cancel::new();
        let (tell, end) = watch::channel(None);
        let life = Life { end, stop: stop.clone(), stderr: kept, secrets };
        let running = Running { leader, group, leash, grace, stderr };
        self.supervise(async move {
            let end = running.live(&stop, &job).await;
            drop(job);
            let _ = tell.send(Some(end));
        });
        Ok(Companion { stdin, stdout, life })
    }
}

struct Running {
    leader: Leader,
    group: Pid,
    leash: Leash,
    grace: Duration,
    stderr: Stderr,
}

impl Running {
    async fn live(self, stop: &Cancel, job: &Job) -> End {
        let Self { mut leader, group, leash, grace, mut stderr } = self;
        let by_itself = tokio::select! {
            biased;
            end = leader.over() => end,
            _ = stop.cancelled() => None,
            _ = job.closed().cancelled() => None,
            never = stderr.pump_for_ever() => match never {},
        };
        let end = match by_itself {
            Some(end) => {
                if leader.kind() == Kind::Plain {
                    group::signal(group, Signal::KILL);
                } else {
                    tokio::select! {
                        biased;
                        () = supervise::kill(&mut leader, group) => {}
                        never = stderr.pump_for_ever() => match never {},
                    }
                }
                end
            }
            None => {
                tokio::select! {
                    biased;
                    () = supervise::end(&mut leader, group, job.grace(grace)) => {}
                    never = stderr.pump_for_ever() => match never {},
                }
                End::Cancelled
            }
        };
        // A group that outlived its KILL stays leashed: the drop sends it once more.
        if group::is_alive(group) {
            drop(leash);
        } else {
            leash.release();
        }
        let _ = tokio::time::timeout(DRAIN, stderr.pump()).await;
        end
    }
}

/// The stderr of a companion, on its way into the diagnostics.
struct Stderr {
    name: String,
    pipe: Option<ChildStderr>,
    kept: Arc<Mutex<VecDeque<u8>>>,
    secrets: Vec<Secret>,
    /// The line that is not over yet.
    line: Vec<u8>,
}

impl Stderr {
    /// Reads to the end. Cancel-safe.
    async fn pump(&mut self) {
        let mut buffer = vec![0; LINE];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer).await {
                Ok(0) | Err(_) => self.pipe = None,
                Ok(n) => {
                    let bytes = buffer.get(..n).unwrap_or_default();
                    self.keep(bytes);
                    for byte in bytes {
                        if *byte == b'\n' {
                            self.log();
                        } else if self.line.len() < LINE {
                            self.line.push(*byte);
                        }
                    }
                }
            }
        }
        self.log();
    }

    async fn pump_for_ever(&mut self) -> std::convert::Infallible {
        self.pump().await;
        std::future::pending().await
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = lock(&self.kept);
        kept.extend(bytes);
        let over = kept.len().saturating_sub(TAIL);
        kept.drain(..over);
    }

    fn log(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        let text = cleaned(&String::from_utf8_lossy(&line), &self.secrets);
        tracing::info!(server = self.name, "stderr: {text}");
    }
}
