//! The session log through its public face: real files, real threads, and real processes where a rule is about those.
//!
//! `fixture` writes sample sessions and judges histories; the other modules each hold one concern. The relational
//! rules that only the engine's inside can provoke are tested beside the state machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and one that acts as another process reports on its output"
)]

mod crash;
mod damage;
mod failure;
mod fixture;
mod forking;
mod looking;
mod random;
mod size;
mod store;
#[path = "../history/validity.rs"]
mod validity;
mod writing;
