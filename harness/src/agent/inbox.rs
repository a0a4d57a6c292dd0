//! What is put into a conversation from outside while a turn runs, or between turns: steering and contexts.
//!
//! Taken whole at each step's beginning, in the order of putting in; from then on the log has it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::point::prompt::ContextMessage;
use crate::point::turn::Steering;
use crate::seam::conversation::Conversation;

/// What waits for the next step.
#[derive(Debug, Default)]
pub(super) struct Inbox(Mutex<Waiting>);

/// What was taken.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) contexts: Vec<ContextMessage>,
    pub(super) steering: Vec<Steering>,
}

impl Inbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn steer(&self, message: Steering) {
        self.waiting().steering.push(message);
    }

    /// Whether something waits that makes a turn go on.
    pub(super) fn steers(&self) -> bool {
        !self.waiting().steering.is_empty()
    }

    /// Takes all of it.
    pub(super) fn take(&self) -> Waiting {
        std::mem::take(&mut *self.waiting())
    }
}

impl Conversation for Inbox {
    fn inject(&self, context: ContextMessage) {
        self.waiting().contexts.push(context);
    }
}
