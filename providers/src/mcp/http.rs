//! Servers that are addresses: streamable HTTP, with TLS by rustls and ring, and headers that may be secret.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use sluice_harness::seam::mcp::McpFault;

use super::convert;
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
    let client = client(&address).map_err(|error| cannot(words(&error)))?;
    let config = StreamableHttpClientTransportConfig::with_uri(address.as_str())
        .custom_headers(custom)
        .reinit_on_expired_session(true);
    Ok((StreamableHttpClientTransport::with_client(client, config), secrets))
}

fn client(address: &Url) -> Result<Client, reqwest::Error> {
    // A second installation is refused and harmless: then somebody else's provider is in use. Without any, building a
    // client panics.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::custom(stays_there));
    if address.scheme() == "http" {
        // Nothing to verify: leave the system's certificates unread.
        builder = builder.tls_certs_only([]);
    }
    let host = address.host_str().unwrap_or_default().trim_matches(['[', ']']);
    if host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Follows a redirect only where it stays at the origin that the headers are meant for.
fn stays_there(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if stays && attempt.previous().len() <= 5 { attempt.follow() } else { attempt.stop() }
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
