//! `Write`: sets the whole text of a file, new or seen before.

use serde::Serialize;
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::scene::SessionFacts;
use sluice_harness::tool::{
    Access, BodyView, CallCard, CallFacts, CallKind, CardItem, Content, Effect, Location, ResultCard, Tool, ToolFailure,
};

use crate::arguments::{make_absolute, path_at, schema, text_at};
use crate::failure;
use crate::file_change::{self, FileChange};
use crate::patch::Hunk;
use crate::schemas;

/// How much of the text a call's card shows before the file was looked at.
const SHOWN_OF_NEW_TEXT: usize = 10_000;

/// The tool.
pub struct Write;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteValue<'a> {
    r#type: &'static str,
    file_path: &'a str,
    content: &'a str,
    structured_patch: Vec<Hunk>,
    original_file: Option<String>,
    user_modified: bool,
}

impl Write {
    async fn run(body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let change = FileChange::of(body)?;
        let content = text_at(body.input(), "content");
        let expected = change.expected().await?;
        let written = change.write(content, expected).await?;
        let value = WriteValue {
            r#type: if written.before.is_some() { "update" } else { "create" },
            file_path: text_at(body.input(), "file_path"),
            content,
            structured_patch: written
                .before
                .as_deref()
                .map(|before| file_change::patch_between(before, content))
                .unwrap_or_default(),
            original_file: written.before,
            user_modified: false,
        };
        Json::of(&value).map_err(|fault| failure::of_value(&fault))
    }
}

impl Tool for Write {
    fn name(&self) -> &str {
        "Write"
    }

    fn description(&self) -> &str {
        "Writes a whole file, making missing folders. An existing file must have been read in this session and must \
         not have changed since. To change a part of a file use Edit."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "The file; absolute, or as the current folder sees it."},
                "content": {"type": "string", "description": "The file's whole new text."}
            },
            "required": ["file_path", "content"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["create", "update"]},
                "filePath": {"type": "string"},
                "content": {"type": "string"},
                "structuredPatch": schemas::structured_patch(),
                "originalFile": schemas::text_or_null(),
                "userModified": {"type": "boolean"}
            },
            "required": ["type", "filePath", "content", "structuredPatch", "originalFile"]
        }))
    }

    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        make_absolute(&mut arguments, "file_path", session)?;
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
        let done = if text_at(value, "type") == "create" { "created" } else { "replaced" };
        vec![Block::text(format!("The file {} has been {done}.", text_at(value, "filePath")))]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let path = path_at(input, "file_path");
        let content = text_at(input, "content");
        // Whether there is a former text is not known yet, so this is no diff.
        let shown = match content.char_indices().nth(SHOWN_OF_NEW_TEXT) {
            Some((at, _)) => format!("{}\n[…]", content.get(..at).unwrap_or(content)),
            None => content.to_owned(),
        };
        CallCard {
            title: file_change::title("Write", path.as_deref()),
            kind: CallKind::Edit,
            items: vec![CardItem::Text(shown)],
            locations: path.map(|path| Location { path, line: None }).into_iter().collect(),
        }
    }

    fn present_result(&self, _input: &Json, content: &[Block], meta: Option<&Json>) -> ResultCard {
        file_change::card(content, meta)
    }

    fn meta(&self, _input: &Json, value: &Json) -> Option<Json> {
        file_change::meta(text_at(value, "filePath"), value.str_at("originalFile"), text_at(value, "content"))
    }
}
