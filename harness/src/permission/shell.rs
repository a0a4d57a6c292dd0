//! A shell line as the simple commands it is made of.
//!
//! [`scan`] reads a POSIX-like line (with the common extensions of bash) far enough to say which programs it names; it
//! expands nothing and runs nothing. What it does not understand it calls unclear, and the invariant of its users is
//! that an unclear line is never allowed by itself. The reader is in `parse`; what stands behind a wrapper such as
//! `sudo` or `sh -c` in `behind`.

pub(crate) mod behind;
mod decode;
mod parse;
mod words;

#[cfg(test)]
mod tests;

pub use parse::scan;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// The word after quote removal; an expansion stands in it as it was written.
    pub text: String,
    /// The word as it was written.
    pub raw: String,
    /// It holds something that the shell replaces with a text unknown here: a variable, a substitution, a brace list,
    /// a tilde.
    pub dynamic: bool,
    /// It holds an unquoted pattern character, which becomes file names.
    pub glob: bool,
}

/// A redirection that is not one of the harmless ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Which way the bytes go.
    pub flow: Flow,
    /// The file.
    pub target: Word,
}

/// The direction of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// From the file.
    In,
    /// Into the file.
    Out,
    /// Both.
    Both,
}

/// One program call of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SimpleCommand {
    /// Leading `NAME=value` words.
    pub assignments: Vec<Word>,
    /// The program's name and its arguments; empty for assignments alone.
    pub words: Vec<Word>,
    /// Its redirections, without the harmless ones.
    pub redirects: Vec<Redirect>,
    /// It stands inside a substitution.
    pub nested: bool,
}

impl SimpleCommand {
    /// The program's name, when there is one.
    #[must_use]
    pub fn name(&self) -> Option<&Word> {
        self.words.first()
    }

    /// The command after quote removal, words joined by single spaces, without assignments.
    #[must_use]
    pub fn text(&self) -> String {
        join(self.words.iter().map(|w| w.text.as_str()))
    }

    /// The command in a form in which no two different commands look alike: assignments included, and each word whose
    /// quoting matters as it was written.
    #[must_use]
    pub fn careful_text(&self) -> String {
        join(self.assignments.iter().chain(&self.words).map(|w| {
            if w.text.is_empty() || w.text.chars().any(char::is_whitespace) { w.raw.as_str() } else { w.text.as_str() }
        }))
    }

    /// The command that `xargs` would run, when this is an `xargs` that names one.
    #[must_use]
    pub fn behind_xargs(&self) -> Vec<String> {
        if self.name().is_none_or(|n| n.text != "xargs") {
            return Vec::new();
        }
        behind::suffixes(&self.words, 0).into_iter().map(|words| join(words.iter().map(|w| w.text.as_str()))).collect()
    }
}

pub(crate) fn join<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join(" ")
}

/// What a line holds that its commands alone do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// A command or process substitution.
    pub substitution: bool,
    /// A loop, a condition or a negation.
    pub control_flow: bool,
    /// A redirection other than to `/dev/null` or between descriptors.
    pub redirection: bool,
    /// Something that was not understood: an unterminated quote, a heredoc, a function, a `case`, control characters.
    pub unclear: bool,
}

/// A scanned line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Every simple command, the inner ones of substitutions too.
    pub commands: Vec<SimpleCommand>,
    /// The rest.
    pub flags: Flags,
}
