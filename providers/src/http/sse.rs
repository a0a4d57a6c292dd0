//! Server-sent events, decoded from bytes as they come.
//!
//! Knows lines and fields and nothing of what the data means. The invariant: the events are the same however the bytes
//! are cut into pieces; memory is bounded by [`MAX_EVENT`].

use thiserror::Error;

/// The largest event taken; a longer one is no answer of any model.
const MAX_EVENT: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// Its name; empty for the usual kind.
    pub(crate) name: String,
    /// Its data lines, joined by newlines.
    pub(crate) data: String,
}

/// Why the bytes are no event stream.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum SseFault {
    #[error("it holds bytes that are not UTF-8")]
    NotUtf8,
    #[error("one event is larger than {MAX_EVENT} bytes")]
    TooLarge,
}

/// A decoder in the middle of a stream.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    /// Whether the byte before was a carriage return, whose line feed is then part of the same line end.
    after_return: bool,
    past_first_line: bool,
    name: String,
    data: String,
    has_data: bool,
}

impl Decoder {
    /// Takes the next bytes and adds the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), SseFault> {
        for byte in bytes {
            let continues_return = std::mem::replace(&mut self.after_return, *byte == b'\r') && *byte == b'\n';
            match byte {
                b'\n' if continues_return => {}
                b'\n' | b'\r' => self.end_line(events)?,
                other => self.line.push(*other),
            }
            if self.line.len() + self.data.len() > MAX_EVENT {
                return Err(SseFault::TooLarge);
            }
        }
        Ok(())
    }

    /// The event that stood unfinished when the stream ended. The standard drops it; some servers leave out the last
    /// blank line, and what it holds shows whether it is whole.
    pub(crate) fn finish(mut self) -> Result<Option<Event>, SseFault> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events)?;
        }
        self.end_event(&mut events);
        Ok(events.pop())
    }

    fn end_line(&mut self, events: &mut Vec<Event>) -> Result<(), SseFault> {
        let bytes = std::mem::take(&mut self.line);
        let line = std::str::from_utf8(&bytes).map_err(|_| SseFault::NotUtf8)?;
        let first = !std::mem::replace(&mut self.past_first_line, true);
        let line = if first { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
        if line.is_empty() {
            self.end_event(events);
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.name),
            // An empty field is a comment; `id` and `retry` serve reconnecting, which an answer cannot.
            _ => {}
        }
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<Event>) {
        let event = Event { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) };
        if std::mem::take(&mut self.has_data) {
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut events).unwrap();
        }
        events.extend(decoder.finish().unwrap());
        events.into_iter().map(|e| (e.name, e.data)).collect()
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
        assert_eq!(decode(&[text.as_bytes()]), expected, "in one piece");
        let single: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(decode(&single), expected, "byte by byte");
        for at in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(decode(&[a, b]), expected, "cut at {at}");
        }
    }

    #[test]
    fn line_ends_of_all_three_kinds_end_lines() {
        check("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n", &[("", "a"), ("", "b"), ("", "c"), ("", "d")]);
    }

    #[test]
    fn data_lines_are_joined_and_one_space_is_dropped() {
        check("data:a\ndata:  b\ndata\n\n", &[("", "a\n b\n")]);
    }

    #[test]
    fn comments_names_and_unknown_fields_are_told_apart() {
        check(": ping\n\nevent: error\nid: 7\nretry: 10\nx: y\ndata: {}\n\n", &[("error", "{}")]);
        check("event: lonely\n\ndata: a\n\n", &[("", "a")]);
    }

    #[test]
    fn characters_of_several_bytes_survive_every_cut() {
        check("\u{feff}data: héllo → 🦀\n\n", &[("", "héllo → 🦀")]);
    }

    #[test]
    fn an_event_without_its_blank_line_is_kept() {
        check("data: a\n\ndata: [DONE]", &[("", "a"), ("", "[DONE]")]);
    }

    #[test]
    fn broken_utf8_is_a_fault() {
        assert_eq!(Decoder::default().push(b"data: \xff\n", &mut Vec::new()), Err(SseFault::NotUtf8));
    }
}
