//! The process seam: run one program to its end, with a deadline, caps and an owner.
//!
//! Contract for every provider: the child gets a session and process group of its own without a terminal; stdin is fed while both
//! outputs are read; a closed stdin is no error; the run is over when the *process* is over, whoever still holds its
//! pipes (what was written so far is used after a short drain); deadline, cancellation and disposal kill the whole
//! group (TERM, grace, KILL) and wait for it. Nothing is ever passed to a shell unless the program is [`Program::Shell`].
//! Of what the model proposed ([`Owner::Model`]) every descendant counts, also one in a session of its own: it dies with
//! the run that is stopped, and with the provider at the latest.
//!
//! A program that goes on while others work is [`start`](Processes::start)ed; what is in [`running`].

pub mod running;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Fut;
use crate::cancel::Cancel;
use crate::seam::sandbox::SandboxPolicy;
use running::{Lasts, Running};

/// Whose wish a program is: what it may do, and what becomes of the processes that it leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The user's own code, such as a hook: not confined, and what its leader leaves running when it ends by itself is
    /// left alone.
    User,
    /// The model proposed it: confined as the policy says, and nothing of it outlives the provider.
    Model(Confinement),
}

/// What a command that the model proposes is confined by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The policy for this call.
    pub policy: SandboxPolicy,
    /// Files that it may write in every mode, because the tool that runs it reads them afterwards; absolute, and there.
    pub files: Vec<PathBuf>,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A line for a shell: `SHELL -c LINE`, neither login nor interactive.
    Shell {
        /// The shell's path or name, such as `/bin/sh`.
        shell: String,
        /// The line.
        line: String,
    },
    /// A program with its arguments, started directly.
    Direct {
        /// Path or name, looked up in the child's `PATH`.
        program: String,
        /// The arguments.
        args: Vec<String>,
    },
}

/// What the child's environment is built from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Names of inherited variables that the child does not get; a trailing `*` stands for any rest (`OTEL_*`).
    pub without: Vec<String>,
    /// Variables set on top, later ones winning.
    pub set: Vec<(String, String)>,
}

/// One run.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// What to run.
    pub program: Program,
    /// Whose it is.
    pub owner: Owner,
    /// Where; must exist.
    pub cwd: PathBuf,
    /// With which environment: sluice's own, less `without`, plus `set`.
    pub environment: Environment,
    /// What stdin gets before it is closed; empty means closed at once.
    pub stdin: Vec<u8>,
    /// How long it may take; `None` means as long as it likes.
    pub deadline: Option<Duration>,
    /// How long after TERM the group is killed.
    pub grace: Duration,
    /// How many bytes of each output stream are kept.
    pub keep: Keep,
}

/// Which part of an output stream is kept when it is larger than the cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// The first so many bytes.
    Head(usize),
    /// The first and the last so many bytes each.
    HeadAndTail(usize),
    /// The same of a stream that is larger than both, and all of it in a file besides.
    AlsoInFile {
        /// So many bytes of each end in memory.
        ends: usize,
        /// Where the file is made.
        spill: Spill,
    },
}

/// Where a long output stream goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spill {
    /// The folder; absolute. Made with mode 0700 where it is missing. The file in it gets mode 0600.
    pub folder: PathBuf,
    /// What the file's name begins with.
    pub stem: String,
    /// At most so many bytes, the first of the stream.
    pub limit: u64,
}

/// How a run ended. A timeout can never be read as an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Its deadline passed; the group was killed.
    TimedOut,
    /// It was cancelled; the group was killed.
    Cancelled,
    /// It never started.
    NotStarted(StartProblem),
}

/// Why a program did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartProblem {
    /// The program or the script's interpreter does not exist.
    #[error("{program}: no such file or command")]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// It exists and may not be executed.
    #[error("{program}: not executable ({why})")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// The system's words.
        why: String,
    },
    /// The working folder does not exist or cannot be entered.
    #[error("the working folder {cwd} cannot be entered: {why}")]
    Folder {
        /// The folder.
        cwd: String,
        /// The system's words.
        why: String,
    },
    /// The policy asks for a confinement that this system cannot give.
    #[error("{why}")]
    SandboxUnavailable {
        /// What is missing, and the remedy.
        why: String,
    },
    /// Anything else the system says.
    #[error("{program}: {why}")]
    System {
        /// As it was given.
        program: String,
        /// The system's words.
        why: String,
    },
}

impl StartProblem {
    /// Whether the machine or the program itself is at fault, and not what was to be started: a folder that is gone, a
    /// limit on processes, open files or memory. What would have run may well have been right.
    #[must_use]
    pub fn is_of_the_machine(&self) -> bool {
        match self {
            Self::NotFound { .. } | Self::NotExecutable { .. } => false,
            Self::Folder { .. } | Self::SandboxUnavailable { .. } | Self::System { .. } => true,
        }
    }
}

/// What was kept of one output stream, and how much there was: truncation cannot be overlooked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capture {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes, where the stream was larger than the cap and the tail is kept too.
    pub tail: Vec<u8>,
    /// How many bytes the stream had.
    pub total: u64,
    /// What is in a file, where the stream was to be kept in one and was too long for memory.
    pub saved: Option<Saved>,
}

/// What a file has of a long stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// Every byte of it so far.
    Whole(PathBuf),
    /// The first bytes.
    Beginning {
        /// The file.
        path: PathBuf,
        /// So many.
        bytes: u64,
    },
    /// Nothing that could be relied on.
    Failed {
        /// The system's words.
        why: String,
    },
}

impl Saved {
    /// The file, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Whole(path) | Self::Beginning { path, .. } => Some(path),
            Self::Failed { .. } => None,
        }
    }
}

impl Capture {
    /// How many bytes of the stream are not here.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.total.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// Whether bytes are missing.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.missing() > 0
    }

    /// Says how many bytes are missing and where they are, on a line of its own; `None` when none are.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        if !self.is_truncated() {
            return None;
        }
        let missing = self.missing();
        let place = match &self.saved {
            None => String::new(),
            Some(Saved::Whole(path)) => format!("; the whole output is in {}", path.display()),
            Some(Saved::Beginning { path, bytes }) => {
                format!("; the first {bytes} bytes of the output are in {}", path.display())
            }
            Some(Saved::Failed { why }) => format!("; they could not be saved: {why}"),
        };
        Some(format!("\n[… {missing} of {} bytes left out{place} …]\n", self.total))
    }

    /// The text, with invalid UTF-8 replaced and a note where bytes are missing.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        text.push_str(&self.note().unwrap_or_default());
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }
}

/// The whole outcome of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutput {
    /// How it ended.
    pub end: End,
    /// Its stdout.
    pub stdout: Capture,
    /// Its stderr.
    pub stderr: Capture,
    /// How long it took.
    pub took: Duration,
    /// Whether something still held an output pipe when the process was over.
    pub pipe_still_held: bool,
}

/// Runs processes.
pub trait Processes: Send + Sync {
    /// Runs one program to its end. Never fails: a program that cannot start is an [`End`]. Dropping the future kills
    /// the group.
    fn run<'a>(&'a self, spec: ProcessSpec, cancel: &'a Cancel) -> Fut<'a, RunOutput>;

    /// Starts a program that goes on beside its starter. Dropping the future ends what it may have started.
    ///
    /// # Errors
    /// Why it did not start.
    fn start<'a>(&'a self, spec: ProcessSpec, lasts: Lasts) -> Fut<'a, Result<Box<dyn Running>, StartProblem>>;
}
