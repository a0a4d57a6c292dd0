//! `sessions list` and `sessions show`: looking at the logs, and changing nothing.
//!
//! The story of one session is put together in [`story`] and written in [`text`]. The invariant: a damaged log is named
//! and hides no other one.

mod story;
mod text;

use std::io::{self, Write};

use serde::Serialize;
use sluice_harness::log::{Inspection, LogError, SessionSummary, inspect};

use crate::cli::{ListFormat, ShowPlan};
use crate::fault::Fault;
use crate::state::State;

/// A line of `sessions list --json`.
#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    cwd: std::borrow::Cow<'a, str>,
    title: &'a str,
    created: &'a str,
    updated: &'a str,
    turns: u32,
}

/// Names the sessions, newest first. Those that cannot be read are named on `err`.
///
/// # Errors
/// When `out` cannot be written to.
pub(crate) fn list(state: &State, format: ListFormat, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Fault> {
    let found = state.session_dirs().into_iter().flat_map(|dir| sluice_harness::log::list(&dir));
    let mut sessions: Vec<SessionSummary> = Vec::new();
    let mut damaged: Vec<LogError> = Vec::new();
    for (_, summary) in found {
        match summary {
            Ok(summary) => sessions.push(summary),
            Err(error) => damaged.push(error),
        }
    }
    // Each folder comes sorted; several of them need it again.
    sessions.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| b.id.cmp(&a.id)));
    match format {
        ListFormat::Human => table(&sessions, out),
        ListFormat::Json => lines(&sessions, out),
    }
    .and_then(|()| out.flush())
    .map_err(|error| Fault::output(&error))?;
    for error in &damaged {
        // Whoever closed stderr does not want to know.
        let _ = writeln!(err, "sluice: {}", text::one_line(&error.to_string()));
    }
    Ok(())
}

fn table(sessions: &[SessionSummary], out: &mut dyn Write) -> io::Result<()> {
    if sessions.is_empty() {
        return writeln!(out, "no sessions yet");
    }
    writeln!(out, "{:36}  {:19}  {:>5}  TITLE", "ID", "UPDATED (UTC)", "TURNS")?;
    for session in sessions {
        let updated = session.updated.get(..19).unwrap_or(&session.updated).replace('T', " ");
        let id = text::one_line(session.id.as_str());
        let title = text::one_line(&session.title);
        let cwd = text::one_line(&session.cwd.display().to_string());
        writeln!(out, "{id:36}  {updated:19}  {:>5}  {title}", session.turns)?;
        writeln!(out, "{:36}  {cwd}", "")?;
    }
    Ok(())
}

fn lines(sessions: &[SessionSummary], out: &mut dyn Write) -> io::Result<()> {
    for session in sessions {
        let line = Line {
            id: session.id.as_str(),
            cwd: session.cwd.to_string_lossy(),
            title: &session.title,
            created: &session.created,
            updated: &session.updated,
            turns: session.turns,
        };
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    Ok(())
}

/// Shows a session; with a line on `err` about what opening it would mend.
///
/// # Errors
/// When there is no such session, its log cannot be read, or `out` cannot be written to.
pub(crate) fn show(state: &State, plan: &ShowPlan, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Fault> {
    let log = inspect(&state.find(&plan.id)?.path)?;
    match plan.format {
        ListFormat::Human => text::write(out, &log, &story::story(log.events.iter().map(|event| &**event))),
        ListFormat::Json => events(&log, out),
    }
    .and_then(|()| out.flush())
    .map_err(|error| Fault::output(&error))?;
    if let Some(damage) = log.damage {
        let torn = match damage.torn_bytes {
            0 => String::new(),
            bytes => format!(", and {bytes} bytes of an event that was not finished"),
        };
        let open =
            damage.open_turn.map_or_else(|| "no open turn".to_owned(), |turn| format!("the open turn {}", turn.0));
        let _ = writeln!(
            err,
            "sluice: the log has {open}{torn}: the session still runs, or was interrupted; resuming it mends the log"
        );
    }
    Ok(())
}

/// The header and the events, each on its line, as they stand in the log.
fn events(log: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", serde_json::to_string(&log.header)?)?;
    for event in &log.events {
        writeln!(out, "{}", event.line())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
