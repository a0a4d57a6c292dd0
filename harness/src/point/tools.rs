//! The points of a tool call: `tools/pre-execute`, guards, `tools/execute`, `tools/post-execute`, `tools/result`.
//!
//! Each view carries only its stage's authority: identity is read-only everywhere, an allowance can be written only
//! by a pre-execute listener, a value only onto a success, and nothing at all after the freeze.

mod post_execute;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use post_execute::PostChange;
pub use post_execute::{FailureView, Origin, PostAnswer, PostExecute, PostResult, PostView, SuccessView};

use super::prompt::ContextMessage;
use super::{ListenerFault, Note, Point};
use crate::Fut;
use crate::cancel::Cancel;
use crate::json::Json;
use crate::pipeline::{Attempt, Dispatching, Frozen, Gated, Identity, Permit, Substitution};
use crate::scene::Scene;
use crate::tool::CallFacts;

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
    /// The text; may be empty, and then still denies.
    pub text: String,
    /// Who denies.
    pub by: DeniedBy,
    /// How the text reaches the model.
    pub form: ReasonForm,
}

/// How a reason is put before the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonForm {
    /// As `Error: <text>`.
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
    /// The call itself: it wants to leave the sandbox. A person alone answers.
    Escalation,
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

/// A pre-execute decision. No default and no third state: what is not a well-formed allow denies.
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

/// What a guard sees. It cannot await, cannot allow, and its panic denies.
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

    /// Whether the body has been started by an earlier attempt: a retry must know that there may be effects.
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
