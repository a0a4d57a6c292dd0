//! The plugin: Codex hooks as listeners of the engine's points.
//!
//! A listener runs its hooks, asks further in (unless its own answer is a denial) and joins by strictness. What one
//! firing is stands in [`firing`], what each point makes of it in the other files here.

mod firing;

pub(super) use firing::DEFAULT_LIMIT;
mod tools;
mod turn;

use std::sync::Arc;

use sluice_harness::context::{Context, ContextFault, Rank};
use sluice_harness::point::prompt::PromptSubmit;
use sluice_harness::point::session::SessionStart;
use sluice_harness::point::tools::{PostExecute, PreExecute};
use sluice_harness::point::turn::TurnContinuation;
use sluice_harness::{Plugin, PluginFault};

use crate::core::config::LiveHandlers;
use crate::setup::BridgeConfig;

/// The name of the bridge in sources and faults.
pub(super) const NAME: &str = "codex";

/// The bridge of the Codex dialect.
#[derive(Debug)]
pub struct CodexBridge {
    config: Arc<BridgeConfig>,
    handlers: Arc<LiveHandlers>,
}

impl CodexBridge {
    /// A bridge that runs the handlers in force.
    #[must_use]
    pub fn new(config: Arc<BridgeConfig>, handlers: Arc<LiveHandlers>) -> Self {
        Self { config, handlers }
    }
}

/// What every listener shares.
pub(super) struct Bridge {
    config: Arc<BridgeConfig>,
    handlers: Arc<LiveHandlers>,
    owner: Context,
}

/// A listener: the shared bridge, at any point.
#[derive(Clone)]
struct Mounted(Arc<Bridge>);

impl Plugin for CodexBridge {
    fn name(&self) -> &str {
        NAME
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let Self { config, handlers } = self;
        let mounted = Mounted(Arc::new(Bridge { config, handlers, owner: context.clone() }));
        mount(mounted, context).map_err(|gone| PluginFault { plugin: NAME.to_owned(), why: gone.to_string() })
    }
}

fn mount(mounted: Mounted, context: &Context) -> Result<(), ContextFault> {
    context.observe::<SessionStart>(mounted.clone())?;
    context.listen::<PromptSubmit>(Rank::NORMAL, mounted.clone())?;
    context.listen::<PreExecute>(Rank::NORMAL, mounted.clone())?;
    context.listen::<PostExecute>(Rank::NORMAL, mounted.clone())?;
    context.listen::<TurnContinuation>(Rank::NORMAL, mounted)?;
    Ok(())
}
