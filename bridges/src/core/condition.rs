//! A handler's `if`: one permission rule, evaluated for hooks (reference 3.5), not for permissions.
//!
//! The parser and the shell scanner are the policy's own; the evaluation differs from it on purpose: tool names are
//! exact, a malformed rule never holds, and a rule that says more than a command's name holds for any line with a
//! substitution or control flow, because what it runs cannot be told.

use std::path::{Path, PathBuf};

use sluice_harness::json::Json;
use sluice_harness::permission::shell::scan;
use sluice_harness::permission::{CommandPattern, Rule, Specifier};

/// What a condition may look at.
#[derive(Debug, Clone, Copy)]
pub struct CallInput<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The input as hooks see it.
    pub input: &'a Json,
    /// The project folder, which patterns are read from.
    pub root: &'a Path,
    /// The home folder.
    pub home: &'a Path,
}

/// Whether a rule holds for a call.
#[must_use]
pub fn holds(rule: &str, call: CallInput<'_>) -> bool {
    let Ok(rule) = Rule::parse(rule) else { return false };
    let tool = if call.tool == "Task" { "Agent" } else { call.tool };
    if rule.tool() != tool {
        return false;
    }
    match rule.specifier() {
        Specifier::Whole => true,
        Specifier::Command(pattern) => call.input.str_at("command").is_some_and(|line| command_holds(pattern, line)),
        Specifier::Path(_) => {
            let pattern = rule.text().split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default();
            path_of(call.input).is_some_and(|path| path_holds(pattern.trim(), &path, call))
        }
        Specifier::Domain(_) | Specifier::Word(_) => false,
    }
}

fn command_holds(pattern: &CommandPattern, line: &str) -> bool {
    let scanned = scan(line);
    let named = scanned.commands.iter().any(|command| {
        pattern.matches(&command.text()) || command.behind_xargs().iter().any(|behind| pattern.matches(behind))
    });
    let hidden = scanned.flags.substitution || scanned.flags.control_flow;
    named || (hidden && !pattern.names_only_a_command())
}

/// Whether an absolute path fits a pattern: `//…` from the root of the file system, `~/…` from home, `/…`, `./…` and
/// anything with a slash from the project folder, a bare name anywhere.
fn path_holds(pattern: &str, path: &Path, call: CallInput<'_>) -> bool {
    let (base, rest) = if let Some(rest) = pattern.strip_prefix("//") {
        (Some(Path::new("/")), rest)
    } else if let Some(rest) = pattern.strip_prefix("~/") {
        (Some(call.home), rest)
    } else if let Some(rest) = pattern.strip_prefix("**/") {
        (None, rest)
    } else if let Some(rest) = pattern.strip_prefix("./").or_else(|| pattern.strip_prefix('/')) {
        (Some(call.root), rest)
    } else if pattern.contains('/') {
        (Some(call.root), pattern)
    } else {
        (None, pattern)
    };
    let (subject, lead) = match base {
        Some(base) => match path.strip_prefix(base) {
            Ok(below) => (below, "^"),
            Err(_) => return false,
        },
        None => (path, "(?:^|/)"),
    };
    let text = format!("{lead}{}(?:/.*)?$", glob(rest));
    regex::Regex::new(&text).is_ok_and(|regex| regex.is_match(&subject.to_string_lossy()))
}

