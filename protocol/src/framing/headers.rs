//! `Content-Length` framing, as language-server clients speak it.
//!
//! Lives here: reading a header block and the body it announces. The body is read by `lsp-server`, whose
//! message types are those of the Language Server Protocol; what lies outside their range (ids beyond 32
//! bits, null ids, batches, junk) falls back to our own envelope, so that no request is ever mistaken for a
//! notification. Invariant: a body that does not parse costs one error answer, not the connection.

use std::io::{self, BufRead, Read};

use jsonrpsee::types::ErrorObjectOwned;
use lsp_server::Message;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{FrameReader, Line};
use crate::message::{Incoming, WireId};

/// A header line longer than this is junk.
const HEADER_LIMIT: usize = 8 * 1024;

/// What one line inside a header block is.
enum Header {
    Length(u64),
    Other,
    Junk,
}

impl<R: Read> FrameReader<R> {
    /// The next message. `buffered` tells that the first header line is already in the buffer.
    pub(super) fn next_header_message(&mut self, buffered: bool) -> io::Result<Option<Incoming>> {
        let mut buffered = buffered;
        let mut length = None;
        let mut in_block = false;
        loop {
            let line = if buffered { Line::Text } else { self.read_line(HEADER_LIMIT)? };
            buffered = false;
            let header = match line {
                Line::End => return Ok(None),
                Line::TooLong => Header::Junk,
                Line::Text if self.buffer.trim_ascii().is_empty() => match (in_block, length) {
                    (false, _) => continue,
                    (true, Some(length)) => return self.read_body(length),
                    (true, None) => {
                        return Ok(Some(Incoming::not_json(
                            "a header block without a valid `Content-Length: <bytes>`",
                        )));
                    }
                },
                Line::Text => classify(&self.buffer),
            };
            in_block = true;
            match header {
                Header::Length(announced) => length = Some(announced),
                Header::Other => {}
                Header::Junk => tracing::warn!("skipped a line that is no header"),
            }
        }
    }

    fn read_body(&mut self, length: u64) -> io::Result<Option<Incoming>> {
        if length > u64::try_from(self.limit).unwrap_or(u64::MAX) {
            skip(&mut self.input, length)?;
            return Ok(Some(Incoming::too_long(self.limit)));
        }
        self.buffer.clear();
        (&mut self.input).take(length).read_to_end(&mut self.buffer)?;
        if u64::try_from(self.buffer.len()) != Ok(length) {
            tracing::warn!(announced = length, got = self.buffer.len(), "input ended inside a message");
            return Ok(None);
        }
        self.traced(&self.buffer);
        // The header is written anew, so that lenient spellings of it do not matter to the strict reader.
        let header = format!("Content-Length: {length}\r\n\r\n");
        let mut frame = header.as_bytes().chain(self.buffer.as_slice());
        Ok(Some(match Message::read(&mut frame) {
            Ok(Some(message)) => from_lsp(message, &self.buffer),
            Ok(None) | Err(_) => Incoming::from_bytes(&self.buffer),
        }))
    }
}

/// Consumes `length` bytes without keeping them.
fn skip(input: &mut impl BufRead, length: u64) -> io::Result<()> {
    io::copy(&mut input.take(length), &mut io::sink()).map(drop)
}

fn classify(line: &[u8]) -> Header {
    let Ok(line) = std::str::from_utf8(line) else {
        return Header::Junk;
    };
    let Some((name, value)) = line.rsplit_once(':') else {
        return Header::Junk;
    };
    let value = value.trim();
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let name = name.trim().to_ascii_lowercase();
    // A header may directly follow the remains of a body whose length was announced wrongly.
    if name.ends_with("content-length") && digits {
        // More digits than fit are a length over any limit.
        return Header::Length(value.parse().unwrap_or(u64::MAX));
    }
    let plausible = line.split(':').next().is_some_and(|name| {
        let name = name.trim();
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    if plausible && name != "content-length" { Header::Other } else { Header::Junk }
}

/// Takes over what `lsp-server` read. Its `Request` needs an id of 32 bits or a string; with any other id
/// it reads a notification, and then our own envelope decides.
fn from_lsp(message: Message, body: &[u8]) -> Incoming {
    match message {
        Message::Request(request) => match (wire_id(&request.id), raw(request.params)) {
            (Some(id), Ok(params)) => Incoming::Request { id, method: request.method, params },
            (None, _) | (_, Err(_)) => Incoming::from_bytes(body),
        },
        Message::Notification(_) if has_id(body) => Incoming::from_bytes(body),
        Message::Notification(notification) => match raw(notification.params) {
            Ok(params) => Incoming::Notification { method: notification.method, params },
            Err(_) => Incoming::from_bytes(body),
        },
        Message::Response(response) => {
            let outcome = match response.response_result {
                Ok(result) => to_raw_value(&result).map(Ok),
                Err(error) => Ok(Err(ErrorObjectOwned::owned(error.code, error.message, error.data))),
            };
            match (wire_id(&response.id), outcome) {
                (Some(id), Ok(outcome)) => Incoming::Response { id, outcome },
                (None, _) | (_, Err(_)) => Incoming::from_bytes(body),
            }
        }
    }
}

/// `lsp-server` keeps its id closed; its JSON is the way in.
fn wire_id(id: &lsp_server::RequestId) -> Option<WireId> {
    serde_json::to_value(id).ok().and_then(|id| serde_json::from_value(id).ok())
}

fn raw(params: Value) -> serde_json::Result<Option<Box<RawValue>>> {
    match params {
        Value::Null => Ok(None),
        params => to_raw_value(&params).map(Some),
    }
}

fn has_id(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(default, deserialize_with = "there")]
        id: bool,
    }
    fn there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| true)
    }
    serde_json::from_slice::<Probe>(body).is_ok_and(|probe| probe.id)
}
