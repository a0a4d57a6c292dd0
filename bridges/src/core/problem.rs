//! A problem with hook settings, as every front end shows it: a stable code, one sentence of cause, one of remedy.

use std::fmt;

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is lost.
    Info,
    /// One entry does not work as it was written.
    Warning,
    /// A whole file, or a gate, does not work as it was written.
    Error,
}

/// Something in the settings that does not work as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// A stable code, such as `hook-entry-invalid`.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence of cause, with the file and the place in it.
    pub cause: String,
    /// One sentence of remedy.
    pub remedy: String,
}

impl Problem {
    /// A problem of any severity.
    #[must_use]
    pub fn new(severity: Severity, code: &'static str, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, severity, cause: cause.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} [{}]", self.cause, self.remedy, self.code)
    }
}
