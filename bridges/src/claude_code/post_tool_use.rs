//! PostToolUse: a reason after the result, contexts, another result, or the end of the turn. The tool has run.

use serde_json::Value;
use sluice_harness::json::Json;

use super::effect::{Answer, contexts, stop};
use super::text;
use crate::core::output::Printed;

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// The whole text of each block.
    pub(crate) blocks: Vec<Printed>,
    pub(crate) contexts: Vec<String>,
    pub(crate) replacement: Option<Replacement>,
    /// Ends the turn.
    pub(crate) stop: Option<Option<String>>,
    pub(crate) warnings: Vec<String>,
}

/// What stands in the result's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// Another value of the tool's shape.
    Value(Json),
    /// Another text for the model.
    Text(String),
}

/// Every block is delivered as its own text, then the contexts; of several replacements the first counts.
pub(crate) fn merge(hook: &str, tool: &str, current: &Json, answers: &[Answer<'_>]) -> Effect {
    let mut effect = Effect { contexts: contexts(answers), stop: stop(answers), ..Effect::default() };
    for answer in answers {
        let block = answer.heard.printed_block(|reason| text::blocking_error(hook, answer.command, reason));
        effect.blocks.extend(block);
        let Some(next) = replacement(tool, current, answer, &mut effect.warnings) else { continue };
        match &effect.replacement {
            Some(first) if *first != next => effect.warnings.push(format!(
                "hook `{}` replaces the result differently from a hook before it; the first one's is used",
                answer.command
            )),
            Some(_) => {}
            None => effect.replacement = Some(next),
        }
    }
    effect
}

fn replacement(tool: &str, current: &Json, answer: &Answer<'_>, warnings: &mut Vec<String>) -> Option<Replacement> {
    let output = answer.heard.output.as_ref()?;
    let is_mcp = tool.starts_with("mcp__");
    let given = match output.specific("updatedToolOutput") {
        Some(given) => given,
        None => output.specific("updatedMCPToolOutput").filter(|_| is_mcp)?,
    };
    match given.view() {
        Value::String(text) if is_mcp => return Some(Replacement::Text(text.clone())),
        Value::Array(_) if is_mcp => return Some(Replacement::Value(given.clone())),
        Value::Object(_) => {
            // Laid over the value, so that a key the hook leaves out keeps its meaning.
            if let (Some(mut base), Some(over)) = (current.object(), given.object())
                && over.iter().any(|(key, _)| base.get(key).is_some())
            {
                for (key, value) in over.iter() {
                    base.set(key, value.clone());
                }
                return Some(Replacement::Value(base.to_json()));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
    warnings.push(format!(
        "hook `{}` gave an updatedToolOutput that is not of the shape of a {tool} result; it was not used",
        answer.command
    ));
    None
}
