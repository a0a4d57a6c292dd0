//! Pieces of value schemas that several tools share, in the strict subset.

use serde_json::{Value, json};

/// A list of hunks, as in [`patch`](crate::patch).
pub(crate) fn structured_patch() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "oldStart": {"type": "integer"},
                "oldLines": {"type": "integer"},
                "newStart": {"type": "integer"},
                "newLines": {"type": "integer"},
                "lines": {"type": "array", "items": {"type": "string"}}
            },
            "required": ["oldStart", "oldLines", "newStart", "newLines", "lines"]
        }
    })
}

/// A text, or null where there is none.
pub(crate) fn text_or_null() -> Value {
    json!({"oneOf": [{"type": "string"}, {"type": "null"}]})
}
