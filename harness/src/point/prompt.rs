//! `agent/prompt-submit`: the one prompt of a turn, before any step.

use serde::{Deserialize, Serialize};

use super::Point;
use crate::content::{Block, Role};
use crate::scene::Scene;

/// A message for the model that no person wrote. Each is one whole message, never merged by the harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextMessage {
    /// Who adds it, such as `claude-code:UserPromptSubmit`; never `user`.
    pub source: String,
    /// `system` or `developer`, as the source's dialect has it.
    pub role: Role,
    /// The text.
    pub text: String,
}

/// The point.
pub enum PromptSubmit {}

/// What a listener sees.
#[derive(Clone, Copy)]
pub struct PromptView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The prompt as it came.
    pub content: &'a [Block],
}

/// Why a prompt was refused, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptBlock {
    /// The whole text for the user.
    pub reason: String,
    /// Who refused, such as `claude-code:UserPromptSubmit`.
    pub by: String,
    /// Whether the prompt stays in the model's history all the same.
    pub keep: Keep,
    /// Contexts that stay in the history although the prompt does not.
    pub contexts: Vec<ContextMessage>,
}

/// Whether a refused prompt stays in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It does.
    InHistory,
    /// It does not.
    Dropped,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptDecision {
    /// The prompt goes on, perhaps with other content, and contexts follow it.
    Allow {
        /// Replaces the content.
        content: Option<Vec<Block>>,
        /// In order, after the prompt.
        contexts: Vec<ContextMessage>,
    },
    /// No step happens.
    Block(PromptBlock),
}

impl Point for PromptSubmit {
    const NAME: &'static str = "agent/prompt-submit";
    type View<'a> = PromptView<'a>;
    type Decision = PromptDecision;
}
