//! What is wrong with an entry of `mcpServers`.
//!
//! Lives here: naming the entry, its member and the reason, where the schema's own error has none of them. Does not live
//! here: what a server is. Invariant: it only describes what was refused already.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Deserialize;
use serde_json::Value;

use super::params::placed;
use super::schema::v1::{McpServer, McpServerHttp, McpServerSse, McpServerStdio};
use crate::rpc_error::invalid_params;

/// The error of the first entry that is no server; `None` where all are.
pub(super) fn wrong_server(method: &str, text: &str) -> Option<ErrorObjectOwned> {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(rename = "mcpServers")]
        servers: Vec<Value>,
    }
    let servers = serde_json::from_str::<Probe>(text).ok()?.servers;
    let (index, server) = servers.iter().enumerate().find(|(_, server)| McpServer::deserialize(*server).is_err())?;
    let at = format!("mcpServers[{index}]");
    if !server.is_object() {
        return Some(invalid_params(format_args!("`{method}`: `{at}`: it must be an object")));
    }
    let text = server.to_string();
    let error = match server.get("type") {
        None => serde_json::from_str::<McpServerStdio>(&text).err(),
        Some(Value::String(kind)) => match kind.as_str() {
            "stdio" => serde_json::from_str::<McpServerStdio>(&text).err(),
            "http" => serde_json::from_str::<McpServerHttp>(&text).err(),
            "sse" => serde_json::from_str::<McpServerSse>(&text).err(),
            _ => None,
        },
        Some(_) => None,
    };
    let Some(error) = error else {
        return Some(invalid_params(format_args!("`{method}`: `{at}.type`: it is none of stdio, http and sse")));
    };
    Some(match placed(&text, &error) {
        (Some(member), reason) => invalid_params(format_args!("`{method}`: `{at}.{member}`: {reason}")),
        (None, reason) => invalid_params(format_args!("`{method}`: `{at}`: {reason}")),
    })
}
