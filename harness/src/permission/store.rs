//! A session's permission mode and rules, shared by all who judge or change them.
//!
//! Rules keep where they came from. Each change is one short write under the lock; readers take a snapshot, so that a
//! call is judged by one state and never by half of a reload.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use thiserror::Error;

use super::judge::{self, Judgement, Place, RealPath};
use super::matching::{self, Call};
use super::mode::{Behaviour, Mode};
use super::rule::Rule;
use crate::json::Json;
use crate::tool::CallFacts;

/// A rule with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEntry {
    /// The rule.
    pub rule: Rule,
    /// What it does.
    pub behaviour: Behaviour,
    /// Where it came from, such as `user settings /home/me/.claude/settings.json`.
    pub origin: String,
    /// The folder that its `/…` and relative patterns begin at; absolute.
    pub anchor: PathBuf,
}

/// The rules of all sources, in the order in which they were added. No source replaces another's rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleSet {
    entries: Vec<RuleEntry>,
}

impl RuleSet {
    /// Every rule.
    pub fn iter(&self) -> impl Iterator<Item = &RuleEntry> {
        self.entries.iter()
    }

    /// The rules of one behaviour.
    pub fn of(&self, behaviour: Behaviour) -> impl Iterator<Item = &RuleEntry> {
        self.entries.iter().filter(move |e| e.behaviour == behaviour)
    }

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn add(&mut self, origin: &str, anchor: &Path, behaviour: Behaviour, rules: Vec<Rule>) {
        for rule in rules {
            let entry = RuleEntry { rule, behaviour, origin: origin.to_owned(), anchor: anchor.to_owned() };
            if !self.entries.contains(&entry) {
                self.entries.push(entry);
            }
        }
    }
}

/// The mode and rules of a session.
#[derive(Debug, Default)]
pub struct PermissionStore {
    state: RwLock<State>,
    real: Option<RealPath>,
}

#[derive(Debug, Default)]
struct State {
    mode: Mode,
    rules: Arc<RuleSet>,
    directories: Arc<Vec<PathBuf>>,
    /// Who wants no `bypassPermissions`.
    no_bypass: Option<String>,
}

/// A mode that a settings file switched off.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the mode bypassPermissions is switched off by `permissions.disableBypassPermissionsMode` in {origin}")]
pub struct ModeOff {
    /// The file.
    pub origin: String,
}

impl PermissionStore {
    /// A store without rules.
    #[must_use]
    pub fn new(mode: Mode) -> Self {
        Self { state: RwLock::new(State { mode, ..State::default() }), real: None }
    }

    /// The store with something that follows symbolic links; without it every judgement is lexical.
    #[must_use]
    pub fn following(mut self, real: RealPath) -> Self {
        self.real = Some(real);
        self
    }

    fn at<'a>(&self, place: &Place<'a>, workspace: &'a [PathBuf]) -> Place<'a> {
        Place { workspace, real: self.real.unwrap_or(place.real), ..*place }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mode in force.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.read().mode
    }

    /// Changes the mode, for calls that are judged from now on.
    ///
    /// # Errors
    /// When the mode is one that was switched off; the old one stays.
    pub fn set_mode(&self, mode: Mode) -> Result<(), ModeOff> {
        let mut state = self.write();
        match (&state.no_bypass, mode) {
            (Some(origin), Mode::BypassPermissions) => return Err(ModeOff { origin: origin.clone() }),
            (Some(_) | None, _) => state.mode = mode,
        }
        Ok(())
    }

    /// Switches the mode `bypassPermissions` off, for as long as the session lives: where it is in force, `default`
    /// takes its place. `origin` is the file that wants it; the first one is the one that is named.
    pub fn forbid_bypass(&self, origin: &str) {
        let mut state = self.write();
        state.no_bypass.get_or_insert_with(|| origin.to_owned());
        if state.mode == Mode::BypassPermissions {
            state.mode = Mode::Default;
        }
    }

