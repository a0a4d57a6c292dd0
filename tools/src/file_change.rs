//! What Write, Edit and MultiEdit share: the look before the change, the guarded write, and the cards.
//!
//! What must hold before a change is asked of `fs/write-intent` and `fs/edit-intent`. The invariant: a file is
//! changed only in the state that the answer names, and the check is part of the write itself.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sluice_harness::content::{Block, plain_text};
use sluice_harness::json::Json;
use sluice_harness::point::ListenerFault;
use sluice_harness::point::files::{EditView, Observed, ObservedView, WriteView, edit_intent, write_intent};
use sluice_harness::seam::files::{Expectation, FileFault, FileKind, FileStat, FileText, Files, Written};
use sluice_harness::tool::{Access, BodyView, CardItem, Location, ResultCard, ToolFailure};

use crate::failure;
use crate::patch::Hunk;
use crate::read::{LARGEST_FILE, numbered};

/// Former and new text together may have this many bytes to be kept for presentation.
const LARGEST_CARD: usize = 256 * 1024;
const MOST_SNIPPET_LINES: usize = 40;

/// One change of one file under way.
pub(crate) struct FileChange<'a> {
    body: &'a BodyView<'a>,
    path: PathBuf,
}

impl<'a> FileChange<'a> {
    /// Begins a change of the file that the input names.
    pub(crate) fn of(body: &'a BodyView<'a>) -> Result<Self, ToolFailure> {
        Self::at(body, "file_path")
    }

    /// The same, of the file that this member names.
    pub(crate) fn at(body: &'a BodyView<'a>, member: &str) -> Result<Self, ToolFailure> {
        let path = crate::arguments::path_at(body.input(), member)
            .ok_or_else(|| ToolFailure::new(format!("{member} is missing")))?;
        Ok(Self { body, path })
    }

    fn failed(&self, fault: &FileFault) -> ToolFailure {
        failure::of_file(fault, &self.body.scene().session.cwd())
    }

    /// A listener failed; nothing is changed without its answer.
    fn undecided(&self, defect: &ListenerFault) -> ToolFailure {
        let message = format!("{} was not changed: whether it may be could not be decided ({defect}).", self.shown());
        ToolFailure::coded(failure::FILE_ERROR, "FS_IO_ERROR", message)
    }

    fn observed(&self, stat: Option<&FileStat>, access: Access) {
        let scene = self.body.scene();
        scene.context.notify::<Observed>(&ObservedView { scene, path: &self.path, stat, access });
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    async fn stat(&self) -> Result<Option<FileStat>, ToolFailure> {
        let files = self.body.lease::<dyn Files>()?;
        match files.stat(&self.path, self.body.scene().cancel).await.map_err(|fault| self.failed(&fault))? {
            Some(stat) if stat.kind != FileKind::File => Err(failure::not_a_file(&self.path, &stat)),
            other => Ok(other),
        }
    }

    /// What must hold for the whole file to be replaced.
    pub(crate) async fn expected(&self) -> Result<Expectation, ToolFailure> {
        let there = self.stat().await?;
        let view = WriteView { scene: self.body.scene(), path: &self.path, there: there.as_ref() };
        let answer = write_intent(view).await.map_err(|defect| self.undecided(&defect))?;
        answer.map_err(|fault| self.failed(&fault))
    }

    /// The text to edit, in a state in which it may be; the state is checked before any matching.
    pub(crate) async fn text(&self) -> Result<FileText, ToolFailure> {
        let scene = self.body.scene();
        let Some(stat) = self.stat().await? else {
            self.observed(None, Access::Read);
            return Err(failure::not_found(&scene.session.cwd()));
        };
        let view = EditView { scene, path: &self.path, there: &stat };
        let answer = edit_intent(view).await.map_err(|defect| self.undecided(&defect))?;
        let wanted = answer.map_err(|fault| self.failed(&fault))?;
        let files = self.body.lease::<dyn Files>()?;
        let file =
            files.read_text(&self.path, LARGEST_FILE, scene.cancel).await.map_err(|fault| self.failed(&fault))?;
        if wanted.is_some_and(|wanted| file.stat.version != wanted) {
            return Err(self.failed(&FileFault::Stale { path: self.shown() }));
        }
        Ok(file)
    }

    /// Writes, and tells the outcome.
    pub(crate) async fn write(&self, text: &str, expected: Expectation) -> Result<Written, ToolFailure> {
        let scene = self.body.scene();
        let files = self.body.lease::<dyn Files>()?;
        let written =
            files.write_text(&self.path, text, expected, scene.cancel).await.map_err(|fault| self.failed(&fault))?;
        self.observed(Some(&written.stat), Access::Write);
        Ok(written)
    }
}

/// What presentation keeps of a change; the texts only while they are small.
#[derive(Serialize)]
struct ChangeMeta<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<&'a str>,
}

