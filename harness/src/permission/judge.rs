//! The judgement of one call: deny rule, ask rule, allow rule, then the mode.

use std::path::{Path, PathBuf};

use super::matching::{self, Call, Line};
use super::mode::{Behaviour, Mode};
use super::read_only::{self, Guarding, Verdict};
use super::rule::Specifier;
use super::store::{RuleEntry, RuleSet};
use crate::point::tools::{AskOrigin, DeniedBy};
use crate::tool::{Access, Effect, Escalation};

/// Folders and files of the workspace that steer tools, hooks or this program: edits of them ask in every mode that
/// asks at all.
const STEERING: &[&str] = &[".git", ".claude", ".codex", ".sluice", ".mcp.json"];

/// The folders that a judgement refers to; all absolute.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The home folder, where it is known.
    pub home: Option<&'a Path>,
    /// The workspace root, and the folders added to it.
    pub workspace: &'a [PathBuf],
    /// Where a command would run.
    pub cwd: &'a Path,
    /// The session's own folder: its files may be read unasked.
    pub state_dir: &'a Path,
    /// Where a path really leads; lexical until a store says otherwise.
    pub(super) real: RealPath,
}

/// Follows the symbolic links of an absolute path, also where its last parts do not exist.
pub type RealPath = fn(&Path) -> PathBuf;

impl<'a> Place<'a> {
    /// A place whose links a store follows, if it can.
    #[must_use]
    pub fn new(home: Option<&'a Path>, workspace: &'a [PathBuf], cwd: &'a Path, state_dir: &'a Path) -> Self {
        Self { home, workspace, cwd, state_dir, real: crate::scene::lexical }
    }

    /// The other name of a path that leads through a link, spelt from the folders of this place where it lies in one;
    /// `None` when it has no other.
    pub(super) fn behind_links(&self, path: &Path) -> Option<PathBuf> {
        let real = (self.real)(path);
        let folders = self.workspace.iter().map(PathBuf::as_path).chain([self.state_dir]).chain(self.home);
        let mut spelt =
            folders.filter_map(|folder| real.strip_prefix((self.real)(folder)).ok().map(|below| folder.join(below)));
        let real = spelt.next().unwrap_or(real);
        (real != crate::scene::lexical(path)).then_some(real)
    }

    /// Whether a path lies in the workspace under each of its names.
    pub(super) fn workspace_holds(&self, path: &Path) -> bool {
        is_inside(path, self.workspace) && self.behind_links(path).is_none_or(|real| is_inside(&real, self.workspace))
    }

    fn state_holds(&self, path: &Path) -> bool {
        path.starts_with(self.state_dir) && self.behind_links(path).is_none_or(|real| real.starts_with(self.state_dir))
    }
}

/// What policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It may run.
    Allow {
        /// The rule or mode that says so.
        why: String,
    },
    /// Somebody must be asked.
    Ask {
        /// For the person and, when nobody says yes, for the model.
        reason: Option<String>,
        /// Who wants it asked.
        origin: AskOrigin,
    },
    /// It must not run.
    Deny {
        /// For the model.
        reason: String,
        /// What denies.
        by: DeniedBy,
    },
}

/// The text of a denial when a deny rule speaks of the call.
pub(super) fn denial(rules: &RuleSet, call: &Call<'_>, place: &Place<'_>) -> Option<String> {
    rules.of(Behaviour::Deny).find(|entry| matching::strictly(entry, call, place))?;
    Some(match &call.line {
        Some(line) => format!("Permission to use {} with command {} has been denied.", call.tool, line.text),
        None => format!("Permission to use {} has been denied.", call.tool),
    })
}

/// Judges a call.
pub(super) fn judge(mode: Mode, rules: &RuleSet, call: &Call<'_>, place: &Place<'_>) -> Judgement {
    if let Some(reason) = denial(rules, call, place) {
        return Judgement::Deny { reason, by: DeniedBy::Rule };
    }
    if let Some(wish) = &call.facts.escalation
        && (mode != Mode::BypassPermissions || wish.required)
    {
        return escalation(mode, wish);
    }
    if rules.of(Behaviour::Ask).any(|entry| matching::strictly(entry, call, place)) {
        return ask(mode, call, AskOrigin::Rule);
    }
    if mode == Mode::BypassPermissions {
        return by_mode(mode);
    }
    let only_reads = only_reads(rules, call, place);
    if let Some(why) = allowance(rules, call, place)
        && (mode != Mode::Plan || only_reads || matches!(call.facts.effect, Effect::Reads | Effect::Fetches))
    {
        return Judgement::Allow { why };
    }
    let unasked = only_reads || (mode == Mode::AcceptEdits && edits_workspace(call, place));
    // Leaving plan mode is a person's choice, whatever the tool says of its effect.
    if unasked && !(mode == Mode::Plan && call.tool == "ExitPlanMode") {
        return by_mode(mode);
    }
    ask(mode, call, if mode == Mode::Plan { AskOrigin::Plan } else { AskOrigin::Mode })
}

