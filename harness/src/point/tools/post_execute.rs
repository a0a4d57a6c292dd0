//! The post-execute point: what a listener may do to a result depends on whether it is a success.

use std::time::Duration;

use crate::content::Block;
use crate::ids::CallId;
use crate::json::Json;
use crate::pipeline::{Identity, Outcome};
use crate::point::Point;
use crate::point::prompt::ContextMessage;
use crate::scene::Scene;
use crate::tool::Content;

/// Where the result that post-execute sees came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The body ran, or a wrapper answered for it.
    Body,
    /// Policy, a person or a guard said no.
    Denied,
    /// The arguments do not fit the tool's schema.
    InvalidArgs,
    /// No such tool is visible.
    Unknown,
    /// Cancelled before the body.
    Cancelled,
    /// A substituted call ran in its place; its own post-execute has been.
    Substituted,
}

/// The post-execute point.
pub enum PostExecute {}

/// What a post-execute listener sees.
#[derive(Clone, Copy)]
pub struct PostView<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) call: &'a Identity,
    pub(crate) reported_id: &'a CallId,
    pub(crate) origin: Origin,
    pub(crate) outcome: &'a Outcome,
    pub(crate) content: &'a [Block],
    pub(crate) took: Duration,
    pub(crate) failure: Option<&'a str>,
}

impl<'a> PostView<'a> {
    /// The surroundings.
    #[must_use]
    pub fn scene(&self) -> Scene<'a> {
        self.scene
    }

    /// The sealed call that really ran.
    #[must_use]
    pub fn call(&self) -> &'a Identity {
        self.call
    }

    /// The id of the model's own call: for a substituted call the outer one's.
    #[must_use]
    pub fn reported_id(&self) -> &'a CallId {
        self.reported_id
    }

    /// Where the result came from.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// How long the body took.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    /// What the model would read as it stands.
    #[must_use]
    pub fn content(&self) -> &'a [Block] {
        self.content
    }

    /// The error text when the call failed in any way, also with a value whose verdict is *failed*.
    #[must_use]
    pub fn failure(&self) -> Option<&'a str> {
        self.failure
    }

    /// The result, with the authority that fits it.
    #[must_use]
    pub fn result(&self) -> PostResult<'a> {
        match self.outcome {
            Outcome::Success { value, .. } => PostResult::Success(SuccessView { value }),
            Outcome::Failure { .. } => PostResult::Failure(FailureView { _of: self.outcome }),
        }
    }
}

/// A success or a failure, each with its own authority.
#[derive(Clone, Copy)]
pub enum PostResult<'a> {
    /// There is a value.
    Success(SuccessView<'a>),
    /// There is none.
    Failure(FailureView<'a>),
}

/// Authority over a success.
#[derive(Clone, Copy)]
pub struct SuccessView<'a> {
    value: &'a Json,
}

impl<'a> SuccessView<'a> {
    /// The value.
    #[must_use]
    pub fn value_seen(&self) -> &'a Json {
        self.value
    }
    /// Accepts.
    #[must_use]
    pub fn keep(self) -> PostAnswer {
        PostAnswer::of(PostChange::Keep)
    }
    /// Accepts with other content for the model.
    #[must_use]
    pub fn content(self, content: Content) -> PostAnswer {
        PostAnswer::of(PostChange::Content(content))
    }
    /// Accepts with another value, which is validated and rendered again (R-112).
    #[must_use]
    pub fn value(self, value: Json) -> PostAnswer {
        PostAnswer::of(PostChange::Value(value))
    }
    /// Replaces the result by feedback, as a failure (R-114).
    #[must_use]
    pub fn block(self, feedback: Content) -> PostAnswer {
        PostAnswer::of(PostChange::Block(feedback))
    }
}

/// Authority over a failure: there is no `value` (R-113).
///
/// ```
/// # use sluice_harness::{json::Json, point::tools::{FailureView, PostAnswer, SuccessView}, tool::Content};
/// fn on_success(view: SuccessView<'_>, value: Json) -> PostAnswer {
///     view.value(value)
/// }
/// fn on_failure(view: FailureView<'_>, content: Content) -> PostAnswer {
///     view.content(content)
/// }
/// ```
///
/// ```compile_fail,E0599
/// # use sluice_harness::{json::Json, point::tools::{FailureView, PostAnswer}};
/// fn on_failure(view: FailureView<'_>, value: Json) -> PostAnswer {
///     view.value(value)
/// }
/// ```
///
/// nor can one answer replace both value and content:
///
/// ```compile_fail,E0599
/// # use sluice_harness::{json::Json, point::tools::{PostAnswer, SuccessView}, tool::Content};
/// fn both(view: SuccessView<'_>, value: Json, content: Content) -> PostAnswer {
///     view.value(value).content(content)
/// }
/// ```
#[derive(Clone, Copy)]
pub struct FailureView<'a> {
    _of: &'a Outcome,
}

impl FailureView<'_> {
    /// Accepts.
    #[must_use]
    pub fn keep(self) -> PostAnswer {
        PostAnswer::of(PostChange::Keep)
    }
    /// Accepts with other content for the model; it stays a failure.
    #[must_use]
    pub fn content(self, content: Content) -> PostAnswer {
        PostAnswer::of(PostChange::Content(content))
    }
    /// Replaces the result by feedback.
    #[must_use]
    pub fn block(self, feedback: Content) -> PostAnswer {
        PostAnswer::of(PostChange::Block(feedback))
    }
}

/// A post-execute answer; made only by the views, so that neither a value on a failure nor an answer of no known kind
/// can be written (R-113, R-117).
///
/// ```compile_fail,E0451
/// # use sluice_harness::point::tools::PostAnswer;
/// fn made_up(kept: PostAnswer) -> PostAnswer {
///     PostAnswer { contexts: Vec::new(), ..kept }
/// }
/// ```
#[derive(Debug)]
pub struct PostAnswer {
    pub(crate) change: PostChange,
    pub(crate) contexts: Vec<ContextMessage>,
}

#[derive(Debug)]
pub(crate) enum PostChange {
    Keep,
    Content(Content),
    Value(Json),
    Block(Content),
}

impl PostAnswer {
    fn of(change: PostChange) -> Self {
        Self { change, contexts: Vec::new() }
    }

    /// Puts contexts before the ones it has: what a listener does that delegated first (R-116).
    #[must_use]
    pub fn with_contexts_before(mut self, mut contexts: Vec<ContextMessage>) -> Self {
        contexts.append(&mut self.contexts);
        self.contexts = contexts;
        self
    }

    /// Whether it blocks.
    #[must_use]
    pub fn is_block(&self) -> bool {
        matches!(self.change, PostChange::Block(_))
    }

    /// Whether it leaves the result as it is.
    #[must_use]
    pub fn is_keep(&self) -> bool {
        matches!(self.change, PostChange::Keep)
    }

    /// The contexts it has, taken out, for a listener that answers anew.
    #[must_use]
    pub fn take_contexts(&mut self) -> Vec<ContextMessage> {
        std::mem::take(&mut self.contexts)
    }
}

impl Point for PostExecute {
    const NAME: &'static str = "tools/post-execute";
    type View<'a> = PostView<'a>;
    type Decision = PostAnswer;
}
