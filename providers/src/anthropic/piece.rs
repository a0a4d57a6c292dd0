//! The wire shape of a streamed answer, and of a whole one.
//!
//! Holds no state. The invariant: a field that is absent or null never spoils the others, what is unknown is passed
//! over, and argument text keeps every digit.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One event's data. A whole answer, from a server that does not stream, has its fields at the top.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Piece {
    pub(super) r#type: Option<String>,
    pub(super) index: Option<u64>,
    pub(super) message: Option<Message>,
    pub(super) content_block: Option<Content>,
    pub(super) delta: Option<Delta>,
    pub(super) usage: Option<Counts>,
    pub(super) error: Option<Value>,
    pub(super) content: Option<Vec<Content>>,
    pub(super) stop_reason: Option<String>,
}

/// What an answer begins with.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) usage: Option<Counts>,
}

/// A block of content, as it begins or whole.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    pub(super) r#type: String,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) data: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Box<RawValue>>,
}

/// More of a block, or of the answer.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    pub(super) r#type: Option<String>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) signature: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) stop_reason: Option<String>,
}

/// Counts of tokens so far; cached ones are not among `input_tokens`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Counts {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
}
