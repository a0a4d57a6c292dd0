//! One output pipe: reads it to its end and keeps a bounded part.
//!
//! The invariant: memory is bounded by the cap whatever the child writes, every byte is counted, and a read that is
//! interrupted loses nothing. What was kept can be read meanwhile by whoever has the stream's [`Tap`].

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sluice_harness::cancel::Cancel;
use sluice_harness::seam::process::{Capture, Keep, Saved};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::spill::SpillFile;
use crate::off_thread;

/// How much is read at once: what a pipe holds by default on Linux.
const CHUNK: usize = 64 * 1024;

/// A pipe being read.
pub(super) struct Stream<R> {
    pipe: Option<R>,
    buffer: Vec<u8>,
    tap: Tap,
    spill: Option<SpillFile>,
}

impl<R: AsyncRead + Unpin> Stream<R> {
    /// A pipe of which nothing has been read; `None` counts as one at its end.
    pub(super) fn new(pipe: Option<R>, tap: Tap, spill: Option<SpillFile>) -> Self {
        Self { pipe, buffer: vec![0; CHUNK], tap, spill }
    }

    /// Reads until the end of the stream. Cancel-safe.
    pub(super) async fn pump(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            if let Some(spill) = &mut self.spill {
                self.tap.note(spill.write().await);
            }
            match pipe.read(&mut self.buffer).await {
                // A pipe that cannot be read any more is at its end for us.
                Ok(0) | Err(_) => self.pipe = None,
                Ok(n) => {
                    let bytes = self.buffer.get(..n).unwrap_or_default();
                    self.tap.kept().take(bytes, self.spill.as_mut());
                }
            }
        }
    }

    /// Whether somebody still holds the other end.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Closes our end, and writes to the file what it has not got yet.
    pub(super) async fn close(&mut self) {
        self.pipe = None;
        self.buffer = Vec::new();
        if let Some(spill) = &mut self.spill {
            self.tap.note(spill.write().await);
        }
    }
}

/// What was kept of a stream, for everybody who may look at it. Clones are the same.
#[derive(Clone)]
pub(super) struct Tap(Arc<Mutex<Kept>>);

impl Tap {
    /// Of a stream that has not begun.
    pub(super) fn new(keep: &Keep) -> Self {
        Self(Arc::new(Mutex::new(Kept::new(keep))))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, saved: Option<Saved>) {
        if saved.is_some() {
            self.kept().saved = saved;
        }
    }

    /// What the stream holds from a position on: all of it where that fits the caps, else its beginning and its end.
    pub(super) async fn since(&self, from: u64) -> Capture {
        let View { mut capture, elsewhere } = self.kept().since(from);
        if let Some(Part { path, at, bytes }) = elsewhere {
            let read = off_thread::run(&Cancel::new(), move |_| read_part(&path, at, bytes)).await;
            // A file that somebody took away leaves what memory has.
            if let Ok(Ok(part)) = read
                && part.len() > capture.head.len()
            {
                capture.head = part;
            }
        }
        whole_in_one_piece(capture)
    }
}

/// A part of a stream's file.
struct Part {
    path: PathBuf,
    at: u64,
    bytes: u64,
}

fn read_part(path: &Path, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut part = Vec::new();
    file.take(bytes).read_to_end(&mut part)?;
    Ok(part)
}

/// Where nothing is missing there is one piece, so that no character is cut in two where head and tail meet.
fn whole_in_one_piece(mut capture: Capture) -> Capture {
    if !capture.is_truncated() {
        capture.head.append(&mut capture.tail);
        capture.saved = None;
    }
    capture
}

/// What memory has of a stream from a position on, and where more of its beginning is.
struct View {
    capture: Capture,
    elsewhere: Option<Part>,
}

struct Kept {
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    tail_cap: usize,
    total: u64,
    saved: Option<Saved>,
}

impl Kept {
    fn new(keep: &Keep) -> Self {
        let (head_cap, tail_cap) = match keep {
            Keep::Head(n) => (*n, 0),
            Keep::HeadAndTail(n) | Keep::AlsoInFile { ends: n, .. } => (*n, *n),
        };
        Self { head: Vec::new(), head_cap, tail: VecDeque::new(), tail_cap, total: 0, saved: None }
    }

    fn take(&mut self, bytes: &[u8], spill: Option<&mut SpillFile>) {
        if let Some(spill) = spill
            && self.total + bytes.len() as u64 > (self.head_cap + self.tail_cap) as u64
        {
            if spill.is_unused() {
                // Until now nothing was missing.
                let (first, second) = self.tail.as_slices();
                [&self.head, first, second].into_iter().for_each(|piece| spill.add(piece));
            }
            spill.add(bytes);
        }
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

    fn since(&self, from: u64) -> View {
        let from = from.min(self.total);
        let tail_begins = self.total - self.tail.len() as u64;
        let after_tails_begin = usize::try_from(from.saturating_sub(tail_begins)).unwrap_or(usize::MAX);
        let tail: Vec<u8> = self.tail.iter().skip(after_tails_begin).copied().collect();
        // The beginning of what is wanted, as far as it is not the tail already.
        let end = (from + self.head_cap as u64).min(tail_begins).max(from);
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.head.len());
        let head = self.head.get(place(from)..place(end)).unwrap_or_default().to_vec();
        let elsewhere = (end - from > head.len() as u64)
            .then(|| self.saved.as_ref().and_then(Saved::path))
            .flatten()
            .map(|path| Part { path: path.to_owned(), at: from, bytes: end - from });
        View { capture: Capture { head, tail, total: self.total - from, saved: self.saved.clone() }, elsewhere }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn kept(keep: &Keep, pieces: &[&str]) -> Kept {
        let mut kept = Kept::new(keep);
        for piece in pieces {
            kept.take(piece.as_bytes(), None);
        }
        kept
    }

    fn keep(keep: Keep, pieces: &[&str]) -> (String, String, u64) {
        since(&kept(&keep, pieces), 0)
    }

    fn since(kept: &Kept, from: u64) -> (String, String, u64) {
        let capture = whole_in_one_piece(kept.since(from).capture);
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

    #[test]
    fn a_later_look_begins_where_the_last_one_ended() {
        let all = kept(&Keep::HeadAndTail(3), &["abcd"]);
        assert_eq!(since(&all, 0), ("abcd".into(), String::new(), 4));
        assert_eq!(since(&all, 1), ("bcd".into(), String::new(), 3));
        assert_eq!(since(&all, 3), ("d".into(), String::new(), 1));
        assert_eq!(since(&all, 4), (String::new(), String::new(), 0));
        assert_eq!(since(&all, 9), (String::new(), String::new(), 0));
        let cut = kept(&Keep::HeadAndTail(3), &["abcdefghij"]);
        assert_eq!(since(&cut, 1), ("bc".into(), "hij".into(), 9), "of the beginning memory has this much");
        assert_eq!(since(&cut, 5), (String::new(), "hij".into(), 5));
        assert_eq!(since(&cut, 8), ("ij".into(), String::new(), 2));
    }
}
