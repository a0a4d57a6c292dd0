//! One permission rule: `Tool` or `Tool(specifier)`, parsed. What it says of a call is in `matching`.
//!
//! The syntax is Claude Code's. A rule that cannot be read is an error that says what and where, never a rule that
//! quietly matches nothing.

mod command;
mod path;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::tool::CallFacts;

pub use command::CommandPattern;
pub use path::{Anchors, PathPattern};

/// Tools whose specifier is a path.
const PATH_TOOLS: &[&str] =
    &["Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "NotebookRead", "Glob", "Grep", "LS"];

/// A parsed rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    tool: CommandPattern,
    specifier: Specifier,
}

/// What stands in a rule's parentheses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Specifier {
    /// Nothing, or `*`: every call of the tool.
    Whole,
    /// A command line.
    Command(CommandPattern),
    /// A path.
    Path(PathPattern),
    /// A host name; `*` stands for any text.
    Domain(CommandPattern),
    /// A word of the tool's own, such as an agent's type.
    Word(CommandPattern),
}

/// Why a rule's text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RuleError {
    /// There is no text.
    #[error("a permission rule is empty; write a tool's name, such as `Bash` or `Bash(git status)`")]
    Empty,
    /// The tool's name has a character that no name has.
    #[error("`{rule}`: `{found}` at character {at} cannot be part of a tool's name")]
    Name {
        /// The rule.
        rule: String,
        /// The character.
        found: char,
        /// From 1.
        at: usize,
    },
    /// The parenthesis is not closed at the end.
    #[error("`{rule}`: the parenthesis that opens at character {at} must be closed at the end of the rule")]
    Parenthesis {
        /// The rule.
        rule: String,
        /// From 1.
        at: usize,
    },
    /// Nothing stands between the parentheses.
    #[error("`{rule}`: nothing stands between the parentheses; write `{tool}` for every call of it")]
    NoSpecifier {
        /// The rule.
        rule: String,
        /// The tool.
        tool: String,
    },
    /// The specifier is none of those that the tool knows.
    #[error("`{rule}`: {why}")]
    Specifier {
        /// The rule.
        rule: String,
        /// What is wrong, and the remedy.
        why: &'static str,
    },
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    /// A [`RuleError`] that quotes the rule and says where it goes wrong.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let rule = text.trim();
        if rule.is_empty() {
            return Err(RuleError::Empty);
        }
        let (name, rest) = match rule.find('(') {
            Some(at) => rule.split_at(at),
            None => (rule, ""),
        };
        let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '*' | ':' | '/');
        let wrong = rule.chars().take(name.chars().count().max(1)).enumerate().find(|(_, c)| !part_of_name(*c));
        if let Some((at, found)) = wrong {
            return Err(RuleError::Name { rule: rule.to_owned(), found, at: at + 1 });
        }
        let tool = &*spelt(canonical_tool(name));
        let specifier = if rest.is_empty() {
            Specifier::Whole
        } else {
            let inner = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
            let at = name.chars().count() + 1;
            let inner = inner.ok_or_else(|| RuleError::Parenthesis { rule: rule.to_owned(), at })?;
            specifier(rule, tool, inner)?
        };
        Ok(Self { text: rule.to_owned(), tool: CommandPattern::plain(tool), specifier })
    }

    /// The rule as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What stands in its parentheses.
    #[must_use]
    pub fn specifier(&self) -> &Specifier {
        &self.specifier
    }

    /// The tool's name as the rule has it, `Task` read as `Agent`, the names of an MCP server and its tool in the spelling
    /// that tools have.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.tool.source()
    }

    /// Whether the rule names this very tool; a `*` in the rule stands for any text, `mcp__server` for all its tools.
    #[must_use]
    pub fn names_tool(&self, tool: &str) -> bool {
        let tool = canonical_tool(tool);
        if self.tool.matches(tool) {
            return true;
        }
        let own = self.tool.source();
        let is_server = own.strip_prefix("mcp__").is_some_and(|s| !s.is_empty() && !s.contains("__"));
        is_server && tool.strip_prefix(own).is_some_and(|rest| rest.starts_with("__"))
    }

    /// The rule that would cover this call and little else: what *always allow* adds. `None` when no rule can say it.
    #[must_use]
    pub fn for_call(tool: &str, facts: &CallFacts) -> Option<Self> {
        let text = if let Some(command) = &facts.command {
            if super::shell::scan(command).flags.unclear || command.contains('\n') {
                return None;
            }
            format!("{tool}({})", CommandPattern::escape(command.trim()))
        } else if let [(path, _)] = facts.paths.as_slice() {
            let path = path.to_str()?;
            if path.contains(['*', '?', '[', '\\', '(', ')']) || !path.starts_with('/') {
                return None;
            }
            format!("{tool}(/{path})")
        } else {
            tool.to_owned()
        };
        Self::parse(&text).ok()
    }
}

