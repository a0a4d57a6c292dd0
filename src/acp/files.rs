//! The workspace's files as the editor has them: `fs/read_text_file` and `fs/write_text_file` over the files on disk.
//!
//! Lives here: which file is asked of the editor, what a text is when editor and disk differ, and the guarded write
//! through the editor. What is on the disk, and what may be changed there, is for the provider underneath; the requests
//! are in [`ask`]. Invariants: an unsaved buffer is seen and never overwritten unseen, for its text is part of the
//! file's version; and what the provider underneath refuses to change is not changed through the editor either.
//!
//! Asked of the editor are the files of the session's folders. A file whose bytes are no text, one of more than
//! [`LARGEST_BUFFER`] and whatever is no regular file is the disk's alone. A file that is not on the disk is there when
//! the editor has a text for it that is not empty.

mod ask;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{
    Expectation, FileBytes, FileFault, FileKey, FileKind, FileStat, FileText, FileVersion, Files, Written,
};
use sluice_providers::files::{FileLocks, real_path};

use ask::Answer;
pub(super) use ask::Editor;

/// Files larger than this are not asked of the editor, in bytes.
const LARGEST_BUFFER: u64 = 10 * 1024 * 1024;
/// Former texts larger than this are not reported, in bytes.
const LARGEST_BEFORE: u64 = 64 * 1024 * 1024;

/// Which of the two methods the client offers (ACP v1, `clientCapabilities.fs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Abilities {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// The files of one session, through the editor where it can.
pub(super) struct EditorFiles {
    editor: Editor,
    can: Abilities,
    /// The session's folders.
    served: Arc<[PathBuf]>,
    disk: Arc<dyn Files>,
    locks: FileLocks,
    /// The last text that editor and disk had in common, as a hash: an editor that still has it has nothing unsaved.
    common: Mutex<HashMap<FileKey, u64>>,
}

/// Where a file is to be found.
struct Place {
    key: FileKey,
    /// As the editor is asked for it; `None` when it is not the editor's.
    asked: Option<PathBuf>,
}

/// A file as it is at this moment.
struct Look {
    stat: FileStat,
    /// Its text where it was looked at.
    text: Option<String>,
    /// The disk's version beneath a buffer with unsaved changes.
    unsaved_over: Option<FileVersion>,
}

impl EditorFiles {
    /// The files of a session in `folders`, over those on `disk`.
    pub(super) fn new(editor: Editor, can: Abilities, folders: &[PathBuf], disk: Arc<dyn Files>) -> Self {
        Self { editor, can, served: folders.into(), disk, locks: FileLocks::default(), common: Mutex::default() }
    }

    async fn place(&self, path: &Path) -> Result<Place, FileFault> {
        let (owned, served) = (path.to_owned(), Arc::clone(&self.served));
        let placed = tokio::task::spawn_blocking(move || {
            let key = FileKey(real_path(&owned));
            // An editor knows its buffers by the names it gave; a name with `..` is nobody's.
            let plain = !owned.components().any(|part| part == Component::ParentDir);
            let name: PathBuf = if plain { owned.components().collect() } else { key.0.clone() };
            let inside = |folder: &PathBuf| name.starts_with(folder) || key.0.starts_with(real_path(folder));
            let asked = (owned.is_absolute() && served.iter().any(inside)).then_some(name);
            Place { key, asked }
        });
        let interrupted = || "the operation was interrupted inside sluice".to_owned();
        placed.await.map_err(|_| FileFault::Io { path: named(path), why: interrupted() })
    }

