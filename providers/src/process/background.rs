//! A child that is not waited for: its supervisor, and the handle through which it is read and ended.
//!
//! The invariant: a handle that is dropped ends its child, and whatever the child leaves in its group stays owned until
//! it is gone, at the latest with the provider.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sluice_harness::Fut;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::process::running::{Lasts, Mark, Output, Running};
use sluice_harness::seam::process::{End, ProcessSpec, StartProblem};
use tokio::sync::{oneshot, watch};

use super::group::Job;
use super::lookup;
use super::supervise::{Life, Over, Taps};

/// What the supervisor is to do.
pub(super) struct Order {
    spec: ProcessSpec,
    lasts: Lasts,
    taps: Taps,
    stop: Cancel,
    end: watch::Sender<Option<End>>,
}

/// A child in the background.
pub(super) struct Handle {
    taps: Taps,
    stop: Cancel,
    end: watch::Receiver<Option<End>>,
}

/// The two ends of one child that is to be started.
pub(super) fn order(spec: ProcessSpec, lasts: Lasts) -> (Handle, Order) {
    let (taps, stop) = (Taps::new(&spec.keep), Cancel::new());
    let (end, ended) = watch::channel(None);
    let handle = Handle { taps: taps.clone(), stop: stop.clone(), end: ended };
    (handle, Order { spec, lasts, taps, stop, end })
}

impl Order {
    /// Starts the child, tells whether that went well, and looks after it until nothing of it is left.
    pub(super) async fn run(
        self,
        tell: oneshot::Sender<Result<(), StartProblem>>,
        job: &Job,
        warden: Option<&Arc<PathBuf>>,
    ) {
        let Self { spec, lasts, taps, stop, end } = self;
        let program = lookup::given_name(&spec.program);
        let mut life = match Life::begin(spec, &taps, &stop, Instant::now(), job, warden).await {
            Ok(life) => life,
            Err(fault) => {
                let problem = match fault {
                    End::NotStarted(problem) => problem,
                    End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => {
                        StartProblem::System { program, why: "it was not wanted any more".to_owned() }
                    }
                };
                let _ = tell.send(Err(problem));
                return;
            }
        };
        // Whoever does not hear this has dropped the handle, which stops the child.
        let _ = tell.send(Ok(()));
        let how = match (life.until_over(&stop).await, lasts) {
            (Over::ByItself(own), Lasts::Leader) => own,
            (Over::ByItself(own), Lasts::Group) => match life.until_deserted(&stop).await {
                None => own,
                Some(ordered) => {
                    life.kill().await;
                    ordered
                }
            },
            (Over::Stopped(ordered), _) => {
                life.kill().await;
                ordered
            }
        };
        life.settle().await;
        end.send_replace(Some(how));
        if let Some(leftover) = life.leftover() {
            leftover.until_gone().await;
        }
    }
}

impl Running for Handle {
    fn end(&self) -> Option<End> {
        self.end.borrow().clone()
    }

    fn ended(&self) -> Fut<'_, End> {
        let mut end = self.end.clone();
        Box::pin(async move {
            match end.wait_for(Option::is_some).await {
                Ok(end) => end.clone().unwrap_or(End::Cancelled),
                // A supervisor that ended early took the group with it.
                Err(_) => End::Cancelled,
            }
        })
    }

    fn stop(&self) {
        self.stop.cancel(CancelCause::User);
    }

    fn output(&self, from: Mark) -> Fut<'_, Output> {
        Box::pin(async move {
            Output { stdout: self.taps.out.since(from.stdout).await, stderr: self.taps.err.since(from.stderr).await }
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.cancel(CancelCause::Disposed);
    }
}
