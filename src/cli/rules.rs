//! Lists of permission rules on the command line: `Bash(git *),Read Edit` are three.
//!
//! Commas and spaces separate, save inside parentheses. What a rule means is the engine's matter; a text that is none
//! is an error, so that no rule is lost.

use sluice_harness::permission::Rule;

use crate::fault::Fault;

/// The rules of all arguments of one flag.
pub(super) fn rules(flag: &'static str, arguments: &[String]) -> Result<Vec<Rule>, Fault> {
    let mut rules = Vec::new();
    for argument in arguments {
        for text in split(argument) {
            let rule = Rule::parse(&text).map_err(|error| {
                Fault::usage(
                    "permission-rule",
                    format!("{flag}: {error}"),
                    format!("words after {flag} are rules; a prompt stands before the flags, or after `--`"),
                )
            })?;
            rules.push(rule);
        }
    }
    Ok(rules)
}

/// The texts of the rules in one argument.
fn split(argument: &str) -> Vec<String> {
    let mut rules = Vec::new();
    let mut rule = String::new();
    let mut depth = 0_usize;
    let mut escaped = false;
    for character in argument.chars() {
        let separates = depth == 0 && (character == ',' || character.is_whitespace());
        if separates && !escaped {
            rules.push(std::mem::take(&mut rule));
            continue;
        }
        if !escaped {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        escaped = character == '\\' && !escaped;
        rule.push(character);
    }
    rules.push(rule);
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_separated_by_commas_and_spaces_outside_parentheses() {
        let table: &[(&str, &[&str])] = &[
            ("Bash", &["Bash"]),
            ("Bash,Read", &["Bash", "Read"]),
            ("Bash Read", &["Bash", "Read"]),
            (" Bash ,\tRead, ", &["Bash", "Read"]),
            ("Bash(git *)", &["Bash(git *)"]),
            ("Bash(git log, git diff),Edit", &["Bash(git log, git diff)", "Edit"]),
            ("Bash(git *) Read(./secrets/**)", &["Bash(git *)", "Read(./secrets/**)"]),
            ("Bash(echo (a b) c),Read", &["Bash(echo (a b) c)", "Read"]),
            (r"Bash(echo \) x),Read", &[r"Bash(echo \) x)", "Read"]),
            ("Bash(echo :))", &["Bash(echo :))"]),
            ("mcp__server__tool,mcp__other", &["mcp__server__tool", "mcp__other"]),
            ("", &[]),
            (",", &[]),
        ];
        for (argument, expected) in table {
            assert_eq!(split(argument), *expected, "{argument}");
        }
    }

    #[test]
    fn a_parenthesis_that_stays_open_swallows_the_rest_and_is_refused() {
        let fault = rules("--disallowed-tools", &["Bash(rm *,Read".to_owned()]).err();
        assert_eq!(
            fault.map(|f| f.to_string()).unwrap_or_default(),
            "sluice: --disallowed-tools: `Bash(rm *,Read`: the parenthesis that opens at character 5 must be closed at \
             the end of the rule\n  words after --disallowed-tools are rules; a prompt stands before the flags, or \
             after `--`"
        );
    }
}
