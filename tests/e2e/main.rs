//! The built program as its users meet it: real shells, real hook scripts, real files, pipes, signals and loopback HTTP.
//!
//! Most of it is data: the cases in `tests/cases/*.json`, played by [`case`]. What no table can say, such as a process
//! that is killed in the middle of a call, has a test of its own here. Every run has a home, a workspace and a state
//! folder of its own, a small environment and a watchdog, and leaves no process behind; after every run the session log
//! and the requests to the model are checked for what must always hold.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test may fail bluntly"
)]

mod anthropic;
mod case;
mod chapters;
mod crash;
mod demo;
mod formats;
mod http;
mod log;
mod orphans;
mod pipeline;
mod place;
mod record;
mod sandbox;
mod server;
mod signals;
mod stdin;
mod web;
