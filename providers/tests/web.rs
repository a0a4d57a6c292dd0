//! Fetching and searching over a real loopback server: every limit of that a server can show.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

#[path = "web/fetch.rs"]
mod fetch;
#[path = "web/search.rs"]
mod search;
#[path = "suite/server.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod server;
