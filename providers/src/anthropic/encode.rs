//! A request as the body of Anthropic's messages.
//!
//! Pure. Two rules of the wire shape it: the speakers take turns, so neighbours of one speaker become one message, and
//! the results of a message's calls begin the message after it: what was injected in between follows them, and a call
//! without a result gets one that says so. The invariant: an argument text goes back as the model wrote it.

use serde::Serialize;
use serde_json::value::RawValue;
use sluice_harness::content::{Block, Message, Role, plain_text};
use sluice_harness::json::Json;
use sluice_harness::seam::model::ModelRequest;

use super::AnthropicOptions;
use crate::http::HttpModelConfig;

/// The output limit where none is configured: this wire wants one with every request.
pub const OUTPUT_LIMIT: u64 = 32_000;
/// The least budget of reasoning that is taken.
const LEAST_BUDGET: u64 = 1024;

/// The body's bytes.
pub(super) fn body(
    config: &HttpModelConfig,
    options: AnthropicOptions,
    request: &ModelRequest,
) -> Result<Vec<u8>, serde_json::Error> {
    let cache = options.prompt_cache.then_some(Cache { r#type: "ephemeral" });
    let max_tokens = request.max_output_tokens.unwrap_or(OUTPUT_LIMIT);
    let mut messages = messages(request, config.images)?;
    if let Some(part) = messages.last_mut().and_then(|message| message.content.last_mut()) {
        part.cache_here(cache);
    }
    let last = request.tools.len().saturating_sub(1);
    let tools = request.tools.iter().enumerate().map(|(at, tool)| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.parameters,
        cache_control: cache.filter(|_| at == last),
    });
    let system = Some(request.system.as_str()).filter(|text| !text.trim().is_empty());
    let (thinking, output_config) = reasoning(config, options, max_tokens);
    serde_json::to_vec(&Body {
        model: &config.model,
        max_tokens,
        system: system.map(|text| [System { r#type: "text", text, cache_control: cache }]),
        messages,
        tools: tools.collect(),
        stream: true,
        thinking,
        output_config,
    })
}

/// What is asked for of reasoning. A budget has to leave room for an answer.
fn reasoning<'a>(
    config: &'a HttpModelConfig,
    options: AnthropicOptions,
    max_tokens: u64,
) -> (Option<Thinking>, Option<OutputConfig<'a>>) {
    if let Some(wanted) = options.thinking_tokens {
        let budget = if wanted < max_tokens { wanted } else { max_tokens / 2 };
        let thinking = Thinking { r#type: "enabled", budget_tokens: Some(budget) };
        return (Some(thinking).filter(|_| budget >= LEAST_BUDGET), None);
    }
    match config.effort.as_deref() {
        Some(effort) => (Some(Thinking { r#type: "adaptive", budget_tokens: None }), Some(OutputConfig { effort })),
        None => (None, None),
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[System<'a>; 1]>,
    messages: Vec<Wire>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Clone, Copy, Serialize)]
struct Cache {
    r#type: &'static str,
}

#[derive(Serialize)]
struct System<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Cache>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Cache>,
}

#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u64>,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
struct Wire {
    role: &'static str,
    content: Vec<Part>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text {
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Cache>,
    },
    Image {
        source: Source,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Cache>,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: String,
        content: ResultContent,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Cache>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Serialize)]
struct Source {
    r#type: &'static str,
    media_type: String,
    data: String,
}

impl Part {
    /// A text, unless it is blank: those are refused.
    fn text(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self::Text { text: text.to_owned(), cache_control: None })
    }

    fn image(media_type: &str, data: &str) -> Self {
        let source = Source { r#type: "base64", media_type: media_type.to_owned(), data: data.to_owned() };
        Self::Image { source, cache_control: None }
    }

    fn cache_here(&mut self, cache: Option<Cache>) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = cache,
            Self::Thinking { .. } | Self::RedactedThinking { .. } | Self::ToolUse { .. } => {}
        }
    }
}

fn messages(request: &ModelRequest, images: bool) -> Result<Vec<Wire>, serde_json::Error> {
    let mut out = Outgoing { images, ..Outgoing::default() };
    for message in &request.messages {
        out.message(message)?;
    }
    out.settle();
    Ok(out.done)
}

/// The messages so far, and what waits for the results of open calls.
#[derive(Default)]
struct Outgoing {
    images: bool,
    done: Vec<Wire>,
    open_calls: Vec<String>,
    waiting: Vec<Part>,
}

impl Outgoing {
    fn message(&mut self, message: &Message) -> Result<(), serde_json::Error> {
        // Results may come in a message of their own or beside a user's words.
        for block in &message.content {
            if let Block::ToolResult { tool_use_id, content, is_error } = block {
                self.result(tool_use_id, content, *is_error);
            }
        }
        match message.role {
            Role::Assistant => self.assistant(&message.content)?,
            Role::User => {
                let parts = self.own(&message.content);
                self.user(parts);
            }
            Role::System | Role::Developer => {
                let text = words_of(&message.content);
                if !text.trim().is_empty() {
                    self.user(Part::text(&reminder(&text)).into_iter().collect());
                }
            }
            Role::Tool => {}
        }
        Ok(())
    }

    /// A message's own text and images.
    fn own(&self, blocks: &[Block]) -> Vec<Part> {
        let parts = blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Part::text(text),
            Block::Image { media_type, data } if self.images => Some(Part::image(media_type, data)),
            Block::Image { .. } => Part::text("[image content]"),
            Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. } => None,
        });
        parts.collect()
    }

    fn result(&mut self, id: &str, content: &[Block], is_error: bool) {
        let Some(at) = self.open_calls.iter().position(|open| open == id) else {
            // A result whose call is not there (it was summarised away) would be refused; its words still count.
            let text = reminder(&format!("Result of an earlier call:\n{}", plain_text(content)));
            self.user(Part::text(&text).into_iter().collect());
            return;
        };
        self.open_calls.remove(at);
        let shows = self.images && content.iter().any(|block| matches!(block, Block::Image { .. }));
        let content =
            if shows { ResultContent::Parts(self.own(content)) } else { ResultContent::Text(plain_text(content)) };
        let part = Part::ToolResult { tool_use_id: wire_id(id), content, is_error, cache_control: None };
        self.push("user", vec![part]);
        if self.open_calls.is_empty() {
            self.settle();
        }
    }

    fn user(&mut self, parts: Vec<Part>) {
        if self.open_calls.is_empty() { self.push("user", parts) } else { self.waiting.extend(parts) }
    }

    fn push(&mut self, role: &'static str, parts: Vec<Part>) {
        if parts.is_empty() {
            return;
        }
        match self.done.last_mut() {
            Some(last) if last.role == role => last.content.extend(parts),
            _ => self.done.push(Wire { role, content: parts }),
        }
    }

    fn assistant(&mut self, blocks: &[Block]) -> Result<(), serde_json::Error> {
        self.settle();
        // Reasoning is wanted back while calls are in play, and of no use otherwise.
        let calls = blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        let mut parts = Vec::with_capacity(blocks.len());
        for block in blocks {
            match block {
                Block::Text(text) => parts.extend(Part::text(text)),
                Block::Thinking { text, signature: Some(signature) } if calls => {
                    parts.push(Part::Thinking { thinking: text.clone(), signature: signature.clone() });
                }
                Block::RedactedThinking { data } if calls => parts.push(Part::RedactedThinking { data: data.clone() }),
                Block::ToolUse { id, name, input, raw } => {
                    self.open_calls.push(id.clone());
                    let input = arguments(input, raw.as_deref())?;
                    parts.push(Part::ToolUse { id: wire_id(id), name: name.clone(), input });
                }
                Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::Image { .. }
                | Block::ToolResult { .. } => {}
            }
        }
        self.push("assistant", parts);
        Ok(())
    }

    /// Closes the open calls and lets go what waited for them.
    fn settle(&mut self) {
        let mut parts: Vec<Part> = Vec::new();
        for id in self.open_calls.drain(..) {
            let tool_use_id = wire_id(&id);
            let content = ResultContent::Text("(no result: the call was interrupted)".to_owned());
            parts.push(Part::ToolResult { tool_use_id, content, is_error: true, cache_control: None });
        }
        parts.append(&mut self.waiting);
        self.push("user", parts);
    }
}

/// A call's id as this wire takes it; another provider's may hold other signs.
fn wire_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

/// The text of a message's own words.
fn words_of(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        Block::Image { .. } => Some("[image content]"),
        Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => {
            None
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// The model's own text where it was a JSON object, else the text of what was made of it: only objects are taken.
fn arguments(input: &Json, raw: Option<&str>) -> Result<Box<RawValue>, serde_json::Error> {
    let own = raw.filter(|raw| Json::parse(raw).is_ok_and(|json| json.object().is_some()));
    RawValue::from_string(own.unwrap_or(input.text()).to_owned())
}