fn by_mode(mode: Mode) -> Judgement {
    Judgement::Allow { why: format!("mode `{mode}`") }
}

/// A question, or what stands for it in a mode that asks nobody.
fn ask(mode: Mode, call: &Call<'_>, origin: AskOrigin) -> Judgement {
    let tool = call.tool;
    if mode == Mode::DontAsk {
        let reason = format!(
            "Permission to use {tool} has not been granted, and mode `dontAsk` asks nobody. An allow rule would let it run."
        );
        return Judgement::Deny { reason, by: DeniedBy::Mode };
    }
    let reason = if origin == AskOrigin::Plan {
        format!(
            "Permission to use {tool} was requested in plan mode, in which nothing is changed, and has not been granted."
        )
    } else {
        format!("Permission to use {tool} was requested but has not been granted.")
    };
    Judgement::Ask { reason: Some(reason), origin }
}

/// A question that no rule and no hook answers: whether a call may leave the sandbox.
fn escalation(mode: Mode, wish: &Escalation) -> Judgement {
    if mode == Mode::DontAsk {
        let reason = format!(
            "The sandbox was not widened to `{}`: a person must let that, and mode `dontAsk` asks nobody.",
            wish.to
        );
        return Judgement::Deny { reason, by: DeniedBy::Mode };
    }
    let reason = format!("escalate sandbox to {}: {}", wish.to, wish.justification);
    Judgement::Ask { reason: Some(reason), origin: AskOrigin::Escalation }
}

/// The allow rule that covers the call, or those that cover the parts of its command line.
fn allowance(rules: &RuleSet, call: &Call<'_>, place: &Place<'_>) -> Option<String> {
    if let Some(entry) = rules.of(Behaviour::Allow).find(|entry| matching::narrowly(entry, call, place)) {
        return Some(said_by(entry));
    }
    let line = call.line.as_ref()?;
    if line.scan.flags.unclear || line.scan.flags.redirection || line.scan.commands.is_empty() {
        return None;
    }
    let parts = read_only::parts(&line.scan, place, guarding(rules));
    let mut said = Vec::new();
    let mut counts_on_reading = false;
    let mut touches_shell = false;
    for (part, verdict) in line.scan.commands.iter().zip(parts) {
        match rules.of(Behaviour::Allow).find(|entry| matching::covers_part(entry, call.tool, part)) {
            Some(entry) => {
                said.push(said_by(entry));
                touches_shell |= verdict == Verdict::Other && read_only::changes_shell(part);
            }
            None if verdict == Verdict::ReadOnly => counts_on_reading = true,
            None => return None,
        }
    }
    said.dedup();
    // After a `cd` or an assignment that only a rule allowed, a reading command may read something else.
    let unsure = counts_on_reading && touches_shell;
    (!said.is_empty() && !unsure).then(|| said.join(", "))
}

fn said_by(entry: &RuleEntry) -> String {
    format!("allow rule `{}` ({})", entry.rule, entry.origin)
}

/// Whether some files may not be read by whoever may read the workspace.
fn guarding(rules: &RuleSet) -> Guarding {
    let guards = |entry: &RuleEntry| {
        entry.behaviour != Behaviour::Allow
            && entry.rule.tool() == "Read"
            && matches!(entry.rule.specifier(), Specifier::Path(_))
    };
    if rules.iter().any(guards) { Guarding::SomeFiles } else { Guarding::Nothing }
}

fn only_reads(rules: &RuleSet, call: &Call<'_>, place: &Place<'_>) -> bool {
    if let Some(Line { scan, .. }) = &call.line {
        return read_only::whole_line(scan, place, guarding(rules));
    }
    match call.facts.effect {
        Effect::Session => true,
        Effect::Reads => {
            call.facts.paths.iter().all(|(path, access)| {
                *access == Access::Read && (place.workspace_holds(path) || place.state_holds(path))
            })
        }
        Effect::Fetches | Effect::Edits | Effect::Anything => false,
    }
}

fn edits_workspace(call: &Call<'_>, place: &Place<'_>) -> bool {
    let paths = &call.facts.paths;
    call.line.is_none()
        && call.facts.effect == Effect::Edits
        && !paths.is_empty()
        && paths.iter().all(|(path, _)| {
            let steers = |below: &Path| {
                below.components().any(|part| STEERING.iter().any(|name| part.as_os_str().eq_ignore_ascii_case(name)))
            };
            let editable = |path: &Path| {
                let path = crate::scene::lexical(path);
                place.workspace.iter().any(|folder| path.strip_prefix(folder).is_ok_and(|below| !steers(below)))
            };
            editable(path) && place.behind_links(path).is_none_or(|real| editable(&real))
        })
}

/// Whether an absolute path without `..` lies in one of the folders.
fn is_inside(path: &Path, folders: &[PathBuf]) -> bool {
    let path = crate::scene::lexical(path);
    path.is_absolute() && folders.iter().any(|folder| path.starts_with(folder))
}
