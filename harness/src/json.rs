//! Lossless JSON: the one way a value travels from the model's bytes to the log and to a hook's stdin.
//!
//! A [`Json`] keeps the exact digits of every number and the order of every key; only insignificant white space and
//! the spelling of string escapes are normalised. What cannot survive that journey (duplicate keys, lone surrogates,
//! `-0`, numbers out of range, nesting deeper than [`MAX_DEPTH`]) is refused at the edge with a [`JsonFault`]. The
//! reading itself lives in [`scan`]; ordered editing of an object in [`object`].

pub(crate) mod compact;
mod finite;
pub mod object;
mod scan;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use object::JsonObject;
pub use scan::{JsonFault, MAX_DEPTH};

/// How deep our own envelopes nest what they carry.
const ENVELOPE_DEPTH: usize = 16;

/// A JSON value as its exact compact text, with a lazily parsed view to look at.
#[derive(Clone)]
pub struct Json(Arc<Inner>);

struct Inner {
    raw: Box<RawValue>,
    view: OnceLock<Value>,
}

impl Json {
    /// Reads one JSON value, refusing whatever could not survive losslessly.
    ///
    /// # Errors
    /// A [`JsonFault`] that says what is wrong and at which byte.
    pub fn parse(text: &str) -> Result<Self, JsonFault> {
        let compact = scan::compact(text, MAX_DEPTH)?;
        Self::from_compact(compact)
    }

    /// Reads what was taken before and now stands inside an envelope of our own, such as a log's line.
    fn parse_enclosed(text: &str) -> Result<Self, JsonFault> {
        let compact = scan::compact(text, MAX_DEPTH + ENVELOPE_DEPTH)?;
        Self::from_compact(compact)
    }

    /// Reads one JSON value from bytes, which must be valid UTF-8.
    ///
    /// # Errors
    /// A [`JsonFault`], also for broken UTF-8.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, JsonFault> {
        Self::parse(std::str::from_utf8(bytes).map_err(|e| JsonFault::NotUtf8 { at: e.valid_up_to() })?)
    }

    /// The empty object, which is what an empty argument text means.
    #[must_use]
    pub fn empty_object() -> Self {
        JsonObject::new().to_json()
    }

    /// The JSON of anything serialisable; a non-finite float is an error, never a silent null.
    ///
    /// # Errors
    /// [`JsonFault::Unserialisable`] when the value has no JSON form, or any fault of [`Json::parse`].
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonFault> {
        let text = scan::strict_to_string(value)?;
        Self::parse_enclosed(&text)
    }

    fn from_compact(compact: String) -> Result<Self, JsonFault> {
        let raw = RawValue::from_string(compact).map_err(|e| JsonFault::Unserialisable { why: e.to_string() })?;
        Ok(Self(Arc::new(Inner { raw, view: OnceLock::new() })))
    }

    /// The exact compact text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.raw.get()
    }

    /// A parsed view, to look at; its numbers may be rounded, so never write it anywhere.
    #[must_use]
    pub fn view(&self) -> &Value {
        self.0.view.get_or_init(|| compact::read(self.text()).unwrap_or(Value::Null))
    }

    /// The value as an ordered, editable object; `None` when it is not an object.
    #[must_use]
    pub fn object(&self) -> Option<JsonObject> {
        JsonObject::read(self)
    }

    /// A string member of an object, if there is one.
    #[must_use]
    pub fn str_at(&self, key: &str) -> Option<&str> {
        self.view().get(key).and_then(Value::as_str)
    }

    /// Decodes into a typed value from the exact text.
    ///
    /// # Errors
    /// The decoder's own error, with line and column.
    pub fn decode<'de, T: Deserialize<'de>>(&'de self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

impl PartialEq for Json {
    /// Equality of the exact text: `1.0` and `1.00` differ.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.raw.serialize(serializer).map_err(S::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse_enclosed(raw.get()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
