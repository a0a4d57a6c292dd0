//! Hook bridges: they run people's hook scripts for Claude Code and Codex unchanged.
//!
//! Owns: the dialect-neutral hook core ([`core`]: handlers, matchers, plan, run, records) and, on it, one translator a
//! dialect ([`claude_code`], [`codex`]) in four steps: *discover* (which handlers, from where, trusted or not),
//! *payload* (what goes to stdin and the environment), *run* (through the process seam), *effect* (output to a typed
//! decision). Plan, read, merge and join are pure; only running has effects.
//!
//! Must not know: any provider, any front end, any wire of ours. Files, processes and the user's ear are leased or
//! borrowed from the engine.
//!
//! Read first: [`BridgeConfig`], [`core::config::Handler`], [`core::plan::plan`], [`claude_code::ClaudeCodeBridge`],
//! [`codex::CodexBridge`].

pub mod claude_code;
pub mod codex;
pub mod core;
mod setup;

pub use crate::core::config::{Dialect, Event, Handler, HandlerSet, Layer, LiveHandlers, OnFailure, Trust};
pub use crate::core::problem::{Problem, Severity};
pub use crate::core::tool_names::known_tools;
pub use setup::{
    Attendance, BridgeConfig, ExtraSettings, SettingSources, TrustDecision, find_workspace_root, workspace_root,
};
