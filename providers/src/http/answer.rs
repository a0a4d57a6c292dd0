//! The running answer: reads the body piece by piece and hands out events.
//!
//! The invariant: once a fault or `Stop` was handed out, or the signal fired, the connection is gone; a `next` that is
//! dropped half-way loses nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::model::{ModelEvent, ModelFault, ModelStream};

use super::Link;
use super::sse::{Decoder, Event};
use super::trouble::Words;
use crate::fault;

/// How long the tokens used are waited for once the provider has said why it stopped.
const TRAILER: Duration = Duration::from_secs(5);
/// The largest answer taken from a server that does not stream.
const MAX_WHOLE: usize = 16 * 1024 * 1024;

/// Whether more of the answer is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More is to come.
    More,
    /// The end was reached.
    Complete,
}

/// A dialect's way from the pieces of an answer to the seam's events. Every answer ends with exactly one `Stop` or
/// fault, and nothing follows it.
pub(crate) trait Assemble: Default + Send {
    /// Takes one event of the stream, or the whole of an answer from a server that does not stream.
    fn take(&mut self, event: &Event, words: &Words, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ModelFault>;

    /// Whether the provider has said why it stopped; only the tokens used may still follow.
    fn is_finished(&self) -> bool;

    /// The end of the stream, announced or not.
    fn complete(&mut self, words: &Words, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelFault>;
}

/// An answer in the middle of its stream.
pub(crate) struct Answer<A> {
    link: Arc<Link>,
    cancel: Cancel,
    body: Body,
    assembly: A,
    ready: VecDeque<ModelEvent>,
    has_begun: bool,
    fault: Option<ModelFault>,
}

enum Body {
    Events {
        response: Response,
        decoder: Decoder,
    },
    /// A server that answers in one piece although asked to stream.
    Whole {
        response: Response,
        bytes: Vec<u8>,
    },
    Over,
}

impl<A: Assemble> Answer<A> {
    pub(crate) fn new(link: Arc<Link>, response: Response, cancel: Cancel) -> Self {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if kind.trim_start().to_ascii_lowercase().starts_with("text/html") {
            let fault = Some(link.words.a_page());
            let (body, assembly, ready) = (Body::Over, A::default(), VecDeque::new());
            return Self { link, cancel, body, assembly, ready, has_begun: false, fault };
        }
        let body = if kind.trim_start().starts_with("application/json") {
            Body::Whole { response, bytes: Vec::new() }
        } else {
            Body::Events { response, decoder: Decoder::default() }
        };
        Self { link, cancel, body, assembly: A::default(), ready: VecDeque::new(), has_begun: false, fault: None }
    }

    /// Reads one more piece and takes it in; drops the connection when nothing more is wanted.
    async fn read_on(&mut self) {
        let words = &self.link.words;
        let timeouts = self.link.config.timeouts;
        // Some servers send their headers at once and then read the prompt for a while.
        let patience = match (self.has_begun, self.assembly.is_finished()) {
            (false, _) => timeouts.first_byte,
            (true, false) => timeouts.idle,
            (true, true) => timeouts.idle.min(TRAILER),
        };
        let response = match &mut self.body {
            Body::Events { response, .. } | Body::Whole { response, .. } => response,
            Body::Over => return,
        };
        let piece = tokio::select! {
            biased;
            cause = self.cancel.cancelled() => {
                self.ready.clear();
                self.end(Err(fault::cancelled(&cause)));
                return;
            }
            piece = tokio::time::timeout(patience, response.chunk()) => piece,
        };
        self.has_begun = true;
        let outcome = match piece {
            Ok(Ok(Some(bytes))) => self.take(&bytes),
            Ok(Ok(None)) => self.close().map(|()| Progress::Complete),
            // The provider had finished; what is missing is the count of tokens at most.
            Ok(Err(_)) | Err(_) if self.assembly.is_finished() => self.complete(),
            Ok(Err(e)) => Err(words.broken(&e)),
            Err(_) => Err(words.stalled(patience)),
        };
        match outcome {
            Ok(Progress::More) => {}
            Ok(Progress::Complete) => self.end(Ok(())),
            Err(fault) => self.end(Err(fault)),
        }
    }

    fn end(&mut self, outcome: Result<(), ModelFault>) {
        self.body = Body::Over;
        self.fault = outcome.err();
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Progress, ModelFault> {
        let words = &self.link.words;
        match &mut self.body {
            Body::Events { decoder, .. } => {
                let mut events = Vec::new();
                let decoded = decoder.push(bytes, &mut events);
                for event in &events {
                    if self.assembly.take(event, words, &mut self.ready)? == Progress::Complete {
                        return Ok(Progress::Complete);
                    }
                }
                decoded.map_err(|e| words.not_an_answer(&e.to_string()))?;
            }
            Body::Whole { bytes: so_far, .. } => {
                so_far.extend_from_slice(bytes);
                if so_far.len() > MAX_WHOLE {
                    return Err(words.not_an_answer("it is larger than any answer"));
                }
            }
            Body::Over => {}
        }
        Ok(Progress::More)
    }

    /// The body ended; what stands unfinished is taken if it is whole.
    fn close(&mut self) -> Result<(), ModelFault> {
        let words = &self.link.words;
        match std::mem::replace(&mut self.body, Body::Over) {
            Body::Events { decoder, .. } => {
                if let Ok(Some(event)) = decoder.finish() {
                    let whole = event.data.trim() == "[DONE]"
                        || serde_json::from_str::<&serde_json::value::RawValue>(&event.data).is_ok();
                    if !whole {
                        return Err(words.cut_off());
                    }
                    if self.assembly.take(&event, words, &mut self.ready)? == Progress::Complete {
                        return Ok(());
                    }
                }
                if !self.assembly.is_finished() {
                    return Err(words.cut_off());
                }
            }
            Body::Whole { bytes, .. } => {
                let data = String::from_utf8_lossy(&bytes).into_owned();
                self.assembly.take(&Event { name: String::new(), data }, words, &mut self.ready)?;
            }
            Body::Over => {}
        }
        self.complete().map(|_| ())
    }

    fn complete(&mut self) -> Result<Progress, ModelFault> {
        self.assembly.complete(&self.link.words, &mut self.ready).map(|()| Progress::Complete)
    }
}

impl<A: Assemble> ModelStream for Answer<A> {
    fn next(&mut self) -> Fut<'_, Option<Result<ModelEvent, ModelFault>>> {
        Box::pin(async move {
            loop {
                if let Some(cause) = self.cancel.cause()
                    && !matches!(self.body, Body::Over)
                {
                    self.ready.clear();
                    self.end(Err(fault::cancelled(&cause)));
                }
                if let Some(event) = self.ready.pop_front() {
                    return Some(Ok(event));
                }
                if let Some(fault) = self.fault.take() {
                    return Some(Err(fault));
                }
                if matches!(self.body, Body::Over) {
                    return None;
                }
                self.read_on().await;
            }
        })
    }
}
