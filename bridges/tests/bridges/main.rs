//! The bridges from outside: a real agent, real shells and files, a model that plays steps.
//!
//! Captured payloads and effects are data beside this folder; a case here needs no Rust. One binary, a module a
//! subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "tests say what they expect by panicking"
)]

mod claude_effects;
mod codex_effects;
mod codex_several;
mod discovery;
mod field;
mod not_started;
mod payloads;
mod permission;
mod settings;
mod world;
