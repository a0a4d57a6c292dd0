//! `Read`: a window of a text file by lines, of a notebook by cells, or an image.
//!
//! Images are told by their bytes ([`image`]), notebooks by their name and content ([`cells`]). A text's value is Claude
//! Code's; its `content` is the file's own text but for a byte order mark and overlong lines. A
//! text is counted by its line ends, so one that ends with a newline has an empty last line (as captured). Reading
//! is told to whoever keeps what the session has seen.

mod cells;
mod image;

use serde::Serialize;
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::point::files::{Observed, ObservedView};
use sluice_harness::scene::{Scene, SessionFacts};
use sluice_harness::seam::files::{FileFault, FileKind, FileStat, Files};
use sluice_harness::tool::{
    Access, BodyView, CallCard, CallFacts, CallKind, Concurrency, Content, Effect, Location, Tool, ToolFailure,
};
use std::path::Path;

use crate::arguments::{check_whole, make_absolute, path_at, schema, shown, text_at, whole_at};
use crate::failure;

/// The largest file that is read at all, in bytes.
pub(crate) const LARGEST_FILE: u64 = 10 * 1024 * 1024;
const MOST_LINES: usize = 2000;
const LONGEST_LINE: usize = 2000;
const MOST_BYTES: usize = 51_200;

/// The tool.
pub struct Read;

#[derive(Serialize)]
struct ReadValue<F> {
    r#type: &'static str,
    file: F,
}

impl<F: Serialize> ReadValue<F> {
    fn json(r#type: &'static str, file: F) -> Result<Json, ToolFailure> {
        Json::of(&Self { r#type, file }).map_err(|fault| failure::of_value(&fault))
    }
}

/// What is shown of a file.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct FileWindow {
    file_path: String,
    content: String,
    num_lines: usize,
    start_line: usize,
    total_lines: usize,
}

impl Read {
    async fn run(body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let scene = body.scene();
        let cwd = scene.session.cwd();
        let path = path_at(body.input(), "file_path").ok_or_else(|| ToolFailure::new("file_path is missing"))?;
        let files = body.lease::<dyn Files>()?;
        match files.stat(&path, scene.cancel).await.map_err(|fault| failure::of_file(&fault, &cwd))? {
            None => {
                observed(scene, &path, None);
                return Err(failure::not_found(&cwd));
            }
            Some(stat) if stat.kind != FileKind::File => return Err(failure::not_a_file(&path, &stat)),
            Some(_) => {}
        }
        let file = match files.read_text(&path, LARGEST_FILE, scene.cancel).await {
            Ok(file) => file,
            Err(fault @ FileFault::NotText { .. }) => {
                let file = match files.read_bytes(&path, image::LARGEST_IMAGE, scene.cancel).await {
                    Ok(file) => file,
                    Err(too_large @ FileFault::TooLarge { .. }) if image::may_be_one(&path) => {
                        return Err(failure::of_large_image(&too_large));
                    }
                    Err(_) => return Err(failure::of_file(&fault, &cwd)),
                };
                let image = image::image(&file.bytes).ok_or_else(|| failure::of_file(&fault, &cwd))?;
                observed(scene, &path, Some(&file.stat));
                return ReadValue::json("image", image);
            }
            Err(FileFault::TooLarge { path: shown, size, .. }) if image::may_be_one(&path) => {
                let fault = FileFault::TooLarge { path: shown, size, limit: image::LARGEST_IMAGE };
                return Err(failure::of_large_image(&fault));
            }
            Err(fault) => {
                if matches!(fault, FileFault::NotFound { .. }) {
                    observed(scene, &path, None);
                }
                return Err(failure::of_file(&fault, &cwd));
            }
        };
        let offset = usize::try_from(whole_at(body.input(), "offset").unwrap_or(1)).unwrap_or(usize::MAX).max(1);
        let limit = usize::try_from(whole_at(body.input(), "limit").unwrap_or(MOST_LINES as u64)).unwrap_or(MOST_LINES);
        let name = text_at(body.input(), "file_path");
        // A notebook that cannot be read as one is shown as the text that it is.
        let notebook = is_notebook(&path).then(|| crate::notebook::cells(file.text.trim_start_matches('\u{feff}')));
        let value = match notebook {
            Some(Ok(all)) => ReadValue::json("notebook", cells::window(name, all, offset, limit)?)?,
            Some(Err(_)) | None => ReadValue::json("text", window(name, &file.text, offset, limit)?)?,
        };
        observed(scene, &path, Some(&file.stat));
        Ok(value)
    }
}

/// Tells what this session has seen.
fn observed(scene: Scene<'_>, path: &Path, stat: Option<&FileStat>) {
    scene.context.notify::<Observed>(&ObservedView { scene, path, stat, access: Access::Read });
}

fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

fn window(path: &str, text: &str, offset: usize, limit: usize) -> Result<FileWindow, ToolFailure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let total_lines = text.split('\n').count();
    if offset > total_lines {
        let message =
            format!("line {offset} is past the end of {path}, which has {total_lines} lines; give a lower offset");
        return Err(ToolFailure::coded(failure::FILE_ERROR, "FS_NOT_FOUND", message));
    }
    let mut content = String::new();
    let mut num_lines = 0;
    for line in text.split('\n').skip(offset - 1).take(limit.clamp(1, MOST_LINES)) {
        let line = cut(line);
        if num_lines > 0 {
            if content.len() + line.len() >= MOST_BYTES {
                break;
            }
            content.push('\n');
        }
        content.push_str(&line);
        num_lines += 1;
    }
    Ok(FileWindow { file_path: path.to_owned(), content, num_lines, start_line: offset, total_lines })
}

