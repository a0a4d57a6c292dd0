//! Matchers of both dialects: the match-all forms, exact lists of names, and regular expressions with limits.
//!
//! The Claude dialect searches with JavaScript's rules: the pattern is translated first and run with a step
//! limit, so that a runaway pattern is an answer ([`Match::Unclear`]) and not a hang. Codex uses the `regex` crate
//! itself. A pattern that the dialect's own engine would refuse never matches, and is said at load.

mod hint;
mod javascript;

pub(crate) use hint::hint;

/// Beyond this many bytes a subject is not searched.
const SUBJECT_CAP: usize = 512;
/// How many steps of back-tracking a search may take.
const STEP_LIMIT: usize = 100_000;
/// How large a compiled pattern may be, in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// A group's matcher: its text as written, and what it means.
#[derive(Debug, Clone)]
pub struct Matcher {
    text: Option<String>,
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    All,
    Names(Vec<String>),
    Claude(Box<fancy_regex::Regex>),
    Codex(regex::Regex),
    Never,
    Unclear,
}

/// The answer of a matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It matches.
    Yes,
    /// It does not.
    No,
    /// It cannot be told within our limits: taken as matching where an event can block, else as not matching.
    Unclear,
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// The dialect's own engine refuses it: it never matches.
    #[error("it is no valid regular expression ({0}), so it never matches")]
    Refused(String),
    /// It is legal there and beyond our engine.
    #[error("it is beyond what can be searched here ({0}), so it is taken as matching where the event can block")]
    Beyond(String),
}

impl Matcher {
    /// The matcher that an absent one stands for.
    #[must_use]
    pub fn all() -> Self {
        Self { text: None, rule: Rule::All }
    }

    /// A matcher of the Claude dialect (reference 3.4), and what is wrong with it.
    #[must_use]
    pub fn claude(text: Option<&str>) -> (Self, Option<PatternFault>) {
        let Some(text) = text else { return (Self::all(), None) };
        let kept = Some(text.to_owned());
        if text.is_empty() || text == "*" {
            return (Self { text: kept, rule: Rule::All }, None);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | ',' | '|');
        if text.chars().all(plain) {
            return (Self { text: kept, rule: Rule::Names(names(text, &['|', ','])) }, None);
        }
        let (rule, fault) = match javascript::translate(text) {
            Err(why) => (Rule::Never, Some(PatternFault::Refused(why))),
            Ok(pattern) => {
                let built = fancy_regex::RegexBuilder::new(&pattern)
                    .backtrack_limit(STEP_LIMIT)
                    .delegate_size_limit(SIZE_LIMIT)
                    .build();
                match built {
                    Ok(regex) => (Rule::Claude(Box::new(regex)), None),
                    Err(why) => (Rule::Unclear, Some(PatternFault::Beyond(why.to_string()))),
                }
            }
        };
        (Self { text: kept, rule }, fault)
    }

    /// A matcher of the Codex dialect (reference 7), and what is wrong with it.
    #[must_use]
    pub fn codex(text: Option<&str>) -> (Self, Option<PatternFault>) {
        let Some(text) = text else { return (Self::all(), None) };
        let kept = Some(text.to_owned());
        if text.is_empty() || text == "*" {
            return (Self { text: kept, rule: Rule::All }, None);
        }
        if text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '|')) {
            return (Self { text: kept, rule: Rule::Names(names(text, &['|'])) }, None);
        }
        match regex::RegexBuilder::new(text).size_limit(SIZE_LIMIT).build() {
            Ok(regex) => (Self { text: kept, rule: Rule::Codex(regex) }, None),
            Err(why) => (Self { text: kept, rule: Rule::Never }, Some(PatternFault::Refused(why.to_string()))),
        }
    }

    /// The text as written; `None` when there was none.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The exact names, where the matcher is such a list.
    #[must_use]
    pub fn exact_names(&self) -> &[String] {
        match &self.rule {
            Rule::Names(names) => names,
            Rule::All | Rule::Claude(_) | Rule::Codex(_) | Rule::Never | Rule::Unclear => &[],
        }
    }

    /// Whether it matches any of a subject's names (a tool and its aliases).
    #[must_use]
    pub fn matches(&self, subjects: &[&str]) -> Match {
        match &self.rule {
            Rule::All => Match::Yes,
            Rule::Never => Match::No,
            Rule::Unclear => Match::Unclear,
            Rule::Names(names) => yes_no(subjects.iter().any(|s| names.iter().any(|n| n == s))),
            Rule::Codex(regex) => yes_no(subjects.iter().any(|s| regex.is_match(s))),
            Rule::Claude(regex) => {
                let mut answer = Match::No;
                for subject in subjects {
                    match search(regex, subject) {
                        Match::Yes => return Match::Yes,
                        Match::Unclear => answer = Match::Unclear,
                        Match::No => {}
                    }
                }
                answer
            }
        }
    }
}

fn yes_no(yes: bool) -> Match {
    if yes { Match::Yes } else { Match::No }
}

fn search(regex: &fancy_regex::Regex, subject: &str) -> Match {
    if subject.len() > SUBJECT_CAP {
        return Match::Unclear;
    }
    match regex.is_match(subject) {
        Ok(yes) => yes_no(yes),
        Err(_) => Match::Unclear,
    }
}

fn names(text: &str, separators: &[char]) -> Vec<String> {
    text.split(separators).map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
