//! The JSON-RPC 2.0 envelope: what one message says, before anybody looks into its payload.
//!
//! Lives here: message ids, the shapes of incoming messages, reading one from text, writing one to text.
//! Does not live here: framing (how texts are cut out of the byte stream), dispatch, any method's parameters.
//! Invariant: payloads stay raw text, so every digit and the order of keys survive; an id is echoed with
//! the type and value it came with.

use std::fmt;

use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::types::error::{INTERNAL_ERROR_CODE, INVALID_REQUEST_CODE, PARSE_ERROR_CODE};
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde::{Deserialize as DeserializeDerive, Serialize, Serializer};
use serde_json::value::RawValue;

/// The id of a request as it stood on the wire: ACP v1 allows null, a signed 64-bit integer or a string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WireId {
    /// `null`, legal though useless for telling two requests apart.
    Null,
    /// An integer, possibly negative.
    Number(i64),
    /// A string, compared by value.
    Text(String),
}

impl WireId {
    /// Reads an id from JSON text; a fraction, a number beyond 64 bits or any other type is no id.
    fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text == "null" {
            Some(Self::Null)
        } else if text.starts_with('"') {
            serde_json::from_str(text).ok().map(Self::Text)
        } else {
            text.parse().ok().map(Self::Number)
        }
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl Serialize for WireId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for WireId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <Box<RawValue>>::deserialize(deserializer)?;
        Self::from_raw(&raw).ok_or_else(|| serde::de::Error::custom("an id must be null, a 64-bit integer or a string"))
    }
}

/// What came in, already told apart.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A request: exactly one answer is owed.
    Request { id: WireId, method: String, params: Option<Box<RawValue>> },
    /// A notification: never answered.
    Notification { method: String, params: Option<Box<RawValue>> },
    /// The answer to one of our own requests.
    Response { id: WireId, outcome: Result<Box<RawValue>, ErrorObjectOwned> },
    /// Something that is no message; the error goes back under this id.
    Fault { id: WireId, error: ErrorObjectOwned },
}

impl Incoming {
    /// Text that is not JSON (-32700, id null).
    pub(crate) fn not_json(reason: impl fmt::Display) -> Self {
        Self::Fault {
            id: WireId::Null,
            error: ErrorObjectOwned::owned(PARSE_ERROR_CODE, format!("this message is not JSON: {reason}"), None::<()>),
        }
    }

    /// JSON that is no message (-32600); `id` is what could be made out, else null.
    pub(crate) fn invalid(id: WireId, reason: impl fmt::Display) -> Self {
        Self::Fault {
            id,
            error: ErrorObjectOwned::owned(
                INVALID_REQUEST_CODE,
                format!("this is not a JSON-RPC 2.0 message: {reason}"),
                None::<()>,
            ),
        }
    }

    /// A message over the size limit (-32600, id null), whose text was skipped.
    pub(crate) fn too_long(limit: usize) -> Self {
        Self::Fault {
            id: WireId::Null,
            error: ErrorObjectOwned::owned(
                INVALID_REQUEST_CODE,
                format!("this message is longer than the limit of {limit} bytes; it was skipped"),
                None::<()>,
            ),
        }
    }

    /// Tells apart the bytes of one message.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::from_text(text.trim_ascii()),
            Err(error) => Self::not_json(format_args!("{error}")),
        }
    }

    fn from_text(text: &str) -> Self {
        // A derived struct would also read an array by position, hence the look at the first character.
        if !text.starts_with('{') {
            return match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) => Self::not_json(error),
                Ok(_) if text.starts_with('[') => {
                    Self::invalid(WireId::Null, "batches are not part of this protocol; send each message by itself")
                }
                Ok(_) => Self::invalid(WireId::Null, "a message is an object"),
            };
        }
        match serde_json::from_str::<Envelope<'_>>(text) {
            Ok(envelope) => envelope.into_incoming(),
            Err(error) => match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) => Self::not_json(error),
                Ok(_) => Self::invalid(WireId::Null, error),
            },
        }
    }
}

/// Every member raw and optional: which ones are there decides what the message is.
#[derive(DeserializeDerive)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps `null` apart from a missing member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Envelope<'_> {
    fn into_incoming(self) -> Incoming {
        let id = self.id.map(WireId::from_raw);
        let version = self.jsonrpc.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        if version.as_deref() != Some("2.0") {
            // Only a request's sender waits under this id; under a response's it would be ours.
            let id = if self.method.is_some() { id.flatten() } else { None };
            return Incoming::invalid(id.unwrap_or(WireId::Null), "the member `jsonrpc` must be \"2.0\"");
        }
        if let Some(None) = id {
            return Incoming::invalid(WireId::Null, "the member `id` must be null, a 64-bit integer or a string");
        }
        let id = id.flatten();
        if let Some(method) = self.method {
            let Ok(method) = serde_json::from_str::<String>(method.get()) else {
                return Incoming::invalid(id.unwrap_or(WireId::Null), "the member `method` must be a string");
            };
            let params = self.params.map(ToOwned::to_owned);
            return match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            };
        }
        let error = self.error.filter(|raw| raw.get() != "null");
        match (id, self.result, error) {
            (Some(id), _, Some(error)) => Incoming::Response { id, outcome: Err(read_error(error)) },
            (Some(id), Some(result), None) => Incoming::Response { id, outcome: Ok(result.to_owned()) },
            (Some(_), None, None) | (None, _, _) => {
                Incoming::invalid(WireId::Null, "it has neither a `method` nor an `id` with a `result` or `error`")
            }
        }
    }
}

/// Reads an error object leniently: clients leave members out and add their own.
fn read_error(raw: &RawValue) -> ErrorObjectOwned {
    #[derive(DeserializeDerive)]
    struct Lenient {
        code: i32,
        #[serde(default)]
        message: String,
        data: Option<Box<RawValue>>,
    }
    match serde_json::from_str::<Lenient>(raw.get()) {
        Ok(error) => ErrorObjectOwned::owned(error.code, error.message, error.data),
        Err(error) => ErrorObjectOwned::owned(
            INTERNAL_ERROR_CODE,
            format!("the other side answered with an unreadable error object: {error}"),
            Some(raw),
        ),
    }
}

/// The text of a request or notification of ours.
#[derive(Serialize)]
pub(crate) struct OutRequest<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

impl<'a> OutRequest<'a> {
    /// With an id it is a request, without one a notification. Parameters of null are left out, for
    /// JSON-RPC knows only objects and arrays.
    pub(crate) fn new(id: Option<i64>, method: &'a str, params: &'a RawValue) -> Self {
        Self { jsonrpc: "2.0", id, method, params: Some(params).filter(|params| params.get() != "null") }
    }
}

/// The text of an answer.
#[derive(Serialize)]
pub(crate) struct OutResponse<'a> {
    jsonrpc: &'static str,
    id: &'a WireId,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorObjectOwned>,
}

impl<'a> OutResponse<'a> {
    pub(crate) fn new(id: &'a WireId, outcome: Result<&'a RawValue, &'a ErrorObjectOwned>) -> Self {
        Self { jsonrpc: "2.0", id, result: outcome.ok(), error: outcome.err() }
    }
}
