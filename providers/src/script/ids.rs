//! The ids of a script's calls.
//!
//! The invariant: an id is a pure function of the script and the request's index, and no two calls of one
//! conversation have the same one, also when `loop` or `last` plays a step again. What is kept here is a memory of
//! that function's values, the same for every session.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use sluice_harness::content::Block;
use sluice_harness::seam::model::{ModelRequest, Purpose};

use super::format::{Step, WhenExhausted};
use super::sequence::{Place, place};

/// The ids given so far, by conversation.
#[derive(Default)]
pub(super) struct CallIds {
    given: Mutex<HashMap<String, Given>>,
}

#[derive(Default)]
struct Given {
    /// By request.
    ids: Vec<Vec<String>>,
    seen: HashSet<String>,
    count: u64,
}

impl CallIds {
    /// The ids of the calls in the step that `request` takes.
    pub(super) fn of(&self, request: &ModelRequest, steps: &[Arc<Step>], when: WhenExhausted) -> Vec<String> {
        let prefix = prefix(request);
        let Ok(index) = usize::try_from(request.index) else { return Vec::new() };
        let mut all = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let given = all.entry(prefix.clone()).or_default();
        while given.ids.len() <= index {
            let step = match place(steps.len(), given.ids.len() as u64, when) {
                Place::At(at) => steps.get(at),
                Place::Silence | Place::Exhausted => None,
            };
            let ids = step.map(|step| given.next(step, &prefix)).unwrap_or_default();
            given.ids.push(ids);
        }
        let ids = given.ids.get(index).cloned().unwrap_or_default();
        drop(all);
        if ids.is_empty() { ids } else { apart_from_history(ids, request) }
    }
}

impl Given {
    fn next(&mut self, step: &Step, prefix: &str) -> Vec<String> {
        if !step.reaches_calls() {
            return Vec::new();
        }
        let mut ids = Vec::with_capacity(step.calls.len());
        for call in &step.calls {
            self.count += 1;
            let wanted = call.id.clone().unwrap_or_else(|| format!("{prefix}_{}", self.count));
            let id = unused(wanted, |id| self.seen.contains(id));
            self.seen.insert(id.clone());
            ids.push(id);
        }
        ids
    }
}

/// What ids begin with: `call` in the main conversation, and something of its own in every other one, for their calls
/// may stand in the same session.
fn prefix(request: &ModelRequest) -> String {
    let purpose = match request.purpose {
        Purpose::Turn => "call",
        Purpose::Hook => "call_hook",
        Purpose::Compaction => "call_compaction",
    };
    match &request.agent {
        None => purpose.to_owned(),
        Some(agent) => format!("{purpose}_{agent}"),
    }
}

/// A session may have begun with another model or script, whose ids this one cannot know.
fn apart_from_history(ids: Vec<String>, request: &ModelRequest) -> Vec<String> {
    let mut used: HashSet<String> = HashSet::new();
    for block in request.messages.iter().flat_map(|message| &message.content) {
        if let Block::ToolUse { id, .. } = block {
            used.insert(id.clone());
        }
    }
    ids.into_iter()
        .map(|id| {
            let id = unused(id, |id| used.contains(id));
            used.insert(id.clone());
            id
        })
        .collect()
}

fn unused(wanted: String, is_used: impl Fn(&str) -> bool) -> String {
    if !is_used(&wanted) {
        return wanted;
    }
    let mut number = 2u64;
    loop {
        let id = format!("{wanted}_{number}");
        if !is_used(&id) {
            return id;
        }
        number += 1;
    }
}
