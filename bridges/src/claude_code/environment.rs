//! How a Claude Code handler is started: `/bin/sh -c` or directly, and with which variables (reference 5.1).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sluice_harness::scene::Scene;
use sluice_harness::seam::process::{Environment, Program};

use super::discover::EnvEntry;
use crate::core::config::{Action, Event, Handler};
use crate::core::fire::Start;
use crate::core::script::braced;
use crate::setup::{Attendance, BridgeConfig};

/// The variables of one firing: settings' own first, then the protocol's.
pub(crate) fn variables(
    config: &BridgeConfig,
    env: &[EnvEntry],
    scene: Scene<'_>,
    event: Event,
) -> Vec<(String, String)> {
    let attended = match config.attendance {
        Attendance::Headless => "0",
        Attendance::Attended => "1",
    };
    let mut set: Vec<(String, String)> = env.iter().map(|e| (e.name.clone(), e.value.clone())).collect();
    let mut put = |name: &str, value: String| set.push((name.to_owned(), value));
    put("CLAUDE_PROJECT_DIR", config.workspace_root.display().to_string());
    put("CLAUDECODE", "1".to_owned());
    put("CLAUDE_CODE_ENTRYPOINT", "sdk-cli".to_owned());
    put("CLAUDE_CODE_SESSION_ID", scene.session.id.to_string());
    put("CLAUDE_CODE_CHILD_SESSION", "1".to_owned());
    put("CLAUDE_CODE_SESSION_ATTENDED", attended.to_owned());
    put("CLAUDE_PID", config.pid.to_string());
    if (event.is_about_a_call() || event == Event::Stop)
        && let Some(effort) = scene.session.model().effort
    {
        put("CLAUDE_EFFORT", effort);
    }
    set
}

/// The file a SessionStart handler may write `export` lines to.
pub(crate) fn env_file(scene: Scene<'_>, at: usize) -> PathBuf {
    env_folder(&scene.session.state_dir).join(format!("sessionstart-hook-{at}.sh"))
}

/// Where hooks leave what later shell commands of the session read first, one file a hook (`CLAUDE_ENV_FILE`).
#[must_use]
pub fn env_folder(state_dir: &Path) -> PathBuf {
    state_dir.join("session-env")
}

/// What a command's words may refer to, for telling a missing script.
pub(crate) fn known(config: &BridgeConfig, set: &[(String, String)]) -> BTreeMap<String, String> {
    let mut known = config.inherited.clone();
    known.entry("HOME".to_owned()).or_insert_with(|| config.home.display().to_string());
    known.extend(set.iter().cloned());
    known
}

/// How one handler is started.
pub(crate) fn start(handler: &Handler, set: Vec<(String, String)>) -> Start {
    let program = match &handler.action {
        Action::Shell { command } | Action::Unsupported { label: command, .. } => {
            Program::Shell { shell: "/bin/sh".to_owned(), line: command.clone() }
        }
        Action::Exec { command, args } => {
            let names: BTreeMap<String, String> =
                set.iter().filter(|(name, _)| name == "CLAUDE_PROJECT_DIR").cloned().collect();
            Program::Direct {
                program: braced(command, &names),
                args: args.iter().map(|arg| braced(arg, &names)).collect(),
            }
        }
    };
    Start { program, environment: Environment { without: vec!["OTEL_*".to_owned()], set } }
}
