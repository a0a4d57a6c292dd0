//! The reader thread: takes messages off the blocking input and hands them to the connection in order.
//!
//! Lives here: the thread. Does not live here: framing (`framing`), what happens to a message
//! (`connection`). Invariant: the channel carries every message in the order of the wire and then, once,
//! the end. The thread cannot be interrupted while it waits for bytes; it ends at end of input, or with the
//! first message after the connection is gone. On standard input that may be never: the process ends first.

use std::io::{self, Read};
use std::thread;

use tokio::sync::mpsc;

use crate::framing::FrameReader;
use crate::message::Incoming;

/// What the thread reports.
#[derive(Debug)]
pub(crate) enum FromReader {
    Message(Incoming),
    /// The stream failed; nothing follows. A plain end of input just closes the channel.
    Failed(io::Error),
}

/// Messages read ahead of their handling. Few, for each may be as long as the limit.
const READ_AHEAD: usize = 16;

pub(crate) fn start<R: Read + Send + 'static>(mut frames: FrameReader<R>) -> io::Result<mpsc::Receiver<FromReader>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    thread::Builder::new().name("wire-reader".to_owned()).spawn(move || {
        loop {
            let report = match frames.next() {
                Ok(Some(message)) => FromReader::Message(message),
                Ok(None) => return,
                Err(error) => FromReader::Failed(error),
            };
            let last = matches!(report, FromReader::Failed(_));
            if sender.blocking_send(report).is_err() || last {
                return;
            }
        }
    })?;
    Ok(receiver)
}
