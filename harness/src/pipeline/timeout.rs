//! The time budget of tools that declare one, as an ordinary wrapper.

use super::Attempt;
use crate::Fut;
use crate::point::ListenerFault;
use crate::point::tools::{Dispatch, Wrapper};
use crate::tool::ToolFailure;

/// Ends a call whose tool's own budget has run out; siblings are not touched.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeoutPolicy;

impl Wrapper for TimeoutPolicy {
    fn name(&self) -> &str {
        "timeout"
    }

    fn around<'a>(&'a self, mut dispatch: Dispatch<'a>) -> Fut<'a, Result<Attempt, ListenerFault>> {
        Box::pin(async move {
            let budget = dispatch.budget();
            let mut attempt = dispatch.run(budget).await;
            match budget {
                // When its own timer fired first, the result says so, whatever the body made of it.
                Some(limit) if attempt.timed_out() => {
                    let text = format!("tool call timed out after {}ms", limit.as_millis());
                    let mut late = Attempt::failure(ToolFailure::coded("ToolTimeoutError", "TOOL_TIMEOUT", text));
                    late.contexts.append(&mut attempt.contexts);
                    Ok(late)
                }
                _ => Ok(attempt),
            }
        })
    }
}
