//! One cell of a notebook replaced, inserted or deleted in the notebook's own text.
//!
//! The invariant: outside the cell that is meant not a byte changes, and inside it members that nobody meant keep
//! their text and their place. Outputs of a code cell whose source is replaced are gone, for they are not its own.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;
use serde_json::value::RawValue;

use super::layout::{Items, Layout, Members, Style, is_json, place_in, quoted};
use super::{NotebookFault, id_of, language};

/// What a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellKind {
    Code,
    Markdown,
    Raw,
}

impl CellKind {
    /// The kind of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "code" => Some(Self::Code),
            "markdown" => Some(Self::Markdown),
            "raw" => Some(Self::Raw),
            _ => None,
        }
    }

    /// As notebooks write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    /// Another source, and another kind where one is given.
    Replace { cell: &'a str, source: &'a str, kind: Option<CellKind> },
    /// A new cell after one, or as the first.
    Insert { after: Option<&'a str>, source: &'a str, kind: CellKind },
    /// One cell less.
    Delete { cell: &'a str },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spliced {
    /// The notebook's new text.
    pub(crate) text: String,
    /// The id of the cell that was changed, made or deleted.
    pub(crate) cell_id: String,
    /// Its kind.
    pub(crate) kind: String,
    /// The language of the notebook's code.
    pub(crate) language: String,
}

/// Why a change cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SpliceFault {
    #[error(transparent)]
    Notebook(#[from] NotebookFault),
    #[error("there is no cell `{wanted}`; the cells are {known}")]
    NoCell { wanted: String, known: String },
    #[error("it has a cell that is no object with a source")]
    OddCell,
}

/// The ids that are named where a cell is not found.
const MOST_NAMED: usize = 20;

struct Notebook<'a> {
    text: &'a str,
    top: Layout,
    value: Value,
    list: &'a RawValue,
    cells: Vec<&'a RawValue>,
}

/// Changes one cell.
pub(crate) fn splice(text: &str, change: &Change<'_>) -> Result<Spliced, SpliceFault> {
    let notebook = Notebook::of(text)?;
    let spliced = match change {
        Change::Replace { cell, source, kind } => notebook.replace(cell, source, *kind)?,
        Change::Insert { after, source, kind } => notebook.insert(*after, source, *kind)?,
        Change::Delete { cell } => notebook.delete(cell)?,
    };
    // What we wrote must read; the file is not touched otherwise.
    if is_json(&spliced.text) { Ok(spliced) } else { Err(SpliceFault::OddCell) }
}

impl<'a> Notebook<'a> {
    fn of(text: &'a str) -> Result<Self, NotebookFault> {
        let no_json = |e: serde_json::Error| NotebookFault::NoJson(e.to_string());
        let value: Value = serde_json::from_str(text).map_err(no_json)?;
        if !value.get("cells").is_some_and(Value::is_array) {
            return Err(NotebookFault::NoCells);
        }
        let Members(members) = serde_json::from_str(text).map_err(no_json)?;
        let list = members.iter().find(|(key, _)| key == "cells").map(|(_, list)| *list);
        let list = list.ok_or(NotebookFault::NoCells)?;
        let Items(cells) = serde_json::from_str(list.get()).map_err(no_json)?;
        let top = Layout::of(text.trim()).ok_or(NotebookFault::NoCells)?;
        Ok(Self { text, top, value, list, cells })
    }

    fn cell(&self, number: usize) -> Option<&Value> {
        self.value.get("cells")?.get(number)
    }

    fn id(&self, number: usize) -> String {
        self.cell(number).map_or_else(String::new, |cell| id_of(number, cell))
    }

    /// The place of a cell, by its id or as `cell-N`.
    fn find(&self, wanted: &str) -> Result<usize, SpliceFault> {
        let all = 0..self.cells.len();
        let by_place = || wanted.strip_prefix("cell-")?.parse().ok().filter(|number| all.contains(number));
        all.clone().find(|number| self.id(*number) == wanted).or_else(by_place).ok_or_else(|| {
            let mut known: Vec<String> = all.clone().take(MOST_NAMED).map(|number| self.id(number)).collect();
            if self.cells.len() > MOST_NAMED {
                known.push(format!("{} more", self.cells.len() - MOST_NAMED));
            }
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            SpliceFault::NoCell { wanted: wanted.to_owned(), known }
        })
    }

    fn done(&self, text: String, cell_id: String, kind: String) -> Spliced {
        Spliced { text, cell_id, kind, language: language(&self.value) }
    }

    fn with(&self, place: std::ops::Range<usize>, new: &str) -> String {
        let (before, after) = (self.text.get(..place.start), self.text.get(place.end..));
        format!("{}{new}{}", before.unwrap_or_default(), after.unwrap_or_default())
    }

    fn kind(&self, number: usize) -> String {
        let kind = self.cell(number).and_then(|cell| cell.get("cell_type")).and_then(Value::as_str);
        kind.unwrap_or("raw").to_owned()
    }

