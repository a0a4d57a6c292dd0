//! A word at load about a matcher that can match no tool there is: more often than not a slip, and a gate that is off.

use super::{Match, Matcher};
use crate::core::tool_names::{CODEX, KNOWN};

/// What is odd about a matcher of an event about tools, and what to write; `None` where nothing is.
pub(crate) fn hint(matcher: &Matcher) -> Option<(String, String)> {
    let text = matcher.text()?;
    // The names of servers' tools are not known before they are asked.
    if text.contains("mcp") {
        return None;
    }
    let tools: Vec<&str> = KNOWN.iter().chain(CODEX).copied().collect();
    let names = matcher.exact_names();
    let stray = names.iter().find(|name| !tools.contains(&name.as_str()));
    if let Some(name) = stray {
        let near = tools.iter().find(|tool| tool.eq_ignore_ascii_case(name));
        let remedy = match near {
            Some(tool) => format!("Names are exact and case-sensitive: write `{tool}`."),
            None => "Names are exact and case-sensitive; write a tool's name, or a pattern.".to_owned(),
        };
        return Some((format!("no tool that is known is called `{name}`"), remedy));
    }
    if matcher.matches(&tools) != Match::No {
        return None;
    }
    let parts: Vec<&str> = text.split([',', '(']).map(str::trim).collect();
    let remedy = match parts.as_slice() {
        [tool, ..] if text.contains('(') && tools.contains(tool) => {
            format!("A matcher is about a tool's name alone: write `{tool}`, and look at the input in the hook.")
        }
        [first, second, ..] if tools.contains(first) && tools.contains(second) => {
            format!("Separate names with `|`, as in `{first}|{second}`.")
        }
        _ => "Write a tool's name, or a pattern that matches one.".to_owned(),
    };
    Some((format!("`{text}` matches no tool that is known"), remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(matcher: (Matcher, Option<super::super::PatternFault>)) -> Option<String> {
        hint(&matcher.0).map(|(what, remedy)| format!("{what}. {remedy}"))
    }

    #[test]
    fn a_matcher_that_can_match_nothing_is_hinted_at_and_others_are_not() {
        let claude = |text: &str| said(Matcher::claude(Some(text)));
        let codex = |text: &str| said(Matcher::codex(Some(text)));
        for fine in ["", "*", "Bash", "Edit|Write", "Edit, Write", ".*", "^Bash$", "mcp__x__.*", "mcp__box", "Web.*"] {
            assert_eq!(claude(fine), None, "{fine}");
        }
        for fine in ["", "*", "Bash", "Edit|Write", "apply_patch", "^(Bash|apply_patch)$"] {
            assert_eq!(codex(fine), None, "{fine}");
        }
        assert_eq!(said(Matcher::claude(None)), None);
        for (found, part) in [
            (claude("bash"), "write `Bash`"),
            (claude("Edit|Wrte"), "is called `Wrte`"),
            (claude("Bash(rm *)"), "write `Bash`, and look at the input"),
            (claude("^bash$"), "matches no tool that is known"),
            (codex("Edit,Bash"), "Separate names with `|`, as in `Edit|Bash`"),
            (codex("shell"), "is called `shell`"),
        ] {
            assert!(found.as_ref().is_some_and(|said| said.contains(part)), "{part} in {found:?}");
        }
    }
}
