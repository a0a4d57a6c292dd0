//! The handle with which anybody talks to the other side.
//!
//! Lives here: outgoing requests and notifications, and the table of requests waiting for an answer. Does
//! not live here: incoming requests (`router`, `connection`). Invariant: every outgoing request resolves
//! exactly once: with its answer, or with [`PeerError::Closed`] when no answer can come any more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jsonrpsee::types::ErrorObjectOwned;
use lsp_server::{ReqQueue, RequestId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::framing::{Framing, SharedFraming};
use crate::message::{OutRequest, WireId};
use crate::writer::{Outgoing, OutputGone};

/// Why something could not be asked of, or told to, the other side.
#[derive(Debug, Error)]
pub enum PeerError {
    /// The connection ended before the answer came, or before the message could be sent.
    #[error("the connection to the other side is closed")]
    Closed,
    /// The other side answered with an error object.
    #[error("the other side answered with error {}: {}", .0.code(), .0.message())]
    Rpc(ErrorObjectOwned),
    /// The parameters are no JSON.
    #[error("cannot write the parameters of `{method}` as JSON")]
    Encode {
        /// The method that was to be called.
        method: String,
        /// What serialisation said.
        source: serde_json::Error,
    },
    /// The answer does not have the promised shape.
    #[error("cannot understand the answer to `{method}`: {source}")]
    Decode {
        /// The method that was called.
        method: String,
        /// What deserialisation said.
        source: serde_json::Error,
    },
}

impl From<OutputGone> for PeerError {
    fn from(OutputGone: OutputGone) -> Self {
        Self::Closed
    }
}

type Answer = Result<Box<RawValue>, ErrorObjectOwned>;

/// Requests of ours that wait for an answer, or nothing once no answer can come.
type Pending = Option<ReqQueue<(), oneshot::Sender<Answer>>>;

/// Talks to the other side; cheap to clone, usable from anywhere.
#[derive(Clone)]
pub struct Peer {
    outgoing: Outgoing,
    framing: SharedFraming,
    pending: Arc<Mutex<Pending>>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("framing", &self.framing.get()).finish_non_exhaustive()
    }
}

impl Peer {
    pub(crate) fn new(outgoing: Outgoing, framing: SharedFraming) -> Self {
        Self { outgoing, framing, pending: Arc::new(Mutex::new(Some(ReqQueue::default()))) }
    }

    /// Sends a notification, waiting while the outgoing channel is full. Once this returns, whatever is
    /// sent later goes out later.
    ///
    /// # Errors
    /// [`PeerError::Closed`] when the output is gone, [`PeerError::Encode`] when `params` is no JSON.
    pub async fn notify(&self, method: &str, params: impl Serialize) -> Result<(), PeerError> {
        let text = encode(None, method, params)?;
        Ok(self.outgoing.send(text).await?)
    }

    /// Sends a request and waits for its answer, as long as it takes. Dropping the future earlier tells the
    /// other side so (`$/cancel_request`, or `$/cancelRequest` under header framing) and ignores the answer.
    ///
    /// # Errors
    /// [`PeerError::Rpc`] with the error object of the other side; [`PeerError::Closed`] when the
    /// connection ends first; [`PeerError::Encode`] when `params` is no JSON.
    pub async fn request(&self, method: &str, params: impl Serialize) -> Result<Box<RawValue>, PeerError> {
        let (sender, answer) = oneshot::channel();
        let key = match self.lock().as_mut() {
            // The queue only counts here; the message is written from the raw parameters.
            Some(queue) => queue.outgoing.register(String::new(), Value::Null, sender).id,
            None => return Err(PeerError::Closed),
        };
        let mut guard = Waiting { peer: self, key: &key, sent: false };
        let text = encode(Some(guard.number()), method, params)?;
        self.outgoing.send(text).await?;
        guard.sent = true;
        match answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(PeerError::Rpc(error)),
            Err(_) => Err(PeerError::Closed),
        }
    }

    /// Like [`Peer::request`], with the result decoded.
    ///
    /// # Errors
    /// Those of [`Peer::request`], and [`PeerError::Decode`] when the result has another shape than `R`.
    pub async fn request_as<R: DeserializeOwned>(&self, method: &str, params: impl Serialize) -> Result<R, PeerError> {
        let raw = self.request(method, params).await?;
        serde_json::from_str(raw.get()).map_err(|source| PeerError::Decode { method: method.to_owned(), source })
    }

    /// Resolves once nothing can be sent any more.
    pub async fn closed(&self) {
        self.outgoing.gone().await;
    }

    pub(crate) fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    /// Hands an answer to whoever waits for it.
    pub(crate) fn complete(&self, id: &WireId, outcome: Answer) {
        let key = match id {
            WireId::Number(number) => i32::try_from(*number).ok().map(RequestId::from),
            WireId::Text(text) => Some(RequestId::from(text.clone())),
            WireId::Null => None,
        };
        let waiting = key.and_then(|key| self.lock().as_mut()?.outgoing.complete(key));
        match waiting {
            // The waiter may have gone this very moment, which is fine.
            Some(waiting) => drop(waiting.send(outcome)),
            None => tracing::warn!(%id, "ignored an answer to a request that is not open"),
        }
    }

    /// No answer can come any more: resolves every open request, and every later one at once.
    pub(crate) fn close_pending(&self) {
        let pending = self.lock().take();
        drop(pending);
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a message around parameters, which go through raw text so that they are serialised once.
fn encode(id: Option<i64>, method: &str, params: impl Serialize) -> Result<String, PeerError> {
    to_raw_value(&params)
        .and_then(|params| serde_json::to_string(&OutRequest::new(id, method, &params)))
        .map_err(|source| PeerError::Encode { method: method.to_owned(), source })
}

/// Takes the request off the table when the waiting future goes away, and says so to the other side.
struct Waiting<'a> {
    peer: &'a Peer,
    key: &'a RequestId,
    sent: bool,
}

impl Waiting<'_> {
    /// `lsp-server` counts in its own closed type; displayed, a number is just its digits.
    fn number(&self) -> i64 {
        self.key.to_string().parse().unwrap_or_default()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let open = self.peer.lock().as_mut().and_then(|queue| queue.outgoing.complete(self.key.clone())).is_some();
        if !(open && self.sent) {
            return;
        }
        let (method, member) = match self.peer.framing.get() {
            Some(Framing::Headers) => ("$/cancelRequest", "id"),
            Some(Framing::Lines) | None => ("$/cancel_request", "requestId"),
        };
        let params = serde_json::json!({ member: self.number() });
        if let Ok(text) = encode(None, method, params) {
            self.peer.outgoing.send_aside(text);
        }
    }
}
