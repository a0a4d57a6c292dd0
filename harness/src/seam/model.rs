//! The model seam: one streamed exchange with a language model, free of any provider's encoding.
//!
//! Contract for every provider: nothing of a request is kept between calls (the request carries all); retries happen
//! only before the first content event; dropping the stream or firing the signal drops the request; secrets never
//! appear in a fault. A request's `index` counts the requests of its purpose in the session from 0, also across
//! resumes, which is how a written sequence finds its place.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Fut;
use crate::cancel::Cancel;
use crate::content::Message;
use crate::ids::SessionId;
use crate::json::Json;

/// What a model is called and can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The provider's name in the configuration, such as `deepseek` or `script`.
    pub provider: String,
    /// The model's name at the provider.
    pub model: String,
    /// The thinking level, for models that have one (`low`, `medium`, `high`, `xhigh`, `max`).
    pub effort: Option<String>,
    /// Tokens of context, where known.
    pub context_window: Option<u64>,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// The conversation's next step.
    Turn,
    /// A hook handler's own question.
    Hook,
    /// A summary.
    Compaction,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Json,
}

/// One request.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The session.
    pub session: SessionId,
    /// The subagent's type, or `None` for the main agent.
    pub agent: Option<String>,
    /// What it is for.
    pub purpose: Purpose,
    /// How many requests of this purpose and agent came before it in the session.
    pub index: u64,
    /// The system prompt.
    pub system: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The tools, in order.
    pub tools: Vec<ToolSchema>,
    /// At most so many output tokens.
    pub max_output_tokens: Option<u64>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said what it wanted.
    EndTurn,
    /// It wants its calls run.
    ToolUse,
    /// It ran into its output limit.
    MaxTokens,
    /// It refused.
    Refusal,
}

/// Tokens used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Of the tokens read, how many came from a cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Of the tokens read, how many were put into a cache, where the provider says so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_creation_input_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_input_tokens: self.cached_input_tokens.saturating_add(other.cached_input_tokens),
            cache_creation_input_tokens: self
                .cache_creation_input_tokens
                .saturating_add(other.cache_creation_input_tokens),
        }
    }
}

/// One event of an answer. Every answer ends with one `Stop` or with a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelEvent {
    /// A piece of reasoning.
    Thinking(String),
    /// The provider's opaque proof of the reasoning just streamed.
    ThinkingSignature(String),
    /// A whole block of reasoning that the provider shows to nobody; it wants these opaque bytes back.
    RedactedThinking(String),
    /// A piece of text.
    Text(String),
    /// A complete call; `arguments` is the model's own text.
    ToolCall {
        /// The provider's id, where it gave one.
        id: Option<String>,
        /// The tool's name.
        name: String,
        /// The argument text, valid JSON or not.
        arguments: String,
    },
    /// Tokens used so far by this request.
    Usage(Usage),
    /// The end.
    Stop(StopReason),
}

/// What kind of failure; the words of `cli.md`'s exit code 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The key is missing or refused.
    Auth,
    /// Too many requests, or the quota is used up.
    RateLimit,
    /// The provider is overloaded or failed on its side.
    Overloaded,
    /// It could not be reached, or the connection broke.
    Network,
    /// It answered something that is no valid answer.
    BadResponse,
    /// The conversation does not fit into the model.
    ContextOverflow,
    /// It refused the request as malformed.
    BadRequest,
    /// Our own side failed.
    Internal,
}

impl FaultKind {
    /// The stable code in results and on stderr.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Network => "network",
            Self::BadResponse | Self::BadRequest => "bad_response",
            Self::ContextOverflow => "context_overflow",
            Self::Internal => "internal",
        }
    }
}

/// A failed exchange.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ModelFault {
    /// What kind.
    pub kind: FaultKind,
    /// One sentence of cause and one of remedy; never a secret.
    pub message: String,
    /// Whether trying again may help, and after how long the provider wants that.
    pub retry: Retry,
}

/// Whether a failed request may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No.
    No,
    /// Yes, after a back-off of our own choice.
    Backoff,
    /// Yes, after this long.
    After(Duration),
}

/// A streamed answer. Dropping it drops the request.
pub trait ModelStream: Send {
    /// The next event; `None` after `Stop`. Cancel-safe.
    fn next(&mut self) -> Fut<'_, Option<Result<ModelEvent, ModelFault>>>;
}

/// A language model.
pub trait Model: Send + Sync {
    /// What it is.
    fn info(&self) -> ModelInfo;
    /// Whether it takes images; where not, prompts with images are refused and other images are named in brackets.
    fn takes_images(&self) -> bool {
        false
    }
    /// Sends one request and returns its stream once the provider has accepted it. The provider does not retry: the loop does.
    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Box<dyn ModelStream>, ModelFault>>;
}
