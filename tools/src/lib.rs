//! The built-in tools of sluice: `Bash`, `BashOutput`, `KillShell`, `Read`, `Write`, `Edit`, `MultiEdit`,
//! `NotebookEdit`, `Glob`, `Grep`, `TodoWrite`, `WebFetch`, `WebSearch` and `AskUserQuestion`.
//!
//! Owns: each tool's schemas, normalising, body, wording and cards, in Claude Code's input and value shapes; what a
//! session has seen of which file ([`observation`]); its background shells ([`jobs`]); which images can be sent
//! ([`image`]); and the tools of MCP servers ([`mcp`]).
//!
//! Must not know: any provider, any hook dialect, any front end. Files, processes and searches are reached only
//! through the harness's seams; the one exception is the report of a shell's folder, which lies in the session's own
//! state folder.
//!
//! Read first: [`builtin`], then one small tool such as [`glob::Glob`], then [`observation::ObservationPlugin`].

mod arguments;
pub mod ask_user_question;
pub mod bash;
pub mod bash_output;
pub mod edit;
mod failure;
mod file_change;
pub mod glob;
pub mod grep;
mod hidden;
pub mod image;
pub mod jobs;
pub mod kill_shell;
pub mod mcp;
pub mod multi_edit;
mod notebook;
pub mod notebook_edit;
pub mod observation;
mod patch;
pub mod read;
mod replacement;
mod schemas;
pub mod todo;
pub mod web_fetch;
pub mod web_search;
pub mod write;

use std::sync::Arc;

use sluice_harness::tool::Tool;

pub use bash::{Bash, BashConfig, ShellFolder};
pub use jobs::{Jobs, JobsPlugin};
pub use observation::ObservationPlugin;

/// The built-in tools, in the order in which a model is told of them. One set serves any number of sessions. Without an
/// [`ObservationPlugin`] files are changed unseen; with a [`JobsPlugin`] for the configuration's `jobs` it is said which
/// background shells ended with their session.
#[must_use]
pub fn builtin(config: BashConfig) -> Vec<Arc<dyn Tool>> {
    let jobs = Arc::clone(&config.jobs);
    vec![
        Arc::new(Bash::new(config)),
        Arc::new(bash_output::BashOutput::new(Arc::clone(&jobs))),
        Arc::new(kill_shell::KillShell::new(jobs)),
        Arc::new(read::Read),
        Arc::new(write::Write),
        Arc::new(edit::Edit),
        Arc::new(multi_edit::MultiEdit),
        Arc::new(notebook_edit::NotebookEdit),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(todo::TodoWrite),
        Arc::new(web_fetch::WebFetch),
        Arc::new(web_search::WebSearch),
        Arc::new(ask_user_question::AskUserQuestion),
    ]
}