    /// What is there now, by disk and editor together; `None` when nothing is.
    async fn look(&self, path: &Path, place: &Place, cancel: &Cancel) -> Result<Option<Look>, FileFault> {
        let on_disk = self.disk.stat(path, cancel).await?;
        let asked = place.asked.as_ref().filter(|_| self.can.read);
        let of_disk = |stat| Ok(Some(Look { stat, text: None, unsaved_over: None }));
        match (on_disk, asked) {
            (None, None) => Ok(None),
            (None, Some(asked)) => Ok(match self.editor.read(asked, cancel).await? {
                Answer::Text(text) if !text.is_empty() => Some(Look {
                    stat: FileStat {
                        key: place.key.clone(),
                        kind: FileKind::File,
                        size: text.len() as u64,
                        version: FileVersion(format!("buffer:{:016x}", hash_of(&text))),
                    },
                    text: Some(text),
                    unsaved_over: None,
                }),
                Answer::Text(_) | Answer::Unknown | Answer::Refused(_) => None,
            }),
            (Some(stat), None) => of_disk(stat),
            (Some(stat), Some(_)) if stat.kind != FileKind::File || stat.size > LARGEST_BUFFER => of_disk(stat),
            (Some(stat), Some(asked)) => match self.disk.read_text(path, LARGEST_BUFFER, cancel).await {
                Ok(file) => match self.editor.read(asked, cancel).await? {
                    Answer::Text(text) => Ok(Some(self.joined(file, text))),
                    Answer::Unknown => Ok(Some(Look { stat: file.stat, text: Some(file.text), unsaved_over: None })),
                    Answer::Refused(fault) => Err(fault),
                },
                Err(FileFault::NotText { .. } | FileFault::TooLarge { .. }) => of_disk(stat),
                Err(FileFault::NotFound { .. }) => Ok(None),
                Err(fault) => Err(fault),
            },
        }
    }

    /// A file on disk of which the editor has a text too.
    fn joined(&self, file: FileText, in_editor: String) -> Look {
        let hash = hash_of(plain(&in_editor).as_ref());
        let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        let FileText { text, stat } = file;
        if plain(&text) == plain(&in_editor) {
            common.insert(stat.key.clone(), hash);
            return Look { stat, text: Some(text), unsaved_over: None };
        }
        if common.get(&stat.key) == Some(&hash) {
            // The disk has changed, and the editor has not noticed yet: it has nothing that would be lost.
            return Look { stat, text: Some(text), unsaved_over: None };
        }
        let in_editor = in_style_of(&text, in_editor);
        let version = FileVersion(format!("{}+buffer:{hash:016x}", stat.version.0));
        let size = in_editor.len() as u64;
        let unsaved_over = Some(stat.version.clone());
        Look { stat: FileStat { size, version, ..stat }, text: Some(in_editor), unsaved_over }
    }

    async fn read(&self, path: &Path, limit: u64, cancel: &Cancel) -> Result<FileText, FileFault> {
        let place = self.place(path).await?;
        let Some(Look { stat, text: Some(text), .. }) = self.look(path, &place, cancel).await? else {
            return self.disk.read_text(path, limit, cancel).await;
        };
        if text.len() as u64 > limit {
            return Err(FileFault::TooLarge { path: named(path), size: text.len() as u64, limit });
        }
        if let Some(at) = text.bytes().position(|b| b == 0) {
            return Err(FileFault::NotText {
                path: named(path),
                why: format!("NUL at byte {at} of the editor's text"),
            });
        }
        Ok(FileText { text, stat })
    }

    async fn write(
        &self,
        path: &Path,
        text: &str,
        expected: Expectation,
        cancel: &Cancel,
    ) -> Result<Written, FileFault> {
        let place = self.place(path).await?;
        let Some(asked) = &place.asked else {
            return self.disk.write_text(path, text, expected, cancel).await;
        };
        if let Some(at) = text.bytes().position(|b| b == 0) {
            return Err(FileFault::NotText { path: named(path), why: format!("NUL at byte {at} of the new text") });
        }
        let Some(_held) = self.locks.hold(&place.key, cancel).await else {
            return Err(FileFault::Aborted { path: named(path) });
        };
        let old = self.look(path, &place, cancel).await?;
        check(path, &expected, old.as_ref().map(|look| &look.stat))?;
        if !self.can.write {
            return self.write_beneath(path, text, expected, old, cancel).await;
        }
        let before = match old {
            Some(Look { text: Some(text), .. }) => Some(text),
            Some(Look { text: None, .. }) => former_text(&*self.disk, path, cancel).await?,
            None => None,
        };
        self.disk.prepare_write(path, cancel).await?;
        self.editor.write(asked, text, cancel).await?;
        // It stands from here on, whatever the signal says; the requests end by themselves.
        let stat = match self.look(path, &place, &Cancel::new()).await {
            Ok(look) => look.map(|look| look.stat),
            Err(_) => self.disk.stat(path, &Cancel::new()).await?,
        };
        let stat = stat.ok_or_else(|| FileFault::Io {
            path: named(path),
            why: "the editor says that it wrote the file, and there is none".to_owned(),
        })?;
        Ok(Written { before, stat })
    }

