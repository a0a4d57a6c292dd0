//! The plan of one firing: which handlers run, and for each of the others why it does not. Pure.
//!
//! `explain` prints a plan and the live path runs it, so that neither can disagree with the other.

use std::sync::Arc;

use super::condition::{self, CallInput};
use super::config::{Action, Dialect, Event, Handler, HandlerSet, Trust};
use super::matcher::Match;

/// What a plan is made for.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The event.
    pub event: Event,
    /// The matcher's subject with its aliases; empty where the event has none.
    pub subjects: &'a [&'a str],
    /// The call, on events about one.
    pub call: Option<CallInput<'a>>,
}

/// Which handlers run.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// In configuration order, all started at once.
    pub runs: Vec<Arc<Handler>>,
    /// Handlers that would run and that this build cannot run.
    pub unrunnable: Vec<Arc<Handler>>,
    /// The others.
    pub skips: Vec<Skip>,
}

/// A handler that does not run, and why.
#[derive(Debug, Clone)]
pub struct Skip {
    /// The handler.
    pub handler: Arc<Handler>,
    /// Why.
    pub why: SkipReason,
}

/// Why a handler does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// Something turns it off.
    Off(String),
    /// It came with the repository and waits for acceptance.
    HeldBack,
    /// Its matcher does not match.
    Matcher,
    /// Its `if` does not hold.
    Condition,
    /// A later copy of the same handler runs in its place.
    Duplicate,
}

/// Makes the plan.
#[must_use]
pub fn plan(set: &HandlerSet, occasion: Occasion<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut chosen: Vec<Arc<Handler>> = Vec::new();
    for handler in set.of(occasion.event) {
        match skip_reason(handler, occasion) {
            Some(why) => plan.skips.push(Skip { handler: Arc::clone(handler), why }),
            None => {
                let same = match handler.dialect {
                    Dialect::ClaudeCode => chosen.iter_mut().find(|c| is_duplicate(c, handler)),
                    Dialect::Codex => None,
                };
                match same {
                    // The first copy keeps its place, the last one's fields count.
                    Some(slot) => {
                        let former = std::mem::replace(slot, Arc::clone(handler));
                        plan.skips.push(Skip { handler: former, why: SkipReason::Duplicate });
                    }
                    None => chosen.push(Arc::clone(handler)),
                }
            }
        }
    }
    for handler in chosen {
        match handler.action {
            Action::Unsupported { .. } => plan.unrunnable.push(handler),
            Action::Shell { .. } | Action::Exec { .. } => plan.runs.push(handler),
        }
    }
    plan
}

fn is_duplicate(a: &Handler, b: &Handler) -> bool {
    a.action == b.action && a.condition == b.condition
}

fn skip_reason(handler: &Handler, occasion: Occasion<'_>) -> Option<SkipReason> {
    if let Some(why) = &handler.off {
        return Some(SkipReason::Off(why.clone()));
    }
    if occasion.event.has_subject() {
        match handler.matcher.matches(occasion.subjects) {
            Match::Yes => {}
            Match::No => return Some(SkipReason::Matcher),
            // Fail closed: what may be meant for this call runs where it could block it.
            Match::Unclear if occasion.event.is_gate() => {}
            Match::Unclear => return Some(SkipReason::Matcher),
        }
    }
    if let Some(rule) = handler.condition.as_deref().filter(|r| !r.is_empty()) {
        let holds = occasion.call.is_some_and(|call| condition::holds(rule, call));
        if !holds {
            return Some(SkipReason::Condition);
        }
    }
    match handler.trust {
        Trust::HeldBack => Some(SkipReason::HeldBack),
        Trust::Owner | Trust::Accepted => None,
    }
}
