//! Search services over HTTP and JSON: one request, its limits, and what every service has in common.
//!
//! What a service is asked and how it answers is in [`service`]. The invariant: the key leaves this module in one
//! header and in no message, and the address is the user's own choice, so it may be a private one.

mod service;

use std::time::Duration;

use reqwest::{Client, Response, StatusCode, Url};
use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::web::{BUDGET, MOST_SOURCES, Provider, SearchProvider, Source, WebFault, WebQuery};
use thiserror::Error;

use super::client::{self, BodyFault, Proxies, ProxySettings, Slot};
use crate::secret::Secret;

/// The largest answer of a service, in bytes.
const LARGEST_ANSWER: usize = 2 * 1024 * 1024;
/// How much of a refusal's own words is shown, in characters.
const WORDS: usize = 300;

/// Which service is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchKind {
    /// A SearXNG instance that answers in JSON; it needs no key.
    SearXng,
    /// The Brave Search API.
    Brave,
    /// The Tavily API.
    Tavily,
}

impl SearchKind {
    /// Where it is unless the configuration says otherwise; an instance of SearXNG is nowhere by itself.
    #[must_use]
    pub fn usual_address(self) -> Option<&'static str> {
        match self {
            Self::SearXng => None,
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
        }
    }

    /// Whether it answers nobody without a key.
    #[must_use]
    pub fn needs_key(self) -> bool {
        match self {
            Self::SearXng => false,
            Self::Brave | Self::Tavily => true,
        }
    }
}

/// How a service is reached.
#[derive(Debug, Clone)]
pub struct SearchConfig {
    /// Its name in the configuration.
    pub name: String,
    /// What it is.
    pub kind: SearchKind,
    /// Where it is, without the path of its API.
    pub base_url: String,
    /// Its key, or why there is none; `None` where none is named.
    pub key: Option<Result<Secret, String>>,
    /// The proxies of the environment.
    pub proxies: ProxySettings,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SearchConfigError {
    /// The base URL is none.
    #[error("the base_url of the search provider {name} is not a usable URL: {why}")]
    BaseUrl {
        /// The provider.
        name: String,
        /// Why.
        why: String,
    },
}

/// A search service.
pub struct WebSearch {
    config: SearchConfig,
    base: Url,
    budget: Duration,
    client: Slot,
}

impl WebSearch {
    /// Checks the configuration; connects to nothing.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn new(config: SearchConfig) -> Result<Self, SearchConfigError> {
        let wrong = |why: String| SearchConfigError::BaseUrl { name: config.name.clone(), why };
        let mut base = Url::parse(config.base_url.trim()).map_err(|error| wrong(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() {
            return Err(wrong("it must begin with http:// or https:// and name a host".to_owned()));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("it must not hold a user name or password".to_owned()));
        }
        base.set_query(None);
        base.set_fragment(None);
        Ok(Self { config, base, budget: BUDGET, client: Slot::default() })
    }

    /// The same with another limit for a whole search than R-468's.
    #[must_use]
    pub fn within(self, budget: Duration) -> Self {
        Self { budget, ..self }
    }

    fn key(&self) -> Option<&Secret> {
        self.config.key.as_ref().and_then(|key| key.as_ref().ok())
    }

    fn client(&self) -> Result<&Client, String> {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let here = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let built = |builder: reqwest::ClientBuilder| builder.build().map_err(|error| client::root_cause(&error));
        self.client.get(|| match Proxies::new(self.config.proxies.clone()).of(&self.base) {
            Err(why) if !here => Err(why),
            Ok(Some(proxy)) if !here => client::through(&proxy).and_then(built),
            Ok(_) | Err(_) => built(client::direct(self.base.scheme())),
        })
    }

    async fn run(&self, query: &WebQuery) -> Result<Vec<Source>, WebFault> {
        let unreachable = |why: String| WebFault::Unreachable { whom: self.whom(), why };
        let bad = |why: String| WebFault::BadResponse { whom: self.whom(), why };
        let client = self.client().map_err(unreachable)?;
        let request = service::request(self.config.kind, client, &self.base, self.key(), query).map_err(bad)?;
        let mut response =
            request.send().await.map_err(|error| unreachable(self.redacted(&client::root_cause(&error))))?;
        let status = response.status();
        if !status.is_success() {
            return Err(bad(self.refusal(status, response).await));
        }
        let body = client::body(&mut response, LARGEST_ANSWER).await.map_err(|fault| match fault {
            BodyFault::TooLarge => bad(format!("it is longer than {LARGEST_ANSWER} bytes")),
            BodyFault::Broken(why) => unreachable(self.redacted(&why)),
        })?;
        let found = service::sources(self.config.kind, &body).map_err(bad)?;
        let wanted = |source: &Source| {
            let host = Url::parse(&source.url).ok().and_then(|url| url.host_str().map(str::to_owned));
            host.is_some_and(|host| query.wants(&host))
        };
        Ok(found.into_iter().filter(wanted).take(MOST_SOURCES).collect())
    }

    /// What a status says, with the service's own words.
    async fn refusal(&self, status: StatusCode, mut response: Response) -> String {
        let what = match (status.as_u16(), self.config.kind) {
            (401, _) | (403, SearchKind::Brave | SearchKind::Tavily) => "it refused the key",
            (403, SearchKind::SearXng) => "it refused the request; an instance must list json among its search.formats",
            (402 | 429 | 432 | 433, _) => "its limit of requests is reached",
            (404, _) => "there is no search at this address; check base_url",
            (300..=399, _) => "it redirects elsewhere; check base_url",
            _ => "it failed",
        };
        let words = client::body(&mut response, LARGEST_ANSWER).await.unwrap_or_default();
        let words: String = String::from_utf8_lossy(&words).split_whitespace().collect::<Vec<_>>().join(" ");
        let words: String = self.redacted(&words).chars().filter(|c| !c.is_control()).take(WORDS).collect();
        let words = if words.is_empty() { words } else { format!(": {words}") };
        format!("{what} (status {}){words}", status.as_u16())
    }

    fn redacted(&self, text: &str) -> String {
        self.key().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }

    fn whom(&self) -> String {
        format!("the search provider `{}`", self.config.name)
    }
}

impl Provider for WebSearch {
    fn id(&self) -> &str {
        &self.config.name
    }

    fn unusable(&self) -> Option<String> {
        match &self.config.key {
            Some(Err(why)) => Some(why.clone()),
            None if self.config.kind.needs_key() => {
                Some("it needs a key; name its variable with api_key_env, or its file with api_key_file".to_owned())
            }
            Some(Ok(_)) | None => None,
        }
    }
}

impl SearchProvider for WebSearch {
    fn search<'a>(&'a self, query: &'a WebQuery, cancel: &'a Cancel) -> Fut<'a, Result<Vec<Source>, WebFault>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                _ = cancel.cancelled() => Err(WebFault::Aborted { whom: self.whom() }),
                done = tokio::time::timeout(self.budget, self.run(query)) => {
                    done.unwrap_or_else(|_| Err(WebFault::TimedOut { whom: self.whom(), limit: self.budget }))
                }
            }
        })
    }
}
