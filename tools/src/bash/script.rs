//! The fixed line that a shell runs around a proposed command, and the reading of what it reports.
//!
//! The command travels in a variable that is unset before the command's first word, so that it neither shows in the
//! process list (a command that searches that list must not find itself) nor in the command's environment. The folder
//! the command ends in is reported through a file, never through its stdout or stderr; tracing (`set -x`), `set -e`,
//! `noclobber` and an early `exit` do not disturb the report. A command that replaces the shell, or its exit trap,
//! reports nothing, and the folder then stays.

use std::path::{Path, PathBuf};

/// The variable that carries the command.
pub(super) const COMMAND_VARIABLE: &str = "SLUICE_COMMAND";

/// The line for `SHELL -c`.
pub(super) fn line(report: &Path) -> String {
    let tell = format!("command pwd -P >|{} || :", quoted(&report.display().to_string()));
    let trap = quoted(&format!("{{ {tell}; }} 2>/dev/null"));
    format!(
        "trap {trap} EXIT; eval \"unset {COMMAND_VARIABLE}\n${COMMAND_VARIABLE}\"; \
         {{ sluice_status=$?; set +xv; {tell}; }} 2>/dev/null; exit $sluice_status"
    )
}

/// The text for [`COMMAND_VARIABLE`]: the command, after the files that are to be read into the same shell.
pub(super) fn command_text(command: &str, preludes: &[PathBuf]) -> String {
    let mut text = String::new();
    for prelude in preludes {
        let file = quoted(&prelude.display().to_string());
        text.push_str(&format!("[ ! -r {file} ] || . {file}\n"));
    }
    text.push_str(command);
    text
}

/// What a report says of the folder the command ended in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// It ended here.
    Folder(PathBuf),
    /// It ended in a folder that is gone.
    Vanished,
    /// Nothing was reported.
    Silent,
}

/// Reads a report file's content; `None` when there is no file.
pub(super) fn read_report(content: Option<&[u8]>) -> Report {
    match content.map(|bytes| bytes.strip_suffix(b"\n").unwrap_or(bytes)) {
        None => Report::Silent,
        Some(b"") => Report::Vanished,
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(path) if path.starts_with('/') => Report::Folder(PathBuf::from(path)),
            Ok(_) | Err(_) => Report::Silent,
        },
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::process::{Command, Stdio};

    use super::*;

    /// Runs a command in a shell as the tool does; gives its exit code, its stderr and what it reported.
    fn run(shell: &str, command: &str) -> (Option<i32>, String, Report) {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("it's a report");
        let output = Command::new(shell)
            .args(["-c", &line(&report)])
            .env(COMMAND_VARIABLE, command_text(command, &[]))
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr, read_report(std::fs::read(&report).ok().as_deref()))
    }

    #[test]
    fn the_systems_own_shell_reports_as_well_as_bash() {
        for shell in ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists()) {
            for (command, code) in [
                ("cd /usr; exit 3", 3),
                ("set -e; cd /usr; false; echo no", 1),
                ("cd /usr # comment", 0),
                ("set -C; cd /usr", 0),
                ("trap ':' EXIT; cd /usr\n(exit 4)", 4),
            ] {
                let expected = (Some(code), String::new(), Report::Folder(PathBuf::from("/usr")));
                assert_eq!(run(shell, command), expected, "{shell}: {command}");
            }
            assert_eq!(run(shell, "echo (").0, Some(2), "{shell}");
            assert_eq!(run(shell, "cd /usr; exec true").2, Report::Silent, "{shell}");
            let vanished = "d=$(mktemp -d); cd \"$d\"; rmdir \"$d\"";
            assert_eq!(run(shell, vanished).2, Report::Vanished, "{shell}");
        }
    }

    #[test]
    fn quotes_in_paths_are_escaped() {
        assert_eq!(quoted("a'b $c"), r"'a'\''b $c'");
        assert_eq!(command_text("x", &[PathBuf::from("/e'f")]), "[ ! -r '/e'\\''f' ] || . '/e'\\''f'\nx");
    }

    #[test]
    fn a_report_is_a_folder_a_vanished_one_or_silence() {
        assert_eq!(read_report(Some(b"/a b\nc\n")), Report::Folder(PathBuf::from("/a b\nc")));
        assert_eq!(read_report(Some(b"")), Report::Vanished);
        assert_eq!(read_report(Some(b"relative\n")), Report::Silent);
        assert_eq!(read_report(None), Report::Silent);
    }
}
