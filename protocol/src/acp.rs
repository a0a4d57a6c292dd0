//! The thin binding of the Agent Client Protocol, version 1: names, error codes, reading of parameters.
//!
//! Lives here: what every ACP agent or client needs from the envelope up to typed parameters. Does not live
//! here: what any method does. Invariant: types come from the official schema crate and are decoded at the
//! last moment, from the text as it came, so that an error can name the member that is wrong.

mod errors;
mod locate;
mod params;
mod servers;
mod setup;

pub use agent_client_protocol_schema as schema;

pub use errors::{AUTH_REQUIRED_CODE, RESOURCE_NOT_FOUND_CODE, auth_required, resource_not_found, session_not_found};
pub use params::{parse, session_queue};
pub use setup::{SessionSetup, parse_setup};

/// The protocol version spoken here: ACP v1. A client that asks for another is answered with this one.
pub const PROTOCOL_VERSION: schema::ProtocolVersion = schema::ProtocolVersion::V1;
