//! One session's line to the client: everything that happens goes through one bounded queue and one task.
//!
//! The task is the only one who writes `session/update` for its session, so order needs no lock. Three invariants:
//! nothing is sent outside a turn (what is said between turns waits for the next one); no call of a turn is left open
//! when the turn's end is acknowledged; a client that reads slowly slows the turn, and one that has gone slows nobody.

use std::collections::VecDeque;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::ids::{CallId, MessageId};
use sluice_harness::json::Json;
use sluice_harness::seam::live::{LiveEvent, LiveSink, Notice, NoticeLevel};
use sluice_protocol::Peer;
use sluice_protocol::acp::schema::v1::UsageUpdate;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

use super::update::{self, Call, Notification, Status, Update};

/// Events that may wait for the task before the turn waits too.
const ROOM: usize = 64;
/// Chunks that wait are joined up to this size.
const JOINED: usize = 16 * 1024;
/// What is said between turns is kept up to this count; the oldest go first.
const HELD: usize = 256;

enum Item {
    Live(LiveEvent),
    Begin(Vec<String>),
    Settle(oneshot::Sender<()>),
    End { say: Vec<String>, done: oneshot::Sender<()> },
}

/// The sending end: the session's ear, and the turn's hold on its order.
#[derive(Clone)]
pub(super) struct Feed(Sender<Item>);

/// The receiving end, until the session has an id.
pub(super) struct Inbox(Receiver<Item>);

/// The task has ended: the session is being closed.
#[derive(Debug)]
pub(super) struct FeedEnded;

impl Feed {
    pub(super) fn new() -> (Self, Inbox) {
        let (items, inbox) = channel(ROOM);
        (Self(items), Inbox(inbox))
    }

    /// Opens a turn: first these lines, then what was said since the last one.
    pub(super) async fn begin(&self, lines: Vec<String>) {
        let _ = self.0.send(Item::Begin(lines)).await;
    }

    /// Waits until everything so far is on its way, so that a request sent now follows it.
    pub(super) async fn settled(&self) -> Result<(), FeedEnded> {
        let (done, waiting) = oneshot::channel();
        self.0.send(Item::Settle(done)).await.map_err(|_| FeedEnded)?;
        waiting.await.map_err(|_| FeedEnded)
    }

    /// Closes the turn: open calls are closed, these lines are shown, and nothing follows.
    pub(super) async fn end(&self, say: Vec<String>) {
        let (done, waiting) = oneshot::channel();
        if self.0.send(Item::End { say, done }).await.is_ok() {
            // An error means that the task has ended, and then nothing follows either.
            let _ = waiting.await;
        }
    }
}

impl LiveSink for Feed {
    fn send(&self, event: LiveEvent) -> Fut<'_, ()> {
        Box::pin(async move {
            let _ = self.0.send(Item::Live(event)).await;
        })
    }
}

/// Whether updates may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    InTurn,
}

/// Where the text on the client's screen ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Fresh,
    Begun,
}

/// A call without a result.
struct Open {
    id: CallId,
    tool: String,
    input: Json,
}

/// The task.
pub(super) struct FeedTask {
    peer: Peer,
    session: String,
    inbox: Inbox,
    /// Fires when the client no longer reads: from then on everything is swallowed.
    mute: Cancel,
    phase: Phase,
    line: Line,
    held: VecDeque<Notice>,
    open: Vec<Open>,
}

impl FeedTask {
    pub(super) fn new(peer: Peer, session: String, inbox: Inbox, mute: Cancel) -> Self {
        Self {
            peer,
            session,
            inbox,
            mute,
            phase: Phase::Idle,
            line: Line::Fresh,
            held: VecDeque::new(),
            open: Vec::new(),
        }
    }

    /// Works until the session is disposed.
    pub(super) async fn run(mut self, ended: Cancel) {
        let mut next = None;
        loop {
            let item = match next.take() {
                Some(item) => Some(item),
                None => tokio::select! {
                    biased;
                    item = self.inbox.0.recv() => item,
                    _ = ended.cancelled() => None,
                },
            };
            let Some(item) = item else { return };
            next = self.handle(item).await;
        }
    }

    /// Handles an item; what was taken from the queue too early comes back.
    async fn handle(&mut self, item: Item) -> Option<Item> {
        match item {
            Item::Live(event) => return self.live(event).await,
            Item::Begin(lines) => {
                self.phase = Phase::InTurn;
                self.line = Line::Fresh;
                for line in lines {
                    self.say(&line).await;
                }
                for notice in std::mem::take(&mut self.held) {
                    self.say(&notice_line(&notice)).await;
                }
            }
            Item::Settle(done) => {
                let _ = done.send(());
            }
            Item::End { say, done } => {
                for call in std::mem::take(&mut self.open) {
                    self.send(Update::ToolCallUpdate(Call::status(call.id.as_str(), Status::Failed))).await;
                }
                for line in say {
                    self.say(&line).await;
                }
                self.phase = Phase::Idle;
                let _ = done.send(());
            }
        }
        None
    }

