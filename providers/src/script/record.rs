//! The record of requests: one JSON line each.
//!
//! The shape of a line is a promise to users, so it is written from types of its own and does not follow the log's.
//! The invariant: a line is in the file, whole, before anything else happens to its request.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Serialize, Serializer};
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::json::Json;
use sluice_harness::seam::model::{ModelRequest, Purpose, ToolSchema};

/// A file that requests are appended to.
pub(super) struct Record {
    path: PathBuf,
    writing: Mutex<()>,
}

impl Record {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, writing: Mutex::new(()) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one line. Blocks.
    pub(super) fn append(&self, line: &str) -> io::Result<()> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(line.as_bytes())?;
        file.flush()
    }
}

/// A request's line, with its newline.
pub(super) fn line(request: &ModelRequest) -> Result<String, serde_json::Error> {
    let line = Line {
        session: request.session.as_str(),
        agent: request.agent.as_deref(),
        purpose: request.purpose,
        step: request.index,
        system: &request.system,
        messages: request.messages.iter().map(MessageLine::of).collect(),
        tools: &request.tools,
        params: Params { max_output_tokens: request.max_output_tokens },
    };
    let mut text = serde_json::to_string(&line)?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize)]
struct Line<'a> {
    session: &'a str,
    agent: Option<&'a str>,
    purpose: Purpose,
    step: u64,
    system: &'a str,
    messages: Vec<MessageLine<'a>>,
    tools: &'a [ToolSchema],
    params: Params,
}

#[derive(Serialize)]
struct Params {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
}

#[derive(Serialize)]
struct MessageLine<'a> {
    role: Role,
    content: Content<'a>,
}

impl<'a> MessageLine<'a> {
    fn of(message: &'a Message) -> Self {
        Self { role: message.role, content: Content(&message.content) }
    }
}

/// A string when it is one text, else a list of blocks.
struct Content<'a>(&'a [Block]);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            [Block::Text(text)] => serializer.serialize_str(text),
            blocks => serializer.collect_seq(blocks.iter().map(BlockLine::of)),
        }
    }
}

/// One block, its fields in the documented order.
#[derive(Default, Serialize)]
struct BlockLine<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
}

impl<'a> BlockLine<'a> {
    fn of(block: &'a Block) -> Self {
        match block {
            Block::Text(text) => Self { r#type: "text", text: Some(text), ..Self::default() },
            Block::Thinking { text, .. } => Self { r#type: "thinking", text: Some(text), ..Self::default() },
            Block::RedactedThinking { data } => {
                Self { r#type: "redacted_thinking", data: Some(data), ..Self::default() }
            }
            Block::Image { media_type, data } => {
                Self { r#type: "image", media_type: Some(media_type), data: Some(data), ..Self::default() }
            }
            Block::ToolUse { id, name, input, .. } => {
                Self { r#type: "tool_use", id: Some(id), name: Some(name), input: Some(input), ..Self::default() }
            }
            Block::ToolResult { tool_use_id, content, is_error } => Self {
                r#type: "tool_result",
                tool_use_id: Some(tool_use_id),
                content: Some(Content(content)),
                is_error: Some(*is_error),
                ..Self::default()
            },
        }
    }
}
