//! The words for everything that can go wrong with a provider: cause and remedy in a sentence each.
//!
//! The invariant: no key, header or request body appears in any of them, whatever a provider echoes.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;
use sluice_harness::seam::model::{FaultKind, ModelFault, Retry};

use super::{HttpModelConfig, date};
use crate::secret::Secret;

/// How much of an error's body is read.
const MAX_BODY: usize = 64 * 1024;
/// How long an error's body may take.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// How much of a provider's own message is shown.
const MAX_SHOWN: usize = 600;

/// What messages need to know of a provider.
pub(crate) struct Words {
    provider: String,
    model: String,
    address: String,
    key_home: String,
    speaks: &'static str,
    secrets: Vec<Secret>,
}

impl Words {
    pub(crate) fn of(config: &HttpModelConfig, url: &Url, speaks: &'static str) -> Self {
        let host = url.host_str().unwrap_or_default();
        let address = match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let key_home = match (&config.api_key_env, &config.api_key) {
            (Some(variable), Some(_)) => format!("Check the key in {variable}"),
            (Some(variable), None) => format!("Set {variable} to a key"),
            (None, Some(_)) => "Check the configured key".to_owned(),
            (None, None) => {
                format!("Set `api_key_env` of the provider {} to the variable that holds the key", config.name)
            }
        };
        let secrets = config.api_key.iter().chain(config.headers.iter().map(|(_, value)| value)).cloned().collect();
        Self { provider: config.name.clone(), model: config.model.clone(), address, key_home, speaks, secrets }
    }

    /// A provider's own text, fit to be shown: without secrets, on one line, not too long.
    fn clean(&self, text: &str) -> String {
        let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for secret in &self.secrets {
            text = secret.redact(&text);
        }
        if let Some((at, _)) = text.char_indices().nth(MAX_SHOWN) {
            text.truncate(at);
            text.push('…');
        }
        text
    }

    fn fault(&self, kind: FaultKind, retry: Retry, what: &str) -> ModelFault {
        ModelFault { kind, message: format!("{}: {what}", self.provider), retry }
    }

    pub(crate) fn no_client(&self, why: &str) -> ModelFault {
        let what =
            format!("the HTTP client cannot be built: {why}. Check the system's certificates and proxy settings.");
        self.fault(FaultKind::Internal, Retry::No, &what)
    }

    pub(crate) fn unencodable(&self, error: &serde_json::Error) -> ModelFault {
        self.fault(FaultKind::Internal, Retry::No, &format!("the request cannot be written as JSON: {error}."))
    }

    /// The request never got an answer.
    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> ModelFault {
        let why = self.clean(&root_cause(error));
        let what = format!(
            "{} cannot be reached: {why}. Check that it runs, and the provider's `base_url`, the network and the proxy settings.",
            self.address
        );
        self.fault(FaultKind::Network, Retry::Backoff, &what)
    }

    pub(crate) fn silent(&self, waited: Duration) -> ModelFault {
        let what = format!("{} did not answer within {}. Try again, or check the server.", self.address, shown(waited));
        self.fault(FaultKind::Network, Retry::Backoff, &what)
    }

    pub(crate) fn stalled(&self, waited: Duration) -> ModelFault {
        let what = format!("the answer stalled: {} sent nothing for {}. Try again.", self.address, shown(waited));
        self.fault(FaultKind::Network, Retry::Backoff, &what)
    }

    pub(crate) fn broken(&self, error: &reqwest::Error) -> ModelFault {
        let why = self.clean(&root_cause(error));
        let what = format!("the answer was cut off: the connection to {} broke ({why}). Try again.", self.address);
        self.fault(FaultKind::Network, Retry::Backoff, &what)
    }

    pub(crate) fn cut_off(&self) -> ModelFault {
        let what = format!("the answer was cut off: {} ended the stream before its end. Try again.", self.address);
        self.fault(FaultKind::BadResponse, Retry::Backoff, &what)
    }

    pub(crate) fn empty(&self) -> ModelFault {
        let what =
            format!("{} sent an empty answer. Try again, or check the model's name {:?}.", self.address, self.model);
        self.fault(FaultKind::BadResponse, Retry::Backoff, &what)
    }

