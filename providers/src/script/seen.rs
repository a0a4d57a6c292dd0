//! The text of a whole request as a reader sees it, for `expect`.
//!
//! The invariant: every text is looked at decoded, wherever it stands; a string in JSON counts as itself, and the JSON
//! around it as its compact text.

use std::fmt;

use serde_json::Value;
use sluice_harness::content::Block;
use sluice_harness::json::Json;
use sluice_harness::seam::model::ModelRequest;

use super::format::Expect;

/// All pieces of a request.
pub(super) struct Seen(Vec<String>);

/// What an expectation missed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Miss {
    Absent(String),
    Present(String),
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(text) => write!(f, "contains {text:?}, and it is not there"),
            Self::Present(text) => write!(f, "does not contain {text:?}, and it is there"),
        }
    }
}

impl Seen {
    /// The pieces of a request: system prompt, messages and tool schemas.
    pub(super) fn of(request: &ModelRequest) -> Self {
        let mut seen = Self(vec![request.system.clone()]);
        for message in &request.messages {
            seen.blocks(&message.content);
        }
        for tool in &request.tools {
            seen.0.push(tool.name.clone());
            seen.0.push(tool.description.clone());
            seen.json(&tool.parameters);
        }
        seen
    }

    /// The first string that is missing, or there against expectation.
    pub(super) fn miss(&self, expect: &Expect) -> Option<Miss> {
        let has = |text: &String| self.0.iter().any(|piece| piece.contains(text.as_str()));
        if let Some(text) = expect.contains.iter().find(|text| !has(text)) {
            return Some(Miss::Absent(text.clone()));
        }
        expect.not_contains.iter().find(|text| has(text)).map(|text| Miss::Present(text.clone()))
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Text(text) | Block::Thinking { text, .. } => self.0.push(text.clone()),
                Block::RedactedThinking { .. } => {}
                Block::Image { media_type, .. } => self.0.push(media_type.clone()),
                Block::ToolUse { id, name, input, raw } => {
                    self.0.push(id.clone());
                    self.0.push(name.clone());
                    self.json(input);
                    self.0.extend(raw.clone());
                }
                Block::ToolResult { content, .. } => self.blocks(content),
            }
        }
    }

    fn json(&mut self, json: &Json) {
        self.0.push(json.text().to_owned());
        self.strings(json.view());
    }

    fn strings(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.0.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| self.strings(item)),
            Value::Object(members) => {
                for (key, value) in members {
                    self.0.push(key.clone());
                    self.strings(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
