//! The permission policy: modes and rules, pure. Reading settings files is a bridge's work, joining them the program's.
//!
//! Here live the rules in Claude Code's syntax ([`Rule`]), the scanner for shell lines ([`shell`]), the store of a
//! session's mode and rules ([`PermissionStore`]) and the judgement of one call; [`PolicyPlugin`] mounts it. The
//! invariant: a deny rule beats an ask rule beats an allow rule beats the mode, and what is not understood is asked.
//!
//! Everything is lexical. Symbolic links are not followed here, for the engine knows no file system; the fence around
//! the files seam sees where a path really leads.

mod judge;
mod matching;
mod mode;
mod plugin;
mod read_only;
mod rule;
pub mod shell;
mod store;

#[cfg(test)]
mod tests;

pub use judge::{Judgement, Place};
pub use mode::{Behaviour, Mode, ModeError};
pub use plugin::PolicyPlugin;
pub use rule::{Anchors, CommandPattern, PathPattern, Rule, RuleError, Specifier};
pub use store::{PermissionStore, RuleEntry, RuleSet};
