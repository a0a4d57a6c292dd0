//! A server's stdout as it is read: bounded lines, and a look at what is no message.
//!
//! The invariant: a line longer than the limit, or more rubbish than the limit, is the end of the stream, with a reason;
//! nobody waits for the end of a line that never ends, and nobody holds it in memory.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// The longest line.
pub(super) const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// How many bytes of lines that are no messages are put up with.
const MOST_RUBBISH: usize = 16 * 1024 * 1024;
/// How much of the first such line is shown.
const SAMPLE: usize = 120;

/// What has been seen so far.
#[derive(Default)]
pub(super) struct Seen {
    sample: Vec<u8>,
    rubbish: usize,
    fault: Option<&'static str>,
    line: usize,
    kind: Kind,
}

/// What the line under way is.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has had nothing but white space.
    #[default]
    Blank,
    /// It begins like a message.
    Message,
    /// It does not.
    Rubbish,
    /// The same, and it is the one that is shown.
    Sample,
}

impl Seen {
    /// Why the stream was cut, if it was.
    pub(super) fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    /// The first line that was no message, if there was one.
    pub(super) fn sample(&self) -> Option<String> {
        let text: String = String::from_utf8_lossy(&self.sample).chars().filter(|c| !c.is_control()).collect();
        (!text.is_empty()).then_some(text)
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                (self.line, self.kind) = (0, Kind::Blank);
                continue;
            }
            self.line += 1;
            if self.kind == Kind::Blank && !byte.is_ascii_whitespace() {
                self.kind = match byte {
                    // A byte order mark comes before the first message of some.
                    b'{' | b'[' | 0xEF => Kind::Message,
                    _ if self.sample.is_empty() => Kind::Sample,
                    _ => Kind::Rubbish,
                };
            }
            if matches!(self.kind, Kind::Rubbish | Kind::Sample) {
                self.rubbish += 1;
                if self.kind == Kind::Sample && self.sample.len() < SAMPLE {
                    self.sample.push(*byte);
                }
            }
        }
        if self.line > LONGEST_LINE {
            self.fault = Some("it sent a line longer than 16 MiB");
        } else if self.rubbish > MOST_RUBBISH {
            self.fault = Some("it sent more than 16 MiB that are no messages");
        }
    }
}

/// A stream that is looked at while it is read.
pub(super) struct Watched<R> {
    inner: R,
    seen: Arc<Mutex<Seen>>,
}

impl<R> Watched<R> {
    pub(super) fn new(inner: R) -> (Self, Arc<Mutex<Seen>>) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        (Self { inner, seen: Arc::clone(&seen) }, seen)
    }
}

pub(super) fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        if lock(&this.seen).fault.is_some() {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(cx, buf);
        if matches!(polled, Poll::Ready(Ok(()))) {
            let mut seen = lock(&this.seen);
            seen.take(buf.filled().get(before..).unwrap_or_default());
            if seen.fault.is_some() {
                buf.set_filled(before);
            }
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_is_no_message_is_kept_for_the_error() {
        let mut seen = Seen::default();
        for piece in ["{\"a\":1}\n", "  \nWel", "come to \u{7}box\nmore\n{}\n"] {
            seen.take(piece.as_bytes());
        }
        assert_eq!(seen.sample().as_deref(), Some("Welcome to box"));
        assert_eq!(seen.fault(), None);
    }

    #[test]
    fn a_line_without_end_and_rubbish_without_end_are_cut() {
        let mut seen = Seen::default();
        seen.take(b"{");
        seen.take(&vec![b'a'; LONGEST_LINE]);
        assert!(seen.fault().is_some_and(|fault| fault.contains("line longer")));
        let mut seen = Seen::default();
        for _ in 0..3 {
            seen.take(&vec![b'a'; MOST_RUBBISH / 2]);
            seen.take(b"\n");
        }
        assert!(seen.fault().is_some_and(|fault| fault.contains("no messages")));
    }
}