    pub(crate) fn out_of_resources(&self) -> ModelFault {
        self.fault(FaultKind::Overloaded, Retry::Backoff, "the provider ran out of resources. Try again later.")
    }

    pub(crate) fn not_an_answer(&self, why: &str) -> ModelFault {
        let what = format!(
            "{} sent something that is no {} stream: {}. Check the provider's `base_url` and `kind`.",
            self.address,
            self.speaks,
            self.clean(why)
        );
        self.fault(FaultKind::BadResponse, Retry::No, &what)
    }

    pub(crate) fn a_page(&self) -> ModelFault {
        let what = format!(
            "{} sent a web page where a {} answer belongs. Check the provider's `base_url`: it may lack a part of its \
             path, such as /v1.",
            self.address, self.speaks
        );
        self.fault(FaultKind::BadResponse, Retry::No, &what)
    }

    /// An error in the middle of a stream that began well.
    pub(crate) fn failed_inside(&self, error: &Value) -> ModelFault {
        let told = Told::of(error);
        match told.status() {
            Some(status) => self.status(status, &told, None),
            None if told.is_overflow() => self.status(StatusCode::BAD_REQUEST, &told, None),
            // It had accepted the request, so the failure is on its side.
            None => self.status(StatusCode::INTERNAL_SERVER_ERROR, &told, None),
        }
    }

    fn status(&self, status: StatusCode, told: &Told, wanted: Option<Duration>) -> ModelFault {
        let again = wanted.map_or(Retry::Backoff, Retry::After);
        let said = match self.clean(&told.message) {
            text if text.is_empty() => String::new(),
            text => format!(" ({})", text.trim_end_matches('.')),
        };
        let (kind, retry, what) = match status.as_u16() {
            // Providers print parts of the key here, so nothing of theirs is shown.
            401 | 403 => {
                (FaultKind::Auth, Retry::No, format!("the key was refused with status {status}. {}.", self.key_home))
            }
            402 => (FaultKind::RateLimit, Retry::No, used_up(&said)),
            400..=499 if told.is_quota() => (FaultKind::RateLimit, Retry::No, used_up(&said)),
            429 => {
                (FaultKind::RateLimit, again, format!("too many requests{said}. Wait, or use another key or model."))
            }
            408 | 409 | 500..=599 => (
                FaultKind::Overloaded,
                again,
                format!("the provider failed on its side with status {status}{said}. Try again later."),
            ),
            413 => (FaultKind::ContextOverflow, Retry::No, overflow(&said)),
            400..=499 if told.is_overflow() => (FaultKind::ContextOverflow, Retry::No, overflow(&said)),
            404 => (
                FaultKind::BadRequest,
                Retry::No,
                format!(
                    "nothing was found for the model {:?}{said}. Check the model's name and the provider's `base_url`.",
                    self.model
                ),
            ),
            300..=399 => (
                FaultKind::BadResponse,
                Retry::No,
                format!(
                    "{} redirects elsewhere with status {status}, which is not followed. Set the provider's `base_url` to its final address.",
                    self.address
                ),
            ),
            _ => (
                FaultKind::BadRequest,
                Retry::No,
                format!("the request was refused with status {status}{said}. Check the model's name and settings."),
            ),
        };
        self.fault(kind, retry, &what)
    }
}

fn used_up(said: &str) -> String {
    format!("the account's balance or quota is used up{said}. Raise it at the provider or choose another model.")
}

fn overflow(said: &str) -> String {
    format!("the conversation does not fit into the model's context{said}. Compact it, or begin a new session.")
}

/// The fault of an answer with a bad status; reads a bounded part of its body.
pub(crate) async fn refused(mut response: Response, words: &Words) -> ModelFault {
    let status = response.status();
    let wanted = retry_after(response.headers());
    let mut body = Vec::new();
    let _ = tokio::time::timeout(BODY_PATIENCE, async {
        while body.len() < MAX_BODY {
            match response.chunk().await {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) | Err(_) => break,
            }
        }
    })
    .await;
    body.truncate(MAX_BODY);
    let told = match serde_json::from_slice::<Value>(&body) {
        Ok(value) => Told::of(value.get("error").unwrap_or(&value)),
        // A page for people, from something between us and the provider.
        Err(_) if body.trim_ascii_start().starts_with(b"<") => Told::default(),
        Err(_) => Told { message: String::from_utf8_lossy(&body).into_owned(), ..Told::default() },
    };
    words.status(status, &told, wanted)
}

