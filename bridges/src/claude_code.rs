//! The Claude Code dialect: its settings, its payloads, and what its hooks' outputs mean at our points.
//!
//! The ground truth is the observed behaviour of Claude Code 2.1.332. Each event has its own file with the effect it
//! can have: an effect has only the fields that the event honours, so that an ignored answer has nowhere to land.

pub(crate) mod discover;
pub(crate) mod effect;
mod environment;
mod hear;
mod join;
mod listen;
mod long_text;
mod output;
pub mod payload;
mod permission_request;
mod post_tool_use;
mod post_tool_use_failure;
mod pre_tool_use;
mod prompt_submit;
mod session_end;
mod session_start;
mod settings;
mod stop;
mod text;

pub use discover::{Discovery, EnvEntry, PermissionEntry, discover, files};
pub use environment::env_folder;
pub use listen::ClaudeCodeBridge;
pub(crate) use stop::SOURCE as STOP_SOURCE;

/// How long a handler may take that does not say (Claude Code hooks, default timeouts).
#[must_use]
pub fn default_timeout(event: crate::Event) -> std::time::Duration {
    listen::default_limit(event)
}
