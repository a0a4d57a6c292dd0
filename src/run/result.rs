//! The result object of a headless run, in the shape that scripts around `claude -p` parse.

use serde::Serialize;
use sluice_harness::agent::{Budget, CompletedHow, TurnEnd, TurnReport};
use sluice_harness::ids::SessionId;
use sluice_harness::json::Json;
use sluice_harness::point::tools::DeniedBy;
use sluice_harness::seam::model::{StopReason, Usage};

use crate::fault::Outcome;

/// The object itself; keys in the order they are written.
#[derive(Serialize)]
pub(crate) struct RunResult {
    r#type: &'static str,
    subtype: &'static str,
    is_error: bool,
    duration_ms: u64,
    num_turns: u32,
    result: String,
    stop_reason: Option<&'static str>,
    terminal_reason: &'static str,
    session_id: SessionId,
    usage: UsageWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_hook_capped: Option<bool>,
    permission_denials: Vec<DenialWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_output: Option<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ErrorWire>,
    uuid: String,
}

/// Token counts under the names that `claude -p` uses.
#[derive(Serialize)]
pub(super) struct UsageWire {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl From<Usage> for UsageWire {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage
                .input_tokens
                .saturating_sub(usage.cached_input_tokens)
                .saturating_sub(usage.cache_creation_input_tokens),
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cached_input_tokens,
            output_tokens: usage.output_tokens,
        }
    }
}

#[derive(Serialize)]
struct DenialWire {
    tool_name: String,
    tool_use_id: String,
    tool_input: Json,
    reason: String,
    by: DeniedBy,
}

#[derive(Serialize)]
struct ErrorWire {
    code: String,
    message: String,
}

/// The words of a model's stop reason in a result.
pub(super) fn stop_word(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::Refusal => "refusal",
    }
}

/// The text that a run answers with.
pub(crate) fn text(report: &TurnReport) -> String {
    match &report.end {
        TurnEnd::Rejected { text, .. } => text.clone(),
        // After blocks of a stop hook were overridden there is no answer that the hook had accepted.
        TurnEnd::Completed { how: CompletedHow::StopHookCapped, .. } => String::new(),
        TurnEnd::Stopped { .. } => String::new(),
        TurnEnd::Completed { .. }
        | TurnEnd::Budget { .. }
        | TurnEnd::MaxTokens
        | TurnEnd::Refused
        | TurnEnd::Cancelled { .. }
        | TurnEnd::Error { .. }
        | TurnEnd::Interrupted => report.text.clone(),
    }
}

/// What went wrong, as `(code, message)`.
pub(crate) fn error(end: &TurnEnd) -> Option<(String, String)> {
    match end {
        TurnEnd::Error { kind, message } => Some((kind.code().to_owned(), message.clone())),
        TurnEnd::Budget { which: Budget::Timeout, limit } => {
            Some(("timeout".to_owned(), format!("the run reached its time limit of {limit} ms (--timeout)")))
        }
        TurnEnd::Budget { which: Budget::MaxTurns, limit } => {
            Some(("max_turns".to_owned(), format!("the run reached its limit of {limit} model turns (--max-turns)")))
        }
        TurnEnd::Budget { which: Budget::MaxSteps, limit } => {
            Some(("max_steps".to_owned(), format!("the run reached its limit of {limit} steps (--max-steps)")))
        }
        TurnEnd::Budget { which: Budget::Continuations, .. } => None,
        TurnEnd::MaxTokens => {
            Some(("max_tokens".to_owned(), "the model reached its output limit; raise --max-output-tokens".to_owned()))
        }
        TurnEnd::Refused => Some(("refused".to_owned(), "the model refused the request".to_owned())),
        TurnEnd::Cancelled { cause } => Some(("cancelled".to_owned(), format!("the run was cancelled by {cause}"))),
        TurnEnd::Completed { .. } | TurnEnd::Rejected { .. } | TurnEnd::Stopped { .. } | TurnEnd::Interrupted => None,
    }
}

impl RunResult {
    /// The object of a finished turn.
    pub(crate) fn of(
        session: &SessionId,
        report: &TurnReport,
        outcome: &Outcome,
        structured_output: Option<Json>,
    ) -> Self {
        let capped = matches!(report.end, TurnEnd::Completed { how: CompletedHow::StopHookCapped, .. });
        Self {
            r#type: "result",
            subtype: outcome.subtype,
            is_error: outcome.is_error(),
            duration_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
            num_turns: report.steps,
            result: text(report),
            stop_reason: report.stop_reason.map(stop_word),
            terminal_reason: outcome.terminal_reason,
            session_id: session.clone(),
            usage: report.usage.into(),
            stop_hook_capped: capped.then_some(true),
            permission_denials: report
                .denials
                .iter()
                .map(|d| DenialWire {
                    tool_name: d.tool_name.clone(),
                    tool_use_id: d.tool_use_id.as_str().to_owned(),
                    tool_input: d.tool_input.clone(),
                    reason: d.reason.clone(),
                    by: d.by,
                })
                .collect(),
            structured_output,
            errors: error(&report.end).map(|(code, message)| ErrorWire { code, message }).into_iter().collect(),
            uuid: uuid::Uuid::now_v7().to_string(),
        }
    }
}
