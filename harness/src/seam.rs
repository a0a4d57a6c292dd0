//! Capability seams: the definitions. A trait and its types per file, free of any provider.
//!
//! Providers live in `sluice-providers` (or behind an editor, in the program); consumers are the tools and the hook
//! bridges. A seam is provided on a [`Context`](crate::context::Context) and leased from it by its trait.

pub mod approval;
pub mod conversation;
pub mod files;
pub mod host_files;
pub mod live;
pub mod mcp;
pub mod model;
pub mod process;
pub mod questions;
pub mod sandbox;
pub mod search;
pub mod settings;
pub mod web;

use web::{FetchProvider, Providers, SearchProvider};

use crate::context::Seam;

impl Seam for dyn conversation::Conversation {
    const NAME: &'static str = "conversation";
}
impl Seam for dyn files::Files {
    const NAME: &'static str = "files";
}
impl Seam for dyn host_files::HostFiles {
    const NAME: &'static str = "host files";
}
impl Seam for dyn live::LiveSink {
    const NAME: &'static str = "live";
}
impl Seam for dyn mcp::McpServers {
    const NAME: &'static str = "MCP servers";
}
impl Seam for dyn model::Model {
    const NAME: &'static str = "model";
}
impl Seam for dyn process::Processes {
    const NAME: &'static str = "processes";
}
impl Seam for dyn questions::Questions {
    const NAME: &'static str = "questions";
}
impl Seam for dyn search::Search {
    const NAME: &'static str = "search";
}
impl Seam for dyn settings::Settings {
    const NAME: &'static str = "settings";
}
impl Seam for Providers<dyn FetchProvider> {
    const NAME: &'static str = "web fetch";
}
impl Seam for Providers<dyn SearchProvider> {
    const NAME: &'static str = "web search";
}
