//! `Grep`: finds lines by pattern, and shows the lines, the files or their counts.
//!
//! The search seam answers with lines alone; what the three output modes make of them is `answer`, which is pure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::search::{GrepHits, GrepQuery, LetterCase, LineMode, Search};
use sluice_harness::tool::{
    Access, BodyView, CallCard, CallFacts, CallKind, Concurrency, Content, Effect, Location, Tool, ToolFailure,
};

use crate::arguments::{check_whole, flag_at, make_absolute, one_line, path_at, schema, text_at, whole_at};
use crate::failure;
use crate::glob::texts;
use crate::hidden::Hidden;

const DEFAULT_SHOWN: usize = 250;
/// How many lines are looked at where only files or counts are shown, or everything is asked for.
const MOST_LINES: usize = 50_000;
const LONGEST_LINE: usize = 2000;
const BUDGET: Duration = Duration::from_secs(30);

/// The tool.
#[derive(Debug, Default)]
pub struct Grep;

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Content,
    Files,
    Count,
}

impl Mode {
    fn of(input: &Json) -> Self {
        match text_at(input, "output_mode") {
            "content" => Self::Content,
            "count" => Self::Count,
            _ => Self::Files,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Files => "files_with_matches",
            Self::Count => "count",
        }
    }
}

/// Whether shown lines bear their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    Shown,
    Left,
}

/// The value; Claude Code's members.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GrepValue {
    mode: &'static str,
    num_files: usize,
    filenames: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_lines: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_matches: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_limit: Option<usize>,
}

impl Grep {
    async fn run(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let scene = body.scene();
        let input = body.input();
        let mode = Mode::of(input);
        let shown = match whole_at(input, "head_limit") {
            None => DEFAULT_SHOWN,
            Some(0) => MOST_LINES,
            Some(limit) => usize::try_from(limit).unwrap_or(MOST_LINES).min(MOST_LINES),
        };
        let around = |key: &str| {
            let lines = whole_at(input, key).or_else(|| whole_at(input, "-C")).unwrap_or(0);
            if mode == Mode::Content { usize::try_from(lines).unwrap_or(MOST_LINES).min(MOST_LINES) } else { 0 }
        };
        let query = GrepQuery {
            pattern: text_at(input, "pattern").to_owned(),
            root: path_at(input, "path").unwrap_or_else(|| scene.session.cwd()),
            glob: input.str_at("glob").map(str::to_owned),
            file_type: input.str_at("type").map(str::to_owned),
            case: if flag_at(input, "-i") { LetterCase::Insensitive } else { LetterCase::Sensitive },
            lines: if flag_at(input, "multiline") { LineMode::Multi } else { LineMode::Single },
            before: around("-B"),
            after: around("-A"),
            limit: if mode == Mode::Content { shown } else { MOST_LINES },
        };
        let mut hits =
            body.lease::<dyn Search>()?.grep(query, scene.cancel).await.map_err(|fault| {
                failure::of_search(&fault, "A literal `(`, `[`, `{` or `.` is escaped by a backslash.")
            })?;
        leave_out_hidden(&mut hits, &Hidden::from(scene.session));
        let unnumbered = input.view().get("-n").and_then(serde_json::Value::as_bool) == Some(false);
        let numbers = if unnumbered { Numbers::Left } else { Numbers::Shown };
        Json::of(&answer(&hits, mode, numbers, shown)).map_err(|fault| failure::of_value(&fault))
    }
}

/// Lines of one file follow each other, so each file is judged once.
fn leave_out_hidden(hits: &mut GrepHits, hidden: &Hidden<'_>) {
    let mut last: Option<(PathBuf, bool)> = None;
    hits.lines.retain(|line| {
        let hides = match &last {
            Some((path, hides)) if *path == line.path => *hides,
            Some(_) | None => {
                let hides = hidden.hides(&line.path);
                last = Some((line.path.clone(), hides));
                hides
            }
        };
        !hides
    });
}

fn answer(hits: &GrepHits, mode: Mode, numbers: Numbers, shown: usize) -> GrepValue {
    // Files come one after another, so a run of lines of one path is one file.
    let mut files: Vec<(&Path, usize)> = Vec::new();
    for line in &hits.lines {
        let matches = usize::from(line.is_match);
        match files.last_mut() {
            Some((path, count)) if *path == line.path => *count += matches,
            Some(_) | None => files.push((&line.path, matches)),
        }
    }
    let name = |path: &Path| path.display().to_string();
    let total = files.len();
    let mut value = GrepValue {
        mode: mode.name(),
        num_files: total,
        filenames: Vec::new(),
        content: None,
        num_lines: None,
        num_matches: None,
        applied_limit: (hits.truncated || (mode != Mode::Content && total > shown)).then_some(shown),
    };
    match mode {
        Mode::Content => {
            value.filenames = files.iter().map(|(path, _)| name(path)).collect();
            value.num_lines = Some(hits.lines.len());
            value.content = Some(shown_lines(hits, numbers));
        }
        Mode::Files => {
            value.filenames = files.iter().take(shown).map(|(path, _)| name(path)).collect();
            value.num_files = value.filenames.len();
        }
        Mode::Count => {
            let counts: Vec<String> =
                files.iter().take(shown).map(|(path, count)| format!("{}:{count}", path.display())).collect();
            value.filenames = files.iter().take(shown).map(|(path, _)| name(path)).collect();
            value.num_files = counts.len();
            value.content = Some(counts.join("\n"));
            value.num_matches = Some(files.iter().map(|(_, count)| count).sum());
        }
    }
    value
}