    /// Adds rules of one source; a rule that is already there stays single.
    pub fn add_rules(&self, origin: &str, anchor: &Path, behaviour: Behaviour, rules: Vec<Rule>) {
        Arc::make_mut(&mut self.write().rules).add(origin, anchor, behaviour, rules);
    }

    /// Replaces a source's rules of one behaviour.
    pub fn replace_rules(&self, origin: &str, anchor: &Path, behaviour: Behaviour, rules: Vec<Rule>) {
        let mut state = self.write();
        let set = Arc::make_mut(&mut state.rules);
        set.entries.retain(|e| e.origin != origin || e.behaviour != behaviour);
        set.add(origin, anchor, behaviour, rules);
    }

    /// Removes some of a source's rules of one behaviour.
    pub fn remove_rules(&self, origin: &str, behaviour: Behaviour, rules: &[Rule]) {
        let mut state = self.write();
        let set = Arc::make_mut(&mut state.rules);
        set.entries.retain(|e| e.origin != origin || e.behaviour != behaviour || !rules.contains(&e.rule));
    }

    /// Replaces all that a source had, in one step: what a reload of its file does.
    pub fn replace_origin(&self, origin: &str, anchor: &Path, rules: Vec<(Behaviour, Rule)>) {
        let mut state = self.write();
        let set = Arc::make_mut(&mut state.rules);
        set.entries.retain(|e| e.origin != origin);
        for (behaviour, rule) in rules {
            set.add(origin, anchor, behaviour, vec![rule]);
        }
    }

    /// Adds a folder that counts as workspace from now on; absolute.
    pub fn add_directory(&self, directory: PathBuf) {
        let mut state = self.write();
        if !state.directories.contains(&directory) {
            Arc::make_mut(&mut state.directories).push(directory);
        }
    }

    /// Takes back a folder that was added here.
    pub fn remove_directory(&self, directory: &Path) {
        Arc::make_mut(&mut self.write().directories).retain(|d| d != directory);
    }

    /// The folders that were added here.
    #[must_use]
    pub fn directories(&self) -> Arc<Vec<PathBuf>> {
        Arc::clone(&self.read().directories)
    }

    /// The rules as they stand.
    #[must_use]
    pub fn snapshot(&self) -> Arc<RuleSet> {
        Arc::clone(&self.read().rules)
    }

    /// Judges a call by the mode and rules as they stand.
    #[must_use]
    pub fn judge(&self, tool: &str, facts: &CallFacts, input: &Json, place: &Place<'_>) -> Judgement {
        let (mode, rules, workspace) = self.state_for(place);
        judge::judge(mode, &rules, &Call::new(tool, facts, input), &self.at(place, &workspace))
    }

    /// What the deny rules alone say of a call: the text of the denial.
    #[must_use]
    pub fn denied_by_rule(&self, tool: &str, facts: &CallFacts, input: &Json, place: &Place<'_>) -> Option<String> {
        let (_, rules, workspace) = self.state_for(place);
        judge::denial(&rules, &Call::new(tool, facts, input), &self.at(place, &workspace))
    }

    /// Whether a `Read` deny rule speaks of a file: for tools that find files while they run.
    #[must_use]
    pub fn hides(&self, path: &Path, place: &Place<'_>) -> bool {
        let facts = CallFacts { paths: vec![(path.to_owned(), crate::tool::Access::Read)], ..CallFacts::default() };
        let input = Json::empty_object();
        let (_, rules, workspace) = self.state_for(place);
        let (call, place) = (Call::new("Read", &facts, &input), self.at(place, &workspace));
        rules.of(Behaviour::Deny).any(|entry| matching::strictly(entry, &call, &place))
    }

    fn state_for(&self, place: &Place<'_>) -> (Mode, Arc<RuleSet>, Vec<PathBuf>) {
        let state = self.read();
        let mut workspace = place.workspace.to_vec();
        workspace.extend(state.directories.iter().cloned());
        (state.mode, Arc::clone(&state.rules), workspace)
    }
}
