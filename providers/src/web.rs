//! The web: pages over HTTP, and search services.
//!
//! Which addresses may be reached is judged in [`address`], names are turned into addresses in [`resolve`], clients are
//! built in [`client`], one page is fetched in [`fetch`] and made readable in [`page`], search services are in
//! [`search`]. The invariant: a page that the model asks for is never fetched from an address that was not judged, and
//! nothing of a request outlives it.

mod address;
mod client;
mod fetch;
mod page;
mod resolve;
mod search;

pub use address::PrivateHosts;
pub use client::ProxySettings;
pub use fetch::HttpFetch;
pub use search::{SearchConfig, SearchConfigError, SearchKind, WebSearch};
