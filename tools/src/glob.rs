//! `Glob`: finds files by name, newest first.

use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::search::{GlobQuery, Search};
use sluice_harness::tool::{
    Access, BodyView, CallCard, CallFacts, CallKind, Concurrency, Content, Effect, Location, Tool, ToolFailure,
};
use tokio::time::Instant;

use crate::arguments::{flag_at, make_absolute, one_line, path_at, schema, text_at};
use crate::failure;
use crate::hidden::Hidden;

const MOST_FILES: usize = 100;
const BUDGET: Duration = Duration::from_secs(30);

/// The tool.
#[derive(Debug, Default)]
pub struct Glob;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GlobValue {
    duration_ms: u64,
    num_files: usize,
    filenames: Vec<String>,
    truncated: bool,
}

impl Glob {
    async fn run(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let scene = body.scene();
        let started = Instant::now();
        let query = GlobQuery {
            pattern: text_at(body.input(), "pattern").to_owned(),
            root: path_at(body.input(), "path").unwrap_or_else(|| scene.session.cwd()),
            limit: MOST_FILES,
        };
        let hidden = Hidden::from(scene.session);
        let hits = body
            .lease::<dyn Search>()?
            .glob(query, scene.cancel)
            .await
            .map_err(|fault| failure::of_search(&fault, "A literal `[`, `{`, `*` or `?` is put in brackets."))?;
        let shown = hits.files.iter().filter(|file| !hidden.hides(file));
        let filenames: Vec<String> = shown.map(|file| file.display().to_string()).collect();
        let value = GlobValue {
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            num_files: filenames.len(),
            filenames,
            truncated: hits.truncated,
        };
        Json::of(&value).map_err(|fault| failure::of_value(&fault))
    }
}

/// The texts of a list member.
pub(crate) fn texts<'a>(value: &'a Json, key: &str) -> Vec<&'a str> {
    let list = value.view().get(key).and_then(serde_json::Value::as_array);
    list.into_iter().flatten().filter_map(serde_json::Value::as_str).collect()
}

impl Tool for Glob {
    fn name(&self) -> &str {
        "Glob"
    }

    fn description(&self) -> &str {
        "Finds files whose path fits a glob such as `src/**/*.rs`, newest first, at most 100. Hidden and ignored files \
         are included, version-control folders are not."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The glob; `**` crosses folders."},
                "path": {"type": "string", "description": "The folder to look in; the current one unless given."}
            },
            "required": ["pattern"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "durationMs": {"type": "number"},
                "numFiles": {"type": "integer"},
                "filenames": {"type": "array", "items": {"type": "string"}},
                "truncated": {"type": "boolean"}
            },
            "required": ["numFiles", "filenames", "truncated"]
        }))
    }

    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        make_absolute(&mut arguments, "path", session)?;
        Ok(arguments)
    }

    fn concurrency(&self, _input: &Json) -> Concurrency {
        Concurrency::Parallel
    }

    fn timeout(&self) -> Option<Duration> {
        Some(BUDGET)
    }

    fn facts(&self, input: &Json) -> CallFacts {
        CallFacts {
            paths: path_at(input, "path").map(|path| (path, Access::Read)).into_iter().collect(),
            effect: Effect::Reads,
            ..CallFacts::default()
        }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { self.run(&body).await })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        let files = texts(value, "filenames");
        if files.is_empty() {
            return vec![Block::text("No files found")];
        }
        let mut text = files.join("\n");
        if flag_at(value, "truncated") {
            text.push_str(&format!(
                "\n\n(only the first {} files are shown; narrow the pattern or the path)",
                files.len()
            ));
        }
        vec![Block::text(text)]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        CallCard {
            title: format!("Find {}", one_line(text_at(input, "pattern"))),
            kind: CallKind::Search,
            items: Vec::new(),
            locations: path_at(input, "path").map(|path| Location { path, line: None }).into_iter().collect(),
        }
    }
}
