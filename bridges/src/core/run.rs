//! Running several hook processes at once: all start together, and the whole waits for all of them.
//!
//! No task is spawned: the runs live in the caller's future, so dropping it kills every process group.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::process::{ProcessSpec, Processes, RunOutput};

/// How long after TERM a hook's group is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A limit beyond which a declared timeout means "never".
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// A declared limit as a deadline that no clock overflows on.
pub(crate) fn deadline(limit: Duration) -> Duration {
    limit.min(LONGEST)
}

/// Runs all of them at once; the outputs are in the order of the specifications.
pub(crate) async fn run_all(processes: &dyn Processes, specs: Vec<ProcessSpec>, cancel: &Cancel) -> Vec<RunOutput> {
    let runs = specs.into_iter().map(|spec| Slot::Running(processes.run(spec, cancel))).collect();
    Together { runs }.await
}

enum Slot<'a> {
    Running(Fut<'a, RunOutput>),
    Done(Box<RunOutput>),
}

struct Together<'a> {
    runs: Vec<Slot<'a>>,
}

impl Future for Together<'_> {
    type Output = Vec<RunOutput>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut open = false;
        for slot in &mut self.runs {
            if let Slot::Running(run) = slot {
                match run.as_mut().poll(cx) {
                    Poll::Ready(output) => *slot = Slot::Done(Box::new(output)),
                    Poll::Pending => open = true,
                }
            }
        }
        if open {
            return Poll::Pending;
        }
        let done = std::mem::take(&mut self.runs);
        Poll::Ready(
            done.into_iter()
                .filter_map(|slot| match slot {
                    Slot::Done(output) => Some(*output),
                    Slot::Running(_) => None,
                })
                .collect(),
        )
    }
}
