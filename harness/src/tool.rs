//! A tool's definition: what it is called, what it takes and gives, and the body that runs.
//!
//! Authors implement [`Tool`]. Everything but [`Tool::execute`] is synchronous and pure; presentation must work again
//! on replay from the sealed input and the recorded result alone.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Fut;
use crate::content::Block;
use crate::context::{Lease, Seam};
use crate::json::{Json, JsonObject};
use crate::point::prompt::ContextMessage;
use crate::scene::{Scene, SessionFacts};
use crate::seam::sandbox::SandboxMode;

/// What a model reads of a result.
pub type Content = Vec<Block>;

/// How calls of a tool may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// Runs alone: a barrier.
    Exclusive,
    /// May run beside other parallel calls.
    Parallel,
}

/// Whose schemas a tool carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaOrigin {
    /// Our own: in the strict subset of R-020.
    Own,
    /// Somebody else's, such as an MCP server's: any JSON Schema that compiles.
    Foreign,
}

/// What a finished value means (a non-zero shell exit is a value whose verdict is *failed*).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It did what was asked.
    Succeeded,
    /// It ran and failed; the text is what a failure hook gets as `error`.
    Failed(String),
}

/// What policy needs to know of a call, projected from its sealed input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallFacts {
    /// The command line, for tools that run one.
    pub command: Option<String>,
    /// The files it names, and what it does to each; absolute.
    pub paths: Vec<(PathBuf, Access)>,
    /// What kind of effect it has at all.
    pub effect: Effect,
    /// That it wants to leave the sandbox, for this one call.
    pub escalation: Option<Escalation>,
}

/// A wish to run with less of a sandbox than the session has (R-416).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// The mode it wants.
    pub to: SandboxMode,
    /// Why, in the model's words.
    pub justification: String,
    /// Whether the user asked for the sandbox by name.
    pub required: bool,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is created or changed.
    Write,
}

/// The kind of effect a tool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// It only reads the workspace.
    Reads,
    /// It changes files of the workspace.
    Edits,
    /// It changes nothing outside the session's own state.
    Session,
    /// It reads from the network and changes nothing: it tells somebody else what it asks for, so it is not free.
    Fetches,
    /// It may do anything.
    #[default]
    Anything,
}

/// A failed body: the message that the model reads after `Error: `, and a stable code where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// What went wrong, and the remedy.
    pub message: String,
    /// `(name, code)` of a structured error (R-079).
    pub info: Option<ErrorInfo>,
}

impl ToolFailure {
    /// A failure with words alone.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), info: None }
    }

    /// A failure with a stable code.
    #[must_use]
    pub fn coded(name: &str, code: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), info: Some(ErrorInfo { name: name.to_owned(), code: code.to_owned() }) }
    }
}

/// A structured error's name and stable code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// Such as `ToolArgsError`.
    pub name: String,
    /// Such as `INVALID_ARGS`.
    pub code: String,
}

/// The icon-like kind of a call; ACP's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Reads.
    Read,
    /// Changes files.
    Edit,
    /// Deletes.
    Delete,
    /// Moves.
    Move,
    /// Searches.
    Search,
    /// Runs something.
    Execute,
    /// Thinks.
    Think,
    /// Fetches from the network.
    Fetch,
    /// Anything else.
    Other,
}

/// One piece of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardItem {
    /// Text.
    Text(String),
    /// A change of one file.
    Diff {
        /// Absolute path.
        path: PathBuf,
        /// The former text; `None` for a new file.
        old: Option<String>,
        /// The text after.
        new: String,
    },
}

/// A place to follow along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Absolute path.
    pub path: PathBuf,
    /// From 1.
    pub line: Option<u64>,
}

/// How a call is shown before it has a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCard {
    /// One line; for a shell, the command itself.
    pub title: String,
    /// Its kind.
    pub kind: CallKind,
    /// What to show.
    pub items: Vec<CardItem>,
    /// Files it concerns.
    pub locations: Vec<Location>,
}

/// How a result is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResultCard {
    /// A better title, once known.
    pub title: Option<String>,
    /// What to show.
    pub items: Vec<CardItem>,
    /// Files it concerned; empty keeps the call's own.
    pub locations: Vec<Location>,
}

