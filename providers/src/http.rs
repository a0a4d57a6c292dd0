//! What every model behind an HTTP address has in common: how it is reached, its answer's stream, its failures.
//!
//! The client lives in [`client`], the bytes of server-sent events in [`sse`], the running answer in [`answer`], the
//! words for failures in [`trouble`]. What a request and an answer look like is a dialect's own ([`crate::openai`],
//! [`crate::anthropic`]).
//!
//! The invariant: nothing of a request outlives it, nothing is tried twice here, and the key leaves this module in one
//! header and in no message.

pub(crate) mod answer;
pub(crate) mod client;
mod date;
pub(crate) mod sse;
pub(crate) mod trouble;

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::model::{ModelFault, ModelInfo};
use thiserror::Error;

use crate::fault;
use crate::secret::Secret;
use trouble::Words;

/// How a provider is reached and what its model is called and can do.
#[derive(Debug, Clone)]
pub struct HttpModelConfig {
    /// The provider's name in the configuration.
    pub name: String,
    /// The model's name at the provider.
    pub model: String,
    /// Where the dialect's path hangs, such as `https://api.deepseek.com`.
    pub base_url: String,
    /// The key, where one is needed.
    pub api_key: Option<Secret>,
    /// The environment variable that holds the key, for messages.
    pub api_key_env: Option<String>,
    /// Further headers; their values count as secrets.
    pub headers: Vec<(String, Secret)>,
    /// The thinking level, in the provider's own word, sent where given.
    pub effort: Option<String>,
    /// Tokens of context, where known.
    pub context_window: Option<u64>,
    /// Whether the model takes images; without, they are sent as a word that stands for them.
    pub images: bool,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// How long each stage may take; an answer as a whole may take as long as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request to the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: Duration::from_secs(120), idle: Duration::from_secs(60) }
    }
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpConfigError {
    /// The base URL is none.
    #[error("the base_url of the provider {provider} is not a usable URL: {why}")]
    BaseUrl {
        /// The provider.
        provider: String,
        /// Why.
        why: String,
    },
    /// A header's name or value cannot be sent.
    #[error("the header `{header}` of the provider {provider} cannot be sent: {why}")]
    Header {
        /// The provider.
        provider: String,
        /// The header's name.
        header: String,
        /// Why; never the value.
        why: &'static str,
    },
    /// The key cannot be sent.
    #[error("the key of the provider {provider} has characters that no header can carry; check {source_name}")]
    Key {
        /// The provider.
        provider: String,
        /// Where the key came from.
        source_name: String,
    },
}

/// What a dialect fixes of how it is spoken.
pub(crate) struct Dialect {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// The path below the base URL, in its parts; an address that has some of it already gets the rest.
    pub(crate) path: &'static [&'static str],
    /// The header of the key, and what stands before the key in it.
    pub(crate) key: (&'static str, &'static str),
    /// Headers that are always the same.
    pub(crate) fixed: &'static [(&'static str, &'static str)],
}

/// The way to one model.
pub(crate) struct Link {
    pub(crate) config: HttpModelConfig,
    pub(crate) words: Words,
    url: Url,
    headers: HeaderMap,
    client: OnceLock<Result<Client, String>>,
}

impl Link {
    /// Checks the configuration; connects to nothing and reads no certificate.
    pub(crate) fn new(config: HttpModelConfig, dialect: &Dialect) -> Result<Self, HttpConfigError> {
        let url = address(&config, dialect.path)?;
        let headers = headers(&config, dialect)?;
        let words = Words::of(&config, &url, dialect.name);
        Ok(Self { config, words, url, headers, client: OnceLock::new() })
    }

    pub(crate) fn info(&self) -> ModelInfo {
        ModelInfo {
            provider: self.config.name.clone(),
            model: self.config.model.clone(),
            effort: self.config.effort.clone(),
            context_window: self.config.context_window,
        }
    }

    pub(crate) fn host(&self) -> Option<&str> {
        self.url.host_str()
    }

    /// The client, built at the first request: an `https` address makes it read the system's certificates.
    fn client(&self) -> Result<&Client, ModelFault> {
        let built = self.client.get_or_init(|| client::build(&self.url, self.config.timeouts.connect));
        built.as_ref().map_err(|why| self.words.no_client(why))
    }

    /// Sends a request; what comes back is an answer that has begun well.
    pub(crate) async fn ask(
        &self,
        body: Result<Vec<u8>, serde_json::Error>,
        cancel: &Cancel,
    ) -> Result<Response, ModelFault> {
        if let Some(cause) = cancel.cause() {
            return Err(fault::cancelled(&cause));
        }
        let Self { config, words, .. } = self;
        let body = body.map_err(|e| words.unencodable(&e))?;
        let send = self
            .client()?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(body)
            .send();
        let response = tokio::select! {
            biased;
            cause = cancel.cancelled() => return Err(fault::cancelled(&cause)),
            sent = tokio::time::timeout(config.timeouts.first_byte, send) => match sent {
                Ok(Ok(response)) => response,
                Ok(Err(e)) => return Err(words.unreachable(&e)),
                Err(_) => return Err(words.silent(config.timeouts.first_byte)),
            },
        };
        if response.status().is_success() {
            return Ok(response);
        }
        tokio::select! {
            biased;
            cause = cancel.cancelled() => Err(fault::cancelled(&cause)),
            fault = trouble::refused(response, words) => Err(fault),
        }
    }
}

/// The base URL with as much of the dialect's path as it lacks.
fn address(config: &HttpModelConfig, path: &[&str]) -> Result<Url, HttpConfigError> {
    let bad = |why: String| HttpConfigError::BaseUrl { provider: config.name.clone(), why };
    let mut url = Url::parse(config.base_url.trim()).map_err(|e| bad(e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad("it must begin with http:// or https:// and name a host".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("it must not hold a user name or password; use api_key_env or api_key_file".to_owned()));
    }
    let given = url.path().trim_end_matches('/').to_owned();
    let ends_with = |parts: &[&str]| parts.is_empty() || given.ends_with(&format!("/{}", parts.join("/")));
    let present = (0..=path.len()).rev().find(|n| path.get(..*n).is_some_and(ends_with)).unwrap_or(0);
    let rest: String = path.iter().skip(present).map(|part| format!("/{part}")).collect();
    url.set_path(&format!("{given}{rest}"));
    url.set_fragment(None);
    Ok(url)
}

fn headers(config: &HttpModelConfig, dialect: &Dialect) -> Result<HeaderMap, HttpConfigError> {
    let mut headers = HeaderMap::new();
    for (name, value) in dialect.fixed {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if let Some(key) = &config.api_key {
        let (name, before) = dialect.key;
        let mut value =
            HeaderValue::from_str(&format!("{before}{}", key.expose())).map_err(|_| HttpConfigError::Key {
                provider: config.name.clone(),
                source_name: config.api_key_env.clone().unwrap_or_else(|| "where it comes from".to_owned()),
            })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &config.headers {
        let bad = |why| HttpConfigError::Header { provider: config.name.clone(), header: name.clone(), why };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("its name is not valid"))?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad("its value is not valid"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}