    async fn live(&mut self, event: LiveEvent) -> Option<Item> {
        if self.phase == Phase::Idle {
            match event {
                LiveEvent::Notice(notice) => self.hold(notice),
                other => tracing::debug!(event = ?other, "nothing is shown between turns"),
            }
            return None;
        }
        match event {
            LiveEvent::TurnStarted(_) => {}
            LiveEvent::Text { message, delta } => {
                let (delta, next) = self.joined(&message, delta, Stream::Text);
                self.line = if delta.ends_with('\n') { Line::Fresh } else { Line::Begun };
                self.send(Update::AgentMessageChunk(update::chunk(message.as_str(), delta))).await;
                return next;
            }
            LiveEvent::Thinking { message, delta } => {
                let (delta, next) = self.joined(&message, delta, Stream::Thinking);
                self.send(Update::AgentThoughtChunk(update::chunk(message.as_str(), delta))).await;
                return next;
            }
            LiveEvent::CallPending { call_id, tool, card, input } => {
                let call = Call::whole(call_id.as_str(), Status::Pending, card, input.clone());
                self.open.push(Open { id: call_id, tool, input });
                self.line = Line::Fresh;
                self.send(Update::ToolCall(call)).await;
            }
            LiveEvent::CallRunning { call_id, rewritten } => {
                let call = match rewritten {
                    Some((card, input)) => {
                        if let Some(open) = self.open.iter_mut().find(|open| open.id == call_id) {
                            open.input = input.clone();
                        }
                        Call::whole(call_id.as_str(), Status::InProgress, card, input)
                    }
                    None => Call::status(call_id.as_str(), Status::InProgress),
                };
                self.send(Update::ToolCallUpdate(call)).await;
            }
            LiveEvent::CallFinished { call_id, card, is_error } => {
                let at = self.open.iter().position(|open| open.id == call_id);
                let call = at.map(|at| self.open.remove(at));
                self.send(Update::ToolCallUpdate(Call::finished(call_id.as_str(), card, is_error))).await;
                let plan =
                    call.filter(|call| call.tool == "TodoWrite" && !is_error).and_then(|c| update::plan(&c.input));
                if let Some(plan) = plan {
                    self.send(Update::Plan(plan)).await;
                }
            }
            LiveEvent::Usage { usage, context_window } => {
                if let Some(size) = context_window {
                    let used = usage.input_tokens.saturating_add(usage.output_tokens);
                    self.send(Update::UsageUpdate(UsageUpdate::new(used, size))).await;
                }
            }
            LiveEvent::Notice(notice) => self.say(&notice_line(&notice)).await,
        }
        None
    }

    /// The chunk with those that wait behind it in the same message.
    fn joined(&mut self, message: &MessageId, mut delta: String, stream: Stream) -> (String, Option<Item>) {
        while delta.len() < JOINED {
            match (self.inbox.0.try_recv(), stream) {
                (Ok(Item::Live(LiveEvent::Text { message: of, delta: more })), Stream::Text)
                | (Ok(Item::Live(LiveEvent::Thinking { message: of, delta: more })), Stream::Thinking)
                    if of == *message =>
                {
                    delta.push_str(&more);
                }
                (Ok(other), _) => return (delta, Some(other)),
                (Err(_), _) => break,
            }
        }
        (delta, None)
    }

    fn hold(&mut self, notice: Notice) {
        if self.held.len() == HELD {
            self.held.pop_front();
        }
        self.held.push_back(notice);
    }

    /// Shows a line of our own as a message of its own. It begins on a fresh line also in clients that put all messages
    /// of a turn into one.
    async fn say(&mut self, text: &str) {
        let text = match self.line {
            Line::Begun => format!("\n{text}\n"),
            Line::Fresh => format!("{text}\n"),
        };
        self.line = Line::Fresh;
        let message = MessageId::fresh();
        self.send(Update::AgentMessageChunk(update::chunk(message.as_str(), text))).await;
    }

    async fn send(&self, update: Update) {
        let params = Notification { session_id: &self.session, update };
        tokio::select! {
            biased;
            sent = self.peer.notify(update::METHOD, &params) => {
                if let Err(fault) = sent {
                    tracing::debug!(%fault, "an update was not sent");
                }
            }
            _ = self.mute.cancelled() => {}
        }
    }
}

/// Which stream a chunk belongs to.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Text,
    Thinking,
}

/// A notice as a line: who says it, and what, so that nobody takes it for the model's words.
fn notice_line(notice: &Notice) -> String {
    let word = match notice.level {
        NoticeLevel::Info => "",
        NoticeLevel::Warning => "warning: ",
        NoticeLevel::Error => "error: ",
    };
    format!("[{}] {word}{}", notice.source, notice.text)
}
