//! From pieces of an answer to the seam's events.
//!
//! Text and reasoning pass through at once; a call comes out when its block ends, in its place among the others. The
//! invariant: every answer ends with exactly one `Stop` or fault, and nothing follows it.

use std::collections::VecDeque;

use sluice_harness::json::Json;
use sluice_harness::seam::model::{ModelEvent, ModelFault, StopReason, Usage};

use super::piece::{Content, Counts, Delta, Piece};
use crate::http::answer::{Assemble, Progress};
use crate::http::sse::Event;
use crate::http::trouble::Words;

/// An answer being put together.
#[derive(Default)]
pub(super) struct Assembly {
    /// Calls whose block has not ended, and those that ended with half an argument text.
    calls: Vec<Call>,
    counts: Counts,
    counted: bool,
    stop: Option<String>,
    said_anything: bool,
    called: bool,
}

struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    /// What the block began with, which counts where no pieces follow.
    whole: Option<String>,
    pieces: String,
}

impl Call {
    /// The argument text; a call without any has the empty object.
    fn arguments(&self) -> String {
        match (&self.whole, self.pieces.is_empty()) {
            (_, false) => self.pieces.clone(),
            (Some(whole), true) => whole.clone(),
            (None, true) => "{}".to_owned(),
        }
    }
}

impl Assembly {
    fn piece(&mut self, kind: &str, piece: Piece, out: &mut VecDeque<ModelEvent>) -> Progress {
        match kind {
            "message_start" => {
                if let Some(counts) = piece.message.and_then(|message| message.usage) {
                    self.count(&counts);
                }
            }
            "content_block_start" => {
                if let Some(content) = piece.content_block {
                    self.begin(piece.index, content, out);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = piece.delta {
                    self.more(piece.index, delta, out);
                }
            }
            "content_block_stop" => self.end(piece.index, out),
            "message_delta" => {
                if let Some(counts) = &piece.usage {
                    self.count(counts);
                }
                if let Some(stop) = piece.delta.and_then(|delta| delta.stop_reason) {
                    self.stop = Some(stop);
                }
            }
            "message_stop" => return Progress::Complete,
            "message" => {
                for content in piece.content.into_iter().flatten() {
                    self.begin(None, content, out);
                    self.end(None, out);
                }
                if let Some(counts) = &piece.usage {
                    self.count(counts);
                }
                self.stop = piece.stop_reason;
            }
            // `ping`, and whatever the protocol will have one day.
            _ => {}
        }
        Progress::More
    }

    fn begin(&mut self, index: Option<u64>, content: Content, out: &mut VecDeque<ModelEvent>) {
        match content.r#type.as_str() {
            "text" => self.text(content.text, out),
            "thinking" => {
                self.thinking(content.thinking, out);
                self.signature(content.signature, out);
            }
            "redacted_thinking" => {
                if let Some(data) = content.data {
                    self.said_anything = true;
                    out.push_back(ModelEvent::RedactedThinking(data));
                }
            }
            "tool_use" => self.calls.push(Call {
                index,
                id: content.id.filter(|id| !id.is_empty()),
                name: content.name.unwrap_or_default(),
                whole: content.input.map(|raw| raw.get().to_owned()).filter(|text| text != "null"),
                pieces: String::new(),
            }),
            _ => {}
        }
    }

