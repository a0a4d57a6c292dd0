//! The approval seam: a question to somebody who may say yes, once.
//!
//! Answerers are listeners of [`Approval`](crate::point::approval::Approval): hooks first, then the client. Nobody
//! answering, an error and a panic all mean *no*.

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::json::Json;
use crate::point::tools::AskOrigin;
use crate::tool::CallCard;

/// The question, frozen: what is asked is what would run, but for the values of secrets, which are not shown.
#[derive(Debug, Clone)]
pub struct ApprovalCard {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The sealed arguments, redacted.
    pub input: Json,
    /// How the call is shown.
    pub card: CallCard,
    /// Why it is asked.
    pub reason: Option<String>,
    /// Who wants it asked.
    pub origin: AskOrigin,
}

/// Who answered a question with no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejecter {
    /// The person who was asked.
    Person,
    /// A hook that answered in their place.
    Hook,
}

/// The one answer. Nothing lasting is granted by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalOutcome {
    /// This call may run, once.
    AllowedOnce,
    /// It may not; the text is for the model.
    Rejected {
        /// What to tell the model instead of the usual text.
        message: Option<String>,
        /// Who said no.
        by: Rejecter,
    },
    /// The question was withdrawn.
    Cancelled,
    /// Nobody could be asked.
    Unavailable,
}
