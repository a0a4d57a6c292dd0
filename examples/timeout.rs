//! A wrapper around dispatch: every call of a tool without a budget of its own gets this much time.
//!
//! The signal of the call can only be narrowed, so a cancellation by the person still reaches the body.

use std::time::Duration;

use sluice_harness::context::{Context, ContextFault, Rank};
use sluice_harness::pipeline::Attempt;
use sluice_harness::point::ListenerFault;
use sluice_harness::point::tools::{Dispatch, Wrapper};
use sluice_harness::tool::ToolFailure;
use sluice_harness::{Fut, Plugin, PluginFault};

/// Bounds calls that bound themselves by nothing.
pub(crate) struct DefaultTimeout {
    /// How long a call may take.
    pub(crate) limit: Duration,
}

impl Plugin for DefaultTimeout {
    fn name(&self) -> &str {
        "default-timeout"
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let fault = |e: ContextFault| PluginFault { plugin: "default-timeout".to_owned(), why: e.to_string() };
        context.wrap(Rank::NORMAL, self).map(drop).map_err(fault)
    }
}

impl Wrapper for DefaultTimeout {
    fn name(&self) -> &str {
        "default-timeout"
    }

    fn around<'a>(&'a self, mut dispatch: Dispatch<'a>) -> Fut<'a, Result<Attempt, ListenerFault>> {
        Box::pin(async move {
            if dispatch.budget().is_some() {
                return Ok(dispatch.run(None).await);
            }
            let attempt = dispatch.run(Some(self.limit)).await;
            if !attempt.timed_out() {
                return Ok(attempt);
            }
            let text = format!("{} took longer than {:?} and was stopped", dispatch.call().name(), self.limit);
            Ok(Attempt::failure(ToolFailure::coded("ToolTimeoutError", "TOOL_TIMEOUT", text)))
        })
    }
}

fn main() -> Result<(), PluginFault> {
    DefaultTimeout { limit: Duration::from_secs(120) }.mount(&Context::root("example"))
}