    fn more(&mut self, index: Option<u64>, delta: Delta, out: &mut VecDeque<ModelEvent>) {
        match delta.r#type.as_deref().unwrap_or_default() {
            "text_delta" => self.text(delta.text, out),
            "thinking_delta" => self.thinking(delta.thinking, out),
            "signature_delta" => self.signature(delta.signature, out),
            "input_json_delta" => {
                if let (Some(call), Some(json)) = (self.open_call(index), &delta.partial_json) {
                    call.pieces.push_str(json);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, index: Option<u64>, out: &mut VecDeque<ModelEvent>) {
        let Some(at) = self.calls.iter().rposition(|call| call.index == index) else { return };
        // Half a text is a call only if the output limit was not what cut it, which is told later.
        if self.calls.get(at).is_some_and(|call| Json::parse(&call.arguments()).is_ok()) {
            let call = self.calls.remove(at);
            self.call(call, out);
        }
    }

    fn call(&mut self, call: Call, out: &mut VecDeque<ModelEvent>) {
        self.called = true;
        let arguments = call.arguments();
        out.push_back(ModelEvent::ToolCall { id: call.id, name: call.name, arguments });
    }

    fn open_call(&mut self, index: Option<u64>) -> Option<&mut Call> {
        self.calls.iter_mut().rev().find(|call| call.index == index)
    }

    fn text(&mut self, text: Option<String>, out: &mut VecDeque<ModelEvent>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.said_anything = true;
            out.push_back(ModelEvent::Text(text));
        }
    }

    fn thinking(&mut self, text: Option<String>, out: &mut VecDeque<ModelEvent>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.said_anything = true;
            out.push_back(ModelEvent::Thinking(text));
        }
    }

    fn signature(&mut self, signature: Option<String>, out: &mut VecDeque<ModelEvent>) {
        if let Some(signature) = signature.filter(|signature| !signature.is_empty()) {
            out.push_back(ModelEvent::ThinkingSignature(signature));
        }
    }

    /// Later counts replace earlier ones, one by one: they are sums.
    fn count(&mut self, counts: &Counts) {
        self.counted = true;
        let sums = &mut self.counts;
        for (sum, count) in [
            (&mut sums.input_tokens, counts.input_tokens),
            (&mut sums.output_tokens, counts.output_tokens),
            (&mut sums.cache_creation_input_tokens, counts.cache_creation_input_tokens),
            (&mut sums.cache_read_input_tokens, counts.cache_read_input_tokens),
        ] {
            *sum = count.or(*sum);
        }
    }

    fn usage(&self) -> Usage {
        let Counts { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } = self.counts;
        let written = cache_creation_input_tokens.unwrap_or_default();
        let read = cache_read_input_tokens.unwrap_or_default();
        Usage {
            input_tokens: input_tokens.unwrap_or_default().saturating_add(written).saturating_add(read),
            output_tokens: output_tokens.unwrap_or_default(),
            cached_input_tokens: read,
            cache_creation_input_tokens: written,
        }
    }
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Event, words: &Words, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ModelFault> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Progress::More);
        }
        let piece: Piece = match serde_json::from_str(data) {
            Ok(piece) => piece,
            Err(_) if event.name == "error" => return Err(words.failed_inside(&data.into())),
            Err(e) => return Err(words.not_an_answer(&e.to_string())),
        };
        if let Some(error) = piece.error.as_ref().filter(|error| !error.is_null()) {
            return Err(words.failed_inside(error));
        }
        let kind = piece.r#type.clone().unwrap_or_else(|| event.name.clone());
        if kind == "error" {
            return Err(words.failed_inside(&serde_json::from_str(data).unwrap_or_default()));
        }
        match self.piece(&kind, piece, out) {
            Progress::More => Ok(Progress::More),
            Progress::Complete => self.complete(words, out).map(|()| Progress::Complete),
        }
    }

    fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    fn complete(&mut self, words: &Words, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelFault> {
        let mut stop = match self.stop.as_deref() {
            // The context is full: what was said is cut just as by the output limit.
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("refusal") => StopReason::Refusal,
            // `pause_turn` belongs to tools that run at the provider, of which none is asked for.
            Some(_) => StopReason::EndTurn,
            None if self.said_anything || self.called || !self.calls.is_empty() => StopReason::EndTurn,
            None => return Err(words.empty()),
        };
        if stop != StopReason::MaxTokens {
            for call in std::mem::take(&mut self.calls) {
                self.call(call, out);
            }
        }
        if stop == StopReason::EndTurn && self.called {
            stop = StopReason::ToolUse;
        }
        if self.counted {
            out.push_back(ModelEvent::Usage(self.usage()));
        }
        out.push_back(ModelEvent::Stop(stop));
        Ok(())
    }
}
