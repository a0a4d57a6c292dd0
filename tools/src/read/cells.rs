//! A notebook as `Read` shows it: a window of cells, with their outputs as text.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use sluice_harness::content::Block;
use sluice_harness::tool::ToolFailure;

use super::{MOST_BYTES, failure};
use crate::notebook::{Cell, Output};

/// What is shown of a notebook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotebookFile {
    file_path: String,
    cells: Vec<Cell>,
    start_cell: usize,
    total_cells: usize,
}

/// The cells from `offset` on, counted from 1; fewer than `limit` where they are long.
pub(super) fn window(path: &str, all: Vec<Cell>, offset: usize, limit: usize) -> Result<NotebookFile, ToolFailure> {
    let total_cells = all.len();
    if offset > total_cells.max(1) {
        let message =
            format!("cell {offset} is past the end of {path}, which has {total_cells} cells; give a lower offset");
        return Err(ToolFailure::coded(failure::FILE_ERROR, "FS_NOT_FOUND", message));
    }
    let mut left = MOST_BYTES;
    let mut cells = Vec::new();
    for mut cell in all.into_iter().skip(offset - 1).take(limit) {
        let size = cell.source.len() + cell.outputs.iter().map(|output| output.text.len()).sum::<usize>();
        if size > left && !cells.is_empty() {
            break;
        }
        if size > left {
            shorten(&mut cell, left);
        }
        left = left.saturating_sub(size);
        cells.push(cell);
    }
    Ok(NotebookFile { file_path: path.to_owned(), cells, start_cell: offset, total_cells })
}

/// Cuts a cell that is too long by itself.
fn shorten(cell: &mut Cell, mut left: usize) {
    let mut cut = |text: &mut String| {
        if text.len() > left {
            let at = text.floor_char_boundary(left);
            let length = text.len();
            text.truncate(at);
            let _ = write!(text, "\n[… {length} bytes cut]");
            left = 0;
        } else {
            left -= text.len();
        }
    };
    cut(&mut cell.source);
    for Output { text, .. } in &mut cell.outputs {
        cut(text);
    }
}

/// The schema of the value's `file`.
pub(super) fn schema() -> Value {
    let output = json!({
        "type": "object",
        "properties": {"output_type": {"type": "string"}, "text": {"type": "string"}},
        "required": ["output_type", "text"]
    });
    let cell = json!({
        "type": "object",
        "properties": {
            "cellType": {"type": "string"},
            "source": {"type": "string"},
            "execution_count": {"type": "integer"},
            "cell_id": {"type": "string"},
            "language": {"type": "string"},
            "outputs": {"type": "array", "items": output}
        },
        "required": ["cellType", "source", "cell_id"]
    });
    json!({
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "cells": {"type": "array", "items": cell},
            "startCell": {"type": "integer"},
            "totalCells": {"type": "integer"}
        },
        "required": ["filePath", "cells", "startCell", "totalCells"]
    })
}

/// What the model reads.
pub(super) fn render(file: Option<&Value>) -> Vec<Block> {
    let number = |key: &str| file.and_then(|file| file.get(key)).and_then(Value::as_u64).unwrap_or(0);
    let cells = file.and_then(|file| file.get("cells")).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (first, total) = (number("startCell").max(1), number("totalCells"));
    if cells.is_empty() {
        return vec![Block::text("(the notebook has no cells)")];
    }
    let mut parts: Vec<String> = cells.iter().zip(first..).map(|(cell, number)| shown(cell, number, total)).collect();
    let last = first + cells.len() as u64 - 1;
    if last < total {
        parts.push(format!("(cells {first} to {last} of {total}; read on with offset {})", last + 1));
    }
    vec![Block::text(parts.join("\n\n"))]
}

fn shown(cell: &Value, number: u64, total: u64) -> String {
    let text = |key: &str| cell.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut head = format!("[cell {number} of {total}: {}", text("cellType"));
    if let Some(language) = cell.get("language").and_then(Value::as_str) {
        let _ = write!(head, " in {language}");
    }
    let _ = write!(head, ", cell_id {}", text("cell_id"));
    if let Some(count) = cell.get("execution_count").and_then(Value::as_u64) {
        let _ = write!(head, ", run {count}");
    }
    let mut shown = format!("{head}]\n{}", text("source"));
    for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
        let text = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
        let body = text("text").trim_end_matches('\n');
        let _ = write!(shown, "\n[output of cell {number}: {}]\n{body}", text("output_type"));
    }
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn cell(source: String) -> Cell {
        Cell {
            cell_type: "code".to_owned(),
            source,
            execution_count: None,
            cell_id: "x".to_owned(),
            language: None,
            outputs: Vec::new(),
        }
    }

    #[test]
    fn r_460_the_limits_hold_for_cells_too() {
        let many = |length: usize, count: usize| (0..count).map(|_| cell("x".repeat(length))).collect::<Vec<_>>();
        assert_eq!(window("/n", many(1024, 60), 1, 2000).unwrap().cells.len(), 50);
        assert_eq!(window("/n", many(1024, 60), 11, 3).unwrap().cells.len(), 3);
        assert_eq!(window("/n", many(MOST_BYTES, 1), 1, 1).unwrap().cells[0].source.len(), MOST_BYTES);
        let cut = window("/n", many(MOST_BYTES + 1, 2), 1, 9).unwrap().cells;
        assert!(cut.len() == 1 && cut[0].source.ends_with("x\n[… 51201 bytes cut]"));
        assert!(window("/n", Vec::new(), 1, 9).unwrap().cells.is_empty());
        assert_eq!(window("/n", many(1, 2), 3, 9).unwrap_err().info.unwrap().code, "FS_NOT_FOUND");
    }
}
