//! Error objects with the codes that ACP v1 adds to JSON-RPC's.
//!
//! Lives here: constructors. Does not live here: JSON-RPC's own codes (`rpc_error`). Invariant: editors
//! act on the code (a login button for -32000, and for that alone) and print the message.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::json;

/// ACP v1: the user has to log in first.
pub const AUTH_REQUIRED_CODE: i32 = -32000;
/// ACP v1: a file, a session or another resource does not exist.
pub const RESOURCE_NOT_FOUND_CODE: i32 = -32002;

/// -32000: `message` says what to log in to, and how.
#[must_use]
pub fn auth_required(message: impl Into<String>) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(AUTH_REQUIRED_CODE, message, None::<()>)
}

/// -32002: `message` names what does not exist, `data` identifies it for programs.
#[must_use]
pub fn resource_not_found(message: impl Into<String>, data: impl Serialize) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(RESOURCE_NOT_FOUND_CODE, message, Some(data))
}

/// -32002 with `data.sessionId`: there is no such session.
#[must_use]
pub fn session_not_found(session_id: &str) -> ErrorObjectOwned {
    resource_not_found(format!("there is no session `{session_id}`"), json!({ "sessionId": session_id }))
}
