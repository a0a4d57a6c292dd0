//! The permission policy: modes and rules, pure. Reading settings files is a bridge's work, joining them the program's.
//!
//! Here live the rules in Claude Code's syntax ([`Rule`]), the scanner for shell lines ([`shell`]), the store of a
//! session's mode and rules ([`PermissionStore`]) and the judgement of one call; [`PolicyPlugin`] mounts it. The
//! invariant: a deny rule beats an ask rule beats an allow rule beats the mode, and what is not understood is asked.
//!
//! The engine knows no file system, so a store is handed what follows symbolic links ([`PermissionStore::following`]).
//! A path is then judged under both names: a deny or ask rule for either speaks of it, and what allows must cover both.

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

pub use judge::{Judgement, Place, RealPath};
pub use mode::{Behaviour, Mode, ModeError};
pub use plugin::PolicyPlugin;
pub use rule::{Anchors, CommandPattern, PathPattern, Rule, RuleError, Specifier};
pub use store::{PermissionStore, RuleEntry, RuleSet};
