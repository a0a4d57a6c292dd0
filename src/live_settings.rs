//! The settings of a session as files that may change while it runs.
//!
//! Each file's text in force is kept here, and discovery reads these texts and nothing else, so that a change counts
//! only once it was offered and applied. The invariant: a file that is gone, or that cannot be parsed any more, leaves
//! its last good version in force and is said once. Hooks and the allow, ask and deny rules follow; the mode, `env` and
//! the command line's settings are as they were when the session began. What a change may be the work of is told by
//! [`LiveSettings::may_be_the_models`], for [`crate::settings_gate`].

mod surroundings;

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use sluice_bridges::claude_code::{self, Discovery};
use sluice_bridges::{BridgeConfig, Dialect, Layer, LiveHandlers, Problem, Severity, codex};
use sluice_harness::Fut;
use sluice_harness::ids::Seq;
use sluice_harness::log::LogHandle;
use sluice_harness::log::event::{EventKind as _, ToolCall};
use sluice_harness::permission::PermissionStore;
use sluice_harness::scene::Scene;
use sluice_harness::seam::host_files::{HostFiles, PathKind};
use sluice_harness::seam::live::NoticeLevel;
use sluice_harness::seam::settings::{Settings, SettingsChange, SettingsSource};
use sluice_providers::process::LocalProcesses;

use crate::compose::Dialects;
use crate::settings_rules::entry_rules;

use surroundings::{Recording, Surroundings};

/// Who speaks, in what the user is told.
const SOURCE: &str = "settings";

/// Times are kept with the precision of a clock tick: what was written within this before is looked into again.
const FRESH: Duration = Duration::from_secs(1);

/// The watched files and what follows them.
pub(crate) struct LiveSettings {
    config: Arc<BridgeConfig>,
    files: Arc<dyn HostFiles>,
    dialects: Dialects,
    permissions: Arc<PermissionStore>,
    claude: Arc<LiveHandlers>,
    codex: Arc<LiveHandlers>,
    processes: Arc<LocalProcesses>,
    surroundings: Surroundings,
    state: Mutex<State>,
}

struct State {
    watched: Vec<Watched>,
    /// How much of the log there was at the last look.
    seen: u64,
    /// What is known to be wrong with what is in force.
    problems: Vec<Problem>,
}

/// One file.
#[derive(Clone)]
struct Watched {
    change: SettingsChange,
    /// As it was last looked into; `None` makes it be looked into again.
    stamp: Option<Stamp>,
    /// What is in force.
    in_force: Held,
    /// What it holds instead, offered and not yet judged.
    pending: Option<Vec<u8>>,
    /// Whether the model was at work between the look that found that and the one before.
    in_work: bool,
    /// What it holds instead and was kept out.
    declined: Option<Vec<u8>>,
    /// What it held when it was said to be of no use.
    useless: Option<Held>,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    Text(Vec<u8>),
    Absent,
    /// It is there and cannot be read.
    Unreadable,
}

