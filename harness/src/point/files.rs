//! The points of a file: what must hold before it is written or edited, and who has seen which state of it.
//!
//! [`WriteIntent`] and [`EditIntent`] have one slot: a listener answers or passes on, and the first answer counts. With
//! no answer a change is unconditional. [`Observed`] tells what was seen, after the fact. Who keeps the files is the
//! seam's business ([`Files`](crate::seam::files::Files)), who asks is a tool's.

use std::future::ready;
use std::path::Path;

use super::{ListenerFault, Note, Point, within_grace};
use crate::scene::Scene;
use crate::seam::files::{Expectation, FileFault, FileStat, FileVersion};
use crate::tool::Access;

/// A whole file is about to be written.
pub enum WriteIntent {}

/// A part of a file is about to be changed.
pub enum EditIntent {}

/// What is about to be written.
#[derive(Clone, Copy)]
pub struct WriteView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The file; absolute.
    pub path: &'a Path,
    /// Its state now; `None` when there is none.
    pub there: Option<&'a FileStat>,
}

/// What is about to be edited.
#[derive(Clone, Copy)]
pub struct EditView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The file; absolute.
    pub path: &'a Path,
    /// Its state now.
    pub there: &'a FileStat,
}

/// What the write is to expect, or why there is none.
pub type WriteAnswer = Result<Expectation, FileFault>;

/// In which state the file must be for the edit, `None` for any, or why there is no edit.
pub type EditAnswer = Result<Option<FileVersion>, FileFault>;

impl Point for WriteIntent {
    const NAME: &'static str = "fs/write-intent";
    type View<'a> = WriteView<'a>;
    type Decision = WriteAnswer;
}

impl Point for EditIntent {
    const NAME: &'static str = "fs/edit-intent";
    type View<'a> = EditView<'a>;
    type Decision = EditAnswer;
}

/// Asks what a write is to expect.
///
/// # Errors
/// The defect of a listener; there is to be no write then.
pub async fn write_intent(view: WriteView<'_>) -> Result<WriteAnswer, ListenerFault> {
    let point = view.scene.context.waterfall::<WriteIntent>();
    let asked = point.run(view, || Box::pin(ready(Ok(Ok(Expectation::Any)))));
    within_grace(view.scene.cancel, WriteIntent::NAME, asked).await
}

/// Asks in which state a file must be for an edit.
///
/// # Errors
/// The defect of a listener; there is to be no edit then.
pub async fn edit_intent(view: EditView<'_>) -> Result<EditAnswer, ListenerFault> {
    let point = view.scene.context.waterfall::<EditIntent>();
    let asked = point.run(view, || Box::pin(ready(Ok(Ok(None)))));
    within_grace(view.scene.cancel, EditIntent::NAME, asked).await
}

/// A file was seen, written, or looked for in vain.
pub enum Observed {}

/// What was seen.
#[derive(Clone, Copy)]
pub struct ObservedView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// The file; absolute.
    pub path: &'a Path,
    /// Its state; `None` when there was none.
    pub stat: Option<&'a FileStat>,
    /// Whether it was looked at or written.
    pub access: Access,
}

impl Note for Observed {
    const NAME: &'static str = "fs/observed";
    type Snapshot<'a> = ObservedView<'a>;
}
