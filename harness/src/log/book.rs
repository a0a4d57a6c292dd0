//! The memory of a session: its events, where they stand, and the history that a model sees.
//!
//! Only [`Book::admit`] adds to it, for a live append and for a loaded line alike. The history is decoded anew each
//! time, from an index: a second copy of every text in memory would cost more than the reading.

use std::sync::Arc;

use super::event::{AssistantMessage, ContextAdded, EventKind, RequestHeader, ToolResult, UserMessage};
use super::line::Logged;
use super::relation::{Refusal, Relation};
use crate::content::{Block, Message, Role};
use crate::ids::Seq;

/// A session's events.
#[derive(Debug, Default)]
pub(super) struct Book {
    events: Vec<Arc<Logged>>,
    /// The events that a model may see, in order.
    visible: Vec<Arc<Logged>>,
    last_header: Option<Arc<Logged>>,
    relation: Relation,
}

impl Book {
    /// Adds the next event, or refuses it and stays as it was.
    pub(super) fn admit(&mut self, event: Logged) -> Result<Arc<Logged>, Refusal> {
        if event.seq != self.next_seq() {
            return Err(Refusal::Order(format!("event {} is due, not event {}", self.next_seq().0, event.seq.0)));
        }
        self.relation.admit(event.seq, &event.kind, &event.data)?;
        let event = Arc::new(event);
        match &*event.kind {
            UserMessage::TYPE | ContextAdded::TYPE | AssistantMessage::TYPE | ToolResult::TYPE => {
                self.visible.push(Arc::clone(&event));
            }
            RequestHeader::TYPE => self.last_header = Some(Arc::clone(&event)),
            _ => {}
        }
        self.events.push(Arc::clone(&event));
        Ok(event)
    }

    /// The position of the next event.
    pub(super) fn next_seq(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    /// Where the events stand.
    pub(super) fn relation(&self) -> &Relation {
        &self.relation
    }

    /// The time of the last event; 0 when there is none.
    pub(super) fn last_time(&self) -> u64 {
        self.events.last().map_or(0, |event| event.time_ms)
    }

    /// The events.
    pub(super) fn events(&self) -> &[Arc<Logged>] {
        &self.events
    }

    /// Gives the events away.
    pub(super) fn into_events(self) -> Vec<Arc<Logged>> {
        self.events
    }

    /// What a model may see, for [`messages`].
    pub(super) fn visible(&self) -> Vec<Arc<Logged>> {
        self.visible.clone()
    }

    /// The last request header.
    pub(super) fn last_header(&self) -> Option<Arc<Logged>> {
        self.last_header.clone()
    }
}

/// The history that a model sees: every visible event is one message, verbatim and in order, but for empty
/// answers of a model.
pub(super) fn messages(visible: &[Arc<Logged>]) -> Vec<Message> {
    visible.iter().filter_map(|event| message(event)).collect()
}

fn message(event: &Logged) -> Option<Message> {
    match &*event.kind {
        UserMessage::TYPE => event.decode().map(|e: UserMessage| Message { role: Role::User, content: e.content }),
        ContextAdded::TYPE => event.decode().map(|e: ContextAdded| Message::text(e.role, e.text)),
        AssistantMessage::TYPE => event
            .decode()
            .filter(|e: &AssistantMessage| !e.content.is_empty())
            .map(|e| Message { role: Role::Assistant, content: e.content }),
        ToolResult::TYPE => event.decode().map(|e: ToolResult| Message {
            role: Role::Tool,
            content: vec![Block::ToolResult {
                tool_use_id: e.call_id.as_str().to_owned(),
                content: e.content,
                is_error: e.is_error,
            }],
        }),
        _ => None,
    }
}
