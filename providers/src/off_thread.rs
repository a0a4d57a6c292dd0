//! Blocking work on a thread of its own, tied to the future that waits for it.
//!
//! The invariant: when the waiting future is dropped, the work's own signal fires, so that nothing goes on unseen
//! past its next check. What a piece of work does on its signal is its own affair.

use sluice_harness::cancel::{Cancel, CancelCause};

/// The worker panicked or the runtime went away; there is no result.
#[derive(Debug)]
pub(crate) struct Lost;

struct Abandon(Cancel);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.cancel(CancelCause::Disposed);
    }
}

/// Runs `work` on the blocking pool. Its signal fires with `cancel`, and when this future is dropped.
pub(crate) async fn run<T, F>(cancel: &Cancel, work: F) -> Result<T, Lost>
where
    T: Send + 'static,
    F: FnOnce(&Cancel) -> T + Send + 'static,
{
    let own = cancel.child();
    let abandon = Abandon(own.clone());
    let result = tokio::task::spawn_blocking(move || work(&own)).await.map_err(|_| Lost);
    drop(abandon);
    result
}
