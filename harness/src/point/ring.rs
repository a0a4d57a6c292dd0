//! The second ring of points around the loop: a batch that settled, a call that was denied, model requests.
//!
//! [`BatchSettled`] is a waterfall, for its listeners may stop the turn; the others are notifications. How a turn ended
//! (completed, failed, interrupted) is told by [`TurnEnded`](super::turn::TurnEnded).

use super::prompt::ContextMessage;
use super::tools::DeniedBy;
use super::{Note, Point};
use crate::content::Block;
use crate::ids::CallId;
use crate::json::Json;
use crate::scene::{Scene, StopCause};
use crate::seam::model::Usage;

/// All calls of one answer have their results, and the next request has not been made.
pub enum BatchSettled {}

/// One call of a settled batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledCall {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub name: String,
    /// The model's own argument text.
    pub raw_arguments: String,
    /// The sealed input.
    pub input: Json,
    /// What the model reads.
    pub content: Vec<Block>,
    /// Whether it failed or was denied.
    pub is_error: bool,
}

/// What a listener sees.
#[derive(Clone, Copy)]
pub struct BatchView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The calls in model order.
    pub calls: &'a [SettledCall],
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchDecision {
    /// Contexts for the model, after those of the calls.
    pub contexts: Vec<ContextMessage>,
    /// Ends the turn before the next request.
    pub stop: Option<StopCause>,
}

impl Point for BatchSettled {
    const NAME: &'static str = "tools/batch-settled";
    type View<'a> = BatchView<'a>;
    type Decision = BatchDecision;
}

/// A call was denied, and its result says so.
pub enum CallDenied {}

/// What is shown of a denied call.
pub struct DeniedView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The call.
    pub call_id: &'a CallId,
    /// The tool.
    pub tool: &'a str,
    /// The sealed input.
    pub input: &'a Json,
    /// What the model was told.
    pub reason: &'a str,
    /// Who denied it.
    pub by: DeniedBy,
}

impl Note for CallDenied {
    const NAME: &'static str = "tools/denied";
    type Snapshot<'a> = DeniedView<'a>;
}

/// A request is about to be sent; the log up to here is what it is built from.
pub enum RequestStarted {}

/// A request has ended.
pub enum RequestEnded {}

/// What is shown of a request.
pub struct RequestView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// From 1; above 1 it repeats a failed one.
    pub attempt: u32,
    /// How many requests came before it in the session.
    pub index: u64,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestEnd {
    /// The answer is whole.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It failed; in the words of the fault.
    Failed(String),
}

/// What is shown of an ended request.
pub struct RequestEndedView<'a> {
    /// The request.
    pub request: RequestView<'a>,
    /// How it ended.
    pub end: &'a RequestEnd,
    /// Tokens, where the provider said.
    pub usage: Option<Usage>,
}

impl Note for RequestStarted {
    const NAME: &'static str = "model/request-started";
    type Snapshot<'a> = RequestView<'a>;
}

impl Note for RequestEnded {
    const NAME: &'static str = "model/request-ended";
    type Snapshot<'a> = RequestEndedView<'a>;
}
