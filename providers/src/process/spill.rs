//! The file that has all of a long output stream: made when memory is about to let go of a byte, readable by its
//! owner alone.
//!
//! The invariant: the file holds the stream's first bytes without a gap, up to its limit; a failed write ends it, and
//! is said. Interrupted calls lose nothing.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use sluice_harness::Fut;
use sluice_harness::seam::process::{Saved, Spill};
use tokio::fs::{DirBuilder, File, OpenOptions};
use tokio::io::AsyncWriteExt;

use super::lookup::words;

/// How many names are tried for a new file.
const NAME_TRIES: u32 = 1000;

/// A stream's file, perhaps not made yet.
pub(super) struct SpillFile {
    limit: u64,
    state: State,
    /// What waits to be written, and how much of it has been.
    waiting: Vec<u8>,
    sent: usize,
    /// How many bytes were taken for the file.
    taken: u64,
    /// Whether the stream went on after the limit.
    cut: bool,
}

enum State {
    /// Where it would be made, with the stream's name.
    Unused(Spill, &'static str),
    Opening(Fut<'static, io::Result<(PathBuf, File)>>),
    Open(PathBuf, File),
    Failed(String),
}

impl SpillFile {
    pub(super) fn new(spill: Spill, stream: &'static str) -> Self {
        let limit = spill.limit;
        Self { limit, state: State::Unused(spill, stream), waiting: Vec::new(), sent: 0, taken: 0, cut: false }
    }

    /// Whether it has been given nothing yet.
    pub(super) fn is_unused(&self) -> bool {
        self.taken == 0
    }

    /// Takes the stream's next bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = usize::try_from(self.limit - self.taken).unwrap_or(usize::MAX).min(bytes.len());
        self.cut |= room < bytes.len();
        self.taken += room as u64;
        if !matches!(self.state, State::Failed(_)) {
            self.waiting.extend(bytes.iter().take(room));
        }
    }

    /// Writes what waits; what the file has then, where there is something to say. Cancel-safe.
    pub(super) async fn write(&mut self) -> Option<Saved> {
        if self.taken == 0 {
            return None;
        }
        if let Err(fault) = self.try_write().await {
            tracing::warn!(%fault, "a long output could not be saved");
            self.state = State::Failed(words(&fault));
            self.waiting = Vec::new();
        }
        match &self.state {
            State::Unused(..) | State::Opening(_) => None,
            State::Failed(why) => Some(Saved::Failed { why: why.clone() }),
            State::Open(path, _) if self.cut => Some(Saved::Beginning { path: path.clone(), bytes: self.taken }),
            State::Open(path, _) => Some(Saved::Whole(path.clone())),
        }
    }

    async fn try_write(&mut self) -> io::Result<()> {
        loop {
            match &mut self.state {
                State::Failed(_) => return Ok(()),
                State::Unused(spill, stream) => self.state = State::Opening(Box::pin(make(spill.clone(), stream))),
                // Kept across an interruption, so that no second file is made.
                State::Opening(opening) => {
                    let (path, file) = opening.await?;
                    self.state = State::Open(path, file);
                }
                State::Open(_, file) => {
                    if self.waiting.is_empty() {
                        return Ok(());
                    }
                    while let Some(rest) = self.waiting.get(self.sent..).filter(|rest| !rest.is_empty()) {
                        self.sent += file.write(rest).await?;
                    }
                    file.flush().await?;
                    self.waiting.clear();
                    self.sent = 0;
                }
            }
        }
    }
}

async fn make(spill: Spill, stream: &'static str) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    DirBuilder::new().recursive(true).mode(0o700).create(&spill.folder).await?;
    let mut tries = 0;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = spill.folder.join(format!("{}-{}-{number}-{stream}.txt", spill.stem, std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).await {
            Ok(file) => return Ok((path, file)),
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists && tries < NAME_TRIES => tries += 1,
            Err(fault) => return Err(fault),
        }
    }
}
