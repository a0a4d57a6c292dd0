//! Patch texts for tools that the dialect knows as `apply_patch`: our `Write`, `Edit` and `MultiEdit`, told in its
//! grammar. Paths are relative to the payload's folder when inside it.

use std::path::Path;

use serde_json::Value;
use sluice_harness::json::Json;

/// The patch that says what a write or edit does; `None` for any other tool.
pub(crate) fn patch_of(tool: &str, input: &Json, cwd: &Path) -> Option<String> {
    let path = shown(input.str_at("file_path")?, cwd);
    let body = match tool {
        "Write" => {
            let content = input.str_at("content").unwrap_or_default();
            format!("*** Add File: {path}\n{}", marked('+', content))
        }
        "Edit" => format!("*** Update File: {path}\n{}", hunk(input.view())),
        "MultiEdit" => {
            let edits = input.view().get("edits").and_then(Value::as_array)?;
            let hunks: String = edits.iter().map(hunk).collect();
            format!("*** Update File: {path}\n{hunks}")
        }
        _ => return None,
    };
    Some(format!("*** Begin Patch\n{body}*** End Patch\n"))
}

/// The line that says what a patch did to the file of a call.
pub(crate) fn report_line(tool: &str, input: &Json, cwd: &Path) -> String {
    let letter = if tool == "Write" { 'A' } else { 'M' };
    format!("{letter} {}", shown(input.str_at("file_path").unwrap_or_default(), cwd))
}

fn shown(path: &str, cwd: &Path) -> String {
    Path::new(path).strip_prefix(cwd).map_or_else(|_| path.to_owned(), |p| p.to_string_lossy().into_owned())
}

fn hunk(edit: &Value) -> String {
    let text = |key: &str| edit.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    format!("@@\n{}{}", marked('-', &text("old_string")), marked('+', &text("new_string")))
}

fn marked(mark: char, text: &str) -> String {
    text.lines().map(|line| format!("{mark}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code")]

    use super::*;

    fn patch(tool: &str, input: &str) -> String {
        patch_of(tool, &Json::parse(input).unwrap(), Path::new("/p")).unwrap()
    }

    #[test]
    fn a_write_is_an_added_file_with_a_path_as_the_payloads_folder_sees_it() {
        assert_eq!(
            patch("Write", r#"{"file_path":"/p/b.txt","content":"hello\n"}"#),
            "*** Begin Patch\n*** Add File: b.txt\n+hello\n*** End Patch\n"
        );
        assert!(patch("Write", r#"{"file_path":"/q/b.txt","content":""}"#).contains("*** Add File: /q/b.txt\n***"));
    }

    #[test]
    fn an_edit_is_one_hunk_and_several_edits_are_several() {
        assert_eq!(
            patch("Edit", r#"{"file_path":"/p/w","old_string":"a\nb","new_string":"c"}"#),
            "*** Begin Patch\n*** Update File: w\n@@\n-a\n-b\n+c\n*** End Patch\n"
        );
        let two =
            r#"{"file_path":"/p/w","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":""}]}"#;
        assert_eq!(patch("MultiEdit", two), "*** Begin Patch\n*** Update File: w\n@@\n-a\n+b\n@@\n-c\n*** End Patch\n");
    }
}
