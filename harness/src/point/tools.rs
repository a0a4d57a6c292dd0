//! The points of a tool call: `tools/pre-execute`, guards, `tools/execute`, `tools/post-execute`, `tools/result`.
//!
//! Each view carries only its stage's authority: identity is read-only everywhere, an allowance can be written only
//! by a pre-execute listener, a value only onto a success, and nothing at all after the freeze (R-053).

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::prompt::ContextMessage;
use super::{ListenerFault, Note, Point};
use crate::Fut;
use crate::cancel::Cancel;
use crate::content::Block;
use crate::ids::CallId;
use crate::json::Json;
use crate::pipeline::{Attempt, Dispatching, Frozen, Gated, Identity, Outcome, Permit, Substitution};
use crate::scene::Scene;
use crate::tool::{CallFacts, Content};

/// Who denied a call; the words of `permission_denials[].by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedBy {
    /// A hook script.
    Hook,
    /// A permission rule.
    Rule,
    /// The permission mode.
    Mode,
    /// A guard, or a defect that was closed.
    Guard,
    /// The person who was asked.
    User,
    /// It would have been asked, and nobody was there.
    NobodyToAsk,
    /// The sandbox or file fence.
    Sandbox,
}

/// Why a call is denied, and how the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The text; may be empty, and then still denies (R-062).
    pub text: String,
    /// Who denies.
    pub by: DeniedBy,
    /// How the text reaches the model.
    pub form: ReasonForm,
}

/// How a reason is put before the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonForm {
    /// As `Error: <text>` (R-062).
    Prefixed,
    /// As it stands, for a dialect's literal wording.
    Verbatim,
}

impl Reason {
    /// A reason of a native policy.
    #[must_use]
    pub fn new(by: DeniedBy, text: impl Into<String>) -> Self {
        Self { text: text.into(), by, form: ReasonForm::Prefixed }
    }

    /// A reason whose wording a dialect fixes.
    #[must_use]
    pub fn verbatim(by: DeniedBy, text: impl Into<String>) -> Self {
        Self { text: text.into(), by, form: ReasonForm::Verbatim }
    }
}

/// Who wants a call to be asked. A hook's allow answers a [`AskOrigin::Mode`] ask alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskOrigin {
    /// The permission mode.
    Mode,
    /// Plan mode.
    Plan,
    /// An ask rule.
    Rule,
    /// A hook.
    Hook,
}

/// An allowance: of the call as it is, or through the permit of a substituted call.
pub struct Allow {
    through: Option<Permit>,
}

impl Allow {
    /// The call as it is.
    #[must_use]
    pub fn plain() -> Self {
        Self { through: None }
    }

    /// The substituted call that this permit stands for, and nothing else.
    #[must_use]
    pub fn through(permit: Permit) -> Self {
        Self { through: Some(permit) }
    }

    /// Whether it stands for a substituted call.
    #[must_use]
    pub fn is_substitute(&self) -> bool {
        self.through.is_some()
    }

    pub(crate) fn into_permit(self) -> Option<Permit> {
        self.through
    }
}

impl fmt::Debug for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.through.is_some() { "Allow(through)" } else { "Allow(plain)" })
    }
}

/// A pre-execute decision. No default and no third state: what is not a well-formed allow denies (R-063).
#[derive(Debug)]
pub enum PreTool {
    /// Goes on.
    Allow(Allow),
    /// Never runs.
    Deny(Reason),
    /// Somebody must be asked; only allowed-once goes on.
    Ask {
        /// For the person and, when nobody says yes, for the model.
        reason: Option<String>,
        /// Who wants it asked.
        origin: AskOrigin,
    },
}

/// A decision with contexts that are kept on every lane and delivered after the batch.
#[derive(Debug)]
pub struct PreAnswer {
    /// The decision.
    pub decision: PreTool,
    /// In order.
    pub contexts: Vec<ContextMessage>,
}

impl PreAnswer {
    /// A decision without contexts.
    #[must_use]
    pub fn new(decision: PreTool) -> Self {
        Self { decision, contexts: Vec::new() }
    }
}

/// The pre-execute point.
pub enum PreExecute {}

