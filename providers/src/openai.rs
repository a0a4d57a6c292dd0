//! Models behind an OpenAI-compatible chat-completions address, streamed.
//!
//! The request's encoding lives in [`encode`], the wire shape of answers in [`chunk`], turning them into events in
//! [`assemble`]; the exchange itself in [`crate::http`].
//!
//! The invariant: what servers that call themselves compatible do differently is read, not refused, as long as its
//! meaning is plain.

mod assemble;
mod chunk;
mod encode;

use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::model::{Model, ModelFault, ModelInfo, ModelRequest, ModelStream};

use crate::http::answer::Answer;
use crate::http::{Dialect, HttpConfigError, HttpModelConfig, Link};
use assemble::Assembly;
use encode::LimitName;

const DIALECT: Dialect =
    Dialect { name: "chat-completions", path: &["chat", "completions"], key: ("authorization", "Bearer "), fixed: &[] };

/// A model behind an OpenAI-compatible address; `effort` is sent as `reasoning_effort`.
pub struct OpenAiModel {
    link: Arc<Link>,
}

impl OpenAiModel {
    /// Checks the configuration; connects to nothing and reads no certificate.
    ///
    /// # Errors
    /// When the address or a header cannot be used.
    pub fn new(config: HttpModelConfig) -> Result<Self, HttpConfigError> {
        Ok(Self { link: Arc::new(Link::new(config, &DIALECT)?) })
    }
}

impl Model for OpenAiModel {
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
            let limit = if self.link.host() == Some("api.openai.com") {
                LimitName::MaxCompletionTokens
            } else {
                LimitName::MaxTokens
            };
            let body = encode::body(&self.link.config, &request, limit);
            let response = self.link.ask(body, cancel).await?;
            let answer = Answer::<Assembly>::new(Arc::clone(&self.link), response, cancel.clone());
            Ok(Box::new(answer) as Box<dyn ModelStream>)
        })
    }
}
