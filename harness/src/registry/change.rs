//! `tools/change`: what is registered or restricted has changed, told to whoever keeps a view of it.
//!
//! Told to observers on the scope of the change, around it and inside it: to all who may see the tool, and to those
//! who own the scope. Guards are no part of it. An observer that panics while something is being registered
//! takes that registration back; what ends has ended, whatever an observer makes of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::context::{Context, Registration};
use crate::point::{Note, panic_text};

/// The tools of a scope have changed.
pub enum ToolsChange {}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A tool is there.
    Registered,
    /// A tool is gone.
    Unregistered,
    /// A restriction is in force.
    Restricted,
    /// A restriction is no more.
    Lifted,
}

impl Change {
    fn undone(self) -> Self {
        match self {
            Self::Registered => Self::Unregistered,
            Self::Unregistered => Self::Registered,
            Self::Restricted => Self::Lifted,
            Self::Lifted => Self::Restricted,
        }
    }
}

/// What an observer is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolsChanged<'a> {
    /// What happened.
    pub what: Change,
    /// The scope it happened on.
    pub scope: &'a str,
    /// The tool; or all tools that a restriction names, in order.
    pub names: &'a [String],
}

impl Note for ToolsChange {
    const NAME: &'static str = "tools/change";
    type Snapshot<'a> = ToolsChanged<'a>;
}

/// Tells of something just mounted. When an observer panics it is unmounted again, and those who heard of it hear that
/// it is gone.
///
/// # Errors
/// What the observer's panic said.
pub(super) fn announce(
    context: &Context,
    mounted: &Registration,
    what: Change,
    names: &[String],
) -> Result<(), String> {
    let observers = context.observers_about::<ToolsChange>();
    let snapshot = ToolsChanged { what, scope: context.name(), names };
    for (at, observer) in observers.iter().enumerate() {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| observer.observe(&snapshot))) else { continue };
        mounted.withdraw();
        let undone = ToolsChanged { what: what.undone(), ..snapshot };
        for told in observers.iter().take(at) {
            if catch_unwind(AssertUnwindSafe(|| told.observe(&undone))).is_err() {
                tracing::warn!(note = ToolsChange::NAME, "an observer panicked and was ignored");
            }
        }
        return Err(panic_text(&*panic));
    }
    Ok(())
}

/// Tells of something that has ended.
pub(crate) fn ended(context: &Context, what: Change, names: &[String]) {
    let snapshot = ToolsChanged { what, scope: context.name(), names };
    for observer in context.observers_about::<ToolsChange>() {
        if catch_unwind(AssertUnwindSafe(|| observer.observe(&snapshot))).is_err() {
            tracing::warn!(note = ToolsChange::NAME, "an observer panicked and was ignored");
        }
    }
}
