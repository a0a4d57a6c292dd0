//! INT, TERM and HUP: the first one cancels what runs; the program then ends by itself with the signal's exit code.

use std::io;

use sluice_harness::cancel::{Cancel, CancelCause};
use tokio::signal::unix::{SignalKind, signal};

/// Fires `cancel` with the first signal's number. The returned future never ends by itself; whoever holds it owns the
/// watching.
///
/// # Errors
/// When a handler cannot be installed.
pub(crate) fn watch(cancel: Cancel) -> io::Result<impl Future<Output = i32>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        let number = tokio::select! {
            _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = hangup.recv() => SignalKind::hangup().as_raw_value(),
        };
        cancel.cancel(CancelCause::Signal(number));
        number
    })
}
