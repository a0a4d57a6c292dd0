//! The wire shape of a streamed answer, read as leniently as servers are careless.
//!
//! Holds no state. The invariant: a field that is absent, null or of an odd but known shape never spoils the others;
//! argument text keeps every digit.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One piece of an answer, or the whole of it from a server that does not stream.
#[derive(Deserialize)]
pub(super) struct Chunk {
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub(super) usage: Option<UsageText>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) delta: Option<Delta>,
    #[serde(default)]
    pub(super) message: Option<Delta>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) content: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) reasoning_content: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) reasoning: Option<Box<RawValue>>,
    #[serde(default)]
    pub(super) refusal: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
pub(super) struct CallPiece {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
pub(super) struct FunctionPiece {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct UsageText {
    #[serde(default)]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(default)]
    pub(super) completion_tokens: Option<u64>,
    #[serde(default)]
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    pub(super) prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct PromptDetails {
    #[serde(default)]
    pub(super) cached_tokens: Option<u64>,
}

/// The text of a content field: a string, or a list of parts with `text`; anything else says nothing.
pub(super) fn content_text(raw: &RawValue) -> String {
    match serde_json::from_str(raw.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect(),
        Ok(_) | Err(_) => String::new(),
    }
}

/// The text of an arguments field: a string's content, or the exact text of a value given as such; null is empty.
pub(super) fn argument_text(raw: &RawValue) -> String {
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Null) | Err(_) => String::new(),
        Ok(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => raw.get().to_owned(),
    }
}
