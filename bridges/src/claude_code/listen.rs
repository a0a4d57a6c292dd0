//! The plugin: Claude Code hooks as listeners of the engine's points.
//!
//! A listener runs its hooks, asks further in (unless its own answer is a denial) and joins by strictness. Nested
//! calls have no pre hooks of their own; a rewritten call's post hooks run once, with the model's own call id. The
//! firing itself is in [`firing`], what each point makes of it in the other files here.

mod after_tool;
mod approval;
mod before_tool;
mod configuration;
mod firing;
mod notification;

pub(super) use firing::default_limit;
mod session;
mod turn;

use std::sync::Arc;

use sluice_harness::context::{Context, ContextFault, Rank};
use sluice_harness::point::approval::Approval;
use sluice_harness::point::configuration::ConfigurationChange;
use sluice_harness::point::notification::Notification;
use sluice_harness::point::prompt::PromptSubmit;
use sluice_harness::point::session::{SessionEnd, SessionStart};
use sluice_harness::point::tools::{PostExecute, PreExecute};
use sluice_harness::point::turn::TurnContinuation;
use sluice_harness::{Plugin, PluginFault};

use super::discover::EnvEntry;
use crate::core::config::LiveHandlers;
use crate::setup::BridgeConfig;

/// The name of the bridge in sources and faults.
pub(super) const NAME: &str = "claude-code";

/// The bridge of the Claude Code dialect.
#[derive(Debug)]
pub struct ClaudeCodeBridge {
    config: Arc<BridgeConfig>,
    handlers: Arc<LiveHandlers>,
    env: Vec<EnvEntry>,
}

impl ClaudeCodeBridge {
    /// A bridge that runs the handlers in force, with the variables of trusted settings.
    #[must_use]
    pub fn new(config: Arc<BridgeConfig>, handlers: Arc<LiveHandlers>, env: Vec<EnvEntry>) -> Self {
        Self { config, handlers, env }
    }
}

/// What every listener shares.
pub(super) struct Bridge {
    config: Arc<BridgeConfig>,
    handlers: Arc<LiveHandlers>,
    env: Vec<EnvEntry>,
    owner: Context,
}

/// A listener: the shared bridge, at any point.
#[derive(Clone)]
struct Mounted(Arc<Bridge>);

impl Plugin for ClaudeCodeBridge {
    fn name(&self) -> &str {
        NAME
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let Self { config, handlers, env } = self;
        let mounted = Mounted(Arc::new(Bridge { config, handlers, env, owner: context.clone() }));
        mount(mounted, context).map_err(|gone| PluginFault { plugin: NAME.to_owned(), why: gone.to_string() })
    }
}

fn mount(mounted: Mounted, context: &Context) -> Result<(), ContextFault> {
    context.observe::<SessionStart>(mounted.clone())?;
    context.listen::<PromptSubmit>(Rank::NORMAL, mounted.clone())?;
    context.listen::<PreExecute>(Rank::NORMAL, mounted.clone())?;
    context.listen::<Approval>(Rank::NORMAL, mounted.clone())?;
    context.listen::<PostExecute>(Rank::NORMAL, mounted.clone())?;
    context.listen::<TurnContinuation>(Rank::NORMAL, mounted.clone())?;
    context.observe::<Notification>(mounted.clone())?;
    context.listen::<ConfigurationChange>(Rank::NORMAL, mounted.clone())?;
    context.listen::<SessionEnd>(Rank::NORMAL, mounted)?;
    Ok(())
}
