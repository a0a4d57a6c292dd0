//! How messages are cut out of a byte stream, and put into one.
//!
//! Lives here: the two framings, telling them apart, the size limit. Does not live here: what a message says
//! (`message`), threads (`reader`, `writer`). Invariant: whatever bytes come, the reader either yields one
//! [`Incoming`] a frame or the end of the stream; a bad frame costs itself and never the connection, and no
//! more than the limit is ever held in memory.

mod headers;
mod lines;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::{Arc, OnceLock};

use crate::message::Incoming;
use crate::{Direction, WireTrace};

/// How messages are delimited on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One message a line, ended by `\n` (ACP v1 over stdio).
    Lines,
    /// `Content-Length: n`, an empty line, then `n` bytes (language-server clients).
    Headers,
}

impl Framing {
    /// Judges the first line that is not blank: a header named `Content-Length` or `Content-Type`, in any
    /// case, means headers; everything else, junk included, means lines.
    #[must_use]
    pub fn sniff(line: &[u8]) -> Self {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_header = line.contains(&b':')
            && [&b"content-length"[..], b"content-type"]
                .iter()
                .any(|known| name.trim_ascii().eq_ignore_ascii_case(known));
        if is_header { Self::Headers } else { Self::Lines }
    }

    /// Writes one message. `text` is JSON without a final newline.
    pub(crate) fn write(self, out: &mut impl Write, text: &str) -> io::Result<()> {
        match self {
            Self::Lines => {
                if text.contains(['\n', '\r']) {
                    // Raw payloads may be pretty-printed. Inside a JSON string a line break is always
                    // escaped, so a bare one is white space and may be any other white space.
                    out.write_all(text.replace(['\n', '\r'], " ").as_bytes())?;
                } else {
                    out.write_all(text.as_bytes())?;
                }
                out.write_all(b"\n")
            }
            Self::Headers => {
                write!(out, "Content-Length: {}\r\n\r\n", text.len())?;
                out.write_all(text.as_bytes())
            }
        }
    }
}

/// The framing of one connection: fixed from the start or found out by the reader. The writer looks at it.
pub(crate) type SharedFraming = Arc<OnceLock<Framing>>;

/// Reads one message after the other from a blocking byte stream.
pub(crate) struct FrameReader<R: Read> {
    input: BufReader<R>,
    framing: SharedFraming,
    limit: usize,
    trace: Option<WireTrace>,
    buffer: Vec<u8>,
    at_start: bool,
}

/// One physical line, as far as it matters.
enum Line {
    /// Its bytes, without the end of line, are in the buffer.
    Text,
    /// It was longer than allowed; the rest was skipped.
    TooLong,
    /// The stream has ended.
    End,
}

impl<R: Read> FrameReader<R> {
    pub(crate) fn new(input: R, framing: SharedFraming, limit: usize, trace: Option<WireTrace>) -> Self {
        Self {
            input: BufReader::with_capacity(64 * 1024, input),
            framing,
            limit,
            trace,
            buffer: Vec::new(),
            at_start: true,
        }
    }

    /// The next message, or `None` at the end of input. Errors are those of the stream itself.
    pub(crate) fn next(&mut self) -> io::Result<Option<Incoming>> {
        match self.framing.get() {
            Some(Framing::Lines) => self.next_line_message(),
            Some(Framing::Headers) => self.next_header_message(false),
            None => match self.read_line(self.limit)? {
                Line::End => Ok(None),
                Line::TooLong => {
                    let _ = self.framing.set(Framing::Lines);
                    Ok(Some(Incoming::too_long(self.limit)))
                }
                Line::Text if self.buffer.trim_ascii().is_empty() => self.next(),
                Line::Text => {
                    let found = Framing::sniff(&self.buffer);
                    let _ = self.framing.set(found);
                    match found {
                        Framing::Lines => Ok(Some(self.take_line())),
                        Framing::Headers => self.next_header_message(true),
                    }
                }
            },
        }
    }

    /// Reads one line of at most `limit` bytes into the buffer, without its end.
    fn read_line(&mut self, limit: usize) -> io::Result<Line> {
        self.buffer.clear();
        if self.buffer.capacity() > 1024 * 1024 {
            // One huge message must not keep its memory for the rest of the connection.
            self.buffer = Vec::new();
        }
        let allowance = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(2);
        let read = (&mut self.input).take(allowance).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(Line::End);
        }
        if self.at_start {
            self.at_start = false;
            if self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
        }
        let ended = self.buffer.last() == Some(&b'\n');
        if ended {
            self.buffer.pop();
            if self.buffer.last() == Some(&b'\r') {
                self.buffer.pop();
            }
        }
        if self.buffer.len() <= limit {
            return Ok(Line::Text);
        }
        if !ended {
            self.input.skip_until(b'\n')?;
        }
        Ok(Line::TooLong)
    }

    fn traced(&self, bytes: &[u8]) {
        if let Some(trace) = &self.trace {
            trace(Direction::In, &String::from_utf8_lossy(bytes));
        }
    }
}
