//! One event as one line: its spelling, and the strict reading of it.
//!
//! Reading tells two failures apart: a line that a crash can have left ([`LineFault::Torn`]) and one that only a
//! foreign hand can have written ([`LineFault::Corrupt`], R-267).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::event::{CORE_TYPES, EventKind, OWNER_TYPES};
use crate::ids::Seq;
use crate::json::Json;

/// One event of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its position, from 0 without gaps.
    pub seq: Seq,
    /// When it was appended, in milliseconds since the epoch; repair re-uses the last event's time.
    pub time_ms: u64,
    /// Its kind, such as `tool/call`.
    pub kind: Arc<str>,
    /// Whether a reader that does not know the kind may skip it.
    pub ignorable: bool,
    /// What it says; exact.
    pub data: Json,
}

impl Logged {
    /// The typed event; `None` when it is of another kind.
    #[must_use]
    pub fn decode<E: EventKind>(&self) -> Option<E> {
        if *self.kind != *E::TYPE {
            return None;
        }
        self.data.decode().ok()
    }

    /// Its line in the file, without the newline.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = String::with_capacity(self.data.text().len() + self.kind.len() + 64);
        line.push_str("{\"seq\":");
        line.push_str(&self.seq.0.to_string());
        line.push_str(",\"time\":");
        line.push_str(&self.time_ms.to_string());
        line.push_str(",\"type\":");
        line.push_str(&serde_json::Value::from(&*self.kind).to_string());
        if self.ignorable {
            line.push_str(",\"ignorable\":true");
        }
        line.push_str(",\"data\":");
        line.push_str(self.data.text());
        line.push('}');
        line
    }

    /// Reads a line (without its newline).
    pub(super) fn read(line: &[u8]) -> Result<Self, LineFault> {
        let text = std::str::from_utf8(line).map_err(|e| LineFault::Torn(format!("no UTF-8: {e}")))?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let envelope = Envelope::deserialize(&mut reader).map_err(|e| {
            if e.is_data() { LineFault::Corrupt(e.to_string()) } else { LineFault::Torn(e.to_string()) }
        })?;
        reader.end().map_err(|_| LineFault::Corrupt("text after the event".to_owned()))?;
        if !envelope.data.text().starts_with('{') {
            return Err(LineFault::Corrupt("`data` is no object".to_owned()));
        }
        Ok(Self {
            seq: Seq(envelope.seq),
            time_ms: envelope.time,
            kind: kind_name(&envelope.kind),
            ignorable: envelope.ignorable,
            data: envelope.data,
        })
    }
}

/// Why a line is no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineFault {
    /// It is cut short or overwritten, as a crash leaves it.
    Torn(String),
    /// It is well-formed and wrong.
    Corrupt(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    seq: u64,
    time: u64,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    ignorable: bool,
    data: Json,
}

/// Whether this program knows a kind.
pub(super) fn is_known(kind: &str) -> bool {
    KNOWN.contains_key(kind)
}

/// The shared text of a kind's name: a long log holds each known one once.
pub(super) fn kind_name(kind: &str) -> Arc<str> {
    KNOWN.get(kind).map_or_else(|| Arc::from(kind), Arc::clone)
}

static KNOWN: LazyLock<HashMap<&'static str, Arc<str>>> =
    LazyLock::new(|| CORE_TYPES.iter().chain(OWNER_TYPES).map(|kind| (*kind, Arc::from(*kind))).collect());
