//! The model of configured handlers, shared by both dialects: what would run, when, and why it might not.
//!
//! Discovery fills it, the plan reads it; it is never changed after it was built. Each handler names the file and the
//! place it came from, so that everything said about it can point there.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::matcher::Matcher;

/// Whose protocol a handler speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Claude Code's.
    ClaudeCode,
    /// Codex's.
    Codex,
}

impl Dialect {
    /// The word in logs and sources.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }
}

/// The hook events that this build fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Event {
    /// A session begins.
    SessionStart,
    /// A prompt was submitted.
    UserPromptSubmit,
    /// A tool is about to be judged.
    PreToolUse,
    /// A call would be asked about.
    PermissionRequest,
    /// A tool finished.
    PostToolUse,
    /// A tool ran and failed.
    PostToolUseFailure,
    /// The agent would stop.
    Stop,
    /// A session ends.
    SessionEnd,
    /// A person is waited for.
    Notification,
    /// A settings file changed.
    ConfigChange,
}

impl Event {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::SessionStart,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::Stop,
        Self::SessionEnd,
        Self::Notification,
        Self::ConfigChange,
    ];

    /// The name in settings and payloads.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::Stop => "Stop",
            Self::SessionEnd => "SessionEnd",
            Self::Notification => "Notification",
            Self::ConfigChange => "ConfigChange",
        }
    }

    /// The event of a name, if this build fires it.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|e| e.word() == word)
    }

    /// Whether a legible deny in noisy output closes it (the decision on output that is nearly a decision).
    #[must_use]
    pub fn is_gate(self) -> bool {
        match self {
            Self::UserPromptSubmit | Self::PreToolUse | Self::PermissionRequest | Self::ConfigChange => true,
            Self::SessionStart
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::Stop
            | Self::SessionEnd
            | Self::Notification => false,
        }
    }

    /// Whether it is about one tool call.
    #[must_use]
    pub fn is_about_a_call(self) -> bool {
        match self {
            Self::PreToolUse | Self::PermissionRequest | Self::PostToolUse | Self::PostToolUseFailure => true,
            Self::SessionStart
            | Self::UserPromptSubmit
            | Self::Stop
            | Self::SessionEnd
            | Self::Notification
            | Self::ConfigChange => false,
        }
    }

    /// Whether a `matcher` means anything on it.
    #[must_use]
    pub fn has_subject(self) -> bool {
        match self {
            Self::SessionStart
            | Self::PreToolUse
            | Self::PermissionRequest
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::SessionEnd
            | Self::Notification
            | Self::ConfigChange => true,
            Self::UserPromptSubmit | Self::Stop => false,
        }
    }
}

/// Where a handler was configured, from the farthest to the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The user's own file.
    User,
    /// A file that came with the repository.
    Project,
    /// The repository's local file.
    Local,
    /// The command line.
    Flag,
}

impl Layer {
    /// The word shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flag => "--settings",
        }
    }
}

/// Whether a handler may run at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The user's own.
    Owner,
    /// Repository content that was accepted.
    Accepted,
    /// Repository content that waits for acceptance.
    HeldBack,
}

/// What a failure of a handler does, on the events where it can do anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// A visible warning; the action goes on.
    #[default]
    Continue,
    /// The action is blocked.
    Block,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A line for the dialect's shell.
    Shell {
        /// The line, verbatim.
        command: String,
    },
    /// A program with its arguments, started directly.
    Exec {
        /// The program, before placeholders are replaced.
        command: String,
        /// Its arguments, before placeholders are replaced.
        args: Vec<String>,
    },
    /// A type that this build cannot run.
    Unsupported {
        /// The type, such as `http`.
        kind: String,
        /// What it would do: a URL, a tool, a question.
        label: String,
    },
}

impl Action {
    /// The command as it is named in messages.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Shell { command } | Self::Exec { command, .. } => command,
            Self::Unsupported { label, .. } => label,
        }
    }
}

/// Whether an event waits for a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It does.
    Awaited,
    /// It does, and a failure of the handler never blocks (`asyncRewake` where nobody can be woken).
    AwaitedLenient,
    /// It does not, and the output means nothing.
    Async,
}

/// One configured handler.
#[derive(Debug, Clone)]
pub struct Handler {
    /// Whose protocol it speaks.
    pub dialect: Dialect,
    /// The event, by its name in the settings.
    pub event: Event,
    /// The file it came from, or the flag.
    pub source: PathBuf,
    /// Where in the file, such as `hooks.PreToolUse[0].hooks[1]`.
    pub json_path: String,
    /// Which layer the file belongs to.
    pub layer: Layer,
    /// The group's matcher.
    pub matcher: Matcher,
    /// The permission rule of `if`, where there is one.
    pub condition: Option<String>,
    /// What it does.
    pub action: Action,
    /// The declared time limit.
    pub timeout: Option<Duration>,
    /// Its own `onFailure`, where the protocol has one and it is set.
    pub on_failure: Option<OnFailure>,
    /// Whether the event waits.
    pub waiting: Waiting,
    /// Whether it may run.
    pub trust: Trust,
    /// Why it would not run although it is configured well and trusted.
    pub off: Option<String>,
}

impl Handler {
    /// Its id: the same in every session that reads the same file.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}#{}", self.source.display(), self.json_path)
    }

    /// The command as it is named in messages.
    #[must_use]
    pub fn label(&self) -> &str {
        self.action.label()
    }

    /// The place in its file.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}: {}", self.source.display(), self.json_path)
    }
}

/// The handlers in force, which a reload of the settings replaces as a whole; a firing keeps the set it began with.
#[derive(Debug, Default)]
pub struct LiveHandlers(RwLock<Arc<HandlerSet>>);

impl LiveHandlers {
    /// Begins with these.
    #[must_use]
    pub fn new(handlers: HandlerSet) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(handlers))))
    }

    /// The set in force now.
    #[must_use]
    pub fn current(&self) -> Arc<HandlerSet> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another set in force, for what fires from now on.
    pub fn replace(&self, handlers: HandlerSet) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(handlers);
    }
}

/// All handlers of one dialect, in configuration order.
#[derive(Debug, Clone, Default)]
pub struct HandlerSet {
    handlers: Vec<Arc<Handler>>,
}

impl HandlerSet {
    /// A set of these handlers.
    #[must_use]
    pub fn new(handlers: Vec<Handler>) -> Self {
        Self { handlers: handlers.into_iter().map(Arc::new).collect() }
    }

    /// All handlers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter()
    }

    /// The handlers of one event.
    pub fn of(&self, event: Event) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter().filter(move |h| h.event == event)
    }

    /// The handlers that wait for acceptance.
    pub fn held_back(&self) -> impl Iterator<Item = &Arc<Handler>> {
        self.handlers.iter().filter(|h| h.trust == Trust::HeldBack)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.handlers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hook `{}` ({})", self.event.word(), self.label(), self.place())
    }
}
