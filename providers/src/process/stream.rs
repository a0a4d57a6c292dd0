//! One output pipe: reads it to its end and keeps a bounded part.
//!
//! The invariant: memory is bounded by the cap whatever the child writes, every byte is counted, and a read that is
//! interrupted loses nothing.

use std::collections::VecDeque;

use sluice_harness::seam::process::{Capture, Keep};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at once: what a pipe holds by default on Linux.
const CHUNK: usize = 64 * 1024;

/// A pipe being read.
pub(super) struct Stream<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    kept: Kept,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    /// A pipe of which nothing has been read; `None` counts as one at its end.
    pub(super) fn new(pipe: Option<R>, keep: Keep) -> Self {
        Self { pipe, buffer: vec![0; CHUNK], kept: Kept::new(keep) }
    }

    /// Reads until the end of the stream. Cancel-safe.
    pub(super) async fn pump(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut self.buffer).await {
                // A pipe that cannot be read any more is at its end for us.
                Ok(0) | Err(_) => self.pipe = None,
                Ok(n) => self.kept.take(self.buffer.get(..n).unwrap_or_default()),
            }
        }
    }

    /// Whether somebody still holds the other end.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Closes our end and returns what was kept.
    pub(super) fn finish(self) -> Capture {
        self.kept.finish()
    }
}

struct Kept {
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    tail_cap: usize,
    total: u64,
}

impl Kept {
    fn new(keep: Keep) -> Self {
        let (head_cap, tail_cap) = match keep {
            Keep::Head(n) => (n, 0),
            Keep::HeadAndTail(n) => (n, n),
        };
        Self { head: Vec::new(), head_cap, tail: VecDeque::new(), tail_cap, total: 0 }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_cap.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        // Of a piece longer than the tail only its end can stay.
        let rest = rest.get(rest.len().saturating_sub(self.tail_cap)..).unwrap_or_default();
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..over.min(self.tail.len()));
        self.tail.extend(rest);
    }

    fn finish(mut self) -> Capture {
        let mut tail: Vec<u8> = self.tail.into();
        if self.total == (self.head.len() + tail.len()) as u64 {
            // Nothing is missing: one piece, so that no character is cut in two where head and tail meet.
            self.head.append(&mut tail);
        }
        Capture { head: self.head, tail, total: self.total }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn keep(keep: Keep, pieces: &[&str]) -> (String, String, u64) {
        let mut kept = Kept::new(keep);
        for piece in pieces {
            kept.take(piece.as_bytes());
        }
        let capture = kept.finish();
        (String::from_utf8(capture.head).unwrap(), String::from_utf8(capture.tail).unwrap(), capture.total)
    }

    #[test]
    fn head_keeps_the_first_bytes_and_counts_all() {
        assert_eq!(keep(Keep::Head(3), &["ab", "cd", "ef"]), ("abc".into(), String::new(), 6));
        assert_eq!(keep(Keep::Head(6), &["ab", "cd", "ef"]), ("abcdef".into(), String::new(), 6));
        assert_eq!(keep(Keep::Head(0), &["ab"]), (String::new(), String::new(), 2));
    }

    #[test]
    fn head_and_tail_keep_both_ends_whatever_the_pieces() {
        assert_eq!(keep(Keep::HeadAndTail(3), &["abcdefghij"]), ("abc".into(), "hij".into(), 10));
        assert_eq!(keep(Keep::HeadAndTail(3), &["a", "bcde", "fg", "hij"]), ("abc".into(), "hij".into(), 10));
        assert_eq!(keep(Keep::HeadAndTail(3), &["abc", "def", "g"]), ("abc".into(), "efg".into(), 7));
    }

    #[test]
    fn what_fits_is_one_piece() {
        assert_eq!(keep(Keep::HeadAndTail(3), &["ab", "cdef"]), ("abcdef".into(), String::new(), 6));
        // The two bytes of the letter lie on either side of the head's end.
        assert_eq!(keep(Keep::HeadAndTail(3), &["abé"]), ("abé".into(), String::new(), 4));
    }
}
