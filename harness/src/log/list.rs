//! The sessions of a folder at a glance: who, where, about what, when.
//!
//! Each file is read once, line by line, and of each line only what the summary needs; whether a session can be
//! opened is for opening it to say.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::clock::rfc3339;
use super::error::LogError;
use super::event::{EventKind as _, LogRepaired, PromptReceived, TurnStart};
use super::load::read_header;
use super::writer::log_path;
use crate::content::plain_text;
use crate::ids::SessionId;

/// The longest title, in characters.
const TITLE: usize = 80;

/// What a list of sessions shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// The folder it started in; absolute.
    pub cwd: PathBuf,
    /// The first prompt's text on one line of at most 80 characters; empty before the first prompt.
    pub title: String,
    /// When it began, in RFC 3339.
    pub created: String,
    /// When its last event was logged, in RFC 3339.
    pub updated: String,
    /// How many turns it has.
    pub turns: u32,
}

/// The sessions of a folder, newest first; those that cannot be read come last, each with its error. A folder that
/// does not exist has none. Blocks while it reads.
#[must_use]
pub fn list(dir: &Path) -> Vec<(PathBuf, Result<SessionSummary, LogError>)> {
    let entries = match dir.read_dir() {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(e) => return vec![(dir.to_owned(), Err(cannot(dir, "read", e)))],
    };
    let mut sessions: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .map(|path| {
            let summary = summary(dir, &path);
            (path, summary)
        })
        .collect();
    sessions.sort_by_cached_key(|(path, summary)| {
        let updated = summary.as_ref().map(|summary| summary.updated.clone()).unwrap_or_default();
        (Reverse(updated), path.clone())
    });
    sessions
}

fn cannot(path: &Path, doing: &'static str, e: io::Error) -> LogError {
    LogError::Io { doing, path: path.to_owned(), cause: Arc::new(e) }
}

#[derive(Deserialize)]
struct Glance<'a> {
    time: u64,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

fn summary(dir: &Path, path: &Path) -> Result<SessionSummary, LogError> {
    let file = File::open(path).map_err(|e| cannot(path, "open", e))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).map_err(|e| cannot(path, "read", e))?;
    let header = read_header(&line, path)?;
    if log_path(dir, &header.id)? != path {
        let expected = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return Err(LogError::Identity { path: path.to_owned(), expected, found: header.id });
    }
    let mut summary = SessionSummary {
        id: header.id,
        cwd: header.cwd,
        title: String::new(),
        updated: header.created_at.clone(),
        created: header.created_at,
        turns: 0,
    };
    let mut updated = None;
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(|e| cannot(path, "read", e))?;
        // A half line is a torn tail, or an event that a live session is writing.
        let Some(text) = line.strip_suffix(b"\n") else { break };
        let Ok(event) = serde_json::from_slice::<Glance<'_>>(text) else { break };
        match &*event.kind {
            LogRepaired::TYPE => continue,
            TurnStart::TYPE => summary.turns += 1,
            PromptReceived::TYPE if summary.title.is_empty() => {
                if let Ok(prompt) = serde_json::from_str::<PromptReceived>(event.data.get()) {
                    summary.title = title(&plain_text(&prompt.content));
                }
            }
            _ => {}
        }
        updated = Some(event.time);
    }
    if let Some(ms) = updated {
        summary.updated = rfc3339(ms);
    }
    Ok(summary)
}

/// A text on one line, shortened.
fn title(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Control characters could move a terminal's cursor.
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() <= TITLE {
        return line;
    }
    let mut short: String = line.chars().take(TITLE - 1).collect();
    short.push('…');
    short
}
