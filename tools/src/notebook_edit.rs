//! `NotebookEdit`: replaces, inserts or deletes one cell of a Jupyter notebook that the session has read.
//!
//! The notebook's text is changed where the cell stands and nowhere else ([`splice`](crate::notebook::splice)); the
//! look before the change and the guarded write are those of every other edit.

use serde::Serialize;
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::files::Expectation;
use sluice_harness::tool::{
    Access, BodyView, CallCard, CallFacts, CallKind, CardItem, Content, Effect, Location, ResultCard, Tool, ToolFailure,
};

use crate::arguments::{fill, make_absolute, path_at, schema, text_at};
use crate::failure;
use crate::file_change::{self, FileChange};
use crate::notebook::splice::{CellKind, Change, SpliceFault, splice};
use crate::replacement::OpenText;

const PATH: &str = "notebook_path";

/// The tool.
pub struct NotebookEdit;

#[derive(Serialize)]
struct NotebookEditValue<'a> {
    new_source: &'a str,
    cell_id: &'a str,
    cell_type: &'a str,
    language: &'a str,
    edit_mode: &'a str,
    notebook_path: &'a str,
    original_file: &'a str,
    updated_file: &'a str,
}

impl NotebookEdit {
    async fn run(body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let input = body.input();
        let change = FileChange::at(body, PATH)?;
        let wanted = wanted(input)?;
        let file = change.text().await?;
        let open = OpenText::of(&file.text);
        let spliced = splice(&open.body, &wanted).map_err(|fault| {
            let code = match fault {
                SpliceFault::Notebook(_) | SpliceFault::OddCell => "NOTEBOOK_INVALID",
                SpliceFault::NoCell { .. } => "NOTEBOOK_NO_CELL",
            };
            let message = format!("The notebook {} was not changed: {fault}.", text_at(input, PATH));
            ToolFailure::coded(failure::FILE_ERROR, code, message)
        })?;
        let updated = open.close(&spliced.text);
        change.write(&updated, Expectation::Version(file.stat.version.clone())).await?;
        let value = NotebookEditValue {
            new_source: text_at(input, "new_source"),
            cell_id: &spliced.cell_id,
            cell_type: &spliced.kind,
            language: &spliced.language,
            edit_mode: text_at(input, "edit_mode"),
            notebook_path: text_at(input, PATH),
            original_file: &file.text,
            updated_file: &updated,
        };
        Json::of(&value).map_err(|fault| failure::of_value(&fault))
    }
}

/// The change that the input asks for.
fn wanted(input: &Json) -> Result<Change<'_>, ToolFailure> {
    let source = text_at(input, "new_source");
    let cell = input.str_at("cell_id").filter(|id| !id.is_empty());
    let kind = input.str_at("cell_type").and_then(CellKind::named);
    let missing = |what: &str, code: &str, remedy: &str| {
        let message = format!("edit_mode {} needs {what}; {remedy}", text_at(input, "edit_mode"));
        ToolFailure::coded(failure::FILE_ERROR, code, message)
    };
    let no_cell = || missing("cell_id", "NOTEBOOK_NO_CELL", "Read shows the cells");
    let no_kind = || missing("cell_type", "NOTEBOOK_NO_CELL_TYPE", "give code, markdown or raw");
    match text_at(input, "edit_mode") {
        "insert" => {
            let kind = kind.ok_or_else(no_kind)?;
            Ok(Change::Insert { after: cell, source, kind })
        }
        "delete" => Ok(Change::Delete { cell: cell.ok_or_else(no_cell)? }),
        _ => Ok(Change::Replace { cell: cell.ok_or_else(no_cell)?, source, kind }),
    }
}

impl Tool for NotebookEdit {
    fn name(&self) -> &str {
        "NotebookEdit"
    }

    fn description(&self) -> &str {
        "Changes one cell of a Jupyter notebook that was read in this session: replaces its source, inserts a new cell \
         after it (or first, without cell_id), or deletes it. Replacing a code cell's source clears its outputs."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "notebook_path": {
                    "type": "string",
                    "description": "The notebook; absolute, or as the current folder sees it."
                },
                "cell_id": {"type": "string", "description": "The cell, by the id that Read shows."},
                "new_source": {"type": "string", "description": "The cell's new source; empty for delete."},
                "cell_type": {
                    "type": "string",
                    "enum": ["code", "markdown", "raw"],
                    "description": "The cell's kind; needed for insert, and kept by replace when it is absent."
                },
                "edit_mode": {"type": "string", "enum": ["replace", "insert", "delete"], "default": "replace"}
            },
            "required": ["notebook_path", "new_source"]
        }))
    }

    fn output(&self) -> Json {
        let text = json!({"type": "string"});
        schema(&json!({
            "type": "object",
            "properties": {
                "new_source": text, "cell_id": text, "cell_type": text, "language": text, "edit_mode": text,
                "notebook_path": text, "original_file": text, "updated_file": text
            },
            "required": [
                "new_source", "cell_id", "cell_type", "language", "edit_mode", "notebook_path", "original_file",
                "updated_file"
            ]
        }))
    }

    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        make_absolute(&mut arguments, PATH, session)?;
        fill(&mut arguments, "edit_mode", &json!("replace"))?;
        Ok(arguments)
    }

    fn facts(&self, input: &Json) -> CallFacts {
        CallFacts {
            paths: path_at(input, PATH).map(|path| (path, Access::Write)).into_iter().collect(),
            effect: Effect::Edits,
            ..CallFacts::default()
        }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { Self::run(&body).await })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        let done = match text_at(value, "edit_mode") {
            "insert" => "inserted into",
            "delete" => "deleted from",
            _ => "replaced in",
        };
        let (kind, cell, path) = (text_at(value, "cell_type"), text_at(value, "cell_id"), text_at(value, PATH));
        vec![Block::text(format!("The {kind} cell {cell} has been {done} {path}."))]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let path = path_at(input, PATH);
        CallCard {
            title: file_change::title("Edit", path.as_deref()),
            kind: CallKind::Edit,
            items: vec![CardItem::Text(text_at(input, "new_source").to_owned())],
            locations: path.map(|path| Location { path, line: None }).into_iter().collect(),
        }
    }

    fn present_result(&self, _input: &Json, content: &[Block], meta: Option<&Json>) -> ResultCard {
        file_change::card(content, meta)
    }

    fn meta(&self, _input: &Json, value: &Json) -> Option<Json> {
        file_change::meta(text_at(value, PATH), value.str_at("original_file"), text_at(value, "updated_file"))
    }
}
