//! A guard: what must never happen, whatever hooks, rules and people said before.
//!
//! A guard denies or abstains. It cannot allow, cannot wait, and if it panics the call is denied.

use std::ffi::OsStr;

use sluice_harness::context::{Context, ContextFault};
use sluice_harness::point::tools::{DeniedBy, Guard, Reason};
use sluice_harness::tool::Access;
use sluice_harness::{Plugin, PluginFault};

/// Keeps every call from writing inside a `.git` folder.
pub(crate) struct HandsOffGit;

impl Plugin for HandsOffGit {
    fn name(&self) -> &str {
        "hands-off-git"
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let guard = Guard::new("hands-off-git", |view| {
            let writes = view.facts.paths.iter().filter(|(_, access)| *access == Access::Write);
            let mut inside = writes.filter(|(path, _)| path.iter().any(|part| part == OsStr::new(".git")));
            let (path, _) = inside.next()?;
            let text = format!("{} belongs to git; use git commands to change it", path.display());
            Some(Reason::new(DeniedBy::Guard, text))
        });
        let fault = |e: ContextFault| PluginFault { plugin: "hands-off-git".to_owned(), why: e.to_string() };
        context.guard(guard).map(drop).map_err(fault)
    }
}

fn main() -> Result<(), PluginFault> {
    HandsOffGit.mount(&Context::root("example"))
}
