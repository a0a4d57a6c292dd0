//! The built-in tools end to end: sealed, gated, dispatched and settled by the real pipeline, over real files, real
//! shells and a real log.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod background;
mod cases;
mod definitions;
mod fence;
mod intents;
mod observation;
mod shell;
mod swap;
mod world;
