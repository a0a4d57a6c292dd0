//! Fetching one page: the request, its redirects and its limits.
//!
//! Every hop is judged anew before it is made. A redirect is followed only where it stays on the site; elsewhere it is
//! the result, so that fetching its target is a call of its own that policy sees.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, StatusCode, Url};
use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::web::{
    BUDGET, FetchProvider, Fetched, LARGEST_BODY, LONGEST_URL, MOST_REDIRECTS, Provider, WebFault,
};

use super::address::{self, PrivateHosts};
use super::client::{self, BodyFault, Proxies, ProxySettings, Slot};
use super::page::{self, Kind};
use super::resolve::{Judging, Refused, System};
use crate::off_thread;

const ACCEPTED: &str = "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.1";

/// Fetches pages over HTTP.
pub struct HttpFetch {
    private: Arc<PrivateHosts>,
    budget: Duration,
    proxies: Proxies,
    clients: Clients,
}

#[derive(Default)]
struct Clients {
    http: Slot,
    https: Slot,
    http_by_proxy: Slot,
    https_by_proxy: Slot,
}

impl HttpFetch {
    /// A fetcher of public pages, and of these private hosts. Connects to nothing yet.
    #[must_use]
    pub fn new(private: PrivateHosts, proxies: ProxySettings) -> Self {
        Self { private: Arc::new(private), budget: BUDGET, proxies: Proxies::new(proxies), clients: Clients::default() }
    }

    /// The same with another limit for a whole fetch than R-441's.
    #[must_use]
    pub fn within(self, budget: Duration) -> Self {
        Self { budget, ..self }
    }

    /// The client for a URL: one that connects to judged addresses alone, or one that goes through a proxy.
    fn client(&self, url: &Url) -> Result<&Client, WebFault> {
        let fault = |why| WebFault::Unreachable { whom: url.to_string(), why };
        let built = |builder: reqwest::ClientBuilder| builder.build().map_err(|error| client::root_cause(&error));
        let secure = url.scheme() == "https";
        if let Some(proxy) = self.proxies.of(url).map_err(fault)? {
            let host = url.host_str().unwrap_or_default();
            if address::is_private_name(host) && !self.private.hold(host) && url.domain().is_some() {
                return Err(blocked(host, "it stands for no public host"));
            }
            let slot = if secure { &self.clients.https_by_proxy } else { &self.clients.http_by_proxy };
            return slot.get(|| client::through(&proxy).and_then(built)).map_err(fault);
        }
        let slot = if secure { &self.clients.https } else { &self.clients.http };
        let resolver = || Arc::new(Judging::new(Arc::clone(&self.private), System));
        slot.get(|| built(client::direct(url.scheme()).dns_resolver(resolver()))).map_err(fault)
    }

    /// Parses and judges a URL; names are judged when they are resolved.
    fn judge(&self, text: &str) -> Result<Url, WebFault> {
        let wrong = |why: String| WebFault::InvalidUrl { why };
        if text.len() > LONGEST_URL {
            return Err(wrong(format!("it is longer than {LONGEST_URL} bytes")));
        }
        let mut url = Url::parse(text).map_err(|error| wrong(format!("{text:?} is no URL ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("only http and https are fetched, not {}", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it holds a user name or password; leave them out".to_owned()));
        }
        url.set_fragment(None);
        let address = match url.host() {
            Some(url::Host::Ipv4(address)) => Some(address.into()),
            Some(url::Host::Ipv6(address)) => Some(address.into()),
            Some(url::Host::Domain(_)) => None,
            None => return Err(wrong("it names no host".to_owned())),
        };
        let host = url.host_str().unwrap_or_default();
        match address.and_then(address::not_public) {
            Some(what) if !self.private.hold(host) => Err(blocked(host, &format!("it is {what}"))),
            _ => Ok(url),
        }
    }

    async fn run(&self, text: &str, cancel: &Cancel) -> Result<Fetched, WebFault> {
        let first = self.judge(text)?;
        let mut url = first.clone();
        for _ in 0..=MOST_REDIRECTS {
            let request = self.client(&url)?.get(url.clone()).header(ACCEPT, ACCEPTED);
            let response = request.send().await.map_err(|error| unreachable(&url, &error))?;
            let Some(target) = redirect_target(&url, &response)? else {
                return self.read(url, response, cancel).await;
            };
            if !stays(&url, &target) {
                return Ok(moved(&url, response.status(), &target));
            }
            url = self.judge(target.as_str())?;
        }
        Err(WebFault::Redirects { url: first.to_string() })
    }

    async fn read(&self, url: Url, mut response: Response, cancel: &Cancel) -> Result<Fetched, WebFault> {
        let status = response.status();
        let bad = |why: String| WebFault::BadResponse { whom: url.to_string(), why };
        let header = |name| response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            return Err(bad(format!("it is compressed ({encoding}), which was not asked for")));
        }
        let kind = Kind::of(header(CONTENT_TYPE).as_deref());
        if let Kind::Other(found) = &kind {
            if status.is_success() {
                return Err(WebFault::NotText { url: url.to_string(), found: found.clone() });
            }
            let notes = vec![format!("The answer's body is {found}, not text, and was left out.")];
            return Ok(fetched(&url, status, 0, (String::new(), notes)));
        }
        let bytes = client::body(&mut response, LARGEST_BODY).await.map_err(|fault| match fault {
            BodyFault::TooLarge => WebFault::TooLarge { url: url.to_string(), limit: LARGEST_BODY },
            BodyFault::Broken(why) => bad(why),
        })?;
        let size = bytes.len();
        // Parsing a large page takes a while and cannot wait.
        let text = off_thread::run(cancel, move |cancel| page::readable(&kind, &bytes, cancel))
            .await
            .map_err(|_| bad("it cannot be read as a page".to_owned()))?;
        match text {
            Ok(text) => Ok(fetched(&url, status, size, text)),
            Err(page::Binary) => {
                Err(WebFault::NotText { url: url.to_string(), found: "of no declared type and holds NUL bytes".into() })
            }
        }
    }
}

