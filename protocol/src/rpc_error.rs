//! Error objects that JSON-RPC itself defines, each with one readable sentence.
//!
//! Lives here: codes of JSON-RPC 2.0 and the cancellation code that ACP v1 took over from the Language Server
//! Protocol. Does not live here: ACP's own codes (`acp`). Invariant: editors print `message` as it is, so
//! it is a sentence that names the thing.

use std::fmt;

use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::types::error::{INTERNAL_ERROR_CODE, INVALID_PARAMS_CODE, METHOD_NOT_FOUND_CODE};

/// The request was cancelled (ACP v1 and the Language Server Protocol).
pub const REQUEST_CANCELLED_CODE: i32 = -32800;

/// -32601: nothing answers to `method`.
#[must_use]
pub fn method_not_found(method: &str) -> ErrorObjectOwned {
    error(METHOD_NOT_FOUND_CODE, format!("the method `{method}` does not exist here"))
}

/// -32602: `what` is wrong with the parameters.
#[must_use]
pub fn invalid_params(what: impl fmt::Display) -> ErrorObjectOwned {
    error(INVALID_PARAMS_CODE, what.to_string())
}

/// -32603: `what` went wrong on our side.
#[must_use]
pub fn internal(what: impl fmt::Display) -> ErrorObjectOwned {
    error(INTERNAL_ERROR_CODE, what.to_string())
}

/// -32800: the request was cancelled before it had a result.
#[must_use]
pub fn request_cancelled() -> ErrorObjectOwned {
    error(REQUEST_CANCELLED_CODE, "the request was cancelled".to_owned())
}

fn error(code: i32, message: String) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(code, message, None::<()>)
}
