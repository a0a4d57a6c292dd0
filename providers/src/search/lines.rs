//! Lines by pattern, files in path order.
//!
//! The invariant: a file with a NUL byte gives no line at all, memory per file is bounded, and the search stops at the
//! limit or at the signal, also inside one large file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::search::{GrepHits, GrepLine, GrepQuery, LetterCase, LineMode, SearchFault};

use super::walk::{self, Next, Root, Scope};

/// The longest line, or the largest file of a multi-line search, that is looked at.
const HEAP_LIMIT: usize = 64 * 1024 * 1024;

/// Finds the lines. Blocks.
pub(super) fn grep(query: &GrepQuery, cancel: &Cancel) -> Result<GrepHits, SearchFault> {
    let matcher = compile(query)?;
    let types = types(query)?;
    let kind = walk::root_kind(&query.root)?;
    let folder = match kind {
        Root::Folder => query.root.as_path(),
        Root::File => query.root.parent().unwrap_or(&query.root),
    };
    let names = names(query, folder)?;
    let mut searcher = searcher(query);
    let mut hits = GrepHits::default();
    match kind {
        Root::File => {
            let wanted = fits(&names, &query.root) && !types.matched(&query.root, false).is_ignore();
            if wanted {
                one_file(&query.root, query, &matcher, &mut searcher, &mut hits, cancel)?;
            }
        }
        Root::Folder => walk::files(folder, Scope::Unignored(types), cancel, |entry| {
            if fits(&names, entry.path()) {
                one_file(entry.path(), query, &matcher, &mut searcher, &mut hits, cancel)?;
            }
            Ok(if hits.truncated { Next::Stop } else { Next::Go })
        })?,
    }
    Ok(hits)
}

fn compile(query: &GrepQuery) -> Result<RegexMatcher, SearchFault> {
    let mut builder = RegexMatcherBuilder::new();
    // `^` and `$` mean lines, as in any grep.
    builder.multi_line(true).case_insensitive(query.case == LetterCase::Insensitive);
    match query.lines {
        LineMode::Single => builder.line_terminator(Some(b'\n')),
        LineMode::Multi => builder.dot_matches_new_line(true),
    };
    builder
        .build(&query.pattern)
        .map_err(|e| SearchFault::InvalidPattern { pattern: query.pattern.clone(), why: e.to_string() })
}

fn types(query: &GrepQuery) -> Result<Types, SearchFault> {
    let mut builder = TypesBuilder::new();
    if let Some(name) = &query.file_type {
        builder.add_defaults().select(name);
        return builder.build().map_err(|_| SearchFault::InvalidPattern {
            pattern: name.clone(),
            why: "no file type has this name; use a glob instead".to_owned(),
        });
    }
    builder.build().map_err(|e| SearchFault::InvalidPattern { pattern: String::new(), why: e.to_string() })
}

/// The glob as a filter on names. It is no part of the walk, where it would bring ignored files back.
fn names(query: &GrepQuery, folder: &Path) -> Result<Override, SearchFault> {
    let Some(glob) = &query.glob else { return Ok(Override::empty()) };
    let invalid = |e: ignore::Error| SearchFault::InvalidPattern { pattern: glob.clone(), why: e.to_string() };
    let mut builder = OverrideBuilder::new(folder);
    builder.add(glob).map_err(invalid)?;
    builder.build().map_err(invalid)
}

fn fits(names: &Override, path: &Path) -> bool {
    !names.matched(path, false).is_ignore()
}

fn searcher(query: &GrepQuery) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(query.before)
        .after_context(query.after)
        .multi_line(query.lines == LineMode::Multi)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_LIMIT))
        .build()
}

fn one_file(
    path: &Path,
    query: &GrepQuery,
    matcher: &RegexMatcher,
    searcher: &mut Searcher,
    hits: &mut GrepHits,
    cancel: &Cancel,
) -> Result<(), SearchFault> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) => return unreadable(path, query, &e),
    };
    let room = query.limit.saturating_sub(hits.lines.len());
    let mut sink = Collect { path, room, lines: Vec::new(), truncated: false, binary: false };
    let outcome = searcher.search_reader(matcher, Interruptible { file, cancel }, &mut sink);
    if cancel.is_cancelled() {
        return Err(SearchFault::Aborted);
    }
    if let Err(e) = outcome {
        return unreadable(path, query, &e);
    }
    if !sink.binary {
        hits.truncated |= sink.truncated;
        hits.lines.append(&mut sink.lines);
    }
    Ok(())
}

/// A file that cannot be read is left out of a folder's answer; alone it is the answer.
fn unreadable(path: &Path, query: &GrepQuery, error: &io::Error) -> Result<(), SearchFault> {
    if path == query.root {
        let why = crate::process::words(error);
        return Err(SearchFault::Failed { path: path.display().to_string(), why });
    }
    tracing::debug!(path = %path.display(), %error, "left out of a search");
    Ok(())
}

/// A file that cannot be read any further once the signal has fired.
struct Interruptible<'a> {
    file: File,
    cancel: &'a Cancel,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("the search was cancelled"));
        }
        self.file.read(buffer)
    }
}

/// Collects one file's lines.
struct Collect<'a> {
    path: &'a Path,
    room: usize,
    lines: Vec<GrepLine>,
    truncated: bool,
    binary: bool,
}

impl Collect<'_> {
    /// Takes one line; false when there is no room for it.
    fn take(&mut self, number: Option<u64>, line: &[u8], is_match: bool) -> bool {
        if self.lines.len() >= self.room {
            self.truncated = true;
            return false;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.lines.push(GrepLine {
            path: self.path.to_owned(),
            number: number.unwrap_or_default(),
            text: String::from_utf8_lossy(line).into_owned(),
            is_match,
        });
        true
    }
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let mut number = found.line_number();
        for line in found.lines() {
            if !self.take(number, line, true) {
                return Ok(false);
            }
            number = number.map(|n| n + 1);
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        Ok(self.take(context.line_number(), context.bytes(), false))
    }

    fn binary_data(&mut self, _searcher: &Searcher, _offset: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}
