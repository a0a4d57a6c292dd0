//! The conversation seam: putting something into an agent's conversation from outside its turn.
//!
//! Every agent provides its own on its scope, so that work which a call began and which outlives it can tell the
//! agent that began it. What is put in waits for the next request, and is in the log from then on.

use crate::point::prompt::ContextMessage;

/// An agent's ear.
pub trait Conversation: Send + Sync {
    /// Puts in a context that the model gets with its next request; it never makes a turn go on, nor begins one.
    fn inject(&self, context: ContextMessage);
}
