//! The client as one who can be asked: `session/request_permission` behind the chain of approval answerers.
//!
//! Only picking an offered *allow* is consent. An error, an unknown option, a closed connection and silence beyond the
//! answer timeout are not. The question is withdrawn (`$/cancel_request`) by dropping it, and a late answer finds nobody.

use std::time::Duration;

use serde::Serialize;
use sluice_harness::Fut;
use sluice_harness::json::Json;
use sluice_harness::permission::{Behaviour, Rule};
use sluice_harness::point::approval::{Approval, ApprovalView};
use sluice_harness::point::notification::{NotificationKind, while_waiting};
use sluice_harness::point::tools::AskOrigin;
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::approval::{ApprovalCard, ApprovalOutcome, Rejecter};
use sluice_harness::tool::CallFacts;
use sluice_protocol::acp::schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse,
};
use sluice_protocol::{Peer, PeerError};

use super::feed::Feed;
use super::update::{self, Call, Status};

const METHOD: &str = "session/request_permission";
const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
/// Where rules that *always* adds are said to come from.
const ORIGIN: &str = "allowed in this session";

/// Asks the client.
pub(super) struct Client {
    peer: Peer,
    feed: Feed,
    timeout: Option<Duration>,
    /// How long a question stands before the person is called to it.
    patience: Duration,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Question<'a> {
    session_id: &'a str,
    tool_call: Call,
    options: Vec<PermissionOption>,
}

/// What the client's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    Once,
    Always,
    Rejected,
    Withdrawn,
    Nothing,
}

impl Client {
    pub(super) fn new(peer: Peer, feed: Feed, timeout: Option<Duration>, patience: Duration) -> Self {
        Self { peer, feed, timeout, patience }
    }

    async fn ask(&self, view: ApprovalView<'_>) -> ApprovalOutcome {
        let session = view.scene.session;
        let rule = rule_for(view.card, view.sealed);
        // The announced call comes first on the wire.
        if self.feed.settled().await.is_err() {
            return ApprovalOutcome::Unavailable;
        }
        let question =
            Question { session_id: session.id.as_str(), tool_call: shown(view.card), options: options(rule.as_ref()) };
        let answer = self.peer.request_as::<RequestPermissionResponse>(METHOD, &question);
        let answer = while_waiting(view.scene, NotificationKind::PermissionPrompt, self.patience, answer);
        let answer = match self.timeout {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => {
                    tracing::warn!(seconds = limit.as_secs_f64(), "nobody answered a permission request in time");
                    return ApprovalOutcome::Unavailable;
                }
            },
        };
        match (read(answer), rule) {
            (Answered::Once, _) => ApprovalOutcome::AllowedOnce,
            (Answered::Always, Some(rule)) => {
                session.permissions.add_rules(ORIGIN, &session.start_dir, Behaviour::Allow, vec![rule]);
                ApprovalOutcome::AllowedOnce
            }
            // It was not offered, so it is no consent.
            (Answered::Always, None) | (Answered::Rejected, _) => {
                ApprovalOutcome::Rejected { message: None, by: Rejecter::Person }
            }
            (Answered::Withdrawn, _) => ApprovalOutcome::Cancelled,
            (Answered::Nothing, _) => ApprovalOutcome::Unavailable,
        }
    }
}

impl Listener<Approval> for Client {
    fn name(&self) -> &str {
        "client"
    }

    /// Answers by itself: behind it stands only "nobody can be asked".
    fn decide<'a>(
        &'a self,
        view: ApprovalView<'a>,
        _next: Next<'a, Approval>,
    ) -> Fut<'a, Result<ApprovalOutcome, ListenerFault>> {
        Box::pin(async move { Ok(self.ask(view).await) })
    }
}

fn read(answer: Result<RequestPermissionResponse, PeerError>) -> Answered {
    match answer {
        Ok(response) => match response.outcome {
            RequestPermissionOutcome::Cancelled => Answered::Withdrawn,
            RequestPermissionOutcome::Selected(selected) => match &*selected.option_id.0 {
                ALLOW_ONCE => Answered::Once,
                ALLOW_ALWAYS => Answered::Always,
                REJECT_ONCE => Answered::Rejected,
                other => {
                    tracing::warn!(option = other, "a permission request was answered with an option it did not have");
                    Answered::Rejected
                }
            },
            other => {
                tracing::warn!(?other, "a permission request was answered with an unknown outcome");
                Answered::Rejected
            }
        },
        Err(fault) => {
            tracing::warn!(%fault, "a permission request was not answered");
            Answered::Nothing
        }
    }
}

