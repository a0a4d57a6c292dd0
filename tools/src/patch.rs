//! Line diffs in the shape that Claude Code's hooks see as `structuredPatch`.
//!
//! Pure. Starts count from 1, three lines of context, and a last line without a line end is marked as in a unified
//! diff.

use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

const CONTEXT_LINES: usize = 3;
/// After this long the diff is coarser, but still right.
const DIFF_BUDGET: Duration = Duration::from_secs(1);

/// One hunk (observed in Claude Code's `tool_response` of Edit).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hunk {
    pub(crate) old_start: usize,
    pub(crate) old_lines: usize,
    pub(crate) new_start: usize,
    pub(crate) new_lines: usize,
    pub(crate) lines: Vec<String>,
}

/// The hunks that lead from one text to the other.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let diff = TextDiff::configure().timeout(DIFF_BUDGET).diff_slices(&old_lines, &new_lines);
    diff.grouped_ops(CONTEXT_LINES)
        .iter()
        .filter_map(|group| {
            let (first, last) = (group.first()?, group.last()?);
            let old = first.old_range().start..last.old_range().end;
            let new = first.new_range().start..last.new_range().end;
            let mut lines = Vec::new();
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let text = change.value();
                lines.push(format!("{sign}{}", text.strip_suffix('\n').unwrap_or(text)));
                if !text.ends_with('\n') {
                    lines.push("\\ No newline at end of file".to_owned());
                }
            }
            Some(Hunk {
                old_start: old.start + 1,
                old_lines: old.len(),
                new_start: new.start + 1,
                new_lines: new.len(),
                lines,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &Expect) {
        let lines: Vec<String> = hunks(old, new).iter().map(|hunk| serde_json::to_string(hunk).unwrap()).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn a_changed_line_is_as_captured_from_the_reference() {
        check(
            "one\ntwo\n",
            "one\nTWO\n",
            &expect![[r#"{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":[" one","-two","+TWO"]}"#]],
        );
    }

    #[test]
    fn distant_changes_are_hunks_of_their_own_with_three_lines_around() {
        let old: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("\n5\n", "\nfive\n").replace("\n16\n", "\n");
        check(
            &old,
            &new,
            &expect![[
                r#"{"oldStart":2,"oldLines":7,"newStart":2,"newLines":7,"lines":[" 2"," 3"," 4","-5","+five"," 6"," 7"," 8"]}
{"oldStart":13,"oldLines":7,"newStart":13,"newLines":6,"lines":[" 13"," 14"," 15","-16"," 17"," 18"," 19"]}"#
            ]],
        );
    }

    #[test]
    fn a_missing_last_line_end_is_marked() {
        check(
            "a",
            "a\nb",
            &expect![[
                r#"{"oldStart":1,"oldLines":1,"newStart":1,"newLines":2,"lines":["-a","\\ No newline at end of file","+a","+b","\\ No newline at end of file"]}"#
            ]],
        );
    }

    #[test]
    fn equal_texts_have_no_hunks_and_an_empty_one_is_all_insertion() {
        check("a\n", "a\n", &expect![[""]]);
        check("", "a\n", &expect![[r#"{"oldStart":1,"oldLines":0,"newStart":1,"newLines":1,"lines":["+a"]}"#]]);
    }
}
