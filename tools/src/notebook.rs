//! Jupyter notebooks as a model sees them: cells with their sources, and outputs as text.
//!
//! Reading only; the change of one cell in a notebook's own text is in [`splice`]. The invariant: what is no notebook
//! of format 4 is told apart before anything is shown or changed.

pub(crate) mod layout;
pub(crate) mod splice;

use serde::Serialize;
use serde_json::Value;

/// How much of one output's text is shown, in characters.
const LONGEST_OUTPUT: usize = 10_000;

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Cell {
    #[serde(rename = "cellType")]
    pub(crate) cell_type: String,
    pub(crate) source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) execution_count: Option<u64>,
    pub(crate) cell_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<Output>,
}

/// One output of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Output {
    pub(crate) output_type: String,
    pub(crate) text: String,
}

/// Why a text is no notebook that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotebookFault {
    #[error("it is not valid JSON: {0}")]
    NoJson(String),
    #[error("it has no list of cells, as notebooks of format 4 have")]
    NoCells,
}

/// The cells of a notebook.
pub(crate) fn cells(text: &str) -> Result<Vec<Cell>, NotebookFault> {
    let notebook: Value = serde_json::from_str(text).map_err(|e| NotebookFault::NoJson(e.to_string()))?;
    let cells = notebook.get("cells").and_then(Value::as_array).ok_or(NotebookFault::NoCells)?;
    let language = language(&notebook);
    Ok(cells.iter().enumerate().map(|(number, cell)| read(number, cell, &language)).collect())
}

/// The language of a notebook's code.
pub(crate) fn language(notebook: &Value) -> String {
    let metadata = notebook.get("metadata");
    let named = |table: &str, key: &str| metadata?.get(table)?.get(key)?.as_str();
    named("language_info", "name").or_else(|| named("kernelspec", "language")).unwrap_or("python").to_owned()
}

/// The id of a cell: its own, else its place.
pub(crate) fn id_of(number: usize, cell: &Value) -> String {
    cell.get("id").and_then(Value::as_str).map_or_else(|| format!("cell-{number}"), str::to_owned)
}

fn read(number: usize, cell: &Value, language: &str) -> Cell {
    let cell_type = cell.get("cell_type").and_then(Value::as_str).unwrap_or("raw").to_owned();
    let is_code = cell_type == "code";
    let outputs = cell.get("outputs").and_then(Value::as_array);
    Cell {
        source: cell.get("source").map(joined).unwrap_or_default(),
        execution_count: cell.get("execution_count").and_then(Value::as_u64),
        cell_id: id_of(number, cell),
        language: is_code.then(|| language.to_owned()),
        outputs: outputs.into_iter().flatten().map(output).collect(),
        cell_type,
    }
}

/// A text that notebooks write whole or as a list of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn output(output: &Value) -> Output {
    let output_type = output.get("output_type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let member = |key: &str| output.get(key).map(joined).unwrap_or_default();
    let text = match output_type.as_str() {
        "stream" => member("text"),
        "error" => {
            let trace: Vec<&str> = output
                .get("traceback")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if trace.is_empty() { format!("{}: {}", member("ename"), member("evalue")) } else { trace.join("\n") }
        }
        _ => of_data(output.get("data")),
    };
    Output { output_type, text: cut(&without_colours(&text)) }
}

/// The plain text of a rich output, and the names of what else it has.
fn of_data(data: Option<&Value>) -> String {
    let Some(data) = data.and_then(Value::as_object) else { return String::new() };
    let plain = data.get("text/plain").map(joined);
    let others = data.keys().filter(|kind| *kind != "text/plain").map(|kind| format!("[{kind} is not shown]"));
    plain.into_iter().chain(others).collect::<Vec<_>>().join("\n")
}

/// A text without terminal colours, which tracebacks are full of.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = escape.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest = rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest);
    }
    plain.push_str(rest);
    plain
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_OUTPUT) {
        None => text.to_owned(),
        Some((at, _)) => {
            let length = text.chars().count();
            format!("{}\n[… output of {length} characters cut]", text.get(..at).unwrap_or(text))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_texts_whatever_their_kind() {
        let table = [
            (json!({"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}), "a\nb"),
            (json!({"output_type": "stream", "text": "a"}), "a"),
            (json!({"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}), "E: v"),
            (json!({"output_type": "error", "traceback": ["\u{1b}[0;31mE\u{1b}[0m: v", "x"]}), "E: v\nx"),
            (
                json!({"output_type": "display_data", "data": {"image/png": "iVBO", "text/plain": ["<Figure>"]}}),
                "<Figure>\n[image/png is not shown]",
            ),
            (json!({"output_type": "execute_result", "data": {"text/html": "<b>"}}), "[text/html is not shown]"),
            (json!({"output_type": "stream"}), ""),
            (json!(7), ""),
        ];
        for (given, text) in table {
            assert_eq!(output(&given).text, text, "{given}");
        }
        let long = output(&json!({"output_type": "stream", "text": "é".repeat(10_001)})).text;
        assert!(long.ends_with("\n[… output of 10001 characters cut]") && long.starts_with(&"é".repeat(10_000)));
    }

    #[test]
    fn what_is_no_notebook_is_told_apart() {
        assert!(matches!(cells("{"), Err(NotebookFault::NoJson(_))));
        for other in ["[]", "{}", r#"{"worksheets":[]}"#, r#"{"cells":{}}"#] {
            assert_eq!(cells(other), Err(NotebookFault::NoCells), "{other}");
        }
        assert_eq!(cells(r#"{"cells":[]}"#), Ok(Vec::new()));
        let odd = cells(r#"{"cells":[7,{"cell_type":"code","source":["a","b"]}]}"#).unwrap();
        assert_eq!(odd.iter().map(|cell| cell.cell_id.as_str()).collect::<Vec<_>>(), ["cell-0", "cell-1"]);
        assert_eq!((odd[1].source.as_str(), odd[1].language.as_deref()), ("ab", Some("python")));
    }
}
