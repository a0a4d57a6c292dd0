//! `Bash`: runs one shell command to its end and keeps the folder it ends in, or starts one in the background.
//!
//! A fresh, non-login shell a call; only the folder persists. How the shell is started is in `launch`, what the
//! line around the command does in `script`, the wording in `words`; what becomes of a shell in the background is the
//! business of [`jobs`](crate::jobs). Time limits, process groups and captures are the process seam's.

mod launch;
mod sandbox;
mod script;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::log::EventKind;
use sluice_harness::scene::{Scene, SessionFacts};
use sluice_harness::seam::process::End;
use sluice_harness::seam::process::running::{Lasts, Mark, Output};
use sluice_harness::seam::sandbox::SandboxPolicy;
use sluice_harness::tool::{
    BodyView, CallCard, CallFacts, CallKind, CardItem, Content, Effect, Tool, ToolFailure, Verdict,
};

use crate::arguments::{flag_at, one_line, schema, text_at, whole_at};
use crate::failure;
use crate::jobs::Jobs;
use launch::Begun;
use script::Report;
pub(crate) use words::{joined, signal_name};

const DEFAULT_TIME_LIMIT_MS: u64 = 120_000;
const LONGEST_TIME_LIMIT_MS: u64 = 600_000;

/// Names the files that are read into the shell before each command of a session.
pub type Preludes = Arc<dyn Fn(&SessionFacts) -> Vec<PathBuf> + Send + Sync>;

/// What the program decides about shell commands.
#[derive(Clone, Default)]
pub struct BashConfig {
    /// Inherited variables that commands do not get: the keys of model providers. A trailing `*` stands for any rest.
    pub without: Vec<String>,
    /// Variables set on top of the inherited ones, such as the `env` of settings.
    pub set: Vec<(String, String)>,
    /// Files that are read into the same shell before each command, in order; missing ones are passed over. This is
    /// what Claude Code does with a `CLAUDE_ENV_FILE`.
    pub preludes: Option<Preludes>,
    /// What commands are held back from.
    pub sandbox: SandboxPolicy,
    /// The background shells, for `BashOutput`, `KillShell` and the [`JobsPlugin`](crate::JobsPlugin).
    pub jobs: Arc<Jobs>,
}

impl fmt::Debug for BashConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secrets.
        f.debug_struct("BashConfig").field("without", &self.without).finish_non_exhaustive()
    }
}

/// The session's current folder changed. Whoever reopens the session may begin where it was left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellFolder {
    /// Absolute path.
    pub cwd: PathBuf,
}

impl EventKind for ShellFolder {
    const TYPE: &'static str = "shell/cwd";
    const IGNORABLE: bool = true;
}

/// The tool.
pub struct Bash {
    config: BashConfig,
    shell: &'static str,
}

/// The value: Claude Code's five members, its id of a command in the background, and what tells a failed run apart.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct BashValue {
    stdout: String,
    stderr: String,
    interrupted: bool,
    is_image: bool,
    no_output_expected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timed_out: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background_task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<String>,
}

impl Bash {
    /// A shell tool: bash where there is one, else the system's `sh`.
    #[must_use]
    pub fn new(config: BashConfig) -> Self {
        let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        Self { config, shell }
    }

    async fn run(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let scene = body.scene();
        let session = scene.session;
        let report = ReportFile::fresh(&session.state_dir).await;
        let Begun { running, cwd, mut note } = self.begin(body, Some(&report.0), Lasts::Leader).await?;
        let end = tokio::select! {
            end = running.ended() => end,
            _ = scene.cancel.cancelled() => {
                running.stop();
                running.ended().await
            }
        };
        let output = running.output(Mark::default()).await;
        let reported = report.take().await;
        if let End::Exited(_) = end {
            let folder = match script::read_report(reported.as_deref()) {
                Report::Folder(folder) => as_session_names_it(session, folder).await,
                Report::Vanished => {
                    let next = cwd.display();
                    let words =
                        format!("The command ended in a folder that no longer exists; the next one runs in {next}.");
                    note = joined(&note, &words);
                    cwd
                }
                Report::Silent => cwd,
            };
            move_to(scene, folder);
        }
        value_of(end, &output, &note, body, &self.policy(body))
    }

