//! Whether a hook has made a turn go on: what `stop_hook_active` means in both dialects.

use sluice_harness::point::turn::Continuation;

/// Whether any continuation of the turn was forced by a Stop hook of either dialect; what others force does not count.
pub(crate) fn by_a_stop_hook(continuations: &[Continuation]) -> bool {
    continuations.iter().any(|c| c.source == crate::claude_code::STOP_SOURCE || c.source == crate::codex::STOP_SOURCE)
}
