//! What a repository's own configuration may do: tighten. Nothing that came with a repository widens anything before
//! it was accepted, and there is no lasting acceptance yet.
//!
//! The invariant: an entry is followed only where what it sets lets strictly less happen than what holds without it;
//! what a variable or a flag says afterwards is the user's word and wins.

use sluice_bridges::OnFailure;
use sluice_harness::permission::Mode;

use super::key::Entry;
use super::{Config, Origin, Setting};

/// What becomes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It tightens.
    Followed,
    /// It changes nothing.
    Same,
    /// It widens, or does something that is neither.
    HeldBack,
}

/// Whether fewer calls run unasked in one mode than in the other. Of `plan` and `dontAsk` neither is the stricter one.
pub(crate) fn stricter(mode: Mode, than: Mode) -> bool {
    let looseness = |mode: Mode| match mode {
        Mode::Plan | Mode::DontAsk => 0,
        Mode::Default => 1,
        Mode::AcceptEdits => 2,
        Mode::BypassPermissions => 3,
    };
    looseness(mode) < looseness(than)
}

/// Judges an entry against what holds so far.
pub(super) fn fate(config: &Config, entry: &Entry) -> Fate {
    let lower = |tighter: bool, same: bool| match (tighter, same) {
        (true, _) => Fate::Followed,
        (false, true) => Fate::Same,
        (false, false) => Fate::HeldBack,
    };
    match entry {
        Entry::HooksOnFailure(value) => {
            let now = config.hooks_on_failure.value;
            lower(*value == OnFailure::Block && now == OnFailure::Continue, *value == now)
        }
        Entry::PermissionMode(mode) => {
            let now = config.permission_mode.value;
            lower(stricter(*mode, now), *mode == now)
        }
        Entry::AnswerTimeout(limit) => {
            let now = config.answer_timeout.as_ref().map(|setting| setting.value);
            lower(now.is_none_or(|now| *limit < now), now == Some(*limit))
        }
        Entry::MaxContinuations(limit) => {
            let now = config.max_continuations.value;
            lower(*limit < now, *limit == now)
        }
        Entry::ParallelCalls(limit) => {
            let now = config.parallel_calls.value;
            lower(*limit < now, *limit == now)
        }
        Entry::MaxOutputTokens(limit) => {
            let now = config.max_output_tokens.as_ref().map(|setting| setting.value);
            lower(now.is_none_or(|now| *limit < now), now == Some(*limit))
        }
        Entry::SandboxMode(mode) => {
            let now = config.sandbox_mode.value;
            lower(*mode < now, *mode == now)
        }
        Entry::SandboxNetwork(on) => {
            let now = config.sandbox_network.value;
            lower(!on && now, *on == now)
        }
        Entry::WebAllowPrivate(on) => {
            lower(!on && config.web_allow_private.value, *on == config.web_allow_private.value)
        }
        Entry::ClaudeCodeHooks(on) => lower(false, *on == config.claude_code_hooks.value),
        Entry::CodexHooks(on) => lower(false, *on == config.codex_hooks.value),
        Entry::Model(_)
        | Entry::PermissionNotice(_)
        | Entry::IdleNotice(_)
        | Entry::McpStartupTimeout(_)
        | Entry::McpCallTimeout(_)
        | Entry::WebPrivateHosts(_)
        | Entry::WebSearchProvider(_)
        | Entry::Search { .. }
        | Entry::Retries(_)
        | Entry::RetryBase(_)
        | Entry::RetryCap(_)
        | Entry::Provider { .. } => Fate::HeldBack,
    }
}

impl Config {
    /// Follows what tightens of a repository's file; what to say of the rest, one line each. `said` names the keys that
    /// a variable or a flag sets in any case: of these nothing is followed.
    pub(super) fn tighten(
        &mut self,
        path: &std::path::Path,
        entries: Vec<(Entry, Origin)>,
        said: &[String],
    ) -> Vec<String> {
        let (mut followed, mut held): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (entry, origin) in entries {
            let name = entry.name();
            let fate = fate(self, &entry);
            // Claude Code's settings may name a looser mode than this configuration; that is known later.
            if let Entry::PermissionMode(value) = entry {
                self.repository_mode = Some(Setting { value, origin });
            } else if fate == Fate::Followed {
                self.set(entry, origin, &mut super::Drafts::default());
            }
            let list = match fate {
                Fate::Followed if said.contains(&name) => continue,
                Fate::Followed => &mut followed,
                Fate::Same => continue,
                Fate::HeldBack => &mut held,
            };
            if !list.contains(&name) {
                list.push(name);
            }
        }
        let mut notices = Vec::new();
        followed.sort();
        held.sort();
        if !followed.is_empty() {
            notices.push(format!("{} came with the repository and tightens {}", path.display(), followed.join(", ")));
        }
        if !held.is_empty() {
            notices.push(format!(
                "{} came with the repository, and what would not tighten is not followed ({}); to use these values, set \
                 them in your own configuration",
                path.display(),
                held.join(", "),
            ));
        }
        notices
    }
}
