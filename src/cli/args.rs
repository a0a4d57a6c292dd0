//! What may stand on the command line, declared for clap: names, value syntax and help.
//!
//! Nothing here is acted on; [`parse`](super::parse) turns it into a plan. Every command's help ends with an example.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sluice_harness::seam::sandbox::SandboxMode;

/// The names of the commands: what the first word may be for `-p` not to mean `run`.
pub(super) const COMMANDS: &[&str] = &["acp", "run", "demo", "sessions", "models", "hooks", "help"];

#[derive(Debug, Parser)]
#[command(
    name = "sluice",
    version,
    about = "An agent runtime that serves editors over ACP and runs Claude Code and Codex hooks unchanged",
    after_help = "`sluice -p …` is short for `sluice run …`.\n\n\
                  Examples:\n  sluice demo\n  sluice run \"what does this project do?\"\n  sluice acp",
    arg_required_else_help = true,
    subcommand_required = true
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve ACP on stdio, for an editor
    Acp(Box<Acp>),
    /// Run one prompt headless
    Run(Box<Run>),
    /// Take the tour: an embedded model, real hook scripts, real commands
    Demo(Demo),
    /// Look at the session logs
    #[command(subcommand, after_help = "Example:\n  sluice sessions list")]
    Sessions(Sessions),
    /// Name the configured providers of models, and which model would be used
    Models(Models),
    /// Look at the configured hooks
    #[command(subcommand, after_help = "Example:\n  sluice hooks list")]
    Hooks(Hooks),
}

#[derive(Debug, Args)]
#[command(after_help = "The flags are defaults for the sessions that the editor opens.\n\n\
                        Example:\n  sluice acp --model deepseek/deepseek-chat")]
pub(super) struct Acp {
    #[command(flatten)]
    pub(super) session: SessionFlags,
    /// Record all three streams in this file
    #[arg(long, value_name = "FILE")]
    pub(super) trace_wire: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "`sluice -p …` is the same; `--` ends the flags.\n\n\
                        Exit codes: 0 ended by itself, 1 the model or the agent failed, 2 bad usage or configuration,\n\
                        3 the prompt was rejected, 4 a hook stopped the turn, 5 a budget was reached, 6 the model\n\
                        refused, 7 a call was denied (--fail-on-denial), 130 and 143 ended by a signal.\n\n\
                        Examples:\n  sluice run \"fix the failing test\" --allowed-tools \"Bash(cargo test *)\" Edit\n  \
                        git diff | sluice run \"review this\" --output-format json")]
pub(super) struct Run {
    /// The prompt; `-` or nothing reads it from stdin, and `-` beside a prompt adds all of stdin to it
    pub(super) prompt: Vec<String>,
    /// Accepted for scripts that start with `sluice -p`
    #[arg(short = 'p', long = "print", hide = true)]
    pub(super) _print: bool,
    /// What goes to stdout
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output_format: OutputFormat,
    /// How stdin is read
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = InputFormat::Text)]
    pub(super) input_format: InputFormat,
    /// With stream-json: a line when a hook starts and when it has ended
    #[arg(long)]
    pub(super) include_hook_events: bool,
    /// The final answer must be JSON that fits this schema; it is in the result as structured_output
    #[arg(long, value_name = "FILE|JSON")]
    pub(super) json_schema: Option<String>,
    /// Go on with the last session of this folder
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(super) go_on: bool,
    /// Go on with a session, named by its id or how the id begins, in its own folder
    #[arg(long, value_name = "ID")]
    pub(super) resume: Option<String>,
    /// Exit 7 when a tool call was denied
    #[arg(long)]
    pub(super) fail_on_denial: bool,
    #[command(flatten)]
    pub(super) session: SessionFlags,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice demo --dir /tmp/tour")]
