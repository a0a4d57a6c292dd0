//! Starting the shell of one call: its folder, its environment, its limits and where its output is kept.
//!
//! The same for a command that is waited for and one that is not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_harness::seam::process::running::{Lasts, Running};
use sluice_harness::seam::process::{
    Confinement, Environment, Keep, Owner, ProcessSpec, Processes, Program, Spill, StartProblem,
};
use sluice_harness::tool::{BodyView, ToolFailure};

use super::script::{self, Road};
use super::{Bash, time_limit_ms};
use crate::arguments::{flag_at, text_at, whole_at};

/// How long after TERM the group is killed.
const GRACE: Duration = Duration::from_millis(500);
/// Kept of the head and of the tail of each output: together 30 000 characters of plain text.
const KEPT_OF_EACH_END: usize = 15_000;
/// How much of a long output a file takes.
const LONGEST_FILE: u64 = 64 * 1024 * 1024;

/// A command that was started.
pub(super) struct Begun {
    pub(super) running: Box<dyn Running>,
    /// Where it began.
    pub(super) cwd: PathBuf,
    /// What is to be said of that; empty where nothing is.
    pub(super) note: String,
}

impl Bash {
    /// Starts the call's command in the session's folder, or where that is gone in the one that the session began in.
    pub(super) async fn begin(
        &self,
        body: &BodyView<'_>,
        report: Option<&Path>,
        lasts: Lasts,
    ) -> Result<Begun, ToolFailure> {
        let session = body.scene().session;
        let processes = body.lease::<dyn Processes>()?;
        let cwd = session.cwd();
        let fault = match processes.start(self.spec(body, &cwd, report), lasts).await {
            Ok(running) => return Ok(Begun { running, cwd, note: String::new() }),
            Err(fault) => fault,
        };
        if !matches!(fault, StartProblem::Folder { .. }) || cwd == session.start_dir {
            return Err(not_started(&fault));
        }
        let start = &session.start_dir;
        let running =
            processes.start(self.spec(body, start, report), lasts).await.map_err(|fault| not_started(&fault))?;
        let note =
            format!("The current folder {} no longer exists; the command ran in {}.", cwd.display(), start.display());
        Ok(Begun { running, cwd: start.clone(), note })
    }

    fn spec(&self, body: &BodyView<'_>, cwd: &Path, report: Option<&Path>) -> ProcessSpec {
        let session = body.scene().session;
        let preludes = self.config.preludes.as_ref().map(|name| name(session)).unwrap_or_default();
        let mut set = vec![
            ("TERM".to_owned(), "dumb".to_owned()),
            ("PAGER".to_owned(), "cat".to_owned()),
            ("GIT_PAGER".to_owned(), "cat".to_owned()),
            ("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()),
        ];
        set.extend(self.config.set.iter().cloned());
        let road = script::road(script::command_text(text_at(body.input(), "command"), &preludes));
        let line = script::line(report, &road);
        let stdin = match road {
            Road::Variable(text) => {
                set.push((script::COMMAND_VARIABLE.to_owned(), text));
                Vec::new()
            }
            Road::Input(bytes) => bytes,
        };
        let spill =
            Spill { folder: session.state_dir.join("tool-results"), stem: "bash".to_owned(), limit: LONGEST_FILE };
        ProcessSpec {
            program: Program::Shell { shell: self.shell.to_owned(), line },
            owner: Owner::Model(Confinement {
                policy: self.policy(body),
                files: report.map(Path::to_owned).into_iter().collect(),
            }),
            cwd: cwd.to_owned(),
            environment: Environment { without: self.config.without.clone(), set },
            stdin,
            deadline: deadline(body),
            grace: GRACE,
            keep: Keep::AlsoInFile { ends: KEPT_OF_EACH_END, spill },
        }
    }
}

/// What goes on in the background has a time limit only where the call gives one.
fn deadline(body: &BodyView<'_>) -> Option<Duration> {
    let unlimited = flag_at(body.input(), "run_in_background") && whole_at(body.input(), "timeout").is_none();
    (!unlimited).then(|| Duration::from_millis(time_limit_ms(body.input())))
}

pub(super) fn not_started(problem: &StartProblem) -> ToolFailure {
    if let StartProblem::SandboxUnavailable { why } = problem {
        return ToolFailure::coded("SandboxError", "SANDBOX_UNAVAILABLE", why.clone());
    }
    ToolFailure::coded("ProcessError", "PROCESS_NOT_STARTED", format!("the command could not be started: {problem}"))
}
