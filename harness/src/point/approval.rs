//! The chain of approval answerers: one question, one answer, and silence means no.

use super::Point;
use crate::json::Json;
use crate::scene::Scene;
use crate::seam::approval::{ApprovalCard, ApprovalOutcome};

/// The point. A listener answers, or delegates; at the end stands "nobody can be asked".
pub enum Approval {}

/// What an answerer sees.
#[derive(Clone, Copy)]
pub struct ApprovalView<'a> {
    /// The surroundings; its signal withdraws the question.
    pub scene: Scene<'a>,
    /// The question.
    pub card: &'a ApprovalCard,
    /// The sealed input as it would run, secrets and all: to judge by, never to show.
    pub sealed: &'a Json,
}

impl Point for Approval {
    const NAME: &'static str = "approval";
    type View<'a> = ApprovalView<'a>;
    type Decision = ApprovalOutcome;
}
