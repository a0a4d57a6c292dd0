//! The engine of sluice: contexts, seams, the session log, the tool pipeline and the agent loop.
//!
//! Owns: composition with a lifetime ([`context`]), the definitions of capabilities ([`seam`]), the three shapes of
//! interception ([`point`]), sealed tool calls and their one result ([`pipeline`]), the durable log ([`log`]), the
//! permission policy ([`permission`]) and the loop ([`agent`]).
//!
//! Must not know: any provider (a file system, a process, HTTP), any hook dialect, any wire format, any front end.
//!
//! Read first: [`context::Context`], [`tool::Tool`], [`pipeline::Registry`], [`log::SessionLog`], [`agent::Agent`].

pub mod agent;
pub mod cancel;
pub mod content;
pub mod context;
pub mod ids;
pub mod json;
pub mod log;
pub mod permission;
pub mod pipeline;
pub mod point;
pub mod registry;
pub mod scene;
pub mod schema;
pub mod seam;
pub mod tool;

use std::future::Future;
use std::pin::Pin;

/// A boxed future: what an object-safe asynchronous method returns.
pub type Fut<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that mounts itself on a context: a hook bridge, a policy, a tool set.
pub trait Plugin {
    /// Its name.
    fn name(&self) -> &str;
    /// Mounts all it brings; whatever it mounted dies with the context.
    ///
    /// # Errors
    /// When the context is gone or a name is taken.
    fn mount(self, context: &context::Context) -> Result<(), PluginFault>;
}

/// Why a plugin could not be mounted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin `{plugin}` could not be mounted: {why}")]
pub struct PluginFault {
    /// The plugin.
    pub plugin: String,
    /// Why.
    pub why: String,
}