    async fn run_in_background(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let jobs = &self.config.jobs;
        jobs.check_room(body.scene().session)?;
        let Begun { running, note, .. } = self.begin(body, None, Lasts::Group).await?;
        let id = jobs.adopt(body.scene(), text_at(body.input(), "command"), running)?;
        let value = BashValue { stderr: note, background_task_id: Some(id), ..BashValue::default() };
        Json::of(&value).map_err(|fault| failure::of_value(&fault))
    }

    /// The policy for this call.
    fn policy(&self, body: &BodyView<'_>) -> SandboxPolicy {
        let mut policy = sandbox::wish(body.input(), &self.config.sandbox)
            .map_or_else(|| self.config.sandbox.clone(), |wish| sandbox::widened(&self.config.sandbox, wish.to));
        // Folders that were added to the session since it began.
        policy.writable.extend(body.scene().session.permissions.directories().iter().cloned());
        policy
    }
}

fn move_to(scene: Scene<'_>, folder: PathBuf) {
    if folder == scene.session.cwd() {
        return;
    }
    // The event is a convenience of reopening; a log that takes nothing more is told of elsewhere.
    let _ = scene.log.append(&ShellFolder { cwd: folder.clone() });
    scene.session.set_cwd(folder);
}

fn value_of(
    end: End,
    output: &Output,
    note: &str,
    body: &BodyView<'_>,
    policy: &SandboxPolicy,
) -> Result<Json, ToolFailure> {
    // Exact, final line ends too: one of the hook dialects shows them.
    let stdout = output.stdout.text();
    let stderr = match (output.stderr.text(), note) {
        (text, "") => text,
        (text, note) => joined(&text, note),
    };
    let (mut exit_code, mut signal, mut timed_out) = (None, None, None);
    match end {
        End::Exited(0) => {}
        End::Exited(code) => exit_code = Some(code),
        End::Signalled(number) => signal = Some(number),
        End::TimedOut => timed_out = Some(true),
        End::Cancelled => {
            let by = body.scene().cancel.cause().map(|cause| format!(" by {cause}")).unwrap_or_default();
            let so_far = match joined(&stdout, &stderr) {
                text if text.is_empty() => "none".to_owned(),
                text => text,
            };
            let message = format!("command was cancelled{by}; output so far: {so_far}");
            return Err(ToolFailure::coded("AbortError", "ABORTED", message));
        }
        End::NotStarted(problem) => return Err(launch::not_started(&problem)),
    }
    let failed = exit_code.is_some() || signal.is_some();
    let sandbox = if failed { sandbox::marker(policy, &[&stdout, &stderr]) } else { None };
    let value = BashValue {
        stdout,
        stderr,
        interrupted: timed_out.is_some(),
        exit_code,
        signal,
        timed_out,
        sandbox,
        ..BashValue::default()
    };
    Json::of(&value).map_err(|fault| failure::of_value(&fault))
}

/// The shell reports where it really is; below the session's own folders that is told by the names the session uses,
/// so that a path made absolute there still begins with the folder that hooks and rules know.
async fn as_session_names_it(session: &SessionFacts, folder: PathBuf) -> PathBuf {
    for named in [&session.start_dir, &session.workspace_root] {
        if let Ok(real) = tokio::fs::canonicalize(named).await
            && let Ok(rest) = folder.strip_prefix(&real)
        {
            return named.components().chain(rest.components()).collect();
        }
    }
    folder
}

/// How long this call's command may take.
fn time_limit_ms(input: &Json) -> u64 {
    whole_at(input, "timeout").unwrap_or(DEFAULT_TIME_LIMIT_MS)
}

/// The file that a command's folder is reported through. It lies in the session's own folder.
struct ReportFile(PathBuf);

impl ReportFile {
    async fn fresh(state_dir: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Without the folder the shell's report fails silently, and the current folder stays as it is.
        let _ = tokio::fs::create_dir_all(state_dir).await;
        let folder = tokio::fs::canonicalize(state_dir).await.unwrap_or_else(|_| state_dir.to_owned());
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = folder.join(format!("shell-folder-{}-{number}", std::process::id()));
        // In a sandbox this file alone may be written there, so it must be there first.
        let _ = tokio::fs::write(&file, script::UNWRITTEN).await;
        Self(file)
    }

