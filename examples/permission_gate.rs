//! A policy of a few lines: calls may write inside one folder only, whatever tool they use.
//!
//! It looks at what the tool itself says of a call, not at names of arguments, so a tool added tomorrow is covered too.

use std::path::PathBuf;

use sluice_harness::context::{Context, ContextFault, Rank};
use sluice_harness::point::tools::{DeniedBy, PolicyView, PreAnswer, PreExecute, PreTool, Reason};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::tool::Access;
use sluice_harness::{Fut, Plugin, PluginFault};

/// Denies writes outside of `folder`.
pub(crate) struct PermissionGate {
    /// Absolute.
    pub(crate) folder: PathBuf,
}

impl Plugin for PermissionGate {
    fn name(&self) -> &str {
        "permission-gate"
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let fault = |e: ContextFault| PluginFault { plugin: "permission-gate".to_owned(), why: e.to_string() };
        context.listen::<PreExecute>(Rank::NORMAL, self).map(drop).map_err(fault)
    }
}

impl Listener<PreExecute> for PermissionGate {
    fn name(&self) -> &str {
        "permission-gate"
    }

    fn decide<'a>(
        &'a self,
        view: PolicyView<'a>,
        next: Next<'a, PreExecute>,
    ) -> Fut<'a, Result<PreAnswer, ListenerFault>> {
        let outside = view
            .facts()
            .paths
            .iter()
            .find(|(path, access)| *access == Access::Write && !path.starts_with(&self.folder));
        match outside {
            Some((path, _)) => {
                let text = format!("{} lies outside {}; write there instead", path.display(), self.folder.display());
                let decision = PreTool::Deny(Reason::new(DeniedBy::Rule, text));
                Box::pin(std::future::ready(Ok(PreAnswer::new(decision))))
            }
            // No objection is not a yes: whoever stands further in still decides.
            None => next.delegate(),
        }
    }
}

fn main() -> Result<(), PluginFault> {
    PermissionGate { folder: PathBuf::from("/srv/site") }.mount(&Context::root("example"))
}
