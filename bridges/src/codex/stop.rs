//! Stop of the Codex dialect: the agent goes on with a hook prompt, or ends for good.

use std::path::Path;

use super::hear::Heard;
use super::output::Said;
use crate::core::output::Printed;

/// Who steers.
pub(crate) const SOURCE: &str = "codex:Stop";

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// The reason of each block with the place of its handler among the event's, and its file.
    pub(crate) blocks: Vec<(usize, String, Printed)>,
    /// Ends the turn, whatever the others say.
    pub(crate) prevented: Option<Option<String>>,
}

/// All reasons are delivered; `continue: false` from any hook beats them.
pub(crate) fn merge<'a>(heard: impl Iterator<Item = (usize, &'a Path, &'a Heard)>) -> Effect {
    let mut effect = Effect::default();
    for (at, source, heard) in heard {
        match &heard.output.said {
            Said::Block(reason) => {
                let reason = Printed { text: reason.clone(), missing: heard.missing };
                effect.blocks.push((at, source.display().to_string(), reason));
            }
            Said::Stop(reason) if effect.prevented.is_none() => effect.prevented = Some(reason.clone()),
            Said::Stop(_) | Said::Nothing | Said::Rewrite(_) => {}
        }
    }
    effect
}

/// One hook's prompt as the model reads it.
pub(crate) fn hook_prompt(at: usize, source: &str, text: &str) -> String {
    format!("<hook_prompt hook_run_id=\"stop:{at}:{source}\">{text}</hook_prompt>")
}
