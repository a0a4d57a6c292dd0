//! Local processes: runs one program to its end, and owns its process group until then.
//!
//! Each run is supervised by a task of its own, so that a dropped run still ends politely. Program look-up lives in
//! [`lookup`], the one system call before `exec` in [`spawn`], signals to groups in [`group`], bounded capture of
//! output in [`stream`] and [`spill`], the life of one child in [`supervise`], and one that nobody waits for in
//! [`background`].
//!
//! The invariant: a group is registered from its start until its leader ended by itself or the group is gone, and
//! whatever is registered dies with the provider. What the leader of a [`run`](Processes::run) that ended by itself
//! left running is left alone when it is the user's, and stays with its warden, registered, when the model proposed it;
//! what a [`start`](Processes::start)ed one left stays registered in any case.

mod background;
#[cfg(feature = "mcp")]
pub(crate) mod companion;
mod group;
mod leader;
mod lookup;
mod spawn;
mod spill;
mod stream;
mod supervise;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sluice_harness::Fut;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::process::running::{Lasts, Running};
use sluice_harness::seam::process::{Capture, End, ProcessSpec, Processes, RunOutput, StartProblem};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use group::Registry;
pub(crate) use lookup::words;

/// Runs programs on this machine.
pub struct LocalProcesses {
    registry: Arc<Registry>,
    /// The supervisors, one a run; they end with the provider.
    supervisors: Mutex<JoinSet<()>>,
    /// The program that keeps what the model proposed.
    warden: Option<Arc<PathBuf>>,
}

impl LocalProcesses {
    /// A provider without running processes and without a warden: what the model proposes runs like the user's own
    /// code, and not at all where its policy is required.
    #[must_use]
    pub fn new() -> Self {
        Self::with(None)
    }

    /// The same with a warden for what the model proposes: a program that does as [`crate::warden::main`] when its first
    /// argument is [`crate::warden::WORD`]; absolute.
    #[must_use]
    pub fn warded_by(program: PathBuf) -> Self {
        Self::with(Some(Arc::new(program)))
    }

    fn with(warden: Option<Arc<PathBuf>>) -> Self {
        Self { registry: Arc::new(Registry::new()), supervisors: Mutex::default(), warden }
    }

    /// Kills every live group at once and lets no further program start. Synchronous and best effort, for a signal
    /// handler's last act; may be called again.
    pub fn kill_all(&self) {
        self.registry.close();
        self.registry.kill_all();
    }

    /// Ends every live group politely (TERM, `grace`, KILL), waits until all are gone, and lets no further program
    /// start.
    pub async fn shut_down(&self, grace: Duration) {
        self.registry.shorten_grace(grace);
        self.registry.close();
        self.registry.idle().await;
    }

    fn supervise(&self, run: impl Future<Output = ()> + Send + 'static) {
        let mut supervisors = self.supervisors.lock().unwrap_or_else(PoisonError::into_inner);
        while supervisors.try_join_next().is_some() {}
        supervisors.spawn(run);
    }

    /// How many runs are going on; what an ended one left with its warden counts too.
    #[must_use]
    pub fn running(&self) -> usize {
        self.registry.running()
    }

    /// Whether anything runs under a warden: a command that the model proposed, or what one left behind.
    #[must_use]
    pub fn keeps_for_the_model(&self) -> bool {
        self.registry.has_warded()
    }
}

impl Default for LocalProcesses {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for LocalProcesses {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// Tells the supervisor that nobody waits any more.
struct Abandon(Cancel);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.cancel(CancelCause::Disposed);
    }
}

impl Processes for LocalProcesses {
    fn run<'a>(&'a self, spec: ProcessSpec, cancel: &'a Cancel) -> Fut<'a, RunOutput> {
        Box::pin(async move {
            let started = Instant::now();
            let name = lookup::given_name(&spec.program);
            let stop = cancel.child();
            let abandon = Abandon(stop.clone());
            let (answer, outcome) = oneshot::channel();
            let job = self.registry.enter();
            let warden = self.warden.clone();
            self.supervise(async move {
                let (output, leftover) = supervise::run(spec, stop, started, &job, warden.as_ref()).await;
                if let Some(leftover) = leftover {
                    let _ = answer.send(output);
                    return leftover.until_gone().await;
                }
                drop(job);
                let _ = answer.send(output);
            });
            let output = outcome.await;
            drop(abandon);
            output.unwrap_or_else(|_| RunOutput {
                end: End::NotStarted(StartProblem::System {
                    program: name,
                    why: "its supervisor ended early (the program is shutting down)".to_owned(),
                }),
                stdout: Capture::default(),
                stderr: Capture::default(),
                took: started.elapsed(),
                pipe_still_held: false,
            })
        })
    }

    fn start<'a>(&'a self, spec: ProcessSpec, lasts: Lasts) -> Fut<'a, Result<Box<dyn Running>, StartProblem>> {
        Box::pin(async move {
            let name = lookup::given_name(&spec.program);
            let (handle, order) = background::order(spec, lasts);
            let (tell, told) = oneshot::channel();
            let (job, warden) = (self.registry.enter(), self.warden.clone());
            self.supervise(async move { order.run(tell, &job, warden.as_ref()).await });
            let ended_early = || StartProblem::System { program: name, why: "the program is shutting down".to_owned() };
            told.await.unwrap_or_else(|_| Err(ended_early()))?;
            Ok(Box::new(handle) as Box<dyn Running>)
        })
    }
}
