//! The Codex dialect: its hooks files, its payloads, and what its hooks' outputs mean at our points.
//!
//! The ground truth is the observed behaviour of codex-cli 0.171.0. Outputs are closed objects: one unknown key or
//! wrong type fails the hook, and every failure leaves the action alone unless the configuration says otherwise.

pub(crate) mod discover;
mod hear;
mod listen;
mod long_text;
mod output;
mod patch;
pub mod payload;
mod post_tool_use;
mod pre_tool_use;
mod prompt_submit;
mod session_start;
mod shell;
mod stop;
mod tool;

pub use discover::{Discovery, discover, files};
pub use listen::CodexBridge;
pub use shell::codex_shell;
pub(crate) use stop::SOURCE as STOP_SOURCE;

/// How long a handler may take that does not say.
#[must_use]
pub fn default_timeout() -> std::time::Duration {
    listen::DEFAULT_LIMIT
}
