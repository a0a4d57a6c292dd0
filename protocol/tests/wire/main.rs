//! Tests of the wire: real pipes, real threads, the whole peer.
//!
//! Lives here: the list of test modules. Transcripts are data (`../transcripts`); what cannot be said as a
//! transcript is code. Invariant: nothing waits without a watchdog, nothing sleeps to wait for something.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test a broken expectation is a panic"
)]

mod acp_params;
mod cancelling;
mod ends;
mod fixture;
mod foreign_client;
mod limits;
mod ordering;
mod transcripts;