/// What of a change is kept in the log.
pub(crate) fn meta(path: &str, old: Option<&str>, new: &str) -> Option<Json> {
    let small = old.map_or(0, str::len) + new.len() <= LARGEST_CARD;
    Json::of(&ChangeMeta { path, old: old.filter(|_| small), new: small.then_some(new) }).ok()
}

/// The card of a finished change: the true former and new text where they were kept, else the model's text.
pub(crate) fn card(content: &[Block], meta: Option<&Json>) -> ResultCard {
    let path = meta.and_then(|meta| meta.str_at("path")).map(PathBuf::from);
    let items = match (meta, &path) {
        (Some(meta), Some(path)) if meta.str_at("new").is_some() => vec![CardItem::Diff {
            path: path.clone(),
            old: meta.str_at("old").map(str::to_owned),
            new: crate::arguments::text_at(meta, "new").to_owned(),
        }],
        _ => vec![CardItem::Text(plain_text(content))],
    };
    let locations = path.map(|path| Location { path, line: None }).into_iter().collect();
    ResultCard { title: None, items, locations }
}

/// What the model reads of an edit.
pub(crate) fn updated(value: &Json) -> Vec<Block> {
    let mut text = format!("The file {} has been updated.", crate::arguments::text_at(value, "filePath"));
    let snippet = value.view().get("structuredPatch").map(snippet).unwrap_or_default();
    if !snippet.is_empty() {
        text.push_str(&format!(" The changed part now reads:\n{snippet}"));
    }
    vec![Block::text(text)]
}

/// The changed lines as they are now, numbered, for the model.
fn snippet(patch: &serde_json::Value) -> String {
    let mut parts = Vec::new();
    let mut left = MOST_SNIPPET_LINES;
    for hunk in patch.as_array().into_iter().flatten() {
        let lines: Vec<&str> = hunk
            .get("lines")
            .and_then(serde_json::Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(serde_json::Value::as_str)
            .filter_map(|line| line.strip_prefix([' ', '+']))
            .collect();
        if left == 0 {
            parts.push("(more changes follow)".to_owned());
            break;
        }
        let first = hunk.get("newStart").and_then(serde_json::Value::as_u64).unwrap_or(1);
        parts.push(numbered(lines.iter().take(left).copied(), first));
        if lines.len() > left {
            parts.push("(more lines follow)".to_owned());
        }
        left = left.saturating_sub(lines.len());
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n...\n")
}

/// The hunks between two texts, without line-end style or byte order mark.
pub(crate) fn patch_between(old: &str, new: &str) -> Vec<Hunk> {
    crate::patch::hunks(&crate::replacement::OpenText::of(old).body, &crate::replacement::OpenText::of(new).body)
}

/// A title such as `Edit /a/b`.
pub(crate) fn title(verb: &str, path: Option<&Path>) -> String {
    format!("{verb} {}", crate::arguments::shown(path))
}