fn fetched(url: &Url, status: StatusCode, bytes: usize, (text, notes): (String, Vec<String>)) -> Fetched {
    Fetched {
        url: url.to_string(),
        code: status.as_u16(),
        code_text: status.canonical_reason().unwrap_or_default().to_owned(),
        bytes,
        text,
        notes,
        moved_to: None,
    }
}

fn moved(url: &Url, status: StatusCode, target: &Url) -> Fetched {
    Fetched { moved_to: Some(target.to_string()), ..fetched(url, status, 0, (String::new(), Vec::new())) }
}

/// Where an answer redirects to; `None` when it does not.
fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, WebFault> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let text = String::from_utf8_lossy(location.as_bytes());
    let target = url.join(&text).map_err(|error| WebFault::BadResponse {
        whom: url.to_string(),
        why: format!("it redirects to {text:?}, which is no URL ({error})"),
    })?;
    Ok(Some(target))
}

/// Whether a redirect stays on the site: the same origin, or the same host with TLS in place of none.
fn stays(from: &Url, to: &Url) -> bool {
    let secured = (from.scheme(), to.scheme()) == ("http", "https")
        && from.host() == to.host()
        && (from.port(), to.port()) == (None, None);
    from.origin() == to.origin() || secured
}

fn blocked(host: &str, why: &str) -> WebFault {
    WebFault::Blocked { host: host.to_owned(), why: why.to_owned() }
}

/// What a request that was not answered failed of; a name that was judged and refused is told apart.
fn unreachable(url: &Url, error: &reqwest::Error) -> WebFault {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return blocked(&refused.host, &format!("it {}", refused.why));
        }
        cause = error.source();
    }
    WebFault::Unreachable { whom: url.to_string(), why: client::root_cause(error) }
}

impl Provider for HttpFetch {
    fn id(&self) -> &str {
        "http"
    }

    fn unusable(&self) -> Option<String> {
        None
    }
}

impl FetchProvider for HttpFetch {
    fn fetch<'a>(&'a self, url: &'a str, cancel: &'a Cancel) -> Fut<'a, Result<Fetched, WebFault>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                _ = cancel.cancelled() => Err(WebFault::Aborted { whom: url.to_owned() }),
                done = tokio::time::timeout(self.budget, self.run(url, cancel)) => {
                    done.unwrap_or_else(|_| Err(WebFault::TimedOut { whom: url.to_owned(), limit: self.budget }))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn r_442_every_spelling_of_a_private_address_is_judged_as_that_address() {
        let fetch = HttpFetch::new(PrivateHosts::none(), ProxySettings::default());
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "0x7f.1",
            "127.0.0.1.",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "169.254.169.254",
            "0xa9fea9fe",
            "[fe80::1]",
            "１２７.0.0.1",
            "0",
        ] {
            let judged = fetch.judge(&format!("http://{host}:8080/x"));
            assert_eq!(judged.as_ref().err().map(WebFault::code), Some("WEB_ADDRESS_BLOCKED"), "{host}: {judged:?}");
        }
        fetch.judge("https://93.184.216.34/").unwrap();
        HttpFetch::new(PrivateHosts::these(["127.0.0.1"]), ProxySettings::default())
            .judge("http://2130706433/")
            .unwrap();
    }

    #[test]
    fn r_441_only_plain_web_urls_are_taken() {
        let fetch = HttpFetch::new(PrivateHosts::all(), ProxySettings::default());
        for url in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/plain,x",
            "example.com",
            "https://u:p@example.com/",
            "https://u@example.com/",
            "http://",
            "",
        ] {
            let judged = fetch.judge(url);
            assert_eq!(judged.as_ref().err().map(WebFault::code), Some("WEB_INVALID_URL"), "{url}: {judged:?}");
        }
        let long = |length: usize| format!("https://example.com/{}", "a".repeat(length - 20));
        assert!(fetch.judge(&long(LONGEST_URL)).is_ok() && fetch.judge(&long(LONGEST_URL + 1)).is_err());
    }

    #[test]
    fn a_redirect_stays_on_its_origin_or_gains_tls_and_goes_nowhere_else() {
        let url = |text: &str| Url::parse(text).unwrap();
        for (from, to, here) in [
            ("http://a.org/x", "http://a.org/y", true),
            ("http://a.org/x", "https://a.org/x", true),
            ("https://a.org/x", "http://a.org/x", false),
            ("http://a.org:8080/", "https://a.org/", false),
            ("http://a.org/", "http://a.org:81/", false),
            ("http://a.org/", "http://www.a.org/", false),
            ("http://a.org/", "file:///etc/passwd", false),
        ] {
            assert_eq!(stays(&url(from), &url(to)), here, "{from} to {to}");
        }
    }
}
