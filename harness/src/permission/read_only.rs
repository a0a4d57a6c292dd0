//! Which shell commands only read, inside the workspace, and so go on unasked in mode `default`.
//!
//! The list is in `table`. A command counts when its program is on the list, its options are among those known to
//! be harmless, and every argument is literal and stays inside the workspace. The invariant: whatever is not known to
//! read only does not count.

mod git;
mod table;

use std::path::{Path, PathBuf};

use super::judge::Place;
use super::shell::{Flags, Scan, SimpleCommand, Word};
use crate::scene::lexical;

/// Builtins that change the shell for the commands after them.
const SHELL_CHANGERS: &[&str] = &[
    "cd", "pushd", "popd", "eval", "source", ".", "export", "alias", "unalias", "set", "shopt", "builtin", "command",
    "exec", "declare", "typeset", "local", "readonly", "trap", "enable", "hash", "unset", "read", "mapfile", "getopts",
];

/// Following more `cd`s than this is given up.
const MAX_FOLDERS: usize = 32;

/// Whether a rule keeps some files from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guarding {
    /// No rule does.
    Nothing,
    /// One does: commands whose files are not each named do not count.
    SomeFiles,
}

/// What a single command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It only reads.
    ReadOnly,
    /// It may do anything.
    Other,
}

/// Whether a whole line only reads.
pub(super) fn whole_line(scanned: &Scan, place: &Place<'_>, guarding: Guarding) -> bool {
    scanned.flags == Flags::default()
        && !scanned.commands.is_empty()
        && parts(scanned, place, guarding).into_iter().all(|verdict| verdict == Verdict::ReadOnly)
}

/// A verdict for each command of a line, in order.
pub(super) fn parts(scanned: &Scan, place: &Place<'_>, guarding: Guarding) -> Vec<Verdict> {
    let folders = Folders::after(scanned, place.cwd);
    let ground = Ground { folders: &folders, place, guarding };
    scanned.commands.iter().map(|c| if ground.only_reads(c) { Verdict::ReadOnly } else { Verdict::Other }).collect()
}

/// Whether a part may change what later parts of its line mean.
pub(super) fn changes_shell(part: &SimpleCommand) -> bool {
    part.name().is_none_or(|name| SHELL_CHANGERS.contains(&name.text.as_str()))
}

/// Whether a program of the list takes the names of files to read.
pub(super) fn reads_files(program: &str) -> bool {
    program == "git" || table::find(program).is_some_and(|entry| entry.reads_files)
}

/// Every folder that a command of the line may run in, whatever ran before it.
pub(super) struct Folders {
    each: Vec<PathBuf>,
    moved: bool,
    known: bool,
}

impl Folders {
    /// Follows the `cd`s of a line from a folder.
    pub(super) fn after(scanned: &Scan, cwd: &Path) -> Self {
        let mut folders = Self { each: vec![cwd.to_owned()], moved: false, known: true };
        for command in &scanned.commands {
            let [name, .., to] = command.words.as_slice() else { continue };
            if name.text != "cd" && name.text != "pushd" {
                continue;
            }
            folders.moved = true;
            let reached: Vec<_> = folders.each.iter().map(|from| lexical(&from.join(&to.text))).collect();
            for folder in reached {
                if !folders.each.contains(&folder) {
                    folders.each.push(folder);
                }
            }
            if folders.each.len() > MAX_FOLDERS {
                folders.known = false;
                break;
            }
        }
        folders
    }

    /// Each of them.
    pub(super) fn each(&self) -> impl Iterator<Item = &Path> {
        self.each.iter().map(PathBuf::as_path)
    }
}

/// What the commands of one line stand on.
struct Ground<'a> {
    folders: &'a Folders,
    place: &'a Place<'a>,
    guarding: Guarding,
}

impl Ground<'_> {
    fn only_reads(&self, command: &SimpleCommand) -> bool {
        let Some((name, arguments)) = command.words.split_first() else { return false };
        let grounded = self.folders.known && self.folders.each().all(|folder| self.place.workspace_holds(folder));
        if !grounded || !command.assignments.is_empty() || !command.redirects.is_empty() || name.dynamic || name.glob {
            return false;
        }
        if arguments.iter().any(|word| word.dynamic) {
            return false;
        }
        match name.text.as_str() {
            "cd" => matches!(arguments, [to] if !to.glob && !to.text.starts_with('-') && self.stays_inside(to)),
            // A folder inside the workspace can pose as a repository whose configuration runs programs.
            "git" => !self.folders.moved && git::only_reads(arguments) && self.all_inside(arguments),
            program => table::find(program).is_some_and(|entry| self.fits(entry, arguments)),
        }
    }

    fn fits(&self, entry: &table::Entry, arguments: &[Word]) -> bool {
        let leading_pattern = |word: &Word| word.glob && word.text.starts_with(['*', '?', '[', '-']);
        let may_become_option = !entry.options.are_free() && arguments.iter().any(leading_pattern);
        let unnamed_files = self.guarding == Guarding::SomeFiles
            && entry.reads_files
            && (arguments.iter().any(|word| word.glob) || (entry.reads_trees)(arguments));
        let operands = arguments.get(entry.script_words(arguments)..).unwrap_or_default();
        !may_become_option && !unnamed_files && entry.options.allow(arguments) && self.all_inside(operands)
    }

    fn all_inside(&self, words: &[Word]) -> bool {
        words.iter().all(|word| self.stays_inside(word))
    }

    /// Whether a word, read as a path in every way a program might, names nothing outside the workspace.
    fn stays_inside(&self, word: &Word) -> bool {
        let text = word.text.as_str();
        // `.*` and `.?` can become `..`.
        let dotted = |part: &str| part.starts_with('.') && part.contains(['*', '?', '[']);
        if word.glob && text.split('/').any(dotted) {
            return false;
        }
        // A value may begin anywhere in a cluster of short options.
        let is_cluster = text.starts_with('-') && !text.starts_with("--");
        if is_cluster && (text.contains('/') || text.contains("..")) {
            return false;
        }
        let value = text.split_once('=').map(|(_, value)| value);
        [Some(text), value].into_iter().flatten().all(|path| {
            path == "/dev/null"
                || (!path.starts_with('~')
                    && self.folders.each().all(|folder| self.place.workspace_holds(&folder.join(path))))
        })
    }
}