pub(super) struct Demo {
    /// Make the workspace here instead of in a temporary folder
    #[arg(long, value_name = "DIR")]
    pub(super) dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Sessions {
    /// Name the sessions, newest first
    #[command(after_help = "Example:\n  sluice sessions list --json | jq -r .id")]
    List {
        /// One JSON object a line: id, cwd, title, created, updated, turns
        #[arg(long)]
        json: bool,
    },
    /// Show what happened in a session
    #[command(after_help = "Example:\n  sluice sessions show 0199f3a2")]
    Show {
        /// The session's id, or how it begins
        id: String,
        /// The events as they stand in the log, one a line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sluice models --json | jq -r .base_url")]
pub(super) struct Models {
    /// What to say it of, in place of the configured one: script:PATH, script:demo or PROVIDER/MODEL
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// One JSON object a line: the providers, then the model
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Hooks {
    /// Name every configured handler of both dialects for this folder
    #[command(after_help = "Example:\n  sluice hooks list --event PreToolUse")]
    List {
        /// Only handlers of this event
        #[arg(long, value_name = "EVENT")]
        event: Option<String>,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

/// The flags that `run` and `acp` share.
#[derive(Debug, Args)]
#[command(next_help_heading = "Session")]
pub(super) struct SessionFlags {
    /// The model: script:PATH, script:demo or PROVIDER/MODEL
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// default, acceptEdits, plan, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE")]
    pub(super) permission_mode: Option<String>,
    /// Permission rules that allow, separated by spaces or commas
    #[arg(long, alias = "allowedTools", value_name = "RULE", num_args = 1..)]
    pub(super) allowed_tools: Vec<String>,
    /// Permission rules that deny, separated by spaces or commas
    #[arg(long, alias = "disallowedTools", value_name = "RULE", num_args = 1..)]
    pub(super) disallowed_tools: Vec<String>,
    /// At most so many model requests for one prompt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_turns: Option<u32>,
    /// The same budget under the name of a step
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_steps: Option<u32>,
    /// End a turn after so many seconds; fractions are fine
    #[arg(long, value_name = "SECS", value_parser = seconds, allow_negative_numbers = true)]
    pub(super) timeout: Option<Duration>,
    /// At most so many output tokens a request
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_output_tokens: Option<u64>,
    /// Work in this folder
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// One more folder that tools may use; repeatable
    #[arg(long, value_name = "DIR")]
    pub(super) add_dir: Vec<PathBuf>,
    /// The system prompt, in place of the built-in one
    #[arg(long, value_name = "TEXT")]
    pub(super) system_prompt: Option<String>,
    /// Text after the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(super) append_system_prompt: Option<String>,
    /// Hook and permission settings of your own: a file, or JSON; repeatable
    #[arg(long, value_name = "FILE|JSON")]
    pub(super) settings: Vec<String>,
    /// Which settings files are read: user, project, local
    #[arg(long, value_name = "SOURCES")]
    pub(super) setting_sources: Option<String>,
    /// MCP servers of your own: a file, or JSON, with `mcpServers`; repeatable
    #[arg(long, value_name = "FILE|JSON")]
    pub(super) mcp_config: Vec<String>,
    /// Accept all that the repository brings for this run: hooks, allow rules, env, mode, MCP servers
    #[arg(long)]
    pub(super) trust_workspace: bool,
    /// What commands of the model may change: read-only, workspace-write or off; required once it is named
    #[arg(long, value_name = "MODE")]
    pub(super) sandbox: Option<SandboxMode>,
    /// Whether commands of the model may reach the network
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub(super) network: Option<Switch>,
    /// Accept the repository's hooks for this run
    #[arg(long, conflicts_with = "no_hooks")]
    pub(super) trust_hooks: bool,
    /// Run no hooks; deny and ask rules still apply
    #[arg(long)]
    pub(super) no_hooks: bool,
    /// Write diagnostics to this file
    #[arg(long, value_name = "FILE", help_heading = "Diagnostics")]
    pub(super) log_file: Option<PathBuf>,
    /// More diagnostics; repeat for still more
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Diagnostics")]
    pub(super) verbose: u8,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    /// On
    On,
    /// Off
    Off,
}

/// What `run` writes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The final text
    Text,
    /// One result object
    Json,
    /// One JSON object a line, in the shape that users of `claude -p` parse
    StreamJson,
    /// The session log's own lines as they are written
    Events,
}

/// How `run` reads stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// As the prompt, or as context beside one
    Text,
    /// User messages as lines, one turn each
    StreamJson,
}

/// A time in seconds: positive, finite, with fractions.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "it must be a number of seconds above 0, such as 30 or 0.5".to_owned();
    let number: f64 = text.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(number).map_err(|_| wrong())?;
    if time.is_zero() { Err(wrong()) } else { Ok(time) }
}