impl Rule {
    /// The rule that would cover fetches from the host of this URL. `None` when no rule can say it.
    #[must_use]
    pub fn for_site(tool: &str, url: &str) -> Option<Self> {
        let host = super::matching::host_of(url)?;
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.chars().all(plain) { Self::parse(&format!("{tool}(domain:{host})")).ok() } else { None }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::parse(text)
    }
}

/// A tool's name with its alias resolved.
pub(super) fn canonical_tool(name: &str) -> &str {
    if name == "Task" { "Agent" } else { name }
}

/// The name as tools are called: of an MCP server's and its tool's real names letters, digits, `_` and `-` stay, and
/// everything else becomes `_`, so that a rule under the real name covers what it speaks of.
fn spelt(name: &str) -> Cow<'_, str> {
    if !name.starts_with("mcp__") {
        return Cow::Borrowed(name);
    }
    let stays = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
    Cow::Owned(name.chars().map(|c| if stays(c) { c } else { '_' }).collect())
}

fn specifier(rule: &str, tool: &str, inner: &str) -> Result<Specifier, RuleError> {
    let wrong = |why| RuleError::Specifier { rule: rule.to_owned(), why };
    let trimmed = inner.trim();
    if trimmed.is_empty() {
        return Err(RuleError::NoSpecifier { rule: rule.to_owned(), tool: tool.to_owned() });
    }
    if tool.starts_with("mcp__") {
        return Err(wrong("a rule for an MCP tool takes no parentheses; name the tool, such as `mcp__server__tool`"));
    }
    if trimmed == "*" {
        return Ok(Specifier::Whole);
    }
    if tool == "Bash" {
        return CommandPattern::parse(trimmed).map(Specifier::Command).map_err(wrong);
    }
    if PATH_TOOLS.contains(&tool) {
        return Ok(Specifier::Path(PathPattern::parse(trimmed)));
    }
    if tool == "WebFetch" {
        let host = trimmed.strip_prefix("domain:").map(str::trim).filter(|h| !h.is_empty());
        let host = host.ok_or_else(|| wrong("a WebFetch rule names a host, such as `WebFetch(domain:example.com)`"))?;
        return Ok(Specifier::Domain(CommandPattern::plain(&self::host(host).map_err(wrong)?)));
    }
    Ok(Specifier::Word(CommandPattern::parse(trimmed).map_err(wrong)?))
}

/// The host of a rule as URLs are compared with it. What no host can look like would never match, so that what was
/// meant to be denied would go on.
fn host(written: &str) -> Result<String, &'static str> {
    if written.contains(['/', '?', '#', '@', '\\', '%']) || written.contains(char::is_whitespace) {
        return Err("it names the host alone, without scheme, user and path, such as `WebFetch(domain:example.com)`");
    }
    let bare = written.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(written);
    if !bare.is_ascii() {
        return Err("it names a host in letters that URLs do not have; write its `xn--` form");
    }
    let host = super::matching::spelt_host(bare);
    if host.contains(':') {
        // Only addresses have colons in them; of these all have two at least.
        let of_address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.' | '*');
        if host.matches(':').count() < 2 || !host.chars().all(of_address) {
            return Err("it names the host alone, and every port of it; leave out the port");
        }
    } else if host.contains(['[', ']']) || host.split('.').any(str::is_empty) {
        return Err("it names a host, such as `example.com`, `*.example.com` or `[::1]`");
    }
    Ok(host)
}
