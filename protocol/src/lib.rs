//! One full-duplex JSON-RPC 2.0 peer over any pair of byte streams, and a thin binding of the Agent Client
//! Protocol (ACP) v1 on top of it.
//!
//! Owns: framing, message envelopes, dispatch, ordered output, cancellation both ways, the end of a
//! connection. Must not know: agents, sessions, tools, models, hooks, or any other crate of the workspace;
//! nor which file descriptors it speaks over. Read first: [`Router`], [`Connection`], [`Peer`], then
//! [`RequestContext`].
//!
//! ```text
//! input  -> reader thread -> connection task -> one task a request
//!                                  |  one queue of starts a session
//! output <- writer thread <- one bounded channel <- everybody
//! ```
//!
//! Everything that goes out passes through the one channel, so what is sent first is read first: whatever a
//! handler sent before it returned precedes its answer.

mod connection;
mod context;
mod framing;
mod message;
mod peer;
mod reader;
mod request;
mod router;
mod turnstile;
mod writer;

pub mod acp;
pub mod rpc_error;

use std::sync::Arc;

pub use jsonrpsee::types::{ErrorObjectOwned as RpcError, Params};
pub use serde_json::value::RawValue;

pub use connection::{Connection, Ended, Options, StartError};
pub use context::RequestContext;
pub use framing::Framing;
pub use message::WireId;
pub use peer::{Peer, PeerError};
pub use router::{DuplicateMethod, Router};
pub use turnstile::Hold;

/// Which way a traced message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the other side to us.
    In,
    /// From us to the other side.
    Out,
}

/// Is shown every message as text, without its framing (see [`Options::trace`]).
pub type WireTrace = Arc<dyn Fn(Direction, &str) + Send + Sync>;
