//! Servers that are addresses: streamable HTTP, with headers that may be secret.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use sluice_harness::seam::mcp::McpFault;

use super::convert;
use crate::http::{client, trouble};
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
    // In a message of somebody else the address itself may stand, with a key in it.
    let mut secrets = vec![Secret::new(url), Secret::new(address.as_str())];
    for (written, (_, value)) in address.query().unwrap_or_default().split('&').zip(address.query_pairs()) {
        let written = written.split_once('=').map_or("", |(_, value)| value);
        secrets.extend([written, &value].into_iter().filter(|value| value.len() >= 4).map(Secret::new));
    }
    secrets.extend(address.password().filter(|password| password.len() >= 4).map(Secret::new));
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

/// An error in words, without the address: it may hold a key.
pub(super) fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut link = Some(error);
    while let Some(error) = link {
        let request = match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(request)) => Some(request),
            Some(_) | None => error.downcast_ref::<reqwest::Error>(),
        };
        if let Some(request) = request {
            return trouble::root_cause(request);
        }
        link = error.source();
    }
    convert::shortened(&error.to_string())
}
