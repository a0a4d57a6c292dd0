//! Tells a hook that could not start from one that decided: an interpreter exits with 2 when its script is missing.
//!
//! Conservative: only a simple command whose words can be read without a shell is judged; anything else counts as
//! having run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::config::Action;

/// The interpreters whose first plain argument is a script.
const INTERPRETERS: &[&str] = &["python", "sh", "bash", "dash", "zsh", "ksh", "node", "ruby", "perl", "php", "bun"];

/// Those of them that end with 2 when that script is missing; the others have codes of their own for it.
const END_WITH_2: &[&str] = &["python", "sh", "dash", "perl"];

/// The script that a command names through its interpreter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// As a path seen from the hook's folder.
    pub(crate) path: PathBuf,
    /// Whether this interpreter ends with 2 when the file is missing.
    pub(crate) may_end_with_2: bool,
}

/// The script that a command names through its interpreter, read from `cwd`.
pub(crate) fn script_of(action: &Action, cwd: &Path, variables: &BTreeMap<String, String>) -> Option<Named> {
    let words = match action {
        Action::Shell { command } => simple_words(command, variables)?,
        Action::Exec { command, args } => {
            let mut words = vec![braced(command, variables)];
            words.extend(args.iter().map(|a| braced(a, variables)));
            words
        }
        Action::Unsupported { .. } => return None,
    };
    let mut words = words.into_iter().skip_while(|w| is_assignment(w) || base(w) == "env");
    let program = words.next()?;
    let name = language(base(&program));
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    // Past an option that may take a value, or may hold the code itself, nobody can say which word is the script.
    let script = words.find(|word| !is_plain_option(name, word))?;
    if script.starts_with(['-', '+']) {
        return None;
    }
    Some(Named { path: cwd.join(script), may_end_with_2: END_WITH_2.contains(&name) })
}

/// The name without the version that is part of it: `python3.12` is `python`.
fn language(program: &str) -> &str {
    let version = program.strip_prefix("python");
    if version.is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || c == '.')) { "python" } else { program }
}

/// Whether a word is an option of the interpreter that is known to stand for itself.
fn is_plain_option(interpreter: &str, word: &str) -> bool {
    let letters = match interpreter {
        "sh" | "bash" | "dash" | "zsh" | "ksh" => "aefhnuvx",
        "python" => "BEIOPRSbdiqsuvx",
        "perl" => "TUWtw",
        _ => return false,
    };
    word.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| letters.contains(c)))
}

/// The program that a simple command names, for a message about a code that means "not found".
pub(crate) fn program_of(action: &Action, variables: &BTreeMap<String, String>) -> Option<String> {
    match action {
        Action::Shell { command } => simple_words(command, variables)?.into_iter().find(|w| !is_assignment(w)),
        Action::Exec { command, .. } => Some(braced(command, variables)),
        Action::Unsupported { .. } => None,
    }
}

