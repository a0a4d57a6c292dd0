//! How the end of a turn is answered: the stop reason, what is shown before it, or the error.
//!
//! The one table of them. A cancelled prompt is answered `cancelled` whatever the turn's own end was, for the client was
//! promised that word.

use serde_json::json;
use sluice_harness::agent::{Budget, CompletedHow, TurnEnd};
use sluice_harness::scene::StopCause;
use sluice_harness::seam::model::FaultKind;
use sluice_protocol::RpcError;
use sluice_protocol::acp::schema::v1::{PromptResponse, StopReason};

/// JSON-RPC's internal error.
const INTERNAL_ERROR: i32 = -32603;

/// Whether the client has cancelled the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Yes,
    Cancelled,
}

/// The end of a prompt.
#[derive(Debug)]
pub(super) struct Answer {
    /// Lines shown before the answer.
    pub(super) say: Vec<String>,
    /// The answer.
    pub(super) result: Result<PromptResponse, RpcError>,
}

impl Answer {
    fn stop(reason: StopReason, say: Option<String>) -> Self {
        Self { say: say.into_iter().collect(), result: Ok(PromptResponse::new(reason)) }
    }
}

/// The answer to a prompt whose turn ended so.
pub(super) fn answer(end: &TurnEnd, wanted: Wanted) -> Answer {
    match end {
        TurnEnd::Rejected { by, text } => {
            let veto = json!({ "by": by, "reason": text });
            let meta = [("sluice/veto".to_owned(), veto)].into_iter().collect::<serde_json::Map<_, _>>();
            let response = PromptResponse::new(StopReason::Cancelled).meta(meta);
            Answer { say: vec![text.clone()], result: Ok(response) }
        }
        TurnEnd::Cancelled { .. } => Answer::stop(StopReason::Cancelled, None),
        _ if wanted == Wanted::Cancelled => Answer::stop(StopReason::Cancelled, None),
        TurnEnd::Completed { how, note } => {
            // A cap was said when it was reached.
            let said = matches!(how, CompletedHow::StopHookCapped);
            Answer::stop(StopReason::EndTurn, note.clone().filter(|_| !said))
        }
        TurnEnd::Stopped { cause } => Answer::stop(StopReason::EndTurn, Some(stopped(cause))),
        TurnEnd::Budget { which, limit } => {
            let (reason, words) = match which {
                Budget::MaxTurns | Budget::MaxSteps => {
                    (StopReason::MaxTurnRequests, format!("its limit of {limit} model requests"))
                }
                Budget::Timeout => (StopReason::MaxTurnRequests, format!("its time limit of {} s", seconds(*limit))),
                Budget::Continuations => (StopReason::EndTurn, format!("its limit of {limit} continuations by hooks")),
            };
            Answer::stop(reason, Some(format!("[sluice] the turn reached {words}")))
        }
        TurnEnd::MaxTokens => Answer::stop(StopReason::MaxTokens, None),
        TurnEnd::Refused => Answer::stop(StopReason::Refusal, None),
        TurnEnd::Error { kind, message } => Answer { say: Vec::new(), result: Err(failed(*kind, message)) },
        TurnEnd::Interrupted => {
            Answer { say: Vec::new(), result: Err(failed(FaultKind::Internal, "the turn was interrupted")) }
        }
    }
}

fn stopped(cause: &StopCause) -> String {
    match &cause.reason {
        Some(reason) => format!("[{}] stopped the turn: {reason}", cause.by),
        None => format!("[{}] stopped the turn", cause.by),
    }
}

fn failed(kind: FaultKind, message: &str) -> RpcError {
    RpcError::owned(INTERNAL_ERROR, message, Some(json!({ "code": kind.code() })))
}

fn seconds(milliseconds: u64) -> String {
    let (whole, rest) = (milliseconds / 1000, milliseconds % 1000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}").trim_end_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test may panic")]

    use sluice_harness::cancel::CancelCause;
    use sluice_harness::scene::StopKind;

    use super::*;

    fn word(end: &TurnEnd, wanted: Wanted) -> String {
        match answer(end, wanted).result {
            Ok(response) => serde_json::to_value(response.stop_reason).unwrap().as_str().unwrap().to_owned(),
            Err(error) => error.code().to_string(),
        }
    }

    #[test]
    fn each_end_has_its_stop_reason() {
        let completed = TurnEnd::Completed { how: CompletedHow::Normal, note: None };
        let stopped = TurnEnd::Stopped {
            cause: StopCause { by: "PreToolUse:Bash".into(), reason: Some("budget".into()), kind: StopKind::Hook },
        };
        let budget = |which| TurnEnd::Budget { which, limit: 1500 };
        let error = TurnEnd::Error { kind: FaultKind::Auth, message: "the provider refused the key".into() };
        let table = [
            (completed, "end_turn"),
            (TurnEnd::Rejected { by: "h".into(), text: "no".into() }, "cancelled"),
            (stopped, "end_turn"),
            (budget(Budget::MaxTurns), "max_turn_requests"),
            (budget(Budget::MaxSteps), "max_turn_requests"),
            (budget(Budget::Timeout), "max_turn_requests"),
            (budget(Budget::Continuations), "end_turn"),
            (TurnEnd::MaxTokens, "max_tokens"),
            (TurnEnd::Refused, "refusal"),
            (TurnEnd::Cancelled { cause: CancelCause::User }, "cancelled"),
            (error, "-32603"),
        ];
        for (end, expected) in table {
            assert_eq!(word(&end, Wanted::Yes), expected, "{end:?}");
            assert_eq!(word(&end, Wanted::Cancelled), "cancelled", "{end:?}");
        }
    }

    #[test]
    fn a_veto_is_shown_and_named_in_the_metadata() {
        let Answer { say, result } = answer(&TurnEnd::Rejected { by: "hook".into(), text: "no".into() }, Wanted::Yes);
        assert_eq!(say, ["no"]);
        let meta = result.unwrap().meta.unwrap();
        assert_eq!(meta.get("sluice/veto"), Some(&json!({"by": "hook", "reason": "no"})));
    }

    #[test]
    fn a_failure_carries_its_code() {
        let end = TurnEnd::Error { kind: FaultKind::Auth, message: "the provider refused the key".into() };
        let error = answer(&end, Wanted::Yes).result.unwrap_err();
        assert_eq!(error.data().unwrap().get(), r#"{"code":"auth"}"#);
        assert_eq!(error.message(), "the provider refused the key");
    }

    #[test]
    fn times_are_said_in_seconds() {
        assert_eq!([seconds(1500), seconds(2000), seconds(50)], ["1.5", "2", "0.05"]);
    }
}
