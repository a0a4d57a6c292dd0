//! Providers behind the seams of `sluice-harness`: local processes, files, search, and the language models.
//!
//! Owns: every line that touches the operating system or the network on behalf of a seam. Must not know: who asks
//! (tools, hook bridges, front ends), where configuration comes from, or what an answer is used for. Nothing here
//! reads an environment variable to configure itself: constructors are handed what they need.
//!
//! Read first: [`process::LocalProcesses`], [`files::LocalFiles`], [`search::LocalSearch`], [`script::ScriptModel`],
//! [`openai::OpenAiModel`], [`anthropic::AnthropicModel`], [`web::HttpFetch`], and with the
//! feature `mcp` `mcp::RmcpServers`.

pub mod anthropic;
mod fault;
pub mod files;
pub mod host_files;
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
mod off_thread;
pub mod openai;
pub mod process;
pub mod sandbox;
pub mod script;
pub mod search;
pub mod secret;
pub mod warden;
pub mod web;