    async fn take(&self) -> Option<Vec<u8>> {
        let content = tokio::fs::read(&self.0).await.ok();
        let _ = tokio::fs::remove_file(&self.0).await;
        content
    }
}

impl Tool for Bash {
    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        "Runs a shell command and returns its output. Every call gets a fresh shell; only the current folder is kept \
         between calls, so a `cd` lasts. There is no terminal and no input. Commands are stopped after `timeout` \
         milliseconds (120000 unless given, at most 600000). Long output is cut in the middle, and the file that has \
         all of it is named. With `run_in_background` the call returns at once with an id, and the command goes on \
         until it ends, KillShell ends it or the session does; without a `timeout` it has none. Prefer Read, Edit, \
         Write, Glob and Grep for files."
    }

    fn parameters(&self) -> Json {
        let mut parameters = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line, for bash."},
                "description": {"type": "string", "description": "What it does, in a few words."},
                "timeout": {"type": "number", "description": "Time limit in milliseconds, at most 600000.", "default": 120_000},
                "run_in_background": {"type": "boolean", "description": "Do not wait for its end; read it with BashOutput."}
            },
            "required": ["command"]
        });
        if let Some(properties) = parameters.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
            properties.extend(sandbox::parameters(&self.config.sandbox));
        }
        schema(&parameters)
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "stdout": {"type": "string"},
                "stderr": {"type": "string"},
                "interrupted": {"type": "boolean"},
                "isImage": {"type": "boolean"},
                "noOutputExpected": {"type": "boolean"},
                "exitCode": {"type": "integer", "description": "Only when it is not zero."},
                "signal": {"type": "integer", "description": "Only when a signal ended the shell."},
                "timedOut": {"type": "boolean", "description": "Only when the time limit passed."},
                "backgroundTaskId": {"type": "string", "description": "Only of a command in the background: its id."},
                "sandbox": {"type": "string", "description": "Only when the sandbox may be what made it fail."}
            },
            "required": ["stdout", "stderr", "interrupted"]
        }))
    }

    fn normalise(&self, arguments: JsonObject, _session: &SessionFacts) -> Result<JsonObject, String> {
        let input = arguments.to_json();
        let command = text_at(&input, "command");
        if command.contains('\0') {
            return Err("command contains a NUL byte, which no shell accepts; remove it".to_owned());
        }
        sandbox::check(&arguments, &self.config.sandbox)?;
        match arguments.get("timeout").and_then(|value| value.view().as_f64()) {
            Some(limit) if limit > LONGEST_TIME_LIMIT_MS as f64 => {
                Err(format!("timeout is {limit} ms, the limit is {LONGEST_TIME_LIMIT_MS} ms; give at most that"))
            }
            Some(limit) if limit < 1.0 || limit.fract() != 0.0 => Err(format!(
                "timeout must be a whole number of milliseconds from 1 to {LONGEST_TIME_LIMIT_MS}, not {limit}"
            )),
            Some(_) | None => Ok(arguments),
        }
    }

    fn facts(&self, input: &Json) -> CallFacts {
        CallFacts {
            command: input.str_at("command").map(str::to_owned),
            paths: Vec::new(),
            effect: Effect::Anything,
            escalation: sandbox::wish(input, &self.config.sandbox),
        }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            if flag_at(body.input(), "run_in_background") {
                self.run_in_background(&body).await
            } else {
                self.run(&body).await
            }
        })
    }

    fn render(&self, input: &Json, value: &Json) -> Content {
        vec![Block::text(words::failure(input, value).unwrap_or_else(|| words::success(value)))]
    }

    fn verdict(&self, input: &Json, value: &Json) -> Verdict {
        words::failure(input, value).map_or(Verdict::Succeeded, Verdict::Failed)
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let description = text_at(input, "description");
        CallCard {
            title: one_line(text_at(input, "command")),
            kind: CallKind::Execute,
            items: if description.is_empty() { Vec::new() } else { vec![CardItem::Text(description.to_owned())] },
            locations: Vec::new(),
        }
    }
}
