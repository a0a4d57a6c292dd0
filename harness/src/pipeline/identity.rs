//! The sealed identity of a call: read by every stage, written by none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ids::CallId;
use crate::json::Json;

/// An opaque mark of one execution: equality only; it never leaves the process and is never written anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token(u64);

impl Token {
    pub(crate) fn mint() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Who a call is. Private fields, no setters, shared by reference.
#[derive(Debug)]
pub struct Identity {
    pub(super) token: Token,
    pub(super) call_id: CallId,
    pub(super) root_call_id: CallId,
    pub(super) name: String,
    pub(super) input: Json,
    pub(super) raw_arguments: String,
    pub(super) parent: Option<Token>,
    /// How many calls enclose this one.
    pub(super) depth: u8,
    pub(super) known: bool,
}

impl Identity {
    /// The mark of this execution.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token
    }

    /// The call's id.
    #[must_use]
    pub fn call_id(&self) -> &CallId {
        &self.call_id
    }

    /// The id of the model's own call that this one belongs to.
    #[must_use]
    pub fn root_call_id(&self) -> &CallId {
        &self.root_call_id
    }

    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sealed input: normalised, validated, exact.
    #[must_use]
    pub fn input(&self) -> &Json {
        &self.input
    }

    /// The model's own argument text; for a nested call, the text it was made from.
    #[must_use]
    pub fn raw_arguments(&self) -> &str {
        &self.raw_arguments
    }

    /// Whether an enclosing call made this one.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        self.parent.is_some()
    }

    /// Whether a visible tool has this name; hook bridges skip calls of unknown tools.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.known
    }
}

/// A shared identity.
pub(super) type Shared = Arc<Identity>;
