//! INT, TERM and HUP: the first one cancels what runs; the program then ends by itself with the signal's exit code.

use std::io;

use sluice_harness::cancel::{Cancel, CancelCause};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end the program; from here on the system no longer acts on them.
pub(crate) struct Signals {
    cancel: Cancel,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes them over. Each will fire `cancel`.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub(crate) fn take(cancel: Cancel) -> io::Result<Self> {
        Ok(Self {
            cancel,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The number of the next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> i32 {
        let number = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.hangup.recv() => SignalKind::hangup().as_raw_value(),
        };
        self.cancel.cancel(CancelCause::Signal(number));
        number
    }
}

/// The first signal's number, as a future that somebody else may hold.
///
/// # Errors
/// When a handler cannot be installed.
pub(crate) fn watch(cancel: Cancel) -> io::Result<impl Future<Output = i32>> {
    let mut signals = Signals::take(cancel)?;
    Ok(async move { signals.next().await })
}
