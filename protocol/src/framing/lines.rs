//! Newline-delimited JSON: one message a line.
//!
//! Lives here: reading the next line that says something. Not here: header framing. Invariant: blank lines
//! are nothing, any other line is exactly one [`Incoming`].

use std::io::{self, Read};

use super::{FrameReader, Line};
use crate::message::Incoming;

impl<R: Read> FrameReader<R> {
    pub(super) fn next_line_message(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            match self.read_line(self.limit)? {
                Line::End => return Ok(None),
                Line::TooLong => return Ok(Some(Incoming::too_long(self.limit))),
                Line::Text if self.buffer.trim_ascii().is_empty() => {}
                Line::Text => return Ok(Some(self.take_line())),
            }
        }
    }

    /// The message in the buffer.
    pub(super) fn take_line(&mut self) -> Incoming {
        self.traced(&self.buffer);
        Incoming::from_bytes(&self.buffer)
    }
}
