//! HTTP clients of this module, each built when it is first needed, and the one reading of a body.
//!
//! A client follows no redirect by itself and keeps no cookies. Proxies are honoured, but openly: it is decided here
//! whether a URL goes through one, because a proxy resolves names by itself.

use std::sync::OnceLock;
use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::header::HeaderValue;
use reqwest::{Client, ClientBuilder, Proxy, Response, Url, redirect};

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(10);

/// A client that is built at most once.
#[derive(Default)]
pub(super) struct Slot(OnceLock<Result<Client, String>>);

impl Slot {
    /// The client; building one for `https` reads the system's certificates.
    pub(super) fn get(&self, build: impl FnOnce() -> Result<Client, String>) -> Result<&Client, String> {
        self.0.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

/// A client's beginnings for URLs of this scheme, without any proxy.
pub(super) fn direct(scheme: &str) -> ClientBuilder {
    // A second installation is refused and harmless: then somebody else's provider is in use. Without any, building a
    // client panics.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("sluice/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .no_proxy();
    // Without TLS there is nothing to verify: leave the system's certificates unread.
    if scheme == "http" { builder.tls_certs_only([]) } else { builder }
}

/// The same through a proxy, which every request then takes.
pub(super) fn through(proxy: &Through) -> Result<ClientBuilder, String> {
    let mut route = Proxy::all(&proxy.address).map_err(|error| root_cause(&error))?;
    if let Some(login) = &proxy.login {
        route = route.custom_http_auth(login.clone());
    }
    // A proxy may be spoken to over TLS itself, so the certificates are read.
    Ok(direct("https").proxy(route))
}

/// A proxy.
pub(super) struct Through {
    address: String,
    /// The header that logs in there.
    login: Option<HeaderValue>,
}

/// Which proxies there are; the texts of `ALL_PROXY`, `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, empty where not set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProxySettings {
    /// For every URL that none of the others speaks of.
    pub all: String,
    /// For `http` URLs.
    pub http: String,
    /// For `https` URLs.
    pub https: String,
    /// Hosts that are reached without one, divided by commas.
    pub except: String,
}

/// The proxies as rules.
pub(super) struct Proxies {
    matcher: Matcher,
    /// Variables whose text is no proxy's address.
    wrong: Vec<&'static str>,
}

/// Stands for a proxy whose address is none.
const NOBODY: &str = "http://malformed.invalid";

impl Proxies {
    pub(super) fn new(settings: ProxySettings) -> Self {
        let ProxySettings { all, http, https, except } = settings;
        let mut wrong = Vec::new();
        let mut checked = |name, text: String| {
            let probe = "http://probe.example/".parse().ok();
            let is_one = || {
                let alone = Matcher::builder().all(text.clone()).build();
                probe.is_some_and(|probe| alone.intercept(&probe).is_some())
            };
            if text.trim().is_empty() || is_one() {
                return text;
            }
            wrong.push(name);
            NOBODY.to_owned()
        };
        let all = checked("ALL_PROXY", all);
        let (http, https) = (checked("HTTP_PROXY", http), checked("HTTPS_PROXY", https));
        Self { matcher: Matcher::builder().all(all).http(http).https(https).no(except).build(), wrong }
    }

    /// The proxy that this URL is to be fetched through; `None` where there is none.
    ///
    /// # Errors
    /// When a variable names one that is none: going without it could go where nobody was meant to.
    pub(super) fn of(&self, url: &Url) -> Result<Option<Through>, String> {
        let Some(found) = url.as_str().parse().ok().and_then(|target| self.matcher.intercept(&target)) else {
            return Ok(None);
        };
        if found.uri().host().is_some_and(|host| NOBODY.ends_with(host)) {
            let names = self.wrong.join(" or ");
            return Err(format!("{names} in the environment is no proxy's address; correct it or unset it"));
        }
        Ok(Some(Through { address: found.uri().to_string(), login: found.basic_auth().cloned() }))
    }
}

/// The innermost reason, for reqwest's own words name only the step that failed.
pub(super) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// Why a body was not read whole.
pub(super) enum BodyFault {
    /// It is longer than the limit.
    TooLarge,
    /// The connection failed.
    Broken(String),
}

/// Reads a body up to a limit in bytes.
pub(super) async fn body(response: &mut Response, limit: usize) -> Result<Vec<u8>, BodyFault> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(BodyFault::TooLarge);
    }
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(bytes),
            Ok(Some(chunk)) if bytes.len() + chunk.len() > limit => return Err(BodyFault::TooLarge),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Err(error) => return Err(BodyFault::Broken(root_cause(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_that_is_none_is_named_wherever_it_would_be_taken() {
        let settings = ProxySettings {
            all: "socks5://127.0.0.1:1".to_owned(),
            http: "http://no way".to_owned(),
            https: String::new(),
            except: "near.example".to_owned(),
        };
        let proxies = Proxies::new(settings);
        let of = |url: &str| Url::parse(url).map_err(|error| error.to_string()).and_then(|url| proxies.of(&url));
        assert!(of("http://a.example/").err().is_some_and(|why| why.contains("HTTP_PROXY")));
        assert!(of("http://near.example/").is_ok_and(|proxy| proxy.is_none()));
        assert!(of("https://a.example/").is_ok_and(|proxy| proxy.is_some()));
    }
}
