//! The shapes of `session/update` that this agent sends, and how cards and plans become them.
//!
//! Types come from the schema crate but for tool calls: those are written here, because a call's raw input must keep
//! every digit and the order of its keys, and because the status is always written out, also where it is the default.

use serde::Serialize;
use sluice_harness::json::Json;
use sluice_harness::tool::{CallCard, CallKind, CardItem, Location, ResultCard};
use sluice_protocol::acp::schema::v1::{
    Content, ContentBlock, ContentChunk, Diff, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, TextContent,
    ToolCallContent, ToolCallLocation, UsageUpdate,
};

/// The method of updates.
pub(super) const METHOD: &str = "session/update";

/// The parameters of one `session/update`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notification<'a> {
    pub(super) session_id: &'a str,
    pub(super) update: Update,
}

/// What is updated.
#[derive(Debug, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the wire's own names")]
pub(super) enum Update {
    AgentMessageChunk(ContentChunk),
    AgentThoughtChunk(ContentChunk),
    ToolCall(Call),
    ToolCallUpdate(Call),
    Plan(Plan),
    UsageUpdate(UsageUpdate),
}

/// A tool call's status, as the wire says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// A tool call, or what changes of it; absent members stay as they are.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call {
    pub(super) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<CallKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Vec<ToolCallContent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) locations: Option<Vec<ToolCallLocation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_input: Option<Json>,
}

impl Call {
    /// A change of status alone.
    pub(super) fn status(id: &str, status: Status) -> Self {
        Self {
            tool_call_id: id.to_owned(),
            title: None,
            kind: None,
            status: Some(status),
            content: None,
            locations: None,
            raw_input: None,
        }
    }

    /// The whole call as it is shown before it has a result.
    pub(super) fn whole(id: &str, status: Status, card: CallCard, input: Json) -> Self {
        Self {
            title: Some(card.title),
            kind: Some(card.kind),
            content: Some(items(card.items)),
            locations: Some(locations(card.locations)),
            raw_input: Some(input),
            ..Self::status(id, status)
        }
    }

    /// The end of a call. A success that shows nothing new keeps what was shown; a failure never keeps a diff that
    /// did not happen.
    pub(super) fn finished(id: &str, card: ResultCard, is_error: bool) -> Self {
        let status = if is_error { Status::Failed } else { Status::Completed };
        let shown = is_error || !card.items.is_empty();
        Self {
            title: card.title,
            content: shown.then(|| items(card.items)),
            locations: (!card.locations.is_empty()).then(|| locations(card.locations)),
            ..Self::status(id, status)
        }
    }
}

/// A piece of a message.
pub(super) fn chunk(message: &str, text: String) -> ContentChunk {
    let message: std::sync::Arc<str> = message.into();
    ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
        .message_id(sluice_protocol::acp::schema::v1::MessageId::new(message))
}

/// A text as a tool call's content.
pub(super) fn text(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::Text(TextContent::new(text))))
}

/// A card's pieces.
pub(super) fn items(items: Vec<CardItem>) -> Vec<ToolCallContent> {
    items
        .into_iter()
        .map(|item| match item {
            CardItem::Text(words) => text(words),
            CardItem::Diff { path, old, new } => ToolCallContent::Diff(Diff::new(path, new).old_text(old)),
        })
        .collect()
}

/// Places to follow along.
pub(super) fn locations(places: Vec<Location>) -> Vec<ToolCallLocation> {
    places
        .into_iter()
        .map(|place| ToolCallLocation::new(place.path).line(place.line.and_then(|line| u32::try_from(line).ok())))
        .collect()
}

/// The plan that a `TodoWrite` input says; entries that make no sense are left out.
pub(super) fn plan(input: &Json) -> Option<Plan> {
    let todos = input.view().get("todos")?.as_array()?;
    let entries = todos
        .iter()
        .filter_map(|todo| {
            let status = match todo.get("status")?.as_str()? {
                "pending" => PlanEntryStatus::Pending,
                "in_progress" => PlanEntryStatus::InProgress,
                "completed" => PlanEntryStatus::Completed,
                _ => return None,
            };
            Some(PlanEntry::new(todo.get("content")?.as_str()?, PlanEntryPriority::Medium, status))
        })
        .collect();
    Some(Plan::new(entries))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test may panic")]

    use std::path::PathBuf;

    use sluice_protocol::acp::schema::v1::{SessionNotification, SessionUpdate, ToolCallStatus, ToolKind};

    use super::*;

    fn card() -> CallCard {
        CallCard {
            title: "write f".to_owned(),
            kind: CallKind::Edit,
            items: vec![CardItem::Diff { path: PathBuf::from("/w/f"), old: None, new: "n".to_owned() }],
            locations: vec![Location { path: PathBuf::from("/w/f"), line: Some(3) }],
        }
    }

    fn written(update: Update) -> String {
        serde_json::to_string(&Notification { session_id: "s", update }).unwrap()
    }

    fn read_back(text: &str) -> SessionUpdate {
        let read: SessionNotification = serde_json::from_str(text).unwrap();
        assert_eq!(&*read.session_id.0, "s");
        read.update
    }

    #[test]
    fn a_call_reads_back_with_the_official_types_and_keeps_its_input_to_the_digit() {
        let input = Json::parse(r#"{"b":1.10,"a":12345678901234567890}"#).unwrap();
        let text = written(Update::ToolCall(Call::whole("c1", Status::Pending, card(), input)));
        assert!(text.contains(r#""rawInput":{"b":1.10,"a":12345678901234567890}"#), "{text}");
        assert!(text.contains(r#""status":"pending""#), "{text}");
        let SessionUpdate::ToolCall(call) = read_back(&text) else { panic!("{text}") };
        assert_eq!((call.title.as_str(), call.kind, call.status), ("write f", ToolKind::Edit, ToolCallStatus::Pending));
        assert_eq!(call.locations.first().unwrap().line, Some(3));
        let [ToolCallContent::Diff(diff)] = call.content.as_slice() else { panic!("{text}") };
        assert_eq!((diff.old_text.as_deref(), diff.new_text.as_str()), (None, "n"));
    }

    #[test]
    fn a_failure_takes_back_the_diff_and_a_quiet_success_keeps_it() {
        let failed = Call::finished("c", ResultCard::default(), true);
        assert_eq!(failed.content, Some(Vec::new()));
        let done = Call::finished("c", ResultCard::default(), false);
        assert_eq!((done.content, done.status), (None, Some(Status::Completed)));
    }

    #[test]
    fn todos_become_a_plan_that_reads_back() {
        let input = Json::parse(
            r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"odd"},{"content":"c","status":"in_progress"}]}"#,
        )
        .unwrap();
        let text = written(Update::Plan(plan(&input).unwrap()));
        let SessionUpdate::Plan(plan) = read_back(&text) else { panic!("{text}") };
        let entries: Vec<_> = plan.entries.iter().map(|e| e.content.as_str()).collect();
        assert_eq!(entries, ["a", "c"]);
    }

    #[test]
    fn chunks_carry_the_id_of_their_message() {
        let text = written(Update::AgentMessageChunk(chunk("m", "hi".to_owned())));
        let SessionUpdate::AgentMessageChunk(chunk) = read_back(&text) else { panic!("{text}") };
        assert_eq!(chunk.message_id.map(|id| id.0.to_string()).as_deref(), Some("m"));
    }
}