fn cut(line: &str) -> std::borrow::Cow<'_, str> {
    match line.char_indices().nth(LONGEST_LINE) {
        None => line.into(),
        Some((at, _)) => {
            let length = line.chars().count();
            format!("{} [… line of {length} characters cut]", line.get(..at).unwrap_or(line)).into()
        }
    }
}

/// Lines with their numbers, as `cat -n` shows them.
pub(crate) fn numbered<'a>(lines: impl IntoIterator<Item = &'a str>, first: u64) -> String {
    let numbered: Vec<String> =
        lines.into_iter().zip(first..).map(|(line, number)| format!("{number:>6}\t{line}")).collect();
    numbered.join("\n")
}

impl Tool for Read {
    fn name(&self) -> &str {
        "Read"
    }

    fn description(&self) -> &str {
        "Reads a text file and returns its lines, each after its number and a tab. Shows up to 2000 lines from the \
         start, or from line `offset` (counted from 1), and at most `limit` of them. Lines over 2000 characters are \
         cut. Shows images (PNG, JPEG, GIF, WebP), and Jupyter notebooks as cells with their outputs, where `offset` \
         and `limit` count cells. A file must be read before Edit, MultiEdit, NotebookEdit or Write may change it."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "The file; absolute, or as the current folder sees it."},
                "offset": {"type": "number", "description": "The first line to show, from 1."},
                "limit": {"type": "number", "description": "How many lines to show, at most 2000."}
            },
            "required": ["file_path"]
        }))
    }

    fn output(&self) -> Json {
        let value = |kind: &str, file: serde_json::Value| {
            json!({
                "type": "object",
                "properties": {"type": {"type": "string", "const": kind}, "file": file},
                "required": ["type", "file"]
            })
        };
        let text = json!({
            "type": "object",
            "properties": {
                "filePath": {"type": "string"},
                "content": {"type": "string"},
                "numLines": {"type": "integer"},
                "startLine": {"type": "integer"},
                "totalLines": {"type": "integer"}
            },
            "required": ["filePath", "content", "numLines", "startLine", "totalLines"]
        });
        let image = json!({
            "type": "object",
            "properties": {
                "base64": {"type": "string"},
                "type": {"type": "string"},
                "originalSize": {"type": "integer"}
            },
            "required": ["base64", "type", "originalSize"]
        });
        let alternatives = [value("text", text), value("image", image), value("notebook", cells::schema())];
        schema(&json!({ "oneOf": alternatives }))
    }

    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        make_absolute(&mut arguments, "file_path", session)?;
        check_whole(&arguments, "offset", 0)?;
        check_whole(&arguments, "limit", 1)?;
        Ok(arguments)
    }

    fn concurrency(&self, _input: &Json) -> Concurrency {
        Concurrency::Parallel
    }

    fn facts(&self, input: &Json) -> CallFacts {
        CallFacts {
            paths: path_at(input, "file_path").map(|path| (path, Access::Read)).into_iter().collect(),
            effect: Effect::Reads,
            ..CallFacts::default()
        }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { Self::run(&body).await })
    }

    fn render(&self, input: &Json, value: &Json) -> Content {
        let file = value.view().get("file");
        match text_at(value, "type") {
            "image" => return image::render(text_at(input, "file_path"), file),
            "notebook" => return cells::render(file),
            _ => {}
        }
        let number = |key: &str| file.and_then(|f| f.get(key)).and_then(serde_json::Value::as_u64).unwrap_or(0);
        let content = file.and_then(|f| f.get("content")).and_then(serde_json::Value::as_str).unwrap_or_default();
        let (first, total) = (number("startLine").max(1), number("totalLines"));
        let last = (first + number("numLines")).saturating_sub(1);
        if content.is_empty() && total <= 1 {
            return vec![Block::text("(the file exists and is empty)")];
        }
        let ends_the_file = last >= total;
        let lines = if ends_the_file { content.strip_suffix('\n').unwrap_or(content) } else { content };
        let mut text = numbered(lines.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)), first);
        if !ends_the_file {
            text.push_str(&format!("\n\n(lines {first} to {last} of {total}; read on with offset {})", last + 1));
        }
        vec![Block::text(text)]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let path = path_at(input, "file_path");
        let line = whole_at(input, "offset").filter(|line| *line > 0);
        CallCard {
            title: format!("Read {}", shown(path.as_deref())),
            kind: CallKind::Read,
            items: Vec::new(),
            locations: path.map(|path| Location { path, line }).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn lines(count: usize) -> String {
        (1..=count).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn lines_are_counted_as_captured_from_the_reference() {
        let whole = window("/w", "one\ntwo\n", 1, 2000).unwrap();
        assert_eq!((whole.content.as_str(), whole.num_lines, whole.total_lines), ("one\ntwo\n", 3, 3));
        let empty = window("/w", "", 1, 2000).unwrap();
        assert_eq!((empty.content.as_str(), empty.num_lines, empty.total_lines), ("", 1, 1));
    }

    #[test]
    fn r_460_the_limits_hold_at_n_and_n_plus_one() {
        assert_eq!(window("/w", lines(1999).as_str(), 1, 2000).unwrap().num_lines, 2000);
        assert_eq!(window("/w", lines(2000).as_str(), 1, 9000).unwrap().num_lines, 2000);
        assert_eq!(window("/w", &"é".repeat(2000), 1, 1).unwrap().content, "é".repeat(2000));
        let cut = window("/w", &"é".repeat(2001), 1, 1).unwrap().content;
        assert!(cut.starts_with(&"é".repeat(2000)) && cut.ends_with("é [… line of 2001 characters cut]"));
        let wide = format!("{}\n", "x".repeat(1023)).repeat(60);
        assert_eq!(window("/w", &wide, 1, 2000).unwrap().num_lines, 50);
    }

    #[test]
    fn r_460_an_offset_past_the_end_is_not_found() {
        assert_eq!(window("/w", "a\nb", 2, 10).unwrap().content, "b");
        let failure = window("/w", "a\nb", 3, 10).unwrap_err();
        assert_eq!(failure.info.unwrap().code, "FS_NOT_FOUND");
    }
}
