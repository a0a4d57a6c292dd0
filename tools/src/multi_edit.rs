//! `MultiEdit`: several replacements in one file, all or nothing.

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
use crate::patch::Hunk;
use crate::replacement::{OpenText, Replacement, Which, replace_each};
use crate::schemas;

/// The tool.
pub struct MultiEdit;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MultiEditValue<'a> {
    file_path: &'a str,
    edits: Json,
    original_file: &'a str,
    structured_patch: Vec<Hunk>,
    user_modified: bool,
}

impl MultiEdit {
    async fn run(body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let input = body.input();
        let change = FileChange::of(body)?;
        let edits = replacements(input);
        let file = change.text().await?;
        let open = OpenText::of(&file.text);
        let after = replace_each(&open.body, &edits).map_err(|(number, fault)| {
            let message = format!("Edit {number} of {}, nothing was changed: {fault}", edits.len());
            ToolFailure::coded(failure::FILE_ERROR, fault.code(), message)
        })?;
        change.write(&open.close(&after), Expectation::Version(file.stat.version.clone())).await?;
        let value = MultiEditValue {
            file_path: text_at(input, "file_path"),
            edits: input.object().and_then(|object| object.get("edits").cloned()).unwrap_or_else(Json::null),
            original_file: &file.text,
            structured_patch: crate::patch::hunks(&open.body, &after),
            user_modified: false,
        };
        Json::of(&value).map_err(|fault| failure::of_value(&fault))
    }
}

fn replacements(input: &Json) -> Vec<Replacement> {
    let edits = input.view().get("edits").and_then(serde_json::Value::as_array);
    edits
        .into_iter()
        .flatten()
        .map(|edit| {
            let text = |key: &str| edit.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
            let all = edit.get("replace_all").and_then(serde_json::Value::as_bool).unwrap_or(false);
            Replacement {
                old: text("old_string"),
                new: text("new_string"),
                which: if all { Which::All } else { Which::TheOnly },
            }
        })
        .collect()
}

/// The edits with `replace_all` filled in, each at its end.
fn filled(edits: &Json) -> Result<Vec<Json>, String> {
    let edits: Vec<Json> = edits.decode().map_err(|why| format!("edits: {why}"))?;
    if edits.is_empty() {
        return Err("edits is empty; give at least one edit".to_owned());
    }
    edits
        .iter()
        .map(|edit| {
            let mut edit = edit.object().ok_or_else(|| "each of edits must be an object".to_owned())?;
            fill(&mut edit, "replace_all", &json!(false))?;
            Ok(edit.to_json())
        })
        .collect()
}

impl Tool for MultiEdit {
    fn name(&self) -> &str {
        "MultiEdit"
    }

    fn description(&self) -> &str {
        "Does several edits in one file that was read in this session, one after another, as Edit does each of them. \
         When one cannot be done, none is."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "The file; absolute, or as the current folder sees it."},
                "edits": {
                    "type": "array",
                    "description": "The edits in order; each sees the text that the one before left.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "old_string": {"type": "string", "description": "The text to replace."},
                            "new_string": {"type": "string", "description": "The text to put in its place."},
                            "replace_all": {"type": "boolean", "description": "Replace every occurrence.", "default": false}
                        },
                        "required": ["old_string", "new_string"]
                    }
                }
            },
            "required": ["file_path", "edits"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "filePath": {"type": "string"},
                "edits": {"type": "array", "items": {"type": "object"}},
                "originalFile": {"type": "string"},
                "structuredPatch": schemas::structured_patch(),
                "userModified": {"type": "boolean"}
            },
            "required": ["filePath", "edits", "originalFile", "structuredPatch"]
        }))
    }

    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        make_absolute(&mut arguments, "file_path", session)?;
        if let Some(edits) = arguments.get("edits") {
            let edits = filled(edits)?;
            arguments.put("edits", &edits).map_err(|fault| format!("edits: {fault}"))?;
        }
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
        let diffs = path.iter().flat_map(|path| {
            replacements(input).into_iter().map(|edit| CardItem::Diff {
                path: path.clone(),
                old: Some(edit.old),
                new: edit.new,
            })
        });
        CallCard {
            title: file_change::title("Edit", path.as_deref()),
            kind: CallKind::Edit,
            items: diffs.collect(),
            locations: path.iter().map(|path| Location { path: path.clone(), line: None }).collect(),
        }
    }

    fn present_result(&self, _input: &Json, content: &[Block], meta: Option<&Json>) -> ResultCard {
        file_change::card(content, meta)
    }

    fn meta(&self, input: &Json, value: &Json) -> Option<Json> {
        let original = text_at(value, "originalFile");
        let open = OpenText::of(original);
        let after = open.close(&replace_each(&open.body, &replacements(input)).ok()?);
        file_change::meta(text_at(value, "filePath"), Some(original), &after)
    }
}
