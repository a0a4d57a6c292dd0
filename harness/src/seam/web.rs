//! The web seam: fetch a page, search the web, and the choice between several providers of either.
//!
//! Contract for providers: only `http` and `https`; every limit below is the provider's to keep; firing the signal or
//! dropping the future drops the request; no key and no password appears in a fault. The choice is made when a call
//! runs and never by the order of registration. A page is foreign text: nothing in it is an instruction.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::Fut;
use crate::cancel::Cancel;

/// The longest URL, in bytes.
pub const LONGEST_URL: usize = 2048;
/// The largest body, in bytes.
pub const LARGEST_BODY: usize = 5 * 1024 * 1024;
/// The longest text of a page, in characters.
pub const LONGEST_TEXT: usize = 100_000;
/// How many redirects are followed.
pub const MOST_REDIRECTS: usize = 5;
/// The most sources of a search.
pub const MOST_SOURCES: usize = 8;
/// How long a fetch or a search may take as a whole.
pub const BUDGET: Duration = Duration::from_secs(30);

/// What every provider says of itself.
pub trait Provider: Send + Sync + 'static {
    /// Its name in the configuration.
    fn id(&self) -> &str;
    /// Why it cannot be used now, such as a missing key; `None` when it can.
    fn unusable(&self) -> Option<String>;
}

/// Fetches pages.
pub trait FetchProvider: Provider {
    /// Fetches one page. An answer of any status is a result, a redirect to elsewhere too.
    fn fetch<'a>(&'a self, url: &'a str, cancel: &'a Cancel) -> Fut<'a, Result<Fetched, WebFault>>;
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The URL that answered, after redirects.
    pub url: String,
    /// The status code, such as 200.
    pub code: u16,
    /// The status in words, such as `OK`.
    pub code_text: String,
    /// How many bytes the body had.
    pub bytes: usize,
    /// The text: a page as Markdown, other text as it is; at most [`LONGEST_TEXT`] characters.
    pub text: String,
    /// What the reader should know of the text, one sentence each: that it was cut, or could not be decoded whole.
    pub notes: Vec<String>,
    /// Where a redirect leads that was not followed, because it leaves the site. It is a fetch of its own.
    pub moved_to: Option<String>,
}

/// Searches the web.
pub trait SearchProvider: Provider {
    /// Runs one search.
    fn search<'a>(&'a self, query: &'a WebQuery, cancel: &'a Cancel) -> Fut<'a, Result<Vec<Source>, WebFault>>;
}

/// A search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebQuery {
    /// The words.
    pub text: String,
    /// Only pages of these domains and what lies below them; empty for all.
    pub allowed_domains: Vec<String>,
    /// No pages of these domains and what lies below them.
    pub blocked_domains: Vec<String>,
}

impl WebQuery {
    /// Whether a page of this host is wanted.
    #[must_use]
    pub fn wants(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let below = |domain: &String| {
            let domain = domain.trim().trim_start_matches("*.").trim_matches('.').to_ascii_lowercase();
            host == domain || host.strip_suffix(&domain).is_some_and(|rest| rest.ends_with('.'))
        };
        (self.allowed_domains.is_empty() || self.allowed_domains.iter().any(below))
            && !self.blocked_domains.iter().any(below)
    }
}

/// A page that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its title.
    pub title: String,
    /// Its URL.
    pub url: String,
    /// What it says of the matter; may be empty.
    pub snippet: String,
}

