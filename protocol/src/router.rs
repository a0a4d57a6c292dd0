//! The table of methods this side answers to.
//!
//! Lives here: registration, look-up, and the adapter between our handlers and jsonrpsee's `RpcModule`,
//! which is the table of request handlers. Does not live here: running handlers (`request`, `connection`).
//! Invariant: a method has one handler; the table does not change once a connection uses it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{MethodCallback, RpcModule};
use serde::Serialize;
use thiserror::Error;

use crate::context::RequestContext;
use crate::peer::Peer;
use crate::rpc_error;

/// A method was registered twice.
#[derive(Debug, Error)]
#[error("the method `{method}` already has a handler")]
pub struct DuplicateMethod {
    /// The name that was taken.
    pub method: &'static str,
}

pub(crate) type NotificationHandler = Arc<dyn Fn(Params<'static>, &Peer) + Send + Sync>;
type QueueKey = Arc<dyn Fn(&str, &Params<'_>) -> Option<String> + Send + Sync>;

/// Which method is answered by what; built once, then given to
/// [`Connection::new`](crate::Connection::new).
pub struct Router {
    requests: RpcModule<()>,
    notifications: HashMap<&'static str, NotificationHandler>,
    queue_key: Option<QueueKey>,
}

impl Default for Router {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("requests", &self.requests)
            .field("notifications", &self.notifications.keys())
            .finish_non_exhaustive()
    }
}

impl Router {
    /// A table without methods: every request is answered "method not found".
    #[must_use]
    pub fn new() -> Self {
        Self { requests: RpcModule::new(()), notifications: HashMap::new(), queue_key: None }
    }

    /// Answers requests for `method` with `handler`. Each request runs in a task of its own. The handler
    /// must bear being dropped at any await (cancellation, shutdown); it must not block.
    ///
    /// # Errors
    /// When `method` has a request handler already.
    pub fn request<F, Fut, R>(&mut self, method: &'static str, handler: F) -> Result<&mut Self, DuplicateMethod>
    where
        F: Fn(Params<'static>, RequestContext) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ErrorObjectOwned>> + Send,
        R: Serialize + Clone + 'static,
    {
        self.requests
            .register_async_method(method, move |params, _, extensions| {
                let call = extensions.get::<RequestContext>().cloned().map(|context| handler(params, context));
                async move {
                    match call {
                        Some(call) => call.await,
                        None => Err(rpc_error::internal("a handler was called without a request")),
                    }
                }
            })
            .map_err(|_| DuplicateMethod { method })?;
        Ok(self)
    }

    /// Handles notifications named `method`, in order of arrival, on the connection's own task: `handler`
    /// must be quick. What takes longer is passed on over a channel. A panic is logged and contained.
    ///
    /// # Errors
    /// When `method` has a notification handler already.
    pub fn notification<F>(&mut self, method: &'static str, handler: F) -> Result<&mut Self, DuplicateMethod>
    where
        F: Fn(Params<'static>, &Peer) + Send + Sync + 'static,
    {
        match self.notifications.entry(method) {
            Entry::Occupied(_) => return Err(DuplicateMethod { method }),
            Entry::Vacant(vacant) => {
                vacant.insert(Arc::new(handler));
            }
        }
        Ok(self)
    }

    /// Names the queue of a message from its method and parameters. Messages of one queue start in order
    /// of arrival (see [`RequestContext::hold`]); without a queue, requests start in any order.
    pub fn queue_key(
        &mut self,
        key: impl Fn(&str, &Params<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> &mut Self {
        self.queue_key = Some(Arc::new(key));
        self
    }

    pub(crate) fn find_request(&self, method: &str) -> Option<&MethodCallback> {
        self.requests.method(method)
    }

    pub(crate) fn find_notification(&self, method: &str) -> Option<&NotificationHandler> {
        self.notifications.get(method)
    }

    pub(crate) fn queue_of(&self, method: &str, params: &Params<'_>) -> Option<String> {
        self.queue_key.as_ref()?(method, params)
    }
}