fn glob(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let taken = if rest.starts_with("**/") {
            out.push_str("(?:.*/)?");
            3
        } else if rest.starts_with("**") {
            out.push_str(".*");
            2
        } else {
            match c {
                '*' => out.push_str("[^/]*"),
                '?' => out.push_str("[^/]"),
                other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
            }
            c.len_utf8()
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

fn path_of(input: &Json) -> Option<PathBuf> {
    ["file_path", "notebook_path", "path"].iter().find_map(|key| input.str_at(key)).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code")]

    use super::*;

    const RULES: &[&str] = &[
        "Bash(rm *)", "Bash(rm -rf *)", "Bash(rm:*)", "Bash(rm*)", "Bash(git push)", "Bash", "Bash(*)", "bash(rm *)",
        "Bash(rm *", "Read(*)", "Bash(* --force)",
    ];

    fn call<'a>(tool: &'a str, input: &'a Json) -> CallInput<'a> {
        CallInput { tool, input, root: Path::new("/p"), home: Path::new("/h") }
    }

    #[track_caller]
    fn bash(line: &str, expected: &[&str]) {
        let input = Json::of(&serde_json::json!({ "command": line })).unwrap();
        let fired: Vec<_> = RULES.iter().copied().filter(|rule| holds(rule, call("Bash", &input))).collect();
        assert_eq!(fired, expected, "{line}");
    }

    #[test]
    fn shell_conditions_hold_as_captured() {
        let always = ["Bash", "Bash(*)"];
        let named = ["Bash(rm *)", "Bash(rm:*)", "Bash(rm*)", "Bash", "Bash(*)"];
        bash("rm -rf x", &["Bash(rm *)", "Bash(rm -rf *)", "Bash(rm:*)", "Bash(rm*)", "Bash", "Bash(*)"]);
        bash("echo hi", &always);
        bash("echo a && rm b", &named);
        bash("FOO=1 rm b", &named);
        bash("rm b", &named);
        bash("rm", &named);
        bash("rmdir x", &["Bash(rm*)", "Bash", "Bash(*)"]);
        bash(
            "echo $(rm b)",
            &[
                "Bash(rm *)", "Bash(rm -rf *)", "Bash(rm:*)", "Bash(rm*)", "Bash(git push)", "Bash", "Bash(*)",
                "Bash(* --force)",
            ],
        );
        bash("echo $(date)", &["Bash(rm -rf *)", "Bash(git push)", "Bash", "Bash(*)", "Bash(* --force)"]);
        bash("echo $HOME", &always);
        bash("git push", &["Bash(git push)", "Bash", "Bash(*)"]);
        bash("git push origin", &always);
        bash("git push --force", &["Bash", "Bash(*)", "Bash(* --force)"]);
        bash("echo 'unterminated", &always);
        bash("echo x | xargs rm", &named);
        bash("sudo rm b", &always);
        bash("/bin/rm b", &always);
        bash("timeout 5 rm b", &always);
    }

    #[track_caller]
    fn file(tool: &str, path: &str, rules: &[(&str, bool)]) {
        let input = Json::of(&serde_json::json!({ "file_path": path })).unwrap();
        for (rule, expected) in rules {
            assert_eq!(holds(rule, call(tool, &input)), *expected, "{rule} on {tool} {path}");
        }
    }

    #[test]
    fn file_conditions_hold_as_captured() {
        file(
            "Write",
            "/p/src/a.ts",
            &[
                ("Write", true),
                ("Write(*.ts)", true),
                ("Write(a.ts)", true),
                ("Write(src/**)", true),
                ("Write(./src/a.ts)", true),
                ("Write(/src/**)", true),
                ("Write(//p/src/**)", true),
                ("Edit(*.ts)", false),
            ],
        );
        file("Write", "/p/lib/src/b.ts", &[("Write", true), ("Write(*.ts)", true), ("Write(src/**)", false)]);
        file("Write", "/h/x.ts", &[("Write", true), ("Write(*.ts)", true), ("Write(~/x.ts)", true)]);
        file("Read", "/p/.env", &[("Read(.env)", true), ("Read(**/.env)", true)]);
    }

    #[test]
    fn other_tools_have_conditions_on_their_name_alone() {
        let input = Json::empty_object();
        for (tool, rule, expected) in [
            ("mcp__srv__echo", "mcp__srv__echo", true),
            ("mcp__srv__echo", "mcp__srv", false),
            ("mcp__srv__echo", "mcp__srv__*", false),
            ("Agent", "Task", true),
            ("WebFetch", "WebFetch(domain:example.com)", false),
            ("Agent", "Agent(general-purpose)", false),
        ] {
            assert_eq!(holds(rule, call(tool, &input)), expected, "{rule} on {tool}");
        }
    }
}
