//! `agent/turn-continuation` and the turn's end: whether the agent goes on by itself.
//!
//! A continuation is offered when a step ended without calls; stopping is monotonic through the stop latch
//! ([`Scene::stop_turn`](crate::scene::Scene::stop_turn)), which no listener can undo.

use serde::{Deserialize, Serialize};

use super::{Note, Point};
use crate::agent::TurnEnd;
use crate::content::Role;
use crate::scene::Scene;

/// A message that makes the agent go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steering {
    /// Who steers, such as `claude-code:Stop`.
    pub source: String,
    /// The role it is sent with.
    pub role: Role,
    /// The text.
    pub text: String,
}

/// The point.
pub enum TurnContinuation {}

/// What a listener sees.
#[derive(Clone, Copy)]
pub struct ContinuationView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The final text of the step that just ended.
    pub last_message: Option<&'a str>,
    /// How many continuations this turn has had, by source, oldest first.
    pub continuations: &'a [Continuation],
}

/// One continuation that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// Who forced it.
    pub source: String,
    /// How many tool calls came after it.
    pub calls_since: u32,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContinuationDecision {
    /// The turn ends.
    Stop(StopWord),
    /// It goes on with these messages.
    Continue(Vec<Steering>),
}

/// How a turn that ends by itself says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopWord {
    /// As usual.
    Completed,
    /// A stop hook confirmed the end with `continue: false`.
    Prevented {
        /// What the user is told.
        reason: Option<String>,
    },
    /// A hook wanted to go on and its cap was reached.
    Capped {
        /// Which hook, and which cap.
        reason: String,
    },
}

impl Point for TurnContinuation {
    const NAME: &'static str = "agent/turn-continuation";
    type View<'a> = ContinuationView<'a>;
    type Decision = ContinuationDecision;
}

/// Told when a turn has ended, after its `turn/end` is in the log.
pub enum TurnEnded {}

/// What is shown of an ended turn.
pub struct TurnEndedView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// How it ended.
    pub end: &'a TurnEnd,
}

impl Note for TurnEnded {
    const NAME: &'static str = "agent/turn-ended";
    type Snapshot<'a> = TurnEndedView<'a>;
}
