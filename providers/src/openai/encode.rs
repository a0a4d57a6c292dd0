//! A request as the chat-completions body.
//!
//! Pure. The invariant: the order of the conversation is kept but for one rule of the wire, that the results of a
//! message's calls follow it at once: what was injected in between comes after them, and a call without a result gets
//! one that says so.

use serde::Serialize;
use sluice_harness::content::{Block, Message, Role, plain_text};
use sluice_harness::json::Json;
use sluice_harness::seam::model::{ModelRequest, ToolSchema};

use crate::http::HttpModelConfig;

/// What the output limit is called; OpenAI itself renamed it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitName {
    MaxTokens,
    MaxCompletionTokens,
}

/// The body's bytes.
pub(super) fn body(
    config: &HttpModelConfig,
    request: &ModelRequest,
    limit: LimitName,
) -> Result<Vec<u8>, serde_json::Error> {
    let limited = |name: LimitName| request.max_output_tokens.filter(|_| limit == name);
    serde_json::to_vec(&Body {
        model: &config.model,
        messages: messages(request, config.images),
        tools: request.tools.iter().map(Tool::of).collect(),
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        max_tokens: limited(LimitName::MaxTokens),
        max_completion_tokens: limited(LimitName::MaxCompletionTokens),
        reasoning_effort: config.effort.as_deref(),
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Json,
}

impl<'a> Tool<'a> {
    fn of(schema: &'a ToolSchema) -> Self {
        let ToolSchema { name, description, parameters } = schema;
        Self { r#type: "function", function: Function { name, description, parameters } }
    }
}

#[derive(Default, Serialize)]
struct Wire {
    role: &'static str,
    content: Content,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Default, Serialize)]
#[serde(untagged)]
enum Content {
    #[default]
    Null,
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall {
    id: String,
    r#type: &'static str,
    function: WireFunction,
}

#[derive(Serialize)]
struct WireFunction {
    name: String,
    arguments: String,
}

impl Wire {
    fn text(role: &'static str, text: String) -> Self {
        Self { role, content: Content::Text(text), ..Self::default() }
    }

    fn result(id: String, text: String) -> Self {
        Self { role: "tool", content: Content::Text(text), tool_call_id: Some(id), ..Self::default() }
    }
}

fn messages(request: &ModelRequest, images: bool) -> Vec<Wire> {
    let mut out = Outgoing { images, ..Outgoing::default() };
    if !request.system.is_empty() {
        out.done.push(Wire::text("system", request.system.clone()));
    }
    for message in &request.messages {
        out.message(message);
    }
    out.settle();
    out.done
}

/// The messages so far, and what waits for the results of open calls.
#[derive(Default)]
struct Outgoing {
    images: bool,
    done: Vec<Wire>,
    open_calls: Vec<String>,
    waiting: Vec<Wire>,
}

impl Outgoing {
    fn message(&mut self, message: &Message) {
        // Results may come in a message of their own or beside a user's words.
        for block in &message.content {
            if let Block::ToolResult { tool_use_id, content, .. } = block {
                self.result(tool_use_id, content);
            }
        }
        match message.role {
            Role::Assistant => self.assistant(&message.content),
            Role::User => {
                if let Some(content) = user_content(&message.content, self.images) {
                    self.other(Wire { role: "user", content, ..Wire::default() });
                }
            }
            Role::System | Role::Developer => {
                let text = own_text(&message.content);
                if !text.is_empty() {
                    self.other(Wire::text("user", format!("<system-reminder>\n{text}\n</system-reminder>")));
                }
            }
            Role::Tool => {}
        }
    }

    fn result(&mut self, id: &str, content: &[Block]) {
        let text = plain_text(content);
        let shown: Vec<Part> = content.iter().filter(|_| self.images).filter_map(Part::image).collect();
        if !shown.is_empty() && self.open_calls.iter().any(|open| open == id) {
            // A tool's message holds text alone; what it shows follows the results.
            let before = Part::Text { text: "<system-reminder>\nShown by a tool:\n</system-reminder>".to_owned() };
            let parts = std::iter::once(before).chain(shown).collect();
            self.waiting.push(Wire { role: "user", content: Content::Parts(parts), ..Wire::default() });
        }
        if let Some(at) = self.open_calls.iter().position(|open| open == id) {
            self.open_calls.remove(at);
            self.done.push(Wire::result(id.to_owned(), text));
            if self.open_calls.is_empty() {
                self.settle();
            }
        } else {
            // A result whose call is not there (it was summarised away) would be refused; its words still count.
            self.other(Wire::text(
                "user",
                format!("<system-reminder>\nResult of an earlier call:\n{text}\n</system-reminder>"),
            ));
        }
    }

    fn other(&mut self, wire: Wire) {
        if self.open_calls.is_empty() { self.done.push(wire) } else { self.waiting.push(wire) }
    }

    fn assistant(&mut self, blocks: &[Block]) {
        self.settle();
        let text = own_text(blocks);
        let mut thinking = String::new();
        let mut calls = Vec::new();
        for block in blocks {
            match block {
                Block::Thinking { text, .. } => thinking.push_str(text),
                Block::ToolUse { id, name, input, raw } => {
                    self.open_calls.push(id.clone());
                    calls.push(WireCall {
                        id: id.clone(),
                        r#type: "function",
                        function: WireFunction { name: name.clone(), arguments: argument_text(input, raw.as_deref()) },
                    });
                }
                Block::Text(_) | Block::RedactedThinking { .. } | Block::Image { .. } | Block::ToolResult { .. } => {}
            }
        }
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let content = if text.is_empty() { Content::Null } else { Content::Text(text) };
        // Wanted back while calls are in play, and of no use otherwise (DeepSeek's rule for `reasoning_content`).
        let reasoning_content = (!calls.is_empty() && !thinking.is_empty()).then_some(thinking);
        self.done.push(Wire { role: "assistant", content, reasoning_content, tool_calls: calls, tool_call_id: None });
    }

    /// Closes the open calls and lets go what waited for them.
    fn settle(&mut self) {
        for id in self.open_calls.drain(..) {
            self.done.push(Wire::result(id, "(no result: the call was interrupted)".to_owned()));
        }
        self.done.append(&mut self.waiting);
    }
}

/// The text of a message's own words, without what is encoded elsewhere.
fn own_text(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        Block::Image { .. } => Some("[image content]"),
        Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => {
            None
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Part {
    fn image(block: &Block) -> Option<Self> {
        let Block::Image { media_type, data } = block else { return None };
        Some(Self::ImageUrl { image_url: ImageUrl { url: format!("data:{media_type};base64,{data}") } })
    }
}

fn user_content(blocks: &[Block], images: bool) -> Option<Content> {
    if !images || !blocks.iter().any(|block| matches!(block, Block::Image { .. })) {
        return Some(own_text(blocks)).filter(|text| !text.is_empty()).map(Content::Text);
    }
    let parts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(Part::Text { text: text.clone() }),
        Block::Image { .. } => Part::image(block),
        Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => {
            None
        }
    });
    Some(Content::Parts(parts.collect()))
}

/// The model's own text where it was a JSON object, else the text of what was made of it: servers refuse the rest.
fn argument_text(input: &Json, raw: Option<&str>) -> String {
    match raw {
        Some(raw) if Json::parse(raw).is_ok_and(|json| json.object().is_some()) => raw.to_owned(),
        Some(_) | None => input.text().to_owned(),
    }
}