/// What a pre-execute listener may see and do.
#[derive(Clone, Copy)]
pub struct PolicyView<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) call: &'a Identity,
    pub(crate) facts: &'a CallFacts,
    pub(crate) substitution: &'a Substitution<'a>,
}

impl<'a> PolicyView<'a> {
    /// The surroundings.
    #[must_use]
    pub fn scene(&self) -> Scene<'a> {
        self.scene
    }

    /// The sealed call.
    #[must_use]
    pub fn call(&self) -> &'a Identity {
        self.call
    }

    /// What the tool says of this input.
    #[must_use]
    pub fn facts(&self) -> &'a CallFacts {
        self.facts
    }

    /// Seals and gates a nested call with other arguments, then and there: rules, guards and questions judge what
    /// will run. `standing` says what the asking hook decided of the new input.
    pub fn substitute(&self, arguments: Json, standing: Standing) -> Fut<'a, Gated> {
        self.substitution.gate(arguments, standing)
    }
}

/// What a hook that rewrites an input says of the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: the usual permission flow decides.
    Silent,
    /// It allows it: the mode does not ask.
    Allowed,
    /// It wants it asked.
    Ask(Option<String>),
}

impl Point for PreExecute {
    const NAME: &'static str = "tools/pre-execute";
    type View<'a> = PolicyView<'a>;
    type Decision = PreAnswer;
}

/// What a guard sees. It cannot await, cannot allow, and its panic denies (R-071).
#[derive(Clone, Copy)]
pub struct GuardView<'a> {
    /// The sealed call.
    pub call: &'a Identity,
    /// What the tool says of this input.
    pub facts: &'a CallFacts,
    /// The surroundings.
    pub scene: Scene<'a>,
}

/// A guard: deny with a reason, or abstain.
pub struct Guard {
    pub(crate) name: &'static str,
    pub(crate) check: Box<dyn for<'a> Fn(GuardView<'a>) -> Option<Reason> + Send + Sync>,
}

impl Guard {
    /// A guard with a name for gate records.
    pub fn new(
        name: &'static str,
        check: impl for<'a> Fn(GuardView<'a>) -> Option<Reason> + Send + Sync + 'static,
    ) -> Self {
        Self { name, check: Box::new(check) }
    }
}

/// A wrapper around dispatch: time it, bound it, repeat it, or answer instead.
///
/// Of the call it may replace only the signal, and only by a child of the one it was given.
pub trait Wrapper: Send + Sync + 'static {
    /// Who this is.
    fn name(&self) -> &str;
    /// Wraps.
    fn around<'a>(&'a self, dispatch: Dispatch<'a>) -> Fut<'a, Result<Attempt, ListenerFault>>;
}

/// The rest of a dispatch, as a wrapper holds it.
pub struct Dispatch<'a> {
    pub(crate) inner: Dispatching<'a>,
}

impl<'a> Dispatch<'a> {
    /// The sealed call.
    #[must_use]
    pub fn call(&self) -> &'a Identity {
        self.inner.call()
    }

    /// The tool's own time budget.
    #[must_use]
    pub fn budget(&self) -> Option<Duration> {
        self.inner.budget()
    }

    /// Whether the body has been started by an earlier attempt: a retry must know that there may be effects (R-086).
    #[must_use]
    pub fn body_invoked(&self) -> bool {
        self.inner.body_invoked()
    }

    /// The call's signal, to watch.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        self.inner.cancel()
    }

    /// Runs what is further in, under a child of the call's signal that also fires after `at_most`.
    pub fn run(&mut self, at_most: Option<Duration>) -> Fut<'_, Attempt> {
        self.inner.run(at_most)
    }
}

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

/// A post-execute answer; made only by the views, so that a value on a failure cannot be written.
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

/// `tools/result`: everything is frozen; observers look.
pub enum ToolResultNote {}

/// What a result observer sees.
pub struct ResultView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The sealed call; `None` when it could not be sealed.
    pub call: Option<&'a Identity>,
    /// The one result.
    pub result: &'a Frozen,
}

impl Note for ToolResultNote {
    const NAME: &'static str = "tools/result";
    type Snapshot<'a> = ResultView<'a>;
}