/// Lines as grep shows them: `path:number:text` for a match, dashes for context, `--` between separate runs.
fn shown_lines(hits: &GrepHits, numbers: Numbers) -> String {
    let has_context = hits.lines.iter().any(|line| !line.is_match);
    let mut out: Vec<String> = Vec::new();
    let mut before: Option<(&PathBuf, u64)> = None;
    for line in &hits.lines {
        let follows = before.is_some_and(|(path, number)| *path == line.path && number + 1 == line.number);
        if has_context && before.is_some() && !follows {
            out.push("--".to_owned());
        }
        before = Some((&line.path, line.number));
        let mark = if line.is_match { ':' } else { '-' };
        let number = match numbers {
            Numbers::Shown => format!("{}{mark}", line.number),
            Numbers::Left => String::new(),
        };
        let text = match line.text.char_indices().nth(LONGEST_LINE) {
            Some((at, _)) => format!("{} [… line cut]", line.text.get(..at).unwrap_or(&line.text)),
            None => line.text.clone(),
        };
        out.push(format!("{}{mark}{number}{text}", line.path.display()));
    }
    out.join("\n")
}

impl Tool for Grep {
    fn name(&self) -> &str {
        "Grep"
    }

    fn description(&self) -> &str {
        "Searches files for a regular expression. Shows the files that have a match unless `output_mode` asks for the \
         lines (`content`) or their number in each file (`count`). Ignore files are honoured, hidden files searched. \
         At most `head_limit` lines or files are shown, 250 unless given, 0 for all."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression; a literal `(` or `.` is escaped by a backslash."},
                "path": {"type": "string", "description": "A file or folder; the current folder unless given."},
                "glob": {"type": "string", "description": "Only files that fit this glob, such as `*.rs`."},
                "type": {"type": "string", "description": "Only files of this type, such as `rust` or `py`."},
                "output_mode": {
                    "type": "string",
                    "enum": ["content", "files_with_matches", "count"],
                    "default": "files_with_matches"
                },
                "-i": {"type": "boolean", "description": "Ignore letter case."},
                "-n": {"type": "boolean", "description": "Show line numbers; true unless given."},
                "-A": {"type": "number", "description": "Lines to show after each match."},
                "-B": {"type": "number", "description": "Lines to show before each match."},
                "-C": {"type": "number", "description": "Lines to show around each match."},
                "multiline": {"type": "boolean", "description": "Let the pattern and `.` span lines."},
                "head_limit": {"type": "number", "description": "How many lines or files to show; 0 for all.", "default": 250}
            },
            "required": ["pattern"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "mode": {"type": "string"},
                "numFiles": {"type": "integer"},
                "filenames": {"type": "array", "items": {"type": "string"}},
                "content": {"type": "string"},
                "numLines": {"type": "integer"},
                "numMatches": {"type": "integer"},
                "appliedLimit": {"type": "integer"}
            },
            "required": ["numFiles", "filenames"]
        }))
    }

    fn normalise(&self, mut arguments: JsonObject, session: &SessionFacts) -> Result<JsonObject, String> {
        make_absolute(&mut arguments, "path", session)?;
        for key in ["-A", "-B", "-C", "head_limit"] {
            check_whole(&arguments, key, 0)?;
        }
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

    fn render(&self, input: &Json, value: &Json) -> Content {
        let (mode, files) = (Mode::of(input), texts(value, "filenames"));
        let mut text = match mode {
            Mode::Files => files.join("\n"),
            Mode::Content => text_at(value, "content").to_owned(),
            Mode::Count => match text_at(value, "content") {
                "" => String::new(),
                counts => format!(
                    "{counts}\n\n{} matching lines in {} files",
                    whole_at(value, "numMatches").unwrap_or(0),
                    whole_at(value, "numFiles").unwrap_or(0)
                ),
            },
        };
        if text.is_empty() {
            text = "No matches found".to_owned();
        }
        if let Some(limit) = whole_at(value, "appliedLimit") {
            let what = if mode == Mode::Content { "lines" } else { "files" };
            text.push_str(&format!(
                "\n\n(cut at {limit} {what}; there is more: narrow the search, or raise head_limit)"
            ));
        }
        vec![Block::text(text)]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        CallCard {
            title: format!("Search for {}", one_line(text_at(input, "pattern"))),
            kind: CallKind::Search,
            items: Vec::new(),
            locations: path_at(input, "path").map(|path| Location { path, line: None }).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use sluice_harness::seam::search::GrepLine;

    use super::*;

    fn hits(lines: &[(&str, u64, bool)]) -> GrepHits {
        let lines = lines
            .iter()
            .map(|(path, number, is_match)| GrepLine {
                path: PathBuf::from(path),
                number: *number,
                text: "x".to_owned(),
                is_match: *is_match,
            })
            .collect();
        GrepHits { lines, truncated: false }
    }

    #[test]
    fn separate_runs_of_context_are_divided() {
        let hits = hits(&[("/a", 1, false), ("/a", 2, true), ("/a", 9, true), ("/b", 10, false)]);
        assert_eq!(shown_lines(&hits, Numbers::Shown), "/a-1-x\n/a:2:x\n--\n/a:9:x\n--\n/b-10-x");
        assert_eq!(shown_lines(&hits, Numbers::Left), "/a-x\n/a:x\n--\n/a:x\n--\n/b-x");
    }

    #[test]
    fn counts_are_of_matching_lines_and_the_limit_is_of_files() {
        let hits = hits(&[("/a", 1, true), ("/a", 2, true), ("/b", 1, true)]);
        let value = answer(&hits, Mode::Count, Numbers::Shown, 1);
        assert_eq!(
            (value.content.as_deref(), value.num_matches, value.applied_limit),
            (Some("/a:2"), Some(3), Some(1))
        );
        assert_eq!(answer(&hits, Mode::Files, Numbers::Shown, 2).applied_limit, None);
    }
}
