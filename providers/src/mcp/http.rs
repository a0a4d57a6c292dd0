//! Servers that are addresses: streamable HTTP, with headers that may be secret.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use sluice_harness::seam::mcp::McpFault;

use super::convert;
use crate::http::client;
use crate::secret::Secret;

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);

/// What speaks with the server, and what must not be told to anybody else.
pub(super) fn transport(
    url: &str,
    headers: &[(String, String)],
) -> Result<(StreamableHttpClientTransport<Client>, Vec<Secret>), McpFault> {
    let cannot = |why: String| McpFault::NotStarted { why };
    let address = Url::parse(url.trim()).map_err(|error| cannot(format!("its address is none: {error}")))?;
    if !matches!(address.scheme(), "http" | "https") || address.host().is_none() {
        return Err(cannot("its address must begin with http:// or https:// and name a host".to_owned()));
    }
    let mut custom = HashMap::new();
    let mut secrets = Vec::new();
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes());
        let header = header.map_err(|_| cannot(format!("its header `{name}` has a name that cannot be sent")))?;
        let mut sent = HeaderValue::from_str(value.trim())
            .map_err(|_| cannot(format!("its header `{name}` has a value that cannot be sent")))?;
        sent.set_sensitive(true);
        custom.insert(header, sent);
        secrets.extend(value.split_whitespace().filter(|word| word.len() >= 8).map(Secret::new));
    }
    let client = client::build(&address, CONNECT).map_err(cannot)?;
    let config = StreamableHttpClientTransportConfig::with_uri(address.as_str())
        .custom_headers(custom)
        .reinit_on_expired_session(true);
    Ok((StreamableHttpClientTransport::with_client(client, config), secrets))
}

/// An error and what is behind it, innermost last, without the address: it may hold a key.
pub(super) fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = match error.downcast_ref::<reqwest::Error>() {
        Some(error) if error.url().is_some() => "the request failed".to_owned(),
        Some(_) | None => error.to_string(),
    };
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = match inner.downcast_ref::<reqwest::Error>() {
            Some(_) => String::new(),
            None => inner.to_string(),
        };
        if !inner_text.is_empty() && !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        source = inner.source();
    }
    convert::shortened(&text)
}
