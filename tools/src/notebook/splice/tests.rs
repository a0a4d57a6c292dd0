//! Changes of notebooks as whole texts: what is meant changes, and nothing else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use super::*;

/// As Jupyter writes it, with a member that nobody knows and a number that no reader keeps.
const JUPYTER: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "sum",
   "metadata": {"tags": [ "x" ], "weight": 1.0e5},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "2\n"
     ]
    }
   ],
   "source": [
    "print(1 + 1)"
   ],
   "x-unknown": 12345678901234567890123
  }
 ],
 "metadata": {
  "kernelspec": {
   "language": "julia"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn done(text: &str, change: &Change<'_>) -> Spliced {
    splice(text, change).unwrap_or_else(|fault| panic!("{fault}"))
}

fn replace<'a>(cell: &'a str, source: &'a str, kind: Option<CellKind>) -> Change<'a> {
    Change::Replace { cell, source, kind }
}

#[test]
fn a_code_cell_keeps_all_but_its_source_and_outputs() {
    let spliced = done(JUPYTER, &replace("sum", "a = 1\nb = \"é\"\n", None));
    let wanted = JUPYTER
        .replace("   \"execution_count\": 3", "   \"execution_count\": null")
        .replace(
            "[\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"2\\n\"\n     ]\n    }\n   ]",
            "[]",
        )
        .replace("    \"print(1 + 1)\"", "    \"a = 1\\n\",\n    \"b = \\\"é\\\"\\n\"");
    assert_eq!(spliced.text, wanted);
    assert_eq!((spliced.cell_id.as_str(), spliced.kind.as_str(), spliced.language.as_str()), ("sum", "code", "julia"));
}

#[test]
fn a_cell_may_become_another_kind() {
    let text = done(JUPYTER, &replace("sum", "x", Some(CellKind::Markdown))).text;
    assert!(!text.contains("execution_count") && !text.contains("outputs") && text.contains("x-unknown"), "{text}");
    let text = done(JUPYTER, &replace("intro", "", Some(CellKind::Code))).text;
    let wanted = "   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"intro\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": []\n";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn a_cell_is_inserted_after_another_or_first_in_the_style_of_the_others() {
    let last = done(JUPYTER, &Change::Insert { after: Some("sum"), source: "end", kind: CellKind::Raw });
    let id = last.cell_id.as_str();
    let cell = format!(
        "  {{\n   \"cell_type\": \"raw\",\n   \"id\": \"{id}\",\n   \"metadata\": {{}},\n   \"source\": [\n    \"end\"\n   ]\n  }}"
    );
    let wanted = JUPYTER.replace("123\n  }\n ],", &format!("123\n  }},\n{cell}\n ],"));
    assert_eq!(last.text, wanted);
    let first = done(JUPYTER, &Change::Insert { after: None, source: "top", kind: CellKind::Code });
    assert!(
        first.text.starts_with("{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,")
    );
    assert!(first.text.ends_with(JUPYTER.strip_prefix("{\n \"cells\": [\n").unwrap()));
    // And back again.
    assert_eq!(done(&first.text, &Change::Delete { cell: &first.cell_id }).text, JUPYTER);
    assert_eq!(done(&last.text, &Change::Delete { cell: id }).text, JUPYTER);
}

#[test]
fn cells_are_deleted_to_the_last_and_made_again() {
    let one = done(JUPYTER, &Change::Delete { cell: "intro" }).text;
    let none = done(&one, &Change::Delete { cell: "sum" }).text;
    assert!(none.starts_with("{\n \"cells\": [],\n \"metadata\""), "{none}");
    let again = done(&none, &Change::Insert { after: None, source: "a\nb", kind: CellKind::Markdown });
    let id = again.cell_id;
    let wanted = format!(
        "{{\n \"cells\": [\n  {{\n   \"cell_type\": \"markdown\",\n   \"id\": \"{id}\",\n   \"metadata\": {{}},\n   \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n  }}\n ],\n"
    );
    assert!(again.text.starts_with(&wanted), "{}", again.text);
}

#[test]
fn compact_and_old_notebooks_stay_what_they_are() {
    let old = r#"{"nbformat":4,"nbformat_minor":2,"cells":[{"source":"a","cell_type":"code","outputs":[],"execution_count":1}]}"#;
    let text = done(old, &replace("cell-0", "b\nc", None)).text;
    let wanted = r#"{"nbformat":4,"nbformat_minor":2,"cells":[{"source":"b\nc","cell_type":"code","outputs":[],"execution_count":null}]}"#;
    assert_eq!(text, wanted);
    let new = done(old, &Change::Insert { after: Some("cell-0"), source: "x\ny", kind: CellKind::Markdown });
    assert_eq!(new.cell_id, "cell-1");
    let added = r#"},{"cell_type":"markdown","metadata":{},"source":["x\n","y"]}]}"#;
    assert!(new.text.ends_with(added), "{}", new.text);
}

#[test]
fn what_cannot_be_done_is_said() {
    let fault = |text: &str, change: &Change<'_>| splice(text, change).unwrap_err().to_string();
    let missing = fault(JUPYTER, &Change::Delete { cell: "cell-2" });
    assert_eq!(missing, "there is no cell `cell-2`; the cells are intro, sum");
    let empty = r#"{"cells": []}"#;
    assert!(fault(empty, &replace("a", "", None)).ends_with("the cells are none"));
    assert!(fault("{", &replace("a", "", None)).starts_with("it is not valid JSON"));
    assert!(fault(r#"{"worksheets":[]}"#, &replace("a", "", None)).contains("format 4"));
    for odd in [r#"{"cells":[7]}"#, r#"{"cells":[{}]}"#, r#"{"cells":[{"id":"cell-0"}]}"#] {
        assert!(fault(odd, &replace("cell-0", "", None)).contains("no object with a source"), "{odd}");
    }
    assert!(done(JUPYTER, &Change::Delete { cell: "cell-1" }).cell_id == "sum", "a place is an id too");
}

#[test]
fn ids_of_new_cells_are_their_own() {
    let insert = Change::Insert { after: None, source: "", kind: CellKind::Raw };
    let mut text = JUPYTER.to_owned();
    let mut ids = Vec::new();
    for _ in 0..30 {
        let spliced = done(&text, &insert);
        assert!(!ids.contains(&spliced.cell_id));
        ids.push(spliced.cell_id);
        text = spliced.text;
    }
    assert_eq!(super::super::cells(&text).unwrap().len(), 32);
}
