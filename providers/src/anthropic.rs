//! Models behind an address that speaks Anthropic's messages, streamed.
//!
//! The request's encoding lives in [`encode`], the wire shape of answers in [`piece`], turning them into events in
//! [`assemble`]; the exchange itself in [`crate::http`].
//!
//! The invariant: what the provider wants back unchanged (proofs of reasoning, argument texts) goes back to the byte.

mod assemble;
mod encode;
mod piece;

pub use encode::OUTPUT_LIMIT;

use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::model::{Model, ModelFault, ModelInfo, ModelRequest, ModelStream};

use crate::http::answer::Answer;
use crate::http::{Dialect, HttpConfigError, HttpModelConfig, Link};
use assemble::Assembly;

const DIALECT: Dialect = Dialect {
    name: "messages",
    path: &["v1", "messages"],
    key: ("x-api-key", ""),
    fixed: &[("anthropic-version", "2023-06-01")],
};

/// What this dialect alone can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnthropicOptions {
    /// Whether the provider is asked to cache the instructions and the conversation so far.
    pub prompt_cache: bool,
    /// A budget of reasoning in tokens, for models that take one; the others have `effort`.
    pub thinking_tokens: Option<u64>,
}

/// A model behind an address that speaks messages; `effort` asks for adaptive reasoning of that level.
pub struct AnthropicModel {
    link: Arc<Link>,
    options: AnthropicOptions,
}

impl AnthropicModel {
    /// Checks the configuration; connects to nothing and reads no certificate.
    ///
    /// # Errors
    /// When the address or a header cannot be used.
    pub fn new(config: HttpModelConfig, options: AnthropicOptions) -> Result<Self, HttpConfigError> {
        Ok(Self { link: Arc::new(Link::new(config, &DIALECT)?), options })
    }
}

impl Model for AnthropicModel {
    fn info(&self) -> ModelInfo {
        self.link.info()
    }

    fn takes_images(&self) -> bool {
        self.link.config.images
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Box<dyn ModelStream>, ModelFault>> {
        Box::pin(async move {
            let body = encode::body(&self.link.config, self.options, &request);
            let response = self.link.ask(body, cancel).await?;
            let answer = Answer::<Assembly>::new(Arc::clone(&self.link), response, cancel.clone());
            Ok(Box::new(answer) as Box<dyn ModelStream>)
        })
    }
}
