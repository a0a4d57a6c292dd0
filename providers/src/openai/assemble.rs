//! From pieces of an answer to the seam's events.
//!
//! Text and reasoning pass through at once; calls are put together and come out whole at the end. The invariant: every
//! answer ends with exactly one `Stop` or fault, and nothing follows it.

use std::collections::VecDeque;

use sluice_harness::json::Json;
use sluice_harness::seam::model::{ModelEvent, ModelFault, StopReason, Usage};

use super::chunk::{CallPiece, Chunk, Delta, UsageText, argument_text, content_text};
use crate::http::answer::{Assemble, Progress};
use crate::http::sse::Event;
use crate::http::trouble::Words;

/// An answer being put together.
#[derive(Default)]
pub(super) struct Assembly {
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish: Option<String>,
    refused: bool,
    said_anything: bool,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
}

impl Assembly {
    fn chunk(&mut self, chunk: Chunk, out: &mut VecDeque<ModelEvent>) {
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage_of(&usage));
        }
        // We never ask for more than one choice.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else { return };
        for delta in [choice.delta, choice.message].into_iter().flatten() {
            self.delta(delta, out);
        }
        if let Some(finish) = choice.finish_reason.filter(|finish| !finish.is_empty()) {
            self.finish = Some(finish);
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut VecDeque<ModelEvent>) {
        // Some servers send the same reasoning under both names.
        let reasoning = delta.reasoning_content.or(delta.reasoning).map(|raw| content_text(&raw)).unwrap_or_default();
        if !reasoning.is_empty() {
            self.said_anything = true;
            out.push_back(ModelEvent::Thinking(reasoning));
        }
        let text = delta.content.map(|raw| content_text(&raw)).unwrap_or_default();
        if !text.is_empty() {
            self.said_anything = true;
            out.push_back(ModelEvent::Text(text));
        }
        if let Some(refusal) = delta.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            out.push_back(ModelEvent::Text(refusal));
        }
        for piece in delta.tool_calls.into_iter().flatten() {
            self.call_piece(piece);
        }
    }

    fn call_piece(&mut self, piece: CallPiece) {
        let id = piece.id.filter(|id| !id.is_empty());
        let (name, arguments) = match piece.function {
            Some(function) => (
                function.name.unwrap_or_default(),
                function.arguments.map(|raw| argument_text(&raw)).unwrap_or_default(),
            ),
            None => (String::new(), String::new()),
        };
        let known = match (piece.index, &id) {
            // An index is reused for another call by servers that send whole calls one by one.
            (Some(index), id) => self
                .calls
                .iter_mut()
                .rev()
                .find(|call| call.index == Some(index))
                .filter(|call| id.is_none() || call.id.is_none() || call.id == *id),
            (None, Some(id)) => self.calls.iter_mut().rev().find(|call| call.id.as_ref() == Some(id)),
            // With neither, a name begins a call and a piece without one goes on with the last.
            (None, None) if name.is_empty() => self.calls.last_mut(),
            (None, None) => None,
        };
        let call = match known {
            Some(call) => call,
            None => {
                self.calls.push(Call { index: piece.index, ..Call::default() });
                match self.calls.last_mut() {
                    Some(call) => call,
                    None => return,
                }
            }
        };
        if call.id.is_none() {
            call.id = id;
        }
        // Some repeat the name with each piece.
        if call.name != name {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&arguments);
    }
}

impl Assemble for Assembly {
    fn take(&mut self, event: &Event, words: &Words, out: &mut VecDeque<ModelEvent>) -> Result<Progress, ModelFault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return self.complete(words, out).map(|()| Progress::Complete);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        let chunk: Chunk = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(_) if event.name == "error" => return Err(words.failed_inside(&data.into())),
            Err(e) => return Err(words.not_an_answer(&e.to_string())),
        };
        if let Some(error) = chunk.error.as_ref().filter(|error| !error.is_null()) {
            return Err(words.failed_inside(error));
        }
        if event.name == "error" {
            let whole = serde_json::from_str(data).unwrap_or_default();
            return Err(words.failed_inside(&whole));
        }
        self.chunk(chunk, out);
        Ok(Progress::More)
    }

    fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    fn complete(&mut self, words: &Words, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelFault> {
        let mut stop = match self.finish.as_deref() {
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter" | "refusal") => StopReason::Refusal,
            Some("insufficient_system_resource") => return Err(words.out_of_resources()),
            Some(_) => StopReason::EndTurn,
            None if self.said_anything || !self.calls.is_empty() || self.refused => StopReason::EndTurn,
            None => return Err(words.empty()),
        };
        if self.refused {
            stop = StopReason::Refusal;
        }
        for call in self.calls.drain(..) {
            // What the output limit cut in two is no call.
            if stop == StopReason::MaxTokens && Json::parse(&call.arguments).is_err() {
                continue;
            }
            if stop == StopReason::EndTurn {
                stop = StopReason::ToolUse;
            }
            out.push_back(ModelEvent::ToolCall { id: call.id, name: call.name, arguments: call.arguments });
        }
        if let Some(usage) = self.usage.take() {
            out.push_back(ModelEvent::Usage(usage));
        }
        out.push_back(ModelEvent::Stop(stop));
        Ok(())
    }
}

fn usage_of(usage: &UsageText) -> Usage {
    let details = usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
    Usage {
        input_tokens: usage.prompt_tokens.unwrap_or_default(),
        output_tokens: usage.completion_tokens.unwrap_or_default(),
        cached_input_tokens: details.or(usage.prompt_cache_hit_tokens).unwrap_or_default(),
        cache_creation_input_tokens: 0,
    }
}
