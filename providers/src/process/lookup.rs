//! Everything that is found out before a program starts: its environment, its folder, and which file its name means.
//!
//! Reads the file system and starts nothing. The invariant: "there is no such program" and "it may not be executed"
//! are told apart, and a name is looked up in the *child's* `PATH` and folder, never in ours.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use sluice_harness::seam::process::{Environment, ProcessSpec, Program, StartProblem};

/// Where programs are looked for when the child has no `PATH`, as `execvp` does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// A program ready to be started.
#[derive(Debug)]
pub(super) struct Launch {
    /// The file.
    pub(super) path: PathBuf,
    /// What the program is told it was called as.
    pub(super) name: OsString,
    /// Its arguments.
    pub(super) args: Vec<String>,
}

/// All that was found out.
pub(super) struct Prepared {
    pub(super) launch: Launch,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// The program as the caller named it.
pub(super) fn given_name(program: &Program) -> String {
    match program {
        Program::Shell { shell, .. } => shell.clone(),
        Program::Direct { program, .. } => program.clone(),
    }
}

/// Finds everything out. Blocks.
pub(super) fn prepare(spec: &ProcessSpec) -> Result<Prepared, StartProblem> {
    check_folder(&spec.cwd)?;
    let env = environment(&spec.environment);
    let (name, args) = match &spec.program {
        Program::Shell { shell, line } => (shell, vec!["-c".to_owned(), line.clone()]),
        Program::Direct { program, args } => (program, args.clone()),
    };
    let path_list = env.iter().rev().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
    let path = find(name, path_list.unwrap_or(OsStr::new(DEFAULT_PATH)), &spec.cwd)?;
    Ok(Prepared { launch: Launch { path, name: name.into(), args }, env })
}

fn check_folder(cwd: &Path) -> Result<(), StartProblem> {
    let problem = |why: String| StartProblem::Folder { cwd: cwd.display().to_string(), why };
    let meta = std::fs::metadata(cwd).map_err(|e| problem(words(&e)))?;
    if !meta.is_dir() {
        return Err(problem("it is not a folder".to_owned()));
    }
    rustix::fs::access(cwd, Access::EXEC_OK).map_err(|e| problem(words(&e.into())))
}

fn environment(wanted: &Environment) -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> =
        std::env::vars_os().filter(|(name, _)| !wanted.without.iter().any(|pattern| fits(pattern, name))).collect();
    for (key, value) in &wanted.set {
        env.retain(|(name, _)| name != key.as_str());
        env.push((key.into(), value.into()));
    }
    env
}

fn fits(pattern: &str, name: &OsStr) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.as_encoded_bytes().starts_with(prefix.as_bytes()),
        None => name == pattern,
    }
}

fn find(name: &str, path_list: &OsStr, cwd: &Path) -> Result<PathBuf, StartProblem> {
    match which::which_in(name, Some(path_list), cwd) {
        Ok(path) => Ok(path),
        Err(_) => Err(why_not(name, path_list, cwd)),
    }
}

/// Why look-up found nothing to execute: a file that is there and may not be executed is named as such.
fn why_not(name: &str, path_list: &OsStr, cwd: &Path) -> StartProblem {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![cwd.join(name)]
    } else if name.is_empty() {
        Vec::new()
    } else {
        std::env::split_paths(path_list).map(|folder| cwd.join(folder).join(name)).collect()
    };
    let refused = |why: &str| StartProblem::NotExecutable { program: name.to_owned(), why: why.to_owned() };
    for candidate in candidates {
        match std::fs::metadata(&candidate) {
            Ok(meta) if meta.is_file() => return refused("it has no execute permission"),
            // A folder on the PATH that happens to have the name is no candidate for anybody.
            Ok(meta) if meta.is_dir() && name.contains('/') => return refused("it is a folder"),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && name.contains('/') => return refused(&words(&e)),
            Ok(_) | Err(_) => {}
        }
    }
    StartProblem::NotFound { program: name.to_owned() }
}

/// What a failed start in `cwd` means for a program that look-up did find. Blocks.
pub(super) fn explain(launch: &Launch, cwd: Option<&Path>, fault: &io::Error) -> StartProblem {
    // It may have gone since it was looked at, and the system says the same of both.
    if let Some(Err(problem)) = cwd.map(check_folder) {
        return problem;
    }
    let program = launch.name.to_string_lossy().into_owned();
    match fault.kind() {
        // The file is there, so what is missing is what its first line names.
        io::ErrorKind::NotFound => match interpreter(&launch.path) {
            Some(interpreter) => {
                StartProblem::NotFound { program: format!("{program} (its interpreter {interpreter:?})") }
            }
            None => StartProblem::NotFound { program },
        },
        io::ErrorKind::PermissionDenied => StartProblem::NotExecutable { program, why: words(fault) },
        _ if fault.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            StartProblem::NotExecutable { program, why: words(fault) }
        }
        _ => StartProblem::System { program, why: words(fault) },
    }
}

fn interpreter(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    // Only spaces and tabs separate: a carriage return is part of the name, and the usual reason for the failure.
    let line = String::from_utf8_lossy(line);
    line.trim_start_matches([' ', '\t']).split([' ', '\t']).next().map(str::to_owned)
}

/// The system's words for an error, without Rust's number behind them.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text.get(..at).unwrap_or(&text).to_owned(),
        None => text,
    }
}
