//! The names that settings may call a tool by: those of this program, and of the products that settings are written for.
//!
//! One list, for the hints about matchers and about permission rules.

/// Claude Code's names, which are the native ones.
pub(crate) const KNOWN: &[&str] = &[
    "Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob",
    "Grep", "KillShell", "Monitor", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "Skill", "SlashCommand",
    "Task", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch",
    "Write",
];

/// Those that Codex has beside them.
pub(crate) const CODEX: &[&str] = &["apply_patch", "spawn_agent"];

/// The names that a permission rule may speak of.
#[must_use]
pub fn known_tools() -> &'static [&'static str] {
    KNOWN
}
