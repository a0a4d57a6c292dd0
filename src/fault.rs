//! What the program says when something cannot be done: one stable code, one sentence of cause, one of remedy.
//!
//! Library errors become a [`Fault`] here and nowhere else; what a finished turn means for a script that runs the
//! program is in [`outcome`]. The invariant: a fault never holds a secret, and each kind has one exit code.

mod nearest;
mod outcome;

use std::fmt;
use std::io;
use std::path::Path;

use sluice_harness::PluginFault;
use sluice_harness::context::ContextFault;
use sluice_harness::log::LogError;
use sluice_harness::permission::{ModeError, RuleError};
use sluice_harness::registry::RegisterFault;
use sluice_providers::script::ScriptError;

pub(crate) use nearest::nearest;
pub(crate) use outcome::{DenialPolicy, Outcome, outcome};

/// Whose matter a fault is; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The command line is wrong.
    Usage,
    /// A configuration file, a variable or what they name is wrong.
    Config,
    /// The machine does not give what is needed: a folder, a file, a permission.
    Environment,
    /// Something cannot be written to stdout.
    Output,
    /// Whoever read stdout has gone; said to nobody.
    BrokenPipe,
    /// A defect of the program itself.
    Internal,
}

impl FaultKind {
    /// The exit code of a command that ends with such a fault. 2 means that nothing was run.
    #[must_use]
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::Config | Self::Environment => 2,
            Self::Output | Self::Internal => 1,
            // As a shell says of `cat`: 128 and SIGPIPE.
            Self::BrokenPipe => 141,
        }
    }
}

/// Why a command cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Stable; for scripts and tests.
    pub(crate) code: &'static str,
    /// Whose matter it is.
    pub(crate) kind: FaultKind,
    /// One sentence: what cannot be done, with which thing.
    pub(crate) cause: String,
    /// What to do about it; may be several lines, or empty where the cause says it.
    pub(crate) remedy: String,
}

impl Fault {
    /// A fault.
    pub(crate) fn new(
        kind: FaultKind,
        code: &'static str,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { code, kind, cause: cause.into(), remedy: remedy.into() }
    }

    /// The command line is wrong.
    pub(crate) fn usage(code: &'static str, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(FaultKind::Usage, code, cause, remedy)
    }

    /// The configuration is wrong.
    pub(crate) fn config(code: &'static str, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(FaultKind::Config, code, cause, remedy)
    }

    /// The machine does not give what is needed.
    pub(crate) fn environment(code: &'static str, cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(FaultKind::Environment, code, cause, remedy)
    }

    /// A defect of the program.
    pub(crate) fn internal(cause: impl fmt::Display) -> Self {
        Self::new(
            FaultKind::Internal,
            "internal",
            format!("something inside sluice went wrong: {cause}"),
            "this is a defect of sluice; please report it with this message",
        )
    }

    /// A write to stdout that failed. A reader that has gone is no error worth a word.
    pub(crate) fn output(cause: &io::Error) -> Self {
        if cause.kind() == io::ErrorKind::BrokenPipe {
            Self::new(FaultKind::BrokenPipe, "broken-pipe", "whoever read the output has gone", "")
        } else {
            Self::new(
                FaultKind::Output,
                "output",
                format!("cannot write to standard output: {}", words(cause)),
                "free some space, or send the output elsewhere",
            )
        }
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(code: &'static str, what: &str, path: &Path, cause: &io::Error) -> Self {
        Self::environment(
            code,
            format!("cannot read {what} {}: {}", path.display(), words(cause)),
            "check the path and its permissions",
        )
    }

    /// The exit code of a command that ends with this.
    pub(crate) fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    /// Whether nobody is told: the reader of stdout has gone.
    pub(crate) fn is_quiet(&self) -> bool {
        self.kind == FaultKind::BrokenPipe
    }
}

impl fmt::Display for Fault {
    /// Two parts: the cause after the program's name, the remedy indented below it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sluice: {}", self.cause)?;
        for line in self.remedy.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// An I/O error without the system's number, which says nothing to a person.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text.get(..at).unwrap_or(&text).to_lowercase(),
        None => text,
    }
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        let cause = error.to_string();
        let environment = |code, remedy: &str| Self::environment(code, cause.clone(), remedy);
        match &error {
            LogError::Missing { .. } => Self::usage("session-missing", cause, ""),
            LogError::Exists { .. } => Self::usage("session-exists", cause, ""),
            LogError::Locked { .. } => environment("session-locked", ""),
            LogError::Write { .. } | LogError::Io { .. } => {
                environment("session-log", "check the free space and the permissions of the state folder")
            }
            LogError::Corrupt { .. } | LogError::Identity { .. } => {
                environment("session-damaged", "move the file away, or start a new session")
            }
            LogError::UnknownKind { .. } | LogError::Version { .. } => environment("session-version", ""),
            // What is left is misuse of the log by the program itself.
            _ => Self::internal(cause),
        }
    }
}

impl From<ContextFault> for Fault {
    fn from(error: ContextFault) -> Self {
        Self::internal(error)
    }
}

impl From<RegisterFault> for Fault {
    fn from(error: RegisterFault) -> Self {
        Self::internal(error)
    }
}

impl From<PluginFault> for Fault {
    fn from(error: PluginFault) -> Self {
        Self::internal(error)
    }
}

impl From<ScriptError> for Fault {
    fn from(error: ScriptError) -> Self {
        let remedy = match &error {
            ScriptError::Read { .. } => "name an existing file as script:PATH",
            ScriptError::Invalid { .. } => "correct the script; its fields are those that the documentation lists",
        };
        Self::config("script", error.to_string(), remedy)
    }
}

impl From<RuleError> for Fault {
    fn from(error: RuleError) -> Self {
        Self::usage("permission-rule", error.to_string(), "")
    }
}

impl From<ModeError> for Fault {
    fn from(error: ModeError) -> Self {
        Self::usage("permission-mode", error.to_string(), "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_reads_as_a_cause_and_an_indented_remedy() {
        let fault = Fault::usage("x", "the thing is wrong", "do this\nor that");
        assert_eq!(fault.to_string(), "sluice: the thing is wrong\n  do this\n  or that");
    }

    #[test]
    fn a_closed_pipe_is_quiet_and_other_write_errors_are_not() {
        let closed = Fault::output(&io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(closed.is_quiet());
        let full = Fault::output(&io::Error::from_raw_os_error(28));
        assert_eq!((full.exit_code(), full.is_quiet()), (1, false));
        assert!(full.cause.ends_with("no space left on device"), "{}", full.cause);
    }
}