/// The rule that *always* would add. None where a rule would change nothing: only the mode's own question is answered by
/// an allow rule. None either where the card hides a secret, which the rule would have to show.
fn rule_for(card: &ApprovalCard, sealed: &Json) -> Option<Rule> {
    if card.origin != AskOrigin::Mode || card.input != *sealed {
        return None;
    }
    if card.tool == "WebFetch" {
        return Rule::for_site(&card.tool, card.input.str_at("url")?);
    }
    let command = (card.tool == "Bash").then(|| card.input.str_at("command").map(str::to_owned)).flatten();
    Rule::for_call(&card.tool, &CallFacts { command, ..CallFacts::default() })
}

fn options(rule: Option<&Rule>) -> Vec<PermissionOption> {
    let mut options = vec![PermissionOption::new(ALLOW_ONCE, "Allow", PermissionOptionKind::AllowOnce)];
    if let Some(rule) = rule {
        let name = format!("Always allow {rule} in this session");
        options.push(PermissionOption::new(ALLOW_ALWAYS, name, PermissionOptionKind::AllowAlways));
    }
    options.push(PermissionOption::new(REJECT_ONCE, "Reject", PermissionOptionKind::RejectOnce));
    options
}

/// The call as a dialog shows it, complete in itself; never without content.
fn shown(card: &ApprovalCard) -> Call {
    let mut call = Call::whole(card.call_id.as_str(), Status::Pending, card.card.clone(), card.input.clone());
    // What the mode says is only that it asks.
    let reason = card.reason.as_ref().filter(|_| card.origin != AskOrigin::Mode);
    let mut content: Vec<_> = reason.into_iter().map(update::text).collect();
    content.extend(call.content.take().unwrap_or_default());
    if content.is_empty() {
        content.push(update::text(card.input.str_at("command").unwrap_or(&card.card.title)));
    }
    call.content = Some(content);
    call
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test may panic")]

    use sluice_harness::ids::CallId;
    use sluice_harness::json::Json;
    use sluice_harness::tool::{CallCard, CallKind};

    use super::*;

    fn card(tool: &str, input: &str, origin: AskOrigin) -> ApprovalCard {
        ApprovalCard {
            call_id: CallId::new("c"),
            tool: tool.to_owned(),
            input: Json::parse(input).unwrap(),
            card: CallCard { title: "t".to_owned(), kind: CallKind::Execute, items: Vec::new(), locations: Vec::new() },
            reason: None,
            origin,
        }
    }

    fn rule(tool: &str, input: &str, origin: AskOrigin) -> Option<String> {
        let card = card(tool, input, origin);
        rule_for(&card, &card.input).map(|rule| rule.to_string())
    }

    #[test]
    fn always_means_this_very_command_or_this_tool_and_is_offered_only_where_it_has_an_effect() {
        let bash = r#"{"command":"rm *.o"}"#;
        assert_eq!(rule("Bash", bash, AskOrigin::Mode).as_deref(), Some(r"Bash(rm \*.o)"));
        assert_eq!(rule("Write", r#"{"file_path":"/w/f"}"#, AskOrigin::Mode).as_deref(), Some("Write"));
        let page = r#"{"url":"https://docs.example.com/a?b"}"#;
        assert_eq!(rule("WebFetch", page, AskOrigin::Mode).as_deref(), Some("WebFetch(domain:docs.example.com)"));
        for origin in [AskOrigin::Rule, AskOrigin::Hook, AskOrigin::Plan, AskOrigin::Escalation] {
            assert_eq!(rule("Bash", bash, origin), None);
        }
    }

    #[test]
    fn only_an_offered_option_is_consent() {
        let answered = |json: &str| read(Ok(serde_json::from_str(json).unwrap()));
        let selected = |id: &str| answered(&format!(r#"{{"outcome":{{"outcome":"selected","optionId":"{id}"}}}}"#));
        assert_eq!(selected("allow_once"), Answered::Once);
        assert_eq!(selected("allow_always"), Answered::Always);
        assert_eq!(selected("reject_once"), Answered::Rejected);
        assert_eq!(selected("allow"), Answered::Rejected);
        assert_eq!(answered(r#"{"outcome":{"outcome":"cancelled"}}"#), Answered::Withdrawn);
        assert_eq!(read(Err(PeerError::Closed)), Answered::Nothing);
    }

    #[test]
    fn a_dialog_is_never_empty_and_says_why_a_hook_or_rule_asks() {
        let of = |origin, reason: &str| {
            let mut card = card("Bash", r#"{"command":"make all"}"#, origin);
            card.reason = Some(reason.to_owned());
            shown(&card)
        };
        let by_mode = of(AskOrigin::Mode, "the mode asks");
        assert_eq!(by_mode.content, Some(vec![update::text("make all")]));
        assert_eq!(by_mode.status, Some(Status::Pending));
        assert_eq!(of(AskOrigin::Hook, "is it late?").content, Some(vec![update::text("is it late?")]));
    }
}