/// How long the provider wants us to wait, where it says so as a number or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    /// Longer waits are no use to anybody who sits in front of it.
    const LONGEST: f64 = 24.0 * 60.0 * 60.0;
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let until = |name: &str| {
        let moment = date::unix_seconds(headers.get(name)?.to_str().ok()?)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(moment as f64 - now.as_secs_f64()).filter(|left| *left > 0.0)
    };
    let wanted = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"));
    let seconds = wanted.or_else(|| until("retry-after"))?;
    (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(LONGEST)))
}

/// What a provider told of an error.
#[derive(Default)]
struct Told {
    message: String,
    /// Its `code` and `type`, joined, in lower case.
    marks: String,
    code: Option<u16>,
}

impl Told {
    fn of(error: &Value) -> Self {
        let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = match error {
            Value::String(message) => message.clone(),
            other => ["message", "detail", "error"]
                .iter()
                .map(|key| text_of(other, key))
                .find(|t| !t.is_empty())
                .unwrap_or_default(),
        };
        let code = error.get("code").or_else(|| error.get("status"));
        let code = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        Self {
            message,
            marks: format!("{} {}", text("code"), text("type")).to_lowercase(),
            code: code.and_then(|code| u16::try_from(code).ok()),
        }
    }

    /// The HTTP status that an error inside a stream stands for.
    fn status(&self) -> Option<StatusCode> {
        if let Some(status) = self.code.and_then(|code| StatusCode::from_u16(code).ok()).filter(|s| s.as_u16() >= 400) {
            return Some(status);
        }
        let has = |words: &[&str]| words.iter().any(|word| self.marks.contains(word));
        if self.is_quota() {
            Some(StatusCode::PAYMENT_REQUIRED)
        } else if has(&["auth", "api_key", "permission"]) {
            Some(StatusCode::UNAUTHORIZED)
        } else if has(&["rate_limit", "too_many"]) {
            Some(StatusCode::TOO_MANY_REQUESTS)
        } else if has(&["overloaded", "unavailable"]) {
            Some(StatusCode::SERVICE_UNAVAILABLE)
        } else if has(&["too_large"]) {
            Some(StatusCode::PAYLOAD_TOO_LARGE)
        } else if has(&["not_found"]) {
            Some(StatusCode::NOT_FOUND)
        } else if has(&["invalid_request", "exceed_context"]) {
            Some(StatusCode::BAD_REQUEST)
        } else {
            None
        }
    }

    fn is_quota(&self) -> bool {
        let message = self.message.to_lowercase();
        ["quota", "billing"].iter().any(|word| self.marks.contains(word))
            || ["credit balance", "insufficient balance", "insufficient_quota"]
                .iter()
                .any(|words| message.contains(words))
    }

    fn is_overflow(&self) -> bool {
        let message = self.message.to_lowercase();
        ["context_length", "exceed_context", "context_window"].iter().any(|word| self.marks.contains(word))
            || [
                "context length",
                "context window",
                "context size",
                "maximum context",
                "too many tokens",
                "prompt is too long",
                "input is too long",
                "exceed context limit",
                "reduce the length of the messages",
                "context_length",
            ]
            .iter()
            .any(|words| message.contains(words))
    }
}

fn text_of(value: &Value, key: &str) -> String {
    match value.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// The innermost reason of an error, which is the one that tells; never its address, which may hold secrets.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut text = match (error.is_timeout(), error.is_connect()) {
        (true, true) => return "the connection did not come about in time".to_owned(),
        (true, false) => return "it took too long".to_owned(),
        (false, _) => "the exchange failed".to_owned(),
    };
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    match text.rfind(" (os error ") {
        Some(at) => text.get(..at).unwrap_or(&text).to_owned(),
        None => text,
    }
}

fn shown(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{} s", duration.as_secs())
    } else {
        format!("{} ms", duration.as_millis())
    }
}
