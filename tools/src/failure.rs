//! Turns the faults of seams into failures that a model can act on: what went wrong, and the remedy.
//!
//! The code is the fault's own; stale and unobserved files end with the remedy.

use std::path::{Path, PathBuf};

use sluice_harness::seam::files::{FileFault, FileKind, FileStat};
use sluice_harness::seam::search::SearchFault;
use sluice_harness::seam::web::WebFault;
use sluice_harness::tool::ToolFailure;

/// A failed file operation.
pub(crate) fn of_file(fault: &FileFault, cwd: &Path) -> ToolFailure {
    let remedy = match fault {
        // Claude Code's words (observed in PostToolUseFailure of Read).
        FileFault::NotFound { .. } => return not_found(cwd),
        FileFault::Stale { .. } => "Read it again before changing it.",
        FileFault::NotObserved { .. } => "Read it first, then repeat the change.",
        FileFault::NotText { .. } => "Use Bash with a program that understands the format.",
        FileFault::SandboxDenied { writable, guarded, .. } => {
            return coded(fault, format!("{fault}. {}", of_fence(writable, guarded.as_deref())));
        }
        FileFault::TooLarge { .. } => "Use Grep to find lines in it, or Bash with `sed -n` to show a part.",
        _ => return coded(fault, fault.to_string()),
    };
    coded(fault, format!("{fault}. {remedy}"))
}

/// An image that is larger than models take.
pub(crate) fn of_large_image(fault: &FileFault) -> ToolFailure {
    let remedy = "Make a smaller copy of the image with Bash, if a program for that is there, and Read the copy.";
    coded(fault, format!("{fault}. {remedy}"))
}

/// What is left to do where the sandbox forbids a change.
fn of_fence(writable: &[PathBuf], guarded: Option<&Path>) -> String {
    let folders: Vec<String> = writable.iter().map(|folder| folder.display().to_string()).collect();
    let rule = match (guarded, folders.as_slice()) {
        (Some(guarded), _) => format!("{} is guarded, in whichever folder it lies.", guarded.display()),
        (None, []) => "No file can be changed in this mode: say what you would change.".to_owned(),
        (None, folders) => format!(
            "Only files below {} can be changed, but for those that hold keys or decide what runs later.",
            folders.join(", ")
        ),
    };
    format!("{rule} {WIDER}")
}

const WIDER: &str = "Only the person who starts sluice can choose a wider sandbox, with `--sandbox`.";

/// Nothing is there.
pub(crate) fn not_found(cwd: &Path) -> ToolFailure {
    let message = format!("File does not exist. Note: your current working directory is {}.", cwd.display());
    ToolFailure::coded(FILE_ERROR, "FS_NOT_FOUND", message)
}

/// Something is there that is not a file.
pub(crate) fn not_a_file(path: &Path, stat: &FileStat) -> ToolFailure {
    let message = match stat.kind {
        FileKind::Folder => {
            format!("{} is a folder, not a file. List it with Glob or with Bash and `ls`.", path.display())
        }
        FileKind::File | FileKind::Other => {
            format!("{} is a device, socket or pipe, not a regular file. Use Bash if you mean it.", path.display())
        }
    };
    ToolFailure::coded(FILE_ERROR, "FS_NOT_REGULAR_FILE", message)
}

/// A failed search; `literal` says how the pattern's special characters are meant literally.
pub(crate) fn of_search(fault: &SearchFault, literal: &str) -> ToolFailure {
    let message = match fault {
        SearchFault::InvalidPattern { .. } => format!("{fault}. {literal}"),
        SearchFault::NotFound { .. } => format!("{fault}. Give an existing file or folder as path."),
        _ => fault.to_string(),
    };
    ToolFailure::coded("SearchError", fault.code(), message)
}

/// A fetch or search that failed.
pub(crate) fn of_web(fault: &WebFault) -> ToolFailure {
    ToolFailure::coded("WebError", fault.code(), fault.to_string())
}

/// A value that has no exact JSON form; only a provider's nonsense leads here.
pub(crate) fn of_value(fault: &sluice_harness::json::JsonFault) -> ToolFailure {
    ToolFailure::coded(
        "ToolOutputError",
        "INVALID_TOOL_OUTPUT",
        format!("the result cannot be written as JSON: {fault}"),
    )
}

/// The name of structured errors about files.
pub(crate) const FILE_ERROR: &str = "FsError";

fn coded(fault: &FileFault, message: String) -> ToolFailure {
    ToolFailure::coded(FILE_ERROR, fault.code(), message)
}
