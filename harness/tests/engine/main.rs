//! The engine from outside: real contexts, a real log on disk, scripted listeners, tools and models.
//!
//! One binary, a module a subject. A test of a numbered rule carries its number.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "tests say what they expect by panicking"
)]

mod batches;
mod cancellation;
mod closed;
mod counts;
mod course;
mod dispatch;
mod endings;
mod examples;
mod failing_log;
mod gates;
mod hangs;
mod interleavings;
mod kill_matrix;
mod kit;
mod notices;
mod presentation;
mod rebuild;
mod registry;
mod retries;
mod rig;
mod ring;
mod scopes;
mod settling;
mod substitution;
mod survival;
#[path = "../history/validity.rs"]
mod validity;
mod windows;