impl Held {
    fn of(read: Result<Vec<u8>, &io::Error>) -> Self {
        match read {
            Ok(text) => Self::Text(text),
            Err(why) if matches!(why.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Self::Absent,
            Err(_) => Self::Unreadable,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stamp {
    Absent,
    /// The time of the last change of its state is nobody's to set.
    File {
        inode: u64,
        length: u64,
        seconds: i64,
        nanos: i64,
        changed: (i64, i64),
    },
}

/// What was found at the beginning.
pub(crate) struct Begun {
    pub(crate) claude: Discovery,
    pub(crate) codex: codex::Discovery,
    watched: Vec<Watched>,
    surroundings: Surroundings,
}

/// Reads every settings file once.
pub(crate) async fn begin(config: &BridgeConfig, files: &dyn HostFiles) -> Begun {
    let recording = Recording::of(files);
    let claude = claude_code::files(config).into_iter().map(|(layer, path)| (Dialect::ClaudeCode, layer, path));
    let codex = codex::files(config, &recording).await.into_iter().map(|(layer, path)| (Dialect::Codex, layer, path));
    let mut watched = Vec::new();
    for (dialect, layer, path) in claude.chain(codex) {
        let source = match layer {
            Layer::User => SettingsSource::User,
            Layer::Project => SettingsSource::Project,
            Layer::Local => SettingsSource::Local,
            Layer::Flag => continue,
        };
        let stamp = stamp(&path).await;
        let read = files.read(&path).await;
        let in_force = Held::of(read.as_ref().map(Vec::clone));
        let change = SettingsChange { owner: dialect.word().to_owned(), source, path };
        watched.push(Watched { change, stamp, in_force, pending: None, in_work: false, declined: None, useless: None });
    }
    let (claude, codex) = {
        let shown = InForce::of(&watched, Around::Now(&recording));
        (claude_code::discover(config, &shown).await, sluice_bridges::codex::discover(config, &shown).await)
    };
    Begun { claude, codex, watched, surroundings: recording.finish() }
}

impl LiveSettings {
    /// Goes on from what was found, with the handlers and rules that are to follow.
    pub(crate) fn follow(
        begun: Begun,
        config: Arc<BridgeConfig>,
        files: Arc<dyn HostFiles>,
        dialects: Dialects,
        permissions: Arc<PermissionStore>,
        processes: Arc<LocalProcesses>,
        log: &LogHandle,
    ) -> Self {
        let Begun { claude, codex, watched, surroundings } = begun;
        let mut problems = Vec::new();
        if dialects.claude_code {
            problems.extend(claude.problems);
        }
        if dialects.codex {
            problems.extend(codex.problems);
        }
        Self {
            config,
            files,
            dialects,
            permissions,
            claude: LiveHandlers::new(claude.handlers),
            codex: LiveHandlers::new(codex.handlers),
            processes,
            surroundings,
            state: Mutex::new(State { watched, seen: log.len(), problems }),
        }
    }

    /// The handlers in force of the Claude dialect.
    pub(crate) fn claude(&self) -> Arc<LiveHandlers> {
        Arc::clone(&self.claude)
    }

    /// The handlers in force of the Codex dialect.
    pub(crate) fn codex(&self) -> Arc<LiveHandlers> {
        Arc::clone(&self.codex)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> Vec<Watched> {
        self.lock().watched.clone()
    }

    fn put(&self, file: Watched) {
        let mut state = self.lock();
        if let Some(slot) = state.watched.iter_mut().find(|w| w.change == file.change) {
            *slot = file;
        }
    }

    /// Whether a call of the model has begun since the last look, or something that a call started is still there.
    fn was_in_work(&self, log: &LogHandle) -> bool {
        let from = std::mem::replace(&mut self.lock().seen, log.len());
        self.processes.keeps_for_the_model()
            || log.since(Seq(from)).iter().any(|logged| &*logged.kind == ToolCall::TYPE)
    }

    /// Whether an offered change may be the model's own, for it was at work when the change came.
    pub(crate) fn may_be_the_models(&self, change: &SettingsChange) -> bool {
        self.lock().watched.iter().any(|file| file.change == *change && file.in_work)
    }

    /// Looks into one file; what the user is to be told of it, if anything.
    async fn look(&self, file: &mut Watched) -> Option<String> {
        let path = file.change.path.clone();
        let now = stamp(&path).await;
        if now.is_some() && now == file.stamp {
            return None;
        }
        file.stamp = now;
        file.pending = None;
        let shown = path.display();
        let read = self.files.read(&path).await;
        let held = Held::of(read.as_ref().map(Vec::clone));
        if held == file.in_force {
            (file.declined, file.useless) = (None, None);
            return None;
        }
        let text = match read {
            Ok(text) => text,
            Err(_) if held == Held::Absent => return useless(file, held, &format!("{shown} is gone")),
            Err(why) => return useless(file, held, &format!("{shown} cannot be read ({why})")),
        };
        if file.declined.as_ref() == Some(&text) {
            return None;
        }
        if let Some(why) = self.unreadable(&file.change, &text).await {
            return useless(file, Held::Text(text), &why);
        }
        (file.pending, file.useless) = (Some(text), None);
        None
    }

    /// Why a text would lose everything in it, if it would.
    async fn unreadable(&self, change: &SettingsChange, text: &[u8]) -> Option<String> {
        let mut watched = self.watched();
        for file in watched.iter_mut().filter(|w| w.change == *change) {
            file.in_force = Held::Text(text.to_vec());
        }
        let shown = InForce::of(&watched, Around::Then(&self.surroundings));
        let problems = if change.owner == Dialect::ClaudeCode.word() {
            claude_code::discover(&self.config, &shown).await.problems
        } else {
            codex::discover(&self.config, &shown).await.problems
        };
        let path = change.path.display().to_string();
        let lost = |p: &&Problem| matches!(p.code, "settings-unreadable" | "hooks-file-unreadable");
        let found = problems.iter().filter(lost).find(|p| p.cause.contains(&path))?;
        let cause = found.cause.trim_end_matches('.');
        Some(cause.rsplit_once(", so its ").map_or(cause, |(cause, _)| cause).to_owned())
    }

    /// Reads the texts in force again, and puts what they say in the place of what they said.
    async fn reload(&self) -> Vec<Problem> {
        let watched = self.watched();
        let shown = InForce::of(&watched, Around::Then(&self.surroundings));
        let claude = claude_code::discover(&self.config, &shown).await;
        let codex = codex::discover(&self.config, &shown).await;
        let mut problems = Vec::new();
        for entry in &claude.permissions {
            if watched.iter().any(|w| w.change.path == entry.origin) {
                let rules = entry_rules(entry, &mut problems);
                self.permissions.replace_origin(&entry.origin.display().to_string(), &entry.anchor, rules);
            }
        }
        self.claude.replace(claude.handlers);
        self.codex.replace(codex.handlers);
        if self.dialects.claude_code {
            problems.extend(claude.problems);
        }
        if self.dialects.codex {
            problems.extend(codex.problems);
        }
        let before = std::mem::replace(&mut self.lock().problems, problems.clone());
        problems.retain(|problem| !before.contains(problem));
        problems
    }
}

impl Settings for LiveSettings {
    fn changed<'a>(&'a self, scene: Scene<'a>) -> Fut<'a, Vec<SettingsChange>> {
        Box::pin(async move {
            let mut changes = Vec::new();
            let in_work = self.was_in_work(scene.log);
            for mut file in self.watched() {
                // What was offered already stays what it was.
                file.in_work = in_work || (file.in_work && file.pending.is_some());
                let said = self.look(&mut file).await;
                if file.pending.is_some() {
                    changes.push(file.change.clone());
                }
                self.put(file);
                if let Some(text) = said {
                    scene.tell(NoticeLevel::Warning, SOURCE, text).await;
                }
            }
            changes
        })
    }

    fn apply<'a>(&'a self, scene: Scene<'a>, change: &'a SettingsChange) -> Fut<'a, ()> {
        Box::pin(async move {
            for mut file in self.watched().into_iter().filter(|w| w.change == *change) {
                if let Some(text) = file.pending.take() {
                    (file.in_force, file.declined) = (Held::Text(text), None);
                }
                self.put(file);
            }
            let text = format!("{} changed and was read again", change.path.display());
            scene.tell(NoticeLevel::Info, SOURCE, text).await;
            for problem in self.reload().await {
                let level = match problem.severity {
                    Severity::Info => NoticeLevel::Info,
                    Severity::Warning => NoticeLevel::Warning,
                    Severity::Error => NoticeLevel::Error,
                };
                scene.tell(level, SOURCE, problem.to_string()).await;
            }
        })
    }

    fn decline(&self, change: &SettingsChange) {
        for mut file in self.watched().into_iter().filter(|w| w.change == *change) {
            file.declined = file.pending.take();
            self.put(file);
        }
    }
}

/// A change that cannot count; the text is for the user, and comes once for what the file holds.
fn useless(file: &mut Watched, held: Held, why: &str) -> Option<String> {
    if file.useless.as_ref() == Some(&held) {
        return None;
    }
    file.useless = Some(held);
    let stays = match file.in_force {
        Held::Text(_) => "its last good version stays in force",
        Held::Absent | Held::Unreadable => "it does not count",
    };
    Some(format!("{why}; {stays}"))
}

/// What tells one version of a file from another; `None` where that cannot be relied on yet.
async fn stamp(path: &Path) -> Option<Stamp> {
    let Ok(meta) = tokio::fs::metadata(path).await else { return Some(Stamp::Absent) };
    let settled =
        meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok()).is_some_and(|age| age > FRESH);
    let changed = (meta.ctime(), meta.ctime_nsec());
    let stamp =
        Stamp::File { inode: meta.ino(), length: meta.len(), seconds: meta.mtime(), nanos: meta.mtime_nsec(), changed };
    settled.then_some(stamp)
}

/// The watched files as they are in force, and what is around them.
struct InForce<'a> {
    texts: Vec<(PathBuf, Held)>,
    around: Around<'a>,
}

/// What is around the watched files.
enum Around<'a> {
    /// As it is, and written down.
    Now(&'a Recording<'a>),
    /// As it was written down.
    Then(&'a Surroundings),
}

impl<'a> InForce<'a> {
    fn of(watched: &[Watched], around: Around<'a>) -> Self {
        Self { texts: watched.iter().map(|w| (w.change.path.clone(), w.in_force.clone())).collect(), around }
    }
}

impl HostFiles for InForce<'_> {
    fn read<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<Vec<u8>>> {
        let ready = |read| -> Fut<'a, _> { Box::pin(std::future::ready(read)) };
        match (self.texts.iter().find(|(watched, _)| watched == path), &self.around) {
            (Some((_, Held::Text(text))), _) => ready(Ok(text.clone())),
            (Some((_, Held::Absent)), _) => ready(Err(io::ErrorKind::NotFound.into())),
            (Some((_, Held::Unreadable)) | None, Around::Now(recording)) => recording.read(path),
            // That it can be read by now is a change of its own, which is offered first.
            (Some((_, Held::Unreadable)), Around::Then(_)) => ready(Err(rustix::io::Errno::ACCESS.into())),
            (None, Around::Then(surroundings)) => ready(surroundings.text(path)),
        }
    }

    fn append<'a>(&'a self, _path: &'a Path, _bytes: &'a [u8]) -> Fut<'a, io::Result<()>> {
        // Discovery only reads.
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }

    fn kind<'a>(&'a self, path: &'a Path) -> Fut<'a, Option<PathKind>> {
        match &self.around {
            Around::Now(recording) => recording.kind(path),
            Around::Then(surroundings) => Box::pin(std::future::ready(surroundings.kind(path))),
        }
    }

    fn canonical<'a>(&'a self, path: &'a Path) -> Fut<'a, io::Result<PathBuf>> {
        match &self.around {
            Around::Now(recording) => recording.canonical(path),
            Around::Then(surroundings) => Box::pin(std::future::ready(surroundings.canonical(path))),
        }
    }
}
