//! Stop: the agent goes on with feedback, ends for good, or ends; and the cap on blocks in a row.

use sluice_harness::content::Role;
use sluice_harness::point::turn::{Continuation, Steering};

use super::effect::{Answer, contexts, stop};
use super::text;

/// Who steers.
pub(crate) const SOURCE: &str = "claude-code:Stop";

/// What all handlers together decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Effect {
    /// The reason of each block, with its command and whether it was JSON.
    pub(crate) blocks: Vec<Block>,
    pub(crate) contexts: Vec<String>,
    /// Ends the turn, whatever the others say.
    pub(crate) prevented: Option<Option<String>>,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) command: String,
    pub(crate) reason: String,
    pub(crate) by: BlockedBy,
}

/// How a hook blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockedBy {
    Json,
    ExitCode,
}

/// Collects.
pub(crate) fn merge(answers: &[Answer<'_>]) -> Effect {
    let blocks = answers
        .iter()
        .filter_map(|a| {
            let reason = a.heard.block()?;
            let by = if a.heard.exit2.is_some() { BlockedBy::ExitCode } else { BlockedBy::Json };
            Some(Block { command: a.command.to_owned(), reason, by })
        })
        .collect();
    Effect { blocks, contexts: contexts(answers), prevented: stop(answers) }
}

impl Effect {
    /// Whether it makes the turn go on.
    pub(crate) fn goes_on(&self) -> bool {
        self.prevented.is_none() && (!self.blocks.is_empty() || !self.contexts.is_empty())
    }

    /// The messages that make the turn go on: each block its own user message, contexts beside them for the model.
    pub(crate) fn steering(&self) -> Vec<Steering> {
        let say = |role, text| Steering { source: SOURCE.to_owned(), role, text };
        let mut messages: Vec<_> =
            self.blocks.iter().map(|b| say(Role::User, text::stop_feedback(&b.reason))).collect();
        for block in self.blocks.iter().filter(|b| b.by == BlockedBy::Json) {
            messages.push(say(Role::System, text::blocking_error("Stop", &block.command, &block.reason)));
        }
        if !self.contexts.is_empty() {
            let joined = self.contexts.join("\n");
            messages.push(if self.blocks.is_empty() {
                say(Role::User, text::stop_context(&joined))
            } else {
                say(Role::System, text::context("Stop", &joined))
            });
        }
        messages
    }
}

/// How many of this dialect's continuations came in a row, with no tool call after any of them.
pub(crate) fn in_a_row(continuations: &[Continuation]) -> usize {
    continuations.iter().rev().take_while(|c| c.calls_since == 0).filter(|c| c.source == SOURCE).count()
}

/// Why a block is not honoured any more, where it is not.
pub(crate) fn capped(continuations: &[Continuation], in_a_row_cap: u32, turn_cap: u32, hook: &str) -> Option<String> {
    let row = in_a_row(continuations);
    let reached = |cap: u32, count: usize| count >= usize::try_from(cap).unwrap_or(usize::MAX);
    if in_a_row_cap > 0 && reached(in_a_row_cap, row) {
        return Some(format!(
            "the Stop hook `{hook}` kept the turn from ending {} times in a row, so it ends all the same; let it \
             succeed while stop_hook_active is true, or raise CLAUDE_CODE_STOP_HOOK_BLOCK_CAP (now {in_a_row_cap})",
            row + 1
        ));
    }
    reached(turn_cap, continuations.len()).then(|| {
        format!(
            "the Stop hook `{hook}` wanted the turn to go on, but hooks made it go on {} times already, which is the \
             limit of one turn",
            continuations.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(calls: &[u32]) -> Vec<Continuation> {
        calls.iter().map(|c| Continuation { source: SOURCE.to_owned(), calls_since: *c }).collect()
    }

    #[test]
    fn the_ninth_block_in_a_row_is_not_honoured() {
        assert_eq!(capped(&times(&[0; 7]), 8, 25, "h"), None);
        assert!(capped(&times(&[0; 8]), 8, 25, "h").is_some_and(|why| why.contains("9 times in a row")));
        assert_eq!(capped(&times(&[0; 24]), 0, 25, "h"), None);
        assert!(capped(&times(&[0; 25]), 0, 25, "h").is_some());
    }

    #[test]
    fn a_tool_call_resets_the_count_of_blocks_in_a_row() {
        // With a cap of 3 and a call after the first block, four blocks are honoured and the fifth is not.
        assert_eq!(capped(&times(&[1, 0, 0]), 3, 25, "h"), None);
        assert!(capped(&times(&[1, 0, 0, 0]), 3, 25, "h").is_some());
    }
}