/// Why the web could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WebFault {
    /// `WEB_PROVIDER_CONFIGURED_MISSING`
    #[error("the configured {what} provider `{id}` does not exist; the providers are {known}")]
    ConfiguredMissing {
        /// Fetch or search.
        what: &'static str,
        /// Its name.
        id: String,
        /// Those that exist.
        known: String,
    },
    /// `WEB_PROVIDER_CONFIGURED_UNAVAILABLE`
    #[error("the configured {what} provider `{id}` cannot be used: {why}")]
    ConfiguredUnavailable {
        /// Fetch or search.
        what: &'static str,
        /// Its name.
        id: String,
        /// Why.
        why: String,
    },
    /// `WEB_PROVIDER_UNAVAILABLE`
    #[error("no {what} provider can be used: {why}")]
    Unavailable {
        /// Fetch or search.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// `WEB_PROVIDER_AMBIGUOUS`
    #[error(
        "several {what} providers can be used ({ids}), and the configuration names none; set web.{what}_provider to one"
    )]
    Ambiguous {
        /// Fetch or search.
        what: &'static str,
        /// Their names.
        ids: String,
    },
    /// `WEB_DUPLICATE_PROVIDER`
    #[error("there are two {what} providers with the name `{id}`")]
    Duplicate {
        /// Fetch or search.
        what: &'static str,
        /// The name.
        id: String,
    },
    /// `WEB_INVALID_URL`
    #[error("the URL cannot be fetched: {why}")]
    InvalidUrl {
        /// Why, with the remedy.
        why: String,
    },
    /// `WEB_ADDRESS_BLOCKED`
    #[error("{host} is not fetched: {why}; only the user's own configuration can allow it (web.private_hosts)")]
    Blocked {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// `WEB_TOO_MANY_REDIRECTS`
    #[error("{url} redirects more than {MOST_REDIRECTS} times")]
    Redirects {
        /// The URL that was asked for.
        url: String,
    },
    /// `WEB_UNSUPPORTED_TYPE`
    #[error("{url} is {found}, not text")]
    NotText {
        /// The URL.
        url: String,
        /// What it is.
        found: String,
    },
    /// `WEB_TOO_LARGE`
    #[error("{url} is larger than {limit} bytes")]
    TooLarge {
        /// The URL.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// `WEB_TIMEOUT`
    #[error("{whom} did not answer within {} s", limit.as_secs())]
    TimedOut {
        /// The URL or provider.
        whom: String,
        /// The limit.
        limit: Duration,
    },
    /// `WEB_ABORTED`
    #[error("the request to {whom} was cancelled")]
    Aborted {
        /// The URL or provider.
        whom: String,
    },
    /// `WEB_UNREACHABLE`
    #[error("{whom} cannot be reached: {why}")]
    Unreachable {
        /// The URL or provider.
        whom: String,
        /// Why.
        why: String,
    },
    /// `WEB_BAD_RESPONSE`
    #[error("the answer of {whom} cannot be used: {why}")]
    BadResponse {
        /// The URL or provider.
        whom: String,
        /// Why.
        why: String,
    },
}

impl WebFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ConfiguredMissing { .. } => "WEB_PROVIDER_CONFIGURED_MISSING",
            Self::ConfiguredUnavailable { .. } => "WEB_PROVIDER_CONFIGURED_UNAVAILABLE",
            Self::Unavailable { .. } => "WEB_PROVIDER_UNAVAILABLE",
            Self::Ambiguous { .. } => "WEB_PROVIDER_AMBIGUOUS",
            Self::Duplicate { .. } => "WEB_DUPLICATE_PROVIDER",
            Self::InvalidUrl { .. } => "WEB_INVALID_URL",
            Self::Blocked { .. } => "WEB_ADDRESS_BLOCKED",
            Self::Redirects { .. } => "WEB_TOO_MANY_REDIRECTS",
            Self::NotText { .. } => "WEB_UNSUPPORTED_TYPE",
            Self::TooLarge { .. } => "WEB_TOO_LARGE",
            Self::TimedOut { .. } => "WEB_TIMEOUT",
            Self::Aborted { .. } => "WEB_ABORTED",
            Self::Unreachable { .. } => "WEB_UNREACHABLE",
            Self::BadResponse { .. } => "WEB_BAD_RESPONSE",
        }
    }
}

/// The providers of one kind, and which of them the configuration names.
pub struct Providers<P: ?Sized> {
    what: &'static str,
    configured: Option<String>,
    list: Vec<Arc<P>>,
}

impl<P: Provider + ?Sized> Providers<P> {
    fn of(what: &'static str, configured: Option<String>) -> Self {
        Self { what, configured, list: Vec::new() }
    }

    /// Adds a provider; its place in the list means nothing.
    ///
    /// # Errors
    /// `WEB_DUPLICATE_PROVIDER` when there is one of that name.
    pub fn add(&mut self, provider: Arc<P>) -> Result<(), WebFault> {
        if self.list.iter().any(|known| known.id() == provider.id()) {
            return Err(WebFault::Duplicate { what: self.what, id: provider.id().to_owned() });
        }
        self.list.push(provider);
        Ok(())
    }

