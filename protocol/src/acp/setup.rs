//! Parameters of the requests that set a session up: `session/new`, `session/load`, `session/resume`.
//!
//! Lives here: what editors may leave out, and the rule that paths are absolute. Does not live here: what
//! a session is. Invariant: what comes out names an absolute `cwd` and absolute additional roots.

use std::path::{Path, PathBuf};

use jsonrpsee::types::{ErrorObjectOwned, Params};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::params::{parse_text, text};
use super::schema::v1::{LoadSessionRequest, NewSessionRequest, ResumeSessionRequest};
use super::servers::wrong_server;
use crate::rpc_error::invalid_params;

/// A request that says where a session works.
pub trait SessionSetup: DeserializeOwned {
    /// The working directory, as given.
    fn cwd(&self) -> &Path;
    /// Further roots, as given.
    fn additional_directories(&self) -> &[PathBuf];
}

macro_rules! setup {
    ($($request:ty),+) => {$(
        impl SessionSetup for $request {
            fn cwd(&self) -> &Path {
                &self.cwd
            }

            fn additional_directories(&self) -> &[PathBuf] {
                &self.additional_directories
            }
        }
    )+};
}

setup!(NewSessionRequest, LoadSessionRequest, ResumeSessionRequest);

/// Decodes the parameters of a request that sets a session up. The schema demands `mcpServers`; some
/// editors leave it out or send null, which counts as an empty list.
///
/// # Errors
/// -32602, naming the member that is wrong; relative paths are wrong.
pub fn parse_setup<T: SessionSetup>(method: &str, params: &Params<'_>) -> Result<T, ErrorObjectOwned> {
    let text = text(params);
    let setup: T = match with_servers(text) {
        Some(completed) => parse_text(method, &completed)?,
        // The schema's own error says neither which server is wrong nor what.
        None => parse_text(method, text).map_err(|error| wrong_server(method, text).unwrap_or(error))?,
    };
    if !setup.cwd().is_absolute() {
        return Err(relative(method, "cwd", setup.cwd()));
    }
    for (index, path) in setup.additional_directories().iter().enumerate() {
        if !path.is_absolute() {
            let member = format!("additionalDirectories[{index}]");
            return Err(relative(method, &member, path));
        }
    }
    Ok(setup)
}

fn relative(method: &str, member: &str, path: &Path) -> ErrorObjectOwned {
    invalid_params(format_args!("`{method}`: {member} must be absolute, not `{}`", path.display()))
}

/// The text with an empty `mcpServers`, if it is an object without one.
fn with_servers(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Probe {
        #[serde(default, deserialize_with = "there")]
        mcp_servers: bool,
    }
    fn there<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| true)
    }
    let probe = text.starts_with('{').then(|| serde_json::from_str::<Probe>(text).ok()).flatten()?;
    let rest = text.strip_prefix('{')?;
    let separator = if rest.trim_start().starts_with('}') { "" } else { "," };
    (!probe.mcp_servers).then(|| format!("{{\"mcpServers\":[]{separator}{rest}"))
}
