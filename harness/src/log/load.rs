//! Reading a log's file: the header, every event in relation to those before it, and where the usable part ends.
//!
//! It changes nothing. A tail that a crash can have left (half a line, garbage, a gap in the numbering) bounds what
//! is usable, but only after the last `turn/end`: damage before a turn that ended later is corruption and refused
//! as are lines that no crash explains.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::book::Book;
use super::error::{LogError, OtherVersion};
use super::event::{EventKind as _, FORMAT_VERSION, Header, TurnEnded};
use super::line::{LineFault, Logged, is_known};
use super::relation::Refusal;
use crate::json::Json;

/// A log as it was read.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The first line.
    pub(super) header: Header,
    /// The events of the usable part.
    pub(super) book: Book,
    /// The length of the usable part in bytes.
    pub(super) usable: u64,
    /// How many bytes come after it.
    pub(super) torn: u64,
}

/// Reads a log as long as it is now; what a live writer adds meanwhile is left out.
pub(super) fn load(file: &File, path: &Path) -> Result<Loaded, LogError> {
    let cannot = |e| LogError::Io { doing: "read", path: path.to_owned(), cause: Arc::new(e) };
    let corrupt = |line, why: String| LogError::Corrupt { path: path.to_owned(), line, why };
    let len = file.metadata().map_err(cannot)?.len();
    let mut reader = BufReader::with_capacity(1 << 16, file.take(len));
    let mut line = Vec::new();

    reader.read_until(b'\n', &mut line).map_err(cannot)?;
    let header =
        read_header(whole(&line).ok_or_else(|| corrupt(1, "the header is missing or cut short".to_owned()))?, path)?;
    let mut loaded = Loaded { header, book: Book::default(), usable: line.len() as u64, torn: 0 };
    let mut number = 1;
    let mut damage: Option<(u64, String)> = None;
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(cannot)? as u64;
        if read == 0 {
            break;
        }
        number += 1;
        let Some(text) = whole(&line) else {
            loaded.torn += read;
            break;
        };
        if damage.is_none() {
            match next_event(text, number, &mut loaded.book, path)? {
                Next::Event => loaded.usable += read,
                Next::Damage(why) => damage = Some((number, why)),
            }
        }
        if let Some((at, why)) = &damage {
            if ends_turn(text) {
                return Err(corrupt(*at, format!("{why}, although a turn ended after it")));
            }
            loaded.torn += read;
        }
    }
    Ok(loaded)
}

/// A line without its newline; `None` when it has none.
fn whole(line: &[u8]) -> Option<&[u8]> {
    line.strip_suffix(b"\n")
}

enum Next {
    Event,
    Damage(String),
}

fn next_event(text: &[u8], line: u64, book: &mut Book, path: &Path) -> Result<Next, LogError> {
    let corrupt = |why: String| LogError::Corrupt { path: path.to_owned(), line, why };
    let event = match Logged::read(text) {
        Ok(event) => event,
        Err(LineFault::Torn(why)) => return Ok(Next::Damage(format!("it is no event ({why})"))),
        Err(LineFault::Corrupt(why)) => return Err(corrupt(why)),
    };
    let due = book.next_seq();
    if event.seq > due {
        return Ok(Next::Damage(format!("the events from {} to {} are missing", due.0, event.seq.0 - 1)));
    }
    if !event.ignorable && !is_known(&event.kind) {
        return Err(LogError::UnknownKind { path: path.to_owned(), kind: event.kind.to_string(), line });
    }
    let kind = Arc::clone(&event.kind);
    match book.admit(event) {
        Ok(_) => Ok(Next::Event),
        Err(Refusal::Order(why)) => Err(corrupt(format!("`{kind}` does not belong here: {why}"))),
        Err(Refusal::Duplicate(id)) => Err(corrupt(format!("`{kind}` uses the call id `{id}` a second time"))),
    }
}

fn ends_turn(text: &[u8]) -> bool {
    Logged::read(text).is_ok_and(|event| *event.kind == *TurnEnded::TYPE)
}

/// Reads and checks the first line.
pub(super) fn read_header(line: &[u8], path: &Path) -> Result<Header, LogError> {
    #[derive(Deserialize)]
    struct Probe {
        r#type: String,
        version: i64,
    }
    let corrupt = |why: String| LogError::Corrupt { path: path.to_owned(), line: 1, why };
    let json = Json::parse_bytes(line).map_err(|e| corrupt(format!("the header is {e}")))?;
    let probe: Probe = json.decode().map_err(|e| corrupt(format!("this is no session header: {e}")))?;
    if probe.r#type != "session" {
        return Err(corrupt(format!("the header's type is `{}`, not `session`", probe.r#type)));
    }
    if probe.version != i64::from(FORMAT_VERSION) {
        let age = if probe.version < i64::from(FORMAT_VERSION) { OtherVersion::Older } else { OtherVersion::Newer };
        return Err(LogError::Version { path: path.to_owned(), found: probe.version, age });
    }
    let header: Header = json.decode().map_err(|e| corrupt(format!("this is no session header: {e}")))?;
    check_header(&header).map_err(corrupt)?;
    Ok(header)
}

/// What a header must be beyond its shape.
pub(super) fn check_header(header: &Header) -> Result<(), String> {
    if header.r#type != "session" {
        return Err(format!("the header's type is `{}`, not `session`", header.r#type));
    }
    if header.version != FORMAT_VERSION {
        return Err(format!("the header's version is {}, not {FORMAT_VERSION}", header.version));
    }
    if header.id.as_str().is_empty() {
        return Err("the header's id is empty".to_owned());
    }
    if header.created_at.is_empty() {
        return Err("the header's created_at is empty".to_owned());
    }
    if !header.cwd.is_absolute() {
        return Err(format!("the header's cwd `{}` is not absolute", header.cwd.display()));
    }
    Ok(())
}
