//! The dialect-neutral hook core: what a handler is, which handlers run, how they run, and what is written down.
//!
//! Nothing here knows what an output means: that is each dialect's own. The order everywhere is the order of
//! configuration, never the order of completion.

pub mod condition;
pub mod config;
pub(crate) mod continued;
pub(crate) mod fire;
pub mod matcher;
pub(crate) mod output;
pub mod plan;
pub mod problem;
pub mod record;
pub(crate) mod run;
pub(crate) mod script;
pub mod tool_names;
pub(crate) mod transcript;
