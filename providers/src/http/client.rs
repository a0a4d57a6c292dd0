//! The HTTP client of one address: a model's, or an MCP server's.
//!
//! Knows nothing of either. The invariant: a conversation goes to the address that was configured and to no other.

use std::time::Duration;

use reqwest::{Client, Url, redirect};

use super::trouble;

/// Builds it; the reason where it cannot be built.
pub(crate) fn build(url: &Url, connect: Duration) -> Result<Client, String> {
    // A second installation is refused and harmless: then somebody else's provider is in use. Without any, building a
    // client panics.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .redirect(redirect::Policy::custom(same_origin));
    if url.scheme() == "http" {
        // Nothing to verify: leave the system's certificates unread.
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|e| trouble::root_cause(&e))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Follows a redirect only where it stays: elsewhere nobody was meant to read the conversation or the key.
fn same_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    const MOST: usize = 5;
    let stays = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if stays && attempt.previous().len() <= MOST { attempt.follow() } else { attempt.stop() }
}
