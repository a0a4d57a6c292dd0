//! `Edit`: replaces one text in a file that the session has read.

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

use crate::arguments::{fill, flag_at, make_absolute, path_at, schema, text_at};
use crate::failure;
use crate::file_change::{self, FileChange};
use crate::patch::Hunk;
use crate::replacement::{OpenText, Replacement, Which, replace};
use crate::schemas;

/// The tool.
pub struct Edit;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EditValue<'a> {
    file_path: &'a str,
    old_string: &'a str,
    new_string: &'a str,
    original_file: &'a str,
    structured_patch: Vec<Hunk>,
    user_modified: bool,
    replace_all: bool,
}

impl Edit {
    async fn run(body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let input = body.input();
        let change = FileChange::of(body)?;
        let file = change.text().await?;
        let open = OpenText::of(&file.text);
        let after = replace(&open.body, &replacement(input))
            .map_err(|fault| ToolFailure::coded(failure::FILE_ERROR, fault.code(), fault.to_string()))?;
        change.write(&open.close(&after), Expectation::Version(file.stat.version.clone())).await?;
        let value = EditValue {
            file_path: text_at(input, "file_path"),
            old_string: text_at(input, "old_string"),
            new_string: text_at(input, "new_string"),
            original_file: &file.text,
            structured_patch: crate::patch::hunks(&open.body, &after),
            user_modified: false,
            replace_all: flag_at(input, "replace_all"),
        };
        Json::of(&value).map_err(|fault| failure::of_value(&fault))
    }
}

fn replacement(input: &Json) -> Replacement {
    Replacement {
        old: text_at(input, "old_string").to_owned(),
        new: text_at(input, "new_string").to_owned(),
        which: if flag_at(input, "replace_all") { Which::All } else { Which::TheOnly },
    }
}

impl Tool for Edit {
    fn name(&self) -> &str {
        "Edit"
    }

    fn description(&self) -> &str {
        "Replaces `old_string` by `new_string` in a file that was read in this session. `old_string` must match the \
         file's text exactly, without the line numbers that Read shows, and must occur once, unless `replace_all` is \
         true."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "The file; absolute, or as the current folder sees it."},
                "old_string": {"type": "string", "description": "The text to replace."},
                "new_string": {"type": "string", "description": "The text to put in its place; not the same."},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence.", "default": false}
            },
            "required": ["file_path", "old_string", "new_string"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "filePath": {"type": "string"},
                "oldString": {"type": "string"},
                "newString": {"type": "string"},
                "originalFile": {"type": "string"},
                "structuredPatch": schemas::structured_patch(),
                "userModified": {"type": "boolean"},
                "replaceAll": {"type": "boolean"}
            },
            "required": ["filePath", "oldString", "newString", "originalFile", "structuredPatch"]
        }))
    }

    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        make_absolute(&mut arguments, "file_path", session)?;
        fill(&mut arguments, "replace_all", &json!(false))?;
        Ok(arguments)
    }

    fn facts(&self, input: &Json) -> CallFacts {
        CallFacts {
            paths: path_at(input, "file_path").map(|path| (path, Access::Write)).into_iter().collect(),
            effect: Effect::Edits,
            ..CallFacts::default()
        }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { Self::run(&body).await })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        file_change::updated(value)
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let path = path_at(input, "file_path");
        let diff = path.clone().map(|path| CardItem::Diff {
            path,
            old: Some(text_at(input, "old_string").to_owned()),
            new: text_at(input, "new_string").to_owned(),
        });
        CallCard {
            title: file_change::title("Edit", path.as_deref()),
            kind: CallKind::Edit,
            items: diff.into_iter().collect(),
            locations: path.map(|path| Location { path, line: None }).into_iter().collect(),
        }
    }

    fn present_result(&self, _input: &Json, content: &[Block], meta: Option<&Json>) -> ResultCard {
        file_change::card(content, meta)
    }

    fn meta(&self, input: &Json, value: &Json) -> Option<Json> {
        let original = text_at(value, "originalFile");
        let open = OpenText::of(original);
        let after = open.close(&replace(&open.body, &replacement(input)).ok()?);
        file_change::meta(text_at(value, "filePath"), Some(original), &after)
    }
}
