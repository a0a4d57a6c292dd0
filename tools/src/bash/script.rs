//! The fixed line that a shell runs around a proposed command, and the reading of what it reports.
//!
//! The command travels in a variable that is unset before the command's first word, so that it neither shows in the
//! process list (a command that searches that list must not find itself) nor in the command's environment. One that is
//! too long for a variable of the environment comes through the shell's input, which is closed behind it. The folder
//! the command ends in is reported through a file, never through its stdout or stderr; tracing (`set -x`), `set -e`,
//! `noclobber` and an early `exit` do not disturb the report. A command that replaces the shell, or its exit trap,
//! reports nothing, and the folder then stays.

use std::path::{Path, PathBuf};

/// The variable that carries the command.
pub(super) const COMMAND_VARIABLE: &str = "SLUICE_COMMAND";

/// What the report's file holds before it is written: no report.
pub(super) const UNWRITTEN: &str = "-";

/// Longer texts do not travel in a variable: below the 128 KiB that Linux allows one entry of the environment.
const LONGEST_IN_VARIABLE: usize = 120_000;

/// The way that a command takes into its shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Road {
    /// As the value of [`COMMAND_VARIABLE`] in the shell's own environment.
    Variable(String),
    /// As the shell's input.
    Input(Vec<u8>),
}

/// The way for a text.
pub(super) fn road(text: String) -> Road {
    if text.len() <= LONGEST_IN_VARIABLE { Road::Variable(text) } else { Road::Input(text.into_bytes()) }
}

/// The line for `SHELL -c`. Without a report nobody wants to know where the command ends.
pub(super) fn line(report: Option<&Path>, road: &Road) -> String {
    let fetch = match road {
        Road::Variable(_) => String::new(),
        Road::Input(_) => format!("{COMMAND_VARIABLE}=$(command -p cat); exec </dev/null; "),
    };
    let run = format!("{fetch}eval \"unset {COMMAND_VARIABLE}\n${COMMAND_VARIABLE}\"");
    let Some(report) = report else { return run };
    let tell = format!("command pwd -P >|{} || :", quoted(&report.display().to_string()));
    let trap = quoted(&format!("{{ {tell}; }} 2>/dev/null"));
    format!("trap {trap} EXIT; {run}; {{ sluice_status=$?; set +xv; {tell}; }} 2>/dev/null; exit $sluice_status")
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

    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// Runs a command in a shell as the tool does; gives its exit code, its stderr and what it reported.
    fn run(shell: &str, road: &Road) -> (Option<i32>, String, Report) {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("it's a report");
        let mut process = Command::new(shell);
        process
            .args(["-c", &line(Some(&report), road)])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = match road {
            Road::Variable(text) => process.env(COMMAND_VARIABLE, text).output().unwrap(),
            Road::Input(bytes) => {
                let mut child = process.stdin(Stdio::piped()).spawn().unwrap();
                child.stdin.take().unwrap().write_all(bytes).unwrap();
                child.wait_with_output().unwrap()
            }
        };
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), stderr, read_report(std::fs::read(&report).ok().as_deref()))
    }

    #[test]
    fn the_systems_own_shell_reports_as_well_as_bash() {
        let roads = |command: &str| {
            let text = command_text(command, &[]);
            [Road::Variable(text.clone()), Road::Input(text.into_bytes())]
        };
        for shell in ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists()) {
            for (command, code) in [
                ("cd /usr; exit 3", 3),
                ("set -e; cd /usr; false; echo no", 1),
                ("cd /usr # comment", 0),
                ("set -C; cd /usr", 0),
                ("trap ':' EXIT; cd /usr\n(exit 4)", 4),
                ("cd /usr; [ -z \"$(cat)\" ]; (exit 5)", 5),
            ] {
                for road in roads(command) {
                    let expected = (Some(code), String::new(), Report::Folder(PathBuf::from("/usr")));
                    assert_eq!(run(shell, &road), expected, "{shell}: {road:?}");
                }
            }
            for road in roads("echo (") {
                assert_eq!(run(shell, &road).0, Some(2), "{shell}");
            }
            for road in roads("cd /usr; exec true") {
                assert_eq!(run(shell, &road).2, Report::Silent, "{shell}");
            }
            for road in roads("d=$(mktemp -d); cd \"$d\"; rmdir \"$d\"") {
                assert_eq!(run(shell, &road).2, Report::Vanished, "{shell}");
            }
        }
    }

    #[test]
    fn only_what_is_too_long_for_a_variable_takes_the_other_road() {
        assert_eq!(road("x".repeat(120_000)), Road::Variable("x".repeat(120_000)));
        assert_eq!(road("x".repeat(120_001)), Road::Input(vec![b'x'; 120_001]));
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
