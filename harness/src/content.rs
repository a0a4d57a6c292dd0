//! Content and messages: what a model reads and writes, free of any provider's encoding.
//!
//! The serde form is the one that logs and the script model's records show.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Who speaks. `System` and `Developer` are also used in mid-conversation for injected context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or text that stands for one.
    User,
    /// The model.
    Assistant,
    /// The harness, in the Claude dialect.
    System,
    /// The harness, in the Codex dialect.
    Developer,
    /// A tool's result.
    Tool,
}

/// One piece of content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "wire::BlockWire", into = "wire::BlockWire")]
pub enum Block {
    /// Plain text.
    Text(String),
    /// A model's reasoning, and the provider's opaque proof of it where there is one.
    Thinking {
        /// The reasoning text.
        text: String,
        /// What the provider wants back unchanged.
        signature: Option<String>,
    },
    /// Reasoning that the provider shows to nobody.
    RedactedThinking {
        /// What the provider wants back unchanged.
        data: String,
    },
    /// An image.
    Image {
        /// Its MIME type.
        media_type: String,
        /// The bytes, base64.
        data: String,
    },
    /// A call that the model asks for.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments; the empty object when the model's text was no lossless JSON object.
        input: Json,
        /// The model's own argument text, where it is not the text of `input`.
        raw: Option<String>,
    },
    /// The result of a call.
    ToolResult {
        /// The call's id.
        tool_use_id: String,
        /// What the model reads.
        content: Vec<Block>,
        /// Whether the call failed or was denied.
        is_error: bool,
    },
}

impl Block {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// The text blocks joined by newlines; other blocks are named in brackets.
#[must_use]
pub fn plain_text(blocks: &[Block]) -> String {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        parts.push(match block {
            Block::Text(text) => text.clone(),
            Block::Thinking { .. } => "[thinking content]".to_owned(),
            Block::RedactedThinking { .. } => "[redacted_thinking content]".to_owned(),
            Block::Image { .. } => "[image content]".to_owned(),
            Block::ToolUse { .. } => "[tool_use content]".to_owned(),
            Block::ToolResult { .. } => "[tool_result content]".to_owned(),
        });
    }
    parts.join("\n")
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    #[serde(with = "wire::content")]
    pub content: Vec<Block>,
}

impl Message {
    /// A message of one text.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: vec![Block::text(text)] }
    }
}

mod wire {
    //! The serde shapes: plain structs without tags, because exact JSON does not survive serde's tagged enums.

    use super::{Block, Deserialize, Json, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) struct BlockWire {
        r#type: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thinking: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<Json>,
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_input: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<TextOrBlocks>,
        #[serde(skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    }

    impl BlockWire {
        fn of(kind: &str) -> Self {
            Self {
                r#type: kind.to_owned(),
                text: None,
                thinking: None,
                signature: None,
                media_type: None,
                data: None,
                id: None,
                name: None,
                input: None,
                raw_input: None,
                tool_use_id: None,
                content: None,
                is_error: None,
            }
        }
    }

    impl From<Block> for BlockWire {
        fn from(block: Block) -> Self {
            match block {
                Block::Text(text) => Self { text: Some(text), ..Self::of("text") },
                Block::Thinking { text, signature } => Self { thinking: Some(text), signature, ..Self::of("thinking") },
                Block::RedactedThinking { data } => Self { data: Some(data), ..Self::of("redacted_thinking") },
                Block::Image { media_type, data } => {
                    Self { media_type: Some(media_type), data: Some(data), ..Self::of("image") }
                }
                Block::ToolUse { id, name, input, raw } => {
                    Self { id: Some(id), name: Some(name), input: Some(input), raw_input: raw, ..Self::of("tool_use") }
                }
                Block::ToolResult { tool_use_id, content, is_error } => Self {
                    tool_use_id: Some(tool_use_id),
                    content: Some(TextOrBlocks(content)),
                    is_error: Some(is_error),
                    ..Self::of("tool_result")
                },
            }
        }
    }

    impl TryFrom<BlockWire> for Block {
        type Error = String;
        fn try_from(wire: BlockWire) -> Result<Self, String> {
            let kind = wire.r#type.clone();
            let missing = |field: &str| format!("a {kind} block without `{field}`");
            match kind.as_str() {
                "text" => Ok(Self::Text(wire.text.ok_or_else(|| missing("text"))?)),
                "thinking" => Ok(Self::Thinking {
                    text: wire.thinking.ok_or_else(|| missing("thinking"))?,
                    signature: wire.signature,
                }),
                "redacted_thinking" => Ok(Self::RedactedThinking { data: wire.data.ok_or_else(|| missing("data"))? }),
                "image" => Ok(Self::Image {
                    media_type: wire.media_type.ok_or_else(|| missing("media_type"))?,
                    data: wire.data.ok_or_else(|| missing("data"))?,
                }),
                "tool_use" => Ok(Self::ToolUse {
                    id: wire.id.ok_or_else(|| missing("id"))?,
                    name: wire.name.ok_or_else(|| missing("name"))?,
                    input: wire.input.ok_or_else(|| missing("input"))?,
                    raw: wire.raw_input,
                }),
                "tool_result" => Ok(Self::ToolResult {
                    tool_use_id: wire.tool_use_id.ok_or_else(|| missing("tool_use_id"))?,
                    content: wire.content.ok_or_else(|| missing("content"))?.0,
                    is_error: wire.is_error.unwrap_or(false),
                }),
                other => Err(format!("unknown content block type `{other}`")),
            }
        }
    }

    /// A list of blocks that is written as a plain string when it is one text.
    struct TextOrBlocks(Vec<Block>);

    impl Serialize for TextOrBlocks {
        fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            content::serialize(&self.0, s)
        }
    }

    impl<'de> Deserialize<'de> for TextOrBlocks {
        fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            content::deserialize(d).map(Self)
        }
    }

    pub(super) mod content {
        //! Message content: a string when it is one text, else the list.
        use super::super::Block;
        use serde::de::{self, Deserializer, SeqAccess, Visitor};
        use serde::{Serialize, Serializer};

        pub(in super::super) fn serialize<S: Serializer>(blocks: &Vec<Block>, s: S) -> Result<S::Ok, S::Error> {
            match blocks.as_slice() {
                [Block::Text(text)] => s.serialize_str(text),
                several => several.serialize(s),
            }
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Block>, D::Error> {
            struct Visit;
            impl<'de> Visitor<'de> for Visit {
                type Value = Vec<Block>;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a string or a list of content blocks")
                }
                fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<Block>, E> {
                    Ok(vec![Block::text(text)])
                }
                fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Block>, A::Error> {
                    let mut blocks = Vec::new();
                    while let Some(block) = seq.next_element()? {
                        blocks.push(block);
                    }
                    Ok(blocks)
                }
            }
            d.deserialize_any(Visit)
        }
    }
}
