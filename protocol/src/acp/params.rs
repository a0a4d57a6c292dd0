//! Typed parameters from raw text, with errors that name the member at fault.
//!
//! Lives here: decoding and the default queue of a message. Does not live here: leniency of single methods
//! (`setup`). Invariant: a failure is -32602 with one sentence: the method, the member, the reason.

use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::locate::member_at;
use crate::rpc_error::invalid_params;

/// Decodes the parameters of `method`. Missing or null parameters count as an empty object.
///
/// # Errors
/// -32602, naming the member that is wrong where one can be told.
pub fn parse<T: DeserializeOwned>(method: &str, params: &Params<'_>) -> Result<T, ErrorObjectOwned> {
    parse_text(method, text(params))
}

/// The parameters as text; what is absent is an empty object.
pub(super) fn text<'a>(params: &'a Params<'_>) -> &'a str {
    match params.as_str() {
        None | Some("null" | "") => "{}",
        Some(text) => text,
    }
}

pub(super) fn parse_text<T: DeserializeOwned>(method: &str, text: &str) -> Result<T, ErrorObjectOwned> {
    // A struct would also be read from an array, by position; ACP knows only named parameters.
    if !text.starts_with('{') {
        return Err(invalid_params(format_args!("`{method}`: the parameters must be an object")));
    }
    serde_json::from_str(text).map_err(|error| match placed(text, &error) {
        (Some(member), reason) => invalid_params(format_args!("`{method}`: `{member}`: {reason}")),
        (None, reason) => invalid_params(format_args!("`{method}`: {reason}")),
    })
}

/// The member of a text that an error lies in, where one can be told, and the reason.
pub(super) fn placed(text: &str, error: &serde_json::Error) -> (Option<String>, String) {
    let reason = error.to_string();
    // The position is in the text of the parameters, which nobody sees.
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = reason.strip_suffix(&place).unwrap_or(&reason);
    (member_at(text, error, reason), reason.to_owned())
}

/// Queues messages by the session they name: for [`Router::queue_key`](crate::Router::queue_key).
#[must_use]
pub fn session_queue(_method: &str, params: &Params<'_>) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Session {
        session_id: String,
    }
    let text = params.as_str().filter(|text| text.starts_with('{'))?;
    serde_json::from_str::<Session>(text).ok().map(|session| session.session_id)
}