/// A tool. One that does not say what it takes, what it gives and how that is read is none (R-001).
///
/// ```compile_fail,E0046
/// # use sluice_harness::json::Json;
/// # use sluice_harness::tool::{BodyView, CallCard, CallKind, Content, Tool, ToolFailure};
/// # use sluice_harness::Fut;
/// struct NoOutput;
/// impl Tool for NoOutput {
///     fn name(&self) -> &str {
///         "no-output"
///     }
///     fn description(&self) -> &str {
///         "gives what it does not declare"
///     }
///     fn parameters(&self) -> Json {
///         Json::empty_object()
///     }
///     fn execute<'a>(&'a self, _: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
///         Box::pin(std::future::ready(Ok(Json::null())))
///     }
///     fn render(&self, _: &Json, _: &Json) -> Content {
///         Content::new()
///     }
///     fn present_call(&self, _: &Json) -> CallCard {
///         CallCard { title: String::new(), kind: CallKind::Other, items: Vec::new(), locations: Vec::new() }
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Its name, as models, rules and hook matchers know it.
    fn name(&self) -> &str;
    /// What it does, for the model.
    fn description(&self) -> &str;
    /// The schema of its arguments, in the subset of R-020.
    fn parameters(&self) -> Json;
    /// The schema of its value, in the same subset.
    fn output(&self) -> Json;

    /// Whose schemas these are.
    fn schema_origin(&self) -> SchemaOrigin {
        SchemaOrigin::Own
    }

    /// Fills defaults and makes paths absolute, once, before the input is sealed. What policy, hooks and the body see
    /// is the outcome.
    ///
    /// # Errors
    /// Words for the model when the arguments make no sense.
    fn normalise(&self, arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        let _ = session;
        Ok(arguments)
    }

    /// Whether this call may overlap others; anything unclear is exclusive (R-140).
    fn concurrency(&self, input: &Json) -> Concurrency {
        let _ = input;
        Concurrency::Exclusive
    }

    /// A time budget of its own (R-085).
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// What policy needs to know.
    fn facts(&self, input: &Json) -> CallFacts {
        let _ = input;
        CallFacts::default()
    }

    /// Runs. Must come to an end soon after the body's signal fires.
    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>>;

    /// What the model reads of a value.
    fn render(&self, input: &Json, value: &Json) -> Content;

    /// What a value means.
    fn verdict(&self, input: &Json, value: &Json) -> Verdict {
        let _ = (input, value);
        Verdict::Succeeded
    }

    /// How the call is shown.
    fn present_call(&self, input: &Json) -> CallCard;

    /// How a success is shown, from what is durable alone.
    fn present_result(&self, input: &Json, content: &[Block], meta: Option<&Json>) -> ResultCard {
        let _ = (input, meta);
        ResultCard { items: vec![CardItem::Text(crate::content::plain_text(content))], ..ResultCard::default() }
    }

    /// What of a value is kept in the log for presentation on replay; `None` keeps nothing.
    fn meta(&self, input: &Json, value: &Json) -> Option<Json> {
        let _ = (input, value);
        None
    }

    /// The owner's last word on the content, called exactly once for each call (R-126).
    fn finalize(&self, input: Option<&Json>, content: &[Block]) -> Option<Content> {
        let _ = (input, content);
        None
    }
}

/// Who wrote the input that a body runs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewritten {
    /// The model.
    No,
    /// A hook or policy, in place of the model.
    Yes,
}

/// What a running body may see and do. It borrows the call: a late `defer` does not compile (R-084).
///
/// ```
/// # use sluice_harness::{point::prompt::ContextMessage, tool::BodyView};
/// fn during(mut body: BodyView<'_>, context: ContextMessage) {
///     body.defer(context);
/// }
/// ```
///
/// Something that goes on after the body cannot take it along:
///
/// ```compile_fail,E0521
/// # use sluice_harness::{point::prompt::ContextMessage, tool::BodyView};
/// fn after(mut body: BodyView<'_>, context: ContextMessage) {
///     std::thread::spawn(move || body.defer(context));
/// }
/// ```
pub struct BodyView<'a> {
    pub(crate) scene: Scene<'a>,
    pub(crate) input: &'a Json,
    pub(crate) call_id: &'a crate::ids::CallId,
    pub(crate) rewritten: Rewritten,
    pub(crate) deferred: &'a mut Vec<ContextMessage>,
    pub(crate) concludes: &'a mut bool,
}

impl<'a> BodyView<'a> {
    /// The sealed input.
    #[must_use]
    pub fn input(&self) -> &'a Json {
        self.input
    }

    /// The call's id.
    #[must_use]
    pub fn call_id(&self) -> &'a crate::ids::CallId {
        self.call_id
    }

    /// Whether policy or a hook wrote the input in place of the model.
    #[must_use]
    pub fn rewritten(&self) -> Rewritten {
        self.rewritten
    }

    /// The surroundings; its signal is the one that a body must heed.
    #[must_use]
    pub fn scene(&self) -> Scene<'a> {
        self.scene
    }

    /// Leases a capability.
    ///
    /// # Errors
    /// A failure that names the seam when nobody provides it.
    pub fn lease<S: Seam + ?Sized>(&self) -> Result<Lease<S>, ToolFailure> {
        self.scene.context.lease::<S>().map_err(|e| ToolFailure::coded("SeamError", "SEAM_MISSING", e.to_string()))
    }

    /// Adds a context that the model gets after the batch; it survives a failure and a cancellation (R-082).
    pub fn defer(&mut self, context: ContextMessage) {
        self.deferred.push(context);
    }

    /// Marks a successful result as the end of the turn (R-083).
    pub fn conclude_turn(&mut self) {
        *self.concludes = true;
    }
}
