//! Sealing: identity, definition and finaliser are bound before any plugin sees the call.

use std::sync::Arc;

use super::frozen::{Candidate, Lane, Outcome};
use super::identity::{Identity, Shared, Token};
use crate::content::Block;
use crate::context::Context;
use crate::ids::CallId;
use crate::json::{Json, JsonFault, JsonObject};
use crate::point::tools::Origin;
use crate::registry::{self, Definition};
use crate::scene::SessionFacts;
use crate::tool::{Content, ErrorInfo};

/// A call as the model asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    /// Its id.
    pub call_id: CallId,
    /// The tool's name.
    pub name: String,
    /// The argument text, valid JSON or not; empty means no arguments.
    pub arguments: String,
}

/// The owner's last word on the content: captured from the definition visible at the start, callable once by
/// type.
pub(super) type Finalizer = Box<dyn FnOnce(Option<&Json>, &[Block]) -> Option<Content> + Send>;

/// A call with its identity sealed.
pub struct Sealed {
    pub(super) id: Shared,
    pub(super) definition: Option<Arc<Definition>>,
    pub(super) finalizer: Finalizer,
    /// What sealing already found wrong.
    pub(super) defect: Option<Defect>,
    /// Whether the identity's input is the model's own, and not a stand-in for what could not be read.
    pub(super) sealed: bool,
}

pub(super) enum Defect {
    /// The argument text cannot be kept losslessly: no policy at all.
    Lossy(String),
    /// The argument text is no JSON object: as for [`Defect::Invalid`], but there is nothing that was sealed.
    Unreadable(String),
    /// The arguments do not fit: no policy, but post-execute sees it.
    Invalid(String),
}

impl Sealed {
    /// The identity.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.id
    }

    /// The sealed input; `None` when the argument text could not be sealed.
    #[must_use]
    pub fn input(&self) -> Option<&Json> {
        self.sealed.then_some(&self.id.input)
    }

    /// The definition that was visible when the call began.
    #[must_use]
    pub fn definition(&self) -> Option<&Arc<Definition>> {
        self.definition.as_ref()
    }

    /// Whether policy will be asked at all.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.defect.is_none()
    }

    pub(super) fn into_candidate(self, lane: Lane, origin: Origin, outcome: Outcome) -> Candidate {
        Candidate {
            id: self.id,
            finalizer: self.finalizer,
            sealed: self.sealed,
            lane,
            origin,
            outcome,
            before: Vec::new(),
            contexts: Vec::new(),
            concludes: false,
            body_invoked: false,
            took: std::time::Duration::ZERO,
            nested: None,
        }
    }
}

/// Seals a call of the model.
#[must_use]
pub fn seal(context: &Context, session: &SessionFacts, request: CallRequest) -> Sealed {
    seal_as(context, session, request, None)
}

/// Seals a nested call: its own id, the parent's root and token.
pub(super) fn seal_nested(
    context: &Context,
    session: &SessionFacts,
    request: CallRequest,
    parent: &Identity,
) -> Sealed {
    seal_as(context, session, request, Some(parent))
}

fn seal_as(context: &Context, session: &SessionFacts, request: CallRequest, parent: Option<&Identity>) -> Sealed {
    let CallRequest { call_id, name, arguments } = request;
    let definition = registry::resolve(context, &name);
    let finalizer = finalizer_of(definition.clone());
    let root_call_id = parent.map_or_else(|| call_id.clone(), |p| p.root_call_id.clone());
    let (input, defect) = match read_arguments(&arguments) {
        Err(defect) => (Json::empty_object(), Some(defect)),
        Ok(given) => match &definition {
            None => (given.to_json(), None),
            Some(definition) => match fit(definition, given.clone(), session) {
                Ok(input) => (input, None),
                Err(why) => (given.to_json(), Some(Defect::Invalid(why))),
            },
        },
    };
    let id = Arc::new(Identity {
        token: Token::mint(),
        call_id,
        root_call_id,
        name,
        input,
        raw_arguments: arguments,
        parent: parent.map(|p| p.token),
        depth: parent.map_or(0, |p| p.depth.saturating_add(1)),
        known: definition.is_some(),
    });
    let sealed = !matches!(defect, Some(Defect::Lossy(_) | Defect::Unreadable(_)));
    Sealed { id, definition, finalizer, defect, sealed }
}

fn finalizer_of(definition: Option<Arc<Definition>>) -> Finalizer {
    Box::new(move |input, content| definition.and_then(|d| d.tool().finalize(input, content)))
}

fn read_arguments(text: &str) -> Result<JsonObject, Defect> {
    if text.trim().is_empty() {
        return Ok(JsonObject::new());
    }
    let json = match Json::parse(text) {
        Ok(json) => json,
        Err(fault @ (JsonFault::Syntax { .. } | JsonFault::NotUtf8 { .. })) => {
            return Err(Defect::Unreadable(format!("invalid arguments: {fault}")));
        }
        Err(fault) => {
            let text = "tool execution arguments must be losslessly JSON-serializable";
            return Err(Defect::Lossy(format!("{text} ({fault})")));
        }
    };
    json.object().ok_or_else(|| Defect::Unreadable("invalid arguments: arguments must be an object".to_owned()))
}

fn fit(definition: &Definition, given: JsonObject, session: &SessionFacts) -> Result<Json, String> {
    let refuse = |violations: Vec<String>| {
        if violations.is_empty() { Ok(()) } else { Err(format!("invalid arguments: {}", violations.join("; "))) }
    };
    refuse(definition.parameters().validate_as("arguments", &given.to_json()))?;
    let tool = definition.tool();
    let normalised = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tool.normalise(given, session)))
        .unwrap_or_else(|panic| Err(format!("normalising failed: {}", crate::point::panic_text(&*panic))))
        .map_err(|why| format!("invalid arguments: {why}"))?
        .to_json();
    refuse(definition.parameters().validate_as("arguments", &normalised))?;
    Ok(normalised)
}

/// The structured error of arguments that do not fit.
pub(super) fn invalid_args() -> ErrorInfo {
    ErrorInfo { name: "ToolArgsError".to_owned(), code: "INVALID_ARGS".to_owned() }
}