    fn replace(&self, cell: &str, source: &str, kind: Option<CellKind>) -> Result<Spliced, SpliceFault> {
        let number = self.find(cell)?;
        let old = self.cells.get(number).ok_or(SpliceFault::OddCell)?;
        let mut layout = Layout::of(old.get()).ok_or(SpliceFault::OddCell)?;
        let is_list = layout.get("source").ok_or(SpliceFault::OddCell)?.starts_with('[');
        let written = source_text(&layout.style, source, is_list);
        layout.set("source", written);
        let name = kind.map_or_else(|| self.kind(number), |kind| kind.name().to_owned());
        if kind.is_some() && name != self.kind(number) {
            layout.set("cell_type", quoted(&name));
        }
        if name == CellKind::Code.name() {
            layout.set("execution_count", "null".to_owned());
            layout.set("outputs", "[]".to_owned());
        } else {
            layout.remove("execution_count");
            layout.remove("outputs");
        }
        Ok(self.done(self.with(place_in(self.text, old), &layout.text()), self.id(number), name))
    }

    fn insert(&self, after: Option<&str>, source: &str, kind: CellKind) -> Result<Spliced, SpliceFault> {
        let number = match after {
            Some(cell) => self.find(cell)? + 1,
            None => 0,
        };
        let neighbour = self.cells.get(number.saturating_sub(1)).and_then(|cell| Layout::of(cell.get()));
        let style = neighbour.map_or_else(|| self.style_of_cells(), |layout| layout.style);
        let mut layout = Layout::empty(style);
        let id = if self.has_ids() { Some(self.fresh_id(number, source)) } else { None };
        layout.set("cell_type", quoted(kind.name()));
        if kind == CellKind::Code {
            layout.set("execution_count", "null".to_owned());
            layout.set("outputs", "[]".to_owned());
        }
        if let Some(id) = &id {
            layout.set("id", quoted(id));
        }
        layout.set("metadata", "{}".to_owned());
        let written = source_text(&layout.style, source, true);
        layout.set("source", written);
        let new = layout.text();
        let id = id.unwrap_or_else(|| format!("cell-{number}"));
        let list = place_in(self.text, self.list);
        let text = match (number.checked_sub(1).and_then(|before| self.cells.get(before)), self.cells.first()) {
            (Some(before), _) => {
                let at = place_in(self.text, before).end;
                self.with(at..at, &format!("{}{new}", self.between()))
            }
            (None, Some(first)) => {
                let at = place_in(self.text, first).start;
                self.with(at..at, &format!("{new}{}", self.between()))
            }
            (None, None) => {
                let filled = match layout.style.indent() {
                    Some(_) => {
                        let inner = layout.style.outer();
                        format!("[\n{inner}{new}\n{}]", self.top.style.indent().unwrap_or_default())
                    }
                    None => format!("[{new}]"),
                };
                self.with(list, &filled)
            }
        };
        Ok(self.done(text, id, kind.name().to_owned()))
    }

    fn delete(&self, cell: &str) -> Result<Spliced, SpliceFault> {
        let number = self.find(cell)?;
        let place = |number: usize| self.cells.get(number).map(|cell| place_in(self.text, cell));
        let (own, next) = (place(number).ok_or(SpliceFault::OddCell)?, place(number + 1));
        let text = match (number.checked_sub(1).and_then(place), next) {
            (Some(before), _) => self.with(before.end..own.end, ""),
            (None, Some(next)) => self.with(own.start..next.start, ""),
            (None, None) => self.with(place_in(self.text, self.list), "[]"),
        };
        Ok(self.done(text, self.id(number), self.kind(number)))
    }

    /// What stands between two cells.
    fn between(&self) -> String {
        let place = |number: usize| self.cells.get(number).map(|cell| place_in(self.text, cell));
        let gap = match (place(0), place(1)) {
            (Some(first), Some(second)) => self.text.get(first.end..second.start).map(str::to_owned),
            (Some(first), None) => {
                let open = self.text.get(place_in(self.text, self.list).start + 1..first.start);
                open.map(|open| format!(",{open}"))
            }
            (None, _) => None,
        };
        gap.unwrap_or_else(|| ",".to_owned())
    }

    /// How cells are written where there is none to look at.
    fn style_of_cells(&self) -> Style {
        match self.top.style.indent() {
            Some(unit) => Style::lines(&unit.repeat(2), &unit.repeat(3)),
            None => Style::compact(self.top.style.between.trim_start_matches(',')),
        }
    }

    /// Whether cells of this notebook have ids (format 4.5).
    fn has_ids(&self) -> bool {
        let number = |key: &str| self.value.get(key).and_then(Value::as_u64).unwrap_or(0);
        (number("nbformat"), number("nbformat_minor")) >= (4, 5)
    }

    fn fresh_id(&self, number: usize, source: &str) -> String {
        let mut hasher = DefaultHasher::new();
        (self.text, number, source).hash(&mut hasher);
        loop {
            let id = format!("{:08x}", hasher.finish() & 0xffff_ffff);
            if !(0..self.cells.len()).any(|number| self.id(number) == id) {
                return id;
            }
            id.hash(&mut hasher);
        }
    }
}

/// A source as JSON text in the style of its cell.
fn source_text(style: &Style, source: &str, is_list: bool) -> String {
    if !is_list {
        return quoted(source);
    }
    let lines: Vec<String> = source.split_inclusive('\n').map(quoted).collect();
    if lines.is_empty() {
        return "[]".to_owned();
    }
    match style.indent() {
        None => format!("[{}]", lines.join(&style.between)),
        Some(indent) => {
            let unit = indent.strip_prefix(style.outer()).filter(|unit| !unit.is_empty()).unwrap_or(" ");
            format!("[\n{indent}{unit}{}\n{indent}]", lines.join(&format!(",\n{indent}{unit}")))
        }
    }
}

#[cfg(test)]
mod tests;
