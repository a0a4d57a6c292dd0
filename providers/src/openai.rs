//! Models behind an OpenAI-compatible chat-completions address, streamed.
//!
//! The request's encoding lives in [`encode`], the wire shape of answers in [`chunk`], turning them into events in
//! [`assemble`], the bytes of server-sent events in [`sse`], the words for failures in [`trouble`], and the running
//! answer in [`answer`].
//!
//! The invariant: nothing of a request outlives it, nothing is tried twice here, and the key leaves this module in one
//! header and in no message.

mod answer;
mod assemble;
mod chunk;
mod encode;
mod sse;
mod trouble;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::model::{Model, ModelFault, ModelInfo, ModelRequest, ModelStream};
use thiserror::Error;

use crate::fault;
use crate::secret::Secret;
use answer::Answer;
use encode::LimitName;
use trouble::Words;

/// How a provider is reached and what its model is called.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// The provider's name in the configuration.
    pub name: String,
    /// The model's name at the provider.
    pub model: String,
    /// Where `/chat/completions` hangs, such as `https://api.deepseek.com`.
    pub base_url: String,
    /// The key, where one is needed.
    pub api_key: Option<Secret>,
    /// The environment variable that holds the key, for messages.
    pub api_key_env: Option<String>,
    /// Further headers; their values count as secrets.
    pub headers: Vec<(String, Secret)>,
    /// The thinking level, sent as `reasoning_effort` where given.
    pub effort: Option<String>,
    /// Tokens of context, where known.
    pub context_window: Option<u64>,
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
pub enum OpenAiConfigError {
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

/// A model behind an OpenAI-compatible address.
pub struct OpenAiModel {
    shared: Arc<Shared>,
    url: Url,
    headers: HeaderMap,
    client: OnceLock<Result<Client, String>>,
}

/// What the running answers need of the configuration.
struct Shared {
    config: OpenAiConfig,
    words: Words,
}

impl OpenAiModel {
    /// Checks the configuration; connects to nothing and reads no certificate.
    ///
    /// # Errors
    /// When the address or a header cannot be used.
    pub fn new(config: OpenAiConfig) -> Result<Self, OpenAiConfigError> {
        let url = completions_url(&config)?;
        let headers = headers(&config)?;
        let words = Words::of(&config, &url);
        Ok(Self { shared: Arc::new(Shared { config, words }), url, headers, client: OnceLock::new() })
    }

    /// The client, built at the first request: an `https` address makes it read the system's certificates.
    fn client(&self) -> Result<&Client, ModelFault> {
        let built = self.client.get_or_init(|| build_client(&self.url, self.shared.config.timeouts.connect));
        built.as_ref().map_err(|why| self.shared.words.no_client(why))
    }
}

fn completions_url(config: &OpenAiConfig) -> Result<Url, OpenAiConfigError> {
    let bad = |why: String| OpenAiConfigError::BaseUrl { provider: config.name.clone(), why };
    let mut url = Url::parse(config.base_url.trim()).map_err(|e| bad(e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad("it must begin with http:// or https:// and name a host".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("it must not hold a user name or password; use api_key_env or headers".to_owned()));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/chat/completions") {
        url.set_path(&format!("{path}/chat/completions"));
    }
    url.set_fragment(None);
    Ok(url)
}

fn headers(config: &OpenAiConfig) -> Result<HeaderMap, OpenAiConfigError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &config.api_key {
        let mut value =
            HeaderValue::from_str(&format!("Bearer {}", key.expose())).map_err(|_| OpenAiConfigError::Key {
                provider: config.name.clone(),
                source_name: config.api_key_env.clone().unwrap_or_else(|| "where it comes from".to_owned()),
            })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &config.headers {
        let bad = |why| OpenAiConfigError::Header { provider: config.name.clone(), header: name.clone(), why };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("its name is not valid"))?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad("its value is not valid"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

fn build_client(url: &Url, connect: Duration) -> Result<Client, String> {
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

impl Model for OpenAiModel {
    fn info(&self) -> ModelInfo {
        let config = &self.shared.config;
        ModelInfo {
            provider: config.name.clone(),
            model: config.model.clone(),
            effort: config.effort.clone(),
            context_window: config.context_window,
        }
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Box<dyn ModelStream>, ModelFault>> {
        Box::pin(async move {
            if let Some(cause) = cancel.cause() {
                return Err(fault::cancelled(&cause));
            }
            let Shared { config, words } = &*self.shared;
            let limit = if self.url.host_str() == Some("api.openai.com") {
                LimitName::MaxCompletionTokens
            } else {
                LimitName::MaxTokens
            };
            let body = encode::body(config, &request, limit).map_err(|e| words.unencodable(&e))?;
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
            if !response.status().is_success() {
                let refused = trouble::refused(response, words);
                return tokio::select! {
                    biased;
                    cause = cancel.cancelled() => Err(fault::cancelled(&cause)),
                    fault = refused => Err(fault),
                };
            }
            let answer: Box<dyn ModelStream> =
                Box::new(Answer::new(Arc::clone(&self.shared), response, cancel.clone()));
            Ok(answer)
        })
    }
}