/// Whether a command uses a variable without quotes that would split at white space.
pub(crate) fn splits_unquoted(command: &str, name: &str, value: &str) -> bool {
    if !value.contains(char::is_whitespace) {
        return false;
    }
    let mut quoted = None;
    let mut rest = command;
    while let Some(c) = rest.chars().next() {
        match (quoted, c) {
            (None, '\'' | '"') => quoted = Some(c),
            (Some(q), _) if c == q => quoted = None,
            (None, '$') => {
                let after = rest.get(1..).unwrap_or_default();
                let after = after.strip_prefix('{').unwrap_or(after);
                if after.starts_with(name) {
                    return true;
                }
            }
            _ => {}
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    false
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The words of a command without operators, its known variables expanded; `None` when a shell is needed to tell.
fn simple_words(command: &str, variables: &BTreeMap<String, String>) -> Option<Vec<String>> {
    let mut marked = String::with_capacity(command.len());
    let mut quoted: Option<char> = None;
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match (quoted, c) {
            (None, '\'' | '"') => {
                quoted = Some(c);
                marked.push(c);
            }
            (Some(q), _) if c == q => {
                quoted = None;
                marked.push(c);
            }
            (None, ';' | '&' | '|' | '(' | ')' | '<' | '`' | '\n' | '*' | '?') | (Some('"'), '`') => return None,
            (None, '>') => {
                // A redirection: drop it with its target, and the descriptor before it.
                while marked.ends_with(|d: char| d.is_ascii_digit()) {
                    marked.pop();
                }
                while matches!(chars.peek(), Some('>' | '&' | ' ')) {
                    chars.next();
                }
                while chars.peek().is_some_and(|d| !d.is_whitespace()) {
                    chars.next();
                }
            }
            (None | Some('"'), '$') => {
                let braces = chars.peek() == Some(&'{');
                if braces {
                    chars.next();
                }
                let mut name = String::new();
                while let Some(d) = chars.peek().filter(|d| d.is_ascii_alphanumeric() || **d == '_') {
                    name.push(*d);
                    chars.next();
                }
                if braces && chars.next() != Some('}') {
                    return None;
                }
                let value = variables.get(&name)?;
                if quoted.is_some() {
                    marked.push_str(&value.replace('\\', "\\\\").replace('"', "\\\""));
                } else {
                    marked.push_str(value);
                }
            }
            (None, '~') if marked.is_empty() || marked.ends_with(' ') => marked.push_str(variables.get("HOME")?),
            _ => marked.push(c),
        }
    }
    shell_words::split(&marked).ok()
}

/// A text with its braced variables replaced, as exec forms have it.
pub(crate) fn braced(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = text.to_owned();
    for (name, value) in variables {
        out = out.replace(&format!("${{{name}}}"), value);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code")]

    use super::*;

    fn script(command: &str) -> Option<String> {
        let variables = [("CLAUDE_PROJECT_DIR", "/p/a b"), ("HOME", "/h")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into_iter()
            .collect();
        script_of(&Action::Shell { command: command.to_owned() }, Path::new("/w"), &variables)
            .map(|named| named.path.display().to_string())
    }

    #[test]
    fn the_script_of_an_interpreter_is_found_in_simple_commands_alone() {
        assert_eq!(script("python3 .claude/hooks/ok.py"), Some("/w/.claude/hooks/ok.py".to_owned()));
        assert_eq!(script("python3 -u x.py --a 2>/dev/null"), Some("/w/x.py".to_owned()));
        assert_eq!(script("FOO=1 /usr/bin/env sh \"$CLAUDE_PROJECT_DIR\"/x.sh"), Some("/p/a b/x.sh".to_owned()));
        assert_eq!(script("bash ~/x.sh"), Some("/h/x.sh".to_owned()));
        assert_eq!(script("python3 -c 'import sys; sys.exit(2)'"), None);
        assert_eq!(script("python3 x.py || exit 2"), None);
        assert_eq!(script("sh \"$UNKNOWN/x.sh\""), None);
        assert_eq!(script("grep -q x y"), None);
    }

    #[test]
    fn no_word_behind_an_option_that_may_take_a_value_or_hold_code_is_taken_for_the_script() {
        assert_eq!(script("bash -eu x.sh"), Some("/w/x.sh".to_owned()));
        assert_eq!(script("python3.12 -I x.py"), Some("/w/x.py".to_owned()));
        for command in [
            "bash -o pipefail x.sh",
            "bash -eo pipefail x.sh",
            "bash +x x.sh",
            "sh -ec 'exit 2'",
            "python3 -W ignore x.py",
            "python3 -Ic 'import sys; sys.exit(2)'",
            "perl -we 'exit 2'",
            "perl -E 'exit 2'",
            "node -r fs x.js",
            "node --import tsx x.ts",
            "sh -s",
        ] {
            assert_eq!(script(command), None, "{command}");
        }
    }

    #[test]
    fn an_unquoted_variable_with_spaces_is_seen() {
        assert!(splits_unquoted("$CLAUDE_PROJECT_DIR/x.sh", "CLAUDE_PROJECT_DIR", "/a b"));
        assert!(!splits_unquoted("\"$CLAUDE_PROJECT_DIR\"/x.sh", "CLAUDE_PROJECT_DIR", "/a b"));
        assert!(!splits_unquoted("$CLAUDE_PROJECT_DIR/x.sh", "CLAUDE_PROJECT_DIR", "/ab"));
    }
}
