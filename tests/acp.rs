//! `sluice acp` as a client sees it: the built binary over real pipes, with the script model and real shell hooks.
//!
//! Lives here: whole conversations. Does not live here: framing and dispatch (the protocol crate's own tests), what a
//! single listener or tool does. The client and the workspace are in `acp/`, one topic of cases a file beside them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a failed test may panic, and a skipped one says so"
)]

#[path = "acp/background.rs"]
mod background;
#[path = "acp/cancel.rs"]
mod cancel;
#[path = "acp/client.rs"]
mod client;
#[path = "acp/escalation.rs"]
mod escalation;
#[path = "acp/files.rs"]
mod files;
#[path = "acp/gates.rs"]
mod gates;
#[path = "acp/images.rs"]
mod images;
#[path = "acp/life.rs"]
mod life;
#[path = "acp/mcp.rs"]
mod mcp;
#[path = "acp/notice.rs"]
mod notice;
#[path = "acp/orphans.rs"]
mod orphans;
#[path = "acp/permission.rs"]
mod permission;
#[path = "acp/questions.rs"]
mod questions;
#[path = "acp/turn.rs"]
mod turn;
#[path = "acp/wire.rs"]
mod wire;
#[path = "acp/workspace.rs"]
mod workspace;