    /// Whether nobody could ever be chosen: there is no provider and none is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.configured.is_none()
    }

    /// The provider for a call that runs now: the configured one, else the only usable one.
    ///
    /// # Errors
    /// The four `WEB_PROVIDER_…` faults.
    pub fn choose(&self) -> Result<&Arc<P>, WebFault> {
        let what = self.what;
        if let Some(id) = &self.configured {
            let Some(provider) = self.list.iter().find(|provider| provider.id() == id) else {
                return Err(WebFault::ConfiguredMissing { what, id: id.clone(), known: names(&self.list) });
            };
            return match provider.unusable() {
                Some(why) => Err(WebFault::ConfiguredUnavailable { what, id: id.clone(), why }),
                None => Ok(provider),
            };
        }
        let (mut usable, mut whys) = (Vec::new(), Vec::new());
        for provider in &self.list {
            match provider.unusable() {
                Some(why) => whys.push(format!("{}: {why}", provider.id())),
                None => usable.push(provider),
            }
        }
        match usable.as_slice() {
            [only] => Ok(*only),
            [] if whys.is_empty() => Err(WebFault::Unavailable { what, why: "none is configured".to_owned() }),
            [] => Err(WebFault::Unavailable { what, why: whys.join("; ") }),
            several => Err(WebFault::Ambiguous { what, ids: names(several.iter().copied()) }),
        }
    }
}

fn names<'a, P: Provider + ?Sized>(list: impl IntoIterator<Item = &'a Arc<P>>) -> String {
    let mut ids: Vec<&str> = list.into_iter().map(|provider| provider.id()).collect();
    ids.sort_unstable();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

impl Providers<dyn FetchProvider> {
    /// Without any provider yet.
    #[must_use]
    pub fn for_fetch(configured: Option<String>) -> Self {
        Self::of("fetch", configured)
    }
}

impl Providers<dyn SearchProvider> {
    /// Without any provider yet.
    #[must_use]
    pub fn for_search(configured: Option<String>) -> Self {
        Self::of("search", configured)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    struct Named(&'static str, Option<&'static str>);

    impl Provider for Named {
        fn id(&self) -> &str {
            self.0
        }

        fn unusable(&self) -> Option<String> {
            self.1.map(str::to_owned)
        }
    }

    impl SearchProvider for Named {
        fn search<'a>(&'a self, _: &'a WebQuery, _: &'a Cancel) -> Fut<'a, Result<Vec<Source>, WebFault>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }

    fn chosen(configured: Option<&str>, list: &[(&'static str, Option<&'static str>)]) -> Result<String, &'static str> {
        let mut providers = Providers::for_search(configured.map(str::to_owned));
        for (id, why) in list {
            providers.add(Arc::new(Named(id, *why))).map_err(|fault| fault.code())?;
        }
        providers.choose().map(|provider| provider.id().to_owned()).map_err(|fault| fault.code())
    }

    #[test]
    fn r_440_the_configured_or_else_the_only_usable_provider_is_chosen_whatever_the_order() {
        let (a, b, broken) = (("a", None), ("b", None), ("c", Some("no key")));
        let ok = |id: &str| Ok(id.to_owned());
        assert_eq!(chosen(None, &[]), Err("WEB_PROVIDER_UNAVAILABLE"));
        assert_eq!(chosen(None, &[a]), ok("a"));
        assert_eq!(chosen(None, &[broken]), Err("WEB_PROVIDER_UNAVAILABLE"));
        assert_eq!(chosen(None, &[broken, a]), ok("a"));
        for both in [[a, b], [b, a]] {
            assert_eq!(chosen(None, &both), Err("WEB_PROVIDER_AMBIGUOUS"));
            assert_eq!(chosen(Some("b"), &both), ok("b"));
            assert_eq!(chosen(Some("x"), &both), Err("WEB_PROVIDER_CONFIGURED_MISSING"));
        }
        assert_eq!(chosen(Some("x"), &[]), Err("WEB_PROVIDER_CONFIGURED_MISSING"));
        assert_eq!(chosen(Some("c"), &[a, broken]), Err("WEB_PROVIDER_CONFIGURED_UNAVAILABLE"));
        assert_eq!(chosen(Some("a"), &[a, a]), Err("WEB_DUPLICATE_PROVIDER"));
    }

    #[test]
    fn domains_mean_themselves_and_what_lies_below_them() {
        let list = |domains: &[&str]| domains.iter().map(|d| (*d).to_owned()).collect::<Vec<_>>();
        let query = |allowed: &[&str], blocked: &[&str]| WebQuery {
            text: String::new(),
            allowed_domains: list(allowed),
            blocked_domains: list(blocked),
        };
        let only = query(&["Example.com"], &["bad.example.com"]);
        assert!(only.wants("example.com") && only.wants("www.EXAMPLE.com.") && !only.wants("notexample.com"));
        assert!(!only.wants("bad.example.com") && !only.wants("a.bad.example.com"));
        assert!(query(&[], &[]).wants("anything") && !query(&["*.a.org"], &[]).wants("b.org"));
    }
}