    /// Writes to the disk what the editor can only read.
    async fn write_beneath(
        &self,
        path: &Path,
        text: &str,
        expected: Expectation,
        old: Option<Look>,
        cancel: &Cancel,
    ) -> Result<Written, FileFault> {
        if old.is_some_and(|look| look.unsaved_over.is_some() || look.stat.version.0.starts_with("buffer:")) {
            let why = "it has unsaved changes in the editor, which cannot be written through it; save the file there \
                       first"
                .to_owned();
            return Err(FileFault::Io { path: named(path), why });
        }
        // Without unsaved changes the version is the disk's own.
        self.disk.write_text(path, text, expected, cancel).await
    }
}

impl Files for EditorFiles {
    fn stat<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<Option<FileStat>, FileFault>> {
        Box::pin(async move {
            let place = self.place(path).await?;
            Ok(self.look(path, &place, cancel).await?.map(|look| look.stat))
        })
    }

    fn read_text<'a>(&'a self, path: &'a Path, limit: u64, cancel: &'a Cancel) -> Fut<'a, Result<FileText, FileFault>> {
        Box::pin(self.read(path, limit, cancel))
    }

    fn read_bytes<'a>(
        &'a self,
        path: &'a Path,
        limit: u64,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<FileBytes, FileFault>> {
        self.disk.read_bytes(path, limit, cancel)
    }

    fn prepare_write<'a>(&'a self, path: &'a Path, cancel: &'a Cancel) -> Fut<'a, Result<(), FileFault>> {
        self.disk.prepare_write(path, cancel)
    }

    fn write_text<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
        expected: Expectation,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Written, FileFault>> {
        Box::pin(self.write(path, text, expected, cancel))
    }
}

/// Checks what is there against what the caller expects.
fn check(path: &Path, expected: &Expectation, there: Option<&FileStat>) -> Result<(), FileFault> {
    if there.is_some_and(|stat| stat.kind != FileKind::File) {
        return Err(FileFault::NotRegular { path: named(path) });
    }
    match (expected, there) {
        (Expectation::Any, _) | (Expectation::Absent, None) => Ok(()),
        (Expectation::Absent, Some(_)) => Err(FileFault::NotObserved { path: named(path) }),
        (Expectation::Version(wanted), Some(stat)) if stat.version == *wanted => Ok(()),
        (Expectation::Version(_), _) => Err(FileFault::Stale { path: named(path) }),
    }
}

async fn former_text(disk: &dyn Files, path: &Path, cancel: &Cancel) -> Result<Option<String>, FileFault> {
    match disk.read_text(path, LARGEST_BEFORE, cancel).await {
        Ok(file) => Ok(Some(file.text)),
        Err(fault @ FileFault::Aborted { .. }) => Err(fault),
        // What cannot be read as text has no former text.
        Err(_) => Ok(None),
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A text without what editors keep apart from it: the byte order mark, and the style of line ends.
fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if body.contains('\r') { body.replace("\r\n", "\n").into() } else { body.into() }
}

/// An editor's text with the byte order mark and the line ends of the file on disk, where the editor left them out.
fn in_style_of(disk: &str, mut text: String) -> String {
    let windows = disk.matches("\r\n").count();
    if windows * 2 > disk.matches('\n').count() && !text.contains("\r\n") {
        text = text.replace('\n', "\r\n");
    }
    if disk.starts_with(BYTE_ORDER_MARK) && !text.starts_with(BYTE_ORDER_MARK) {
        text.insert(0, BYTE_ORDER_MARK);
    }
    text
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn named(path: &Path) -> String {
    path.display().to_string()
}
