//! What a script file may say: strict reading into steps that cannot be wrong.
//!
//! Plays nothing. The invariant: an unknown field, a field given twice and two fields that exclude each other are
//! errors that name them; a call's arguments keep every digit that the file has.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use sluice_harness::json::Json;
use sluice_harness::seam::model::{StopReason, Usage};

/// A whole script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) steps: Vec<Arc<Step>>,
    #[serde(default)]
    pub(super) agents: HashMap<String, AgentScript>,
    #[serde(default)]
    pub(super) hook_steps: Option<Vec<Arc<Step>>>,
    #[serde(default)]
    pub(super) compaction_steps: Option<Vec<Arc<Step>>>,
    #[serde(default)]
    pub(super) when_exhausted: WhenExhausted,
    #[serde(default)]
    pub(super) context_window: Option<u64>,
    #[serde(default)]
    pub(super) record: Option<PathBuf>,
}

/// The steps of one type of subagent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentScript {
    pub(super) steps: Vec<Arc<Step>>,
}

/// What a request gets that comes after the last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WhenExhausted {
    #[default]
    Error,
    Stop,
    Last,
    Loop,
}

/// One step, checked.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "StepText")]
pub(super) struct Step {
    pub(super) expect: Expect,
    pub(super) thinking: Option<String>,
    pub(super) say: Say,
    pub(super) calls: Vec<Call>,
    pub(super) stop: Option<StopReason>,
    pub(super) usage: Option<Usage>,
    pub(super) delay: Duration,
    pub(super) chunk_delay: Duration,
    pub(super) failure: Option<Failure>,
}

impl Step {
    /// A step that says one text.
    pub(super) fn saying(text: &str) -> Self {
        Self { say: Say::Chunks(vec![text.to_owned()]), ..Self::default() }
    }

    /// Whether the step gets as far as its calls.
    pub(super) fn reaches_calls(&self) -> bool {
        self.failure.is_none()
    }
}

/// What a step says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Say {
    Chunks(Vec<String>),
    Repeat { chunk: String, times: u64 },
    Echo,
}

impl Default for Say {
    fn default() -> Self {
        Self::Chunks(Vec::new())
    }
}

/// One call of a step.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "CallText")]
pub(super) struct Call {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// What a request must and must not contain.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    #[serde(default)]
    pub(super) contains: Vec<String>,
    #[serde(default)]
    pub(super) not_contains: Vec<String>,
}

impl Expect {
    pub(super) fn is_empty(&self) -> bool {
        self.contains.is_empty() && self.not_contains.is_empty()
    }
}

/// How a step fails.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) after_chunks: Option<u64>,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailureKind {
    RateLimit,
    Overloaded,
    Network,
    Auth,
    ContextOverflow,
    BadRequest,
    CutOff,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    #[serde(default)]
    expect: Expect,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    chunks: Option<Vec<String>>,
    #[serde(default)]
    repeat: Option<RepeatText>,
    #[serde(default)]
    echo: bool,
    #[serde(default)]
    tool_calls: Vec<Call>,
    #[serde(default)]
    stop_reason: Option<StopText>,
    #[serde(default)]
    usage: Option<UsageText>,
    #[serde(default)]
    delay_ms: u64,
    #[serde(default)]
    chunk_delay_ms: u64,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepeatText {
    chunk: String,
    times: u64,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopText {
    EndTurn,
    MaxTokens,
    Refusal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageText {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(default)]
    cached_input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallText {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    input: Option<Json>,
    #[serde(default)]
    input_text: Option<String>,
}

impl TryFrom<StepText> for Step {
    type Error = String;

    fn try_from(step: StepText) -> Result<Self, String> {
        let given: Vec<&str> = [
            ("text", step.text.is_some()),
            ("chunks", step.chunks.is_some()),
            ("repeat", step.repeat.is_some()),
            ("echo", step.echo),
        ]
        .iter()
        .filter_map(|(field, is_given)| is_given.then_some(*field))
        .collect();
        if let [first, second, ..] = given.as_slice() {
            return Err(format!("a step has both `{first}` and `{second}`; keep one of them"));
        }
        let say = match (step.text, step.chunks, step.repeat, step.echo) {
            (_, _, _, true) => Say::Echo,
            (Some(text), ..) if text.is_empty() => Say::default(),
            (Some(text), ..) => Say::Chunks(vec![text]),
            (_, Some(chunks), ..) => Say::Chunks(chunks),
            (_, _, Some(repeat), _) => Say::Repeat { chunk: repeat.chunk, times: repeat.times },
            (None, None, None, false) => Say::default(),
        };
        Ok(Self {
            expect: step.expect,
            thinking: step.thinking,
            say,
            calls: step.tool_calls,
            stop: step.stop_reason.map(|stop| match stop {
                StopText::EndTurn => StopReason::EndTurn,
                StopText::MaxTokens => StopReason::MaxTokens,
                StopText::Refusal => StopReason::Refusal,
            }),
            usage: step.usage.map(|usage| Usage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cached_input_tokens: usage.cached_input_tokens,
                cache_creation_input_tokens: usage.cache_creation_input_tokens,
            }),
            delay: delay(step.delay_ms),
            chunk_delay: delay(step.chunk_delay_ms),
            failure: step.error,
        })
    }
}

impl TryFrom<CallText> for Call {
    type Error = String;

    fn try_from(call: CallText) -> Result<Self, String> {
        let CallText { id, name, input, input_text } = call;
        let arguments = match (input, input_text) {
            (Some(input), None) => input.text().to_owned(),
            (None, Some(text)) => text,
            (Some(_), Some(_)) => {
                return Err(format!("the call of `{name}` has both `input` and `input_text`; keep one of them"));
            }
            (None, None) => {
                return Err(format!("the call of `{name}` has neither `input` nor `input_text`; give one of them"));
            }
        };
        Ok(Self { id, name, arguments })
    }
}

/// A delay in milliseconds, at most a year: the clock has an end.
fn delay(millis: u64) -> Duration {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Duration::from_millis(millis).min(YEAR)
}
