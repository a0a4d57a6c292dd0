//! One call, one result: the only channel through which a tool runs.
//!
//! `seal → gate → dispatch → settle`, in that order by type: [`gate`] alone makes a [`Permit`], [`dispatch`] needs one,
//! [`settle`] is total. Identity is sealed before policy and never changes; what failed anywhere becomes the one
//! [`Frozen`] result of the call, and nothing after the freeze can change it. Arguments are validated before
//! anybody is asked anything.

mod answerer;
mod approve;
mod dispatch;
mod frozen;
mod gate;
mod identity;
mod redact;
mod seal;
mod settle;
mod timeout;

pub(crate) use approve::present;
pub(crate) use gate::classify;

pub use dispatch::{Attempt, BODY_GRACE, Dispatching, dispatch};
pub use frozen::{Candidate, Frozen, Outcome};
pub use gate::{Gated, Permit, Substitution, gate};
pub use identity::{Identity, Token};
pub use seal::{CallRequest, Sealed, seal};
pub use settle::settle;
pub use timeout::TimeoutPolicy;

/// The text and codes of a call that was cancelled.
pub(crate) mod aborted {
    use super::Outcome;
    use crate::tool::ErrorInfo;

    /// Before the body was started.
    pub(crate) fn before_dispatch() -> Outcome {
        failure("tool call aborted before dispatch", "ABORTED_BEFORE_DISPATCH")
    }

    /// While or after it ran.
    pub(crate) fn running() -> Outcome {
        failure("tool call aborted", "ABORTED")
    }

    fn failure(text: &str, code: &str) -> Outcome {
        Outcome::failure(text, Some(ErrorInfo { name: "AbortError".to_owned(), code: code.to_owned() }))
    }
}
