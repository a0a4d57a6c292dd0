//! What every stage may know of its surroundings: the session, the turn, the log, the user's ear.
//!
//! A [`Scene`] is a bundle of borrows, handed down with each stage's own view. It lets a stage append its owner's
//! events, tell the user something and set the turn's stop latch; it decides nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::context::Context;
use crate::ids::{PromptId, SessionId, TurnId, TurnNumber};
use crate::log::LogHandle;
use crate::permission::{Mode, PermissionStore};
use crate::seam::live::{LiveEvent, LiveSink, Notice, NoticeLevel};
use crate::seam::model::ModelInfo;

/// A subagent's identity; the main agent has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// Its id.
    pub id: String,
    /// Its type, such as `general-purpose`.
    pub kind: String,
}

/// What is known of a session while it lives.
#[derive(Debug)]
pub struct SessionFacts {
    /// Its id.
    pub id: SessionId,
    /// The folder it started in; absolute. Hooks always run here.
    pub start_dir: PathBuf,
    /// The workspace root that trust and rules are anchored to; absolute.
    pub workspace_root: PathBuf,
    /// Folders beyond the workspace that tools may use; absolute.
    pub additional_dirs: Vec<PathBuf>,
    /// Set for a subagent.
    pub agent: Option<AgentIdentity>,
    /// Where this session may keep files of its own (long texts, transcripts).
    pub state_dir: PathBuf,
    /// Modes and rules.
    pub permissions: Arc<PermissionStore>,
    cwd: Mutex<PathBuf>,
    model: RwLock<ModelInfo>,
}

impl SessionFacts {
    /// The facts of a session that begins in `start_dir`.
    #[must_use]
    pub fn new(
        id: SessionId,
        start_dir: PathBuf,
        workspace_root: PathBuf,
        state_dir: PathBuf,
        permissions: Arc<PermissionStore>,
        model: ModelInfo,
    ) -> Self {
        Self {
            id,
            cwd: Mutex::new(start_dir.clone()),
            start_dir,
            workspace_root,
            additional_dirs: Vec::new(),
            agent: None,
            state_dir,
            permissions,
            model: RwLock::new(model),
        }
    }

    /// The current folder; follows a shell's `cd`.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Moves the current folder.
    pub fn set_cwd(&self, cwd: PathBuf) {
        *self.cwd.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
    }

    /// A path as the current folder sees it, `.` and `..` resolved by name alone.
    #[must_use]
    pub fn absolute(&self, path: &Path) -> PathBuf {
        lexical(&self.cwd().join(path))
    }

    /// The permission mode in force.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.permissions.mode()
    }

    /// The model in use.
    #[must_use]
    pub fn model(&self) -> ModelInfo {
        self.model.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes another model.
    pub fn set_model(&self, info: ModelInfo) {
        *self.model.write().unwrap_or_else(PoisonError::into_inner) = info;
    }
}

/// Resolves `.` and `..` by name alone, without asking the file system.
#[must_use]
pub fn lexical(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    out.push(part);
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// What is known of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFacts {
    /// Its number.
    pub number: TurnNumber,
    /// Its id, for the Codex dialect.
    pub id: TurnId,
    /// The prompt's id, for the Claude dialect.
    pub prompt_id: PromptId,
}

/// Why a turn is to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopCause {
    /// Who set the latch, such as `PreToolUse:Bash`.
    pub by: String,
    /// What the user is told, where something was said.
    pub reason: Option<String>,
    /// What kind of stop it is.
    pub kind: StopKind,
}

/// The kinds of stop that end a running turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopKind {
    /// A hook's `continue: false`, or a blocked batch.
    Hook,
    /// A permission answer that interrupts.
    Interrupt,
}

/// The turn's stop latch: written once, by any stage; nobody can take it back.
#[derive(Debug, Default)]
pub struct StopLatch(Mutex<Option<StopCause>>);

impl StopLatch {
    /// A latch that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the latch; the first cause stays.
    pub fn set(&self, cause: StopCause) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
    }

    /// The cause, when it is set.
    #[must_use]
    pub fn get(&self) -> Option<StopCause> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The surroundings as an owned bundle, for work that outlives the call that began it.
#[derive(Clone)]
pub struct SessionScene {
    /// The scope, to lease seams from.
    pub context: Context,
    /// The session.
    pub session: Arc<SessionFacts>,
    /// Its log.
    pub log: LogHandle,
    /// The user's ear.
    pub live: Arc<dyn LiveSink>,
    /// The turn; `None` between turns.
    pub turn: Option<Arc<TurnFacts>>,
    /// The signal of the session or turn.
    pub cancel: Cancel,
    /// The stop latch of the turn.
    pub latch: Arc<StopLatch>,
}

impl SessionScene {
    /// Borrowed as a stage's surroundings.
    #[must_use]
    pub fn scene(&self) -> Scene<'_> {
        Scene {
            context: &self.context,
            session: &self.session,
            turn: self.turn.as_deref(),
            log: &self.log,
            live: &*self.live,
            cancel: &self.cancel,
            latch: &self.latch,
            whole: self,
        }
    }
}

/// The surroundings of a stage.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The scope that the stage runs in, to lease seams from.
    pub context: &'a Context,
    /// The session.
    pub session: &'a SessionFacts,
    /// The turn; `None` between turns.
    pub turn: Option<&'a TurnFacts>,
    /// The session's log, for owners' events and for reading.
    pub log: &'a LogHandle,
    /// The user's ear.
    pub live: &'a dyn LiveSink,
    /// The signal of the turn or call.
    pub cancel: &'a Cancel,
    pub(crate) latch: &'a StopLatch,
    whole: &'a SessionScene,
}

impl<'a> Scene<'a> {
    /// Asks that the turn ends after what is under way (monotonic: nobody can resurrect it).
    pub fn stop_turn(&self, cause: StopCause) {
        self.latch.set(cause);
    }

    /// The same surroundings as an owned bundle, for work that nobody waits for.
    #[must_use]
    pub fn owned(self) -> SessionScene {
        SessionScene { cancel: self.cancel.clone(), ..self.whole.clone() }
    }

    /// The same surroundings with another signal.
    #[must_use]
    pub fn with_cancel(self, cancel: &'a Cancel) -> Self {
        Self { cancel, ..self }
    }

    /// Tells the user something.
    pub async fn tell(&self, level: NoticeLevel, source: &str, text: impl Into<String>) {
        let notice = Notice { level, source: source.to_owned(), text: text.into() };
        self.live.send(LiveEvent::Notice(notice)).await;
    }
}
