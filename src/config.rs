//! The configuration: layers of files, variables and flags, of which the later ones win.
//!
//! The order is the user's file, the workspace's file, variables, flags. What a key may be is in [`key`], how a file is
//! read in [`read`], providers in [`provider`]. Two invariants: every value knows where it came from, and what came
//! with a repository only tightens ([`tighten`]); what it would have set beyond that is named.

mod environment;
mod key;
mod provider;
mod read;
mod search;
mod takes;
mod tighten;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_bridges::OnFailure;
use sluice_harness::agent::{Limits, RetryPolicy};
use sluice_harness::permission::Mode;
use sluice_harness::seam::sandbox::SandboxMode;

use crate::cli::SessionPlan;
use crate::fault::Fault;

pub(crate) use environment::Environment;
pub(crate) use key::Entry;
pub(crate) use provider::{Dialect, HttpOptions, KeySource, Protocol, Provider};
use search::SearchService;
pub(crate) use tighten::stricter;

/// How long connecting to an MCP server may take, unless somebody says otherwise.
pub(crate) const MCP_STARTUP: Duration = Duration::from_secs(10);
/// How long a call of an MCP tool may take, unless somebody says otherwise.
pub(crate) const MCP_CALL: Duration = Duration::from_secs(600);

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody set it.
    BuiltIn,
    /// A file.
    File {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    /// A variable.
    Variable(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl Origin {
    /// A path that was written here: `~/` is the home folder, a relative one starts at the file's folder. From a
    /// variable or a flag it is left relative, to the folder that the program was started in.
    pub(crate) fn resolve(&self, path: &str, home: Option<&Path>) -> PathBuf {
        match self {
            Self::File { path: file, .. } => match (path.strip_prefix("~/"), home) {
                (Some(below), Some(home)) => home.join(below),
                (Some(_) | None, _) => file.parent().unwrap_or(Path::new("")).join(path),
            },
            Self::BuiltIn | Self::Variable(_) | Self::Flag(_) => PathBuf::from(path),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::File { path, line } => write!(f, "{} line {line}", path.display()),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    /// The value.
    pub(crate) value: T,
    /// Where it came from.
    pub(crate) origin: Origin,
}

impl<T> Setting<T> {
    fn built_in(value: T) -> Self {
        Self { value, origin: Origin::BuiltIn }
    }

    fn set(&mut self, value: T, origin: Origin) {
        *self = Self { value, origin };
    }
}

/// The configuration in force.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The model's name, if anybody names one.
    pub(crate) model: Option<Setting<String>>,
    /// The providers by name, the built-in ones among them.
    pub(crate) providers: BTreeMap<String, Provider>,
    /// Whether Claude Code's hooks run.
    pub(crate) claude_code_hooks: Setting<bool>,
    /// Whether Codex's hooks run.
    pub(crate) codex_hooks: Setting<bool>,
    /// What a failing hook does.
    pub(crate) hooks_on_failure: Setting<OnFailure>,
    /// The permission mode that sessions begin in.
    pub(crate) permission_mode: Setting<Mode>,
    /// The mode that the repository wants; counts where it is stricter than what holds without it.
    pub(crate) repository_mode: Option<Setting<Mode>>,
    /// How long a question may stand.
    pub(crate) answer_timeout: Option<Setting<Duration>>,
    /// How long a question stands before a person is called.
    pub(crate) permission_notice: Setting<Duration>,
    /// How long a session waits for a prompt before a person is called.
    pub(crate) idle_notice: Setting<Duration>,
    /// What commands of the model may change.
    pub(crate) sandbox_mode: Setting<SandboxMode>,
    /// Whether they may reach the network.
    pub(crate) sandbox_network: Setting<bool>,
    /// How many continuations hooks may force in a turn.
    pub(crate) max_continuations: Setting<u32>,
    /// How many parallel calls may be in flight.
    pub(crate) parallel_calls: Setting<NonZeroUsize>,
    /// The most output tokens of a request.
    pub(crate) max_output_tokens: Option<Setting<u64>>,
    /// How often a failed request is repeated.
    pub(crate) retries: Setting<u32>,
    /// The first wait.
    pub(crate) retry_base: Setting<Duration>,
    /// The longest wait.
    pub(crate) retry_cap: Setting<Duration>,
    /// How long connecting to an MCP server may take.
    pub(crate) mcp_startup_timeout: Setting<Duration>,
    /// How long a call of an MCP tool may take.
    pub(crate) mcp_call_timeout: Setting<Duration>,
    /// Whether `WebFetch` may reach every host.
    pub(crate) web_allow_private: Setting<bool>,
    /// Hosts that it may reach although they are not public.
    pub(crate) web_private_hosts: Option<Setting<String>>,
    /// Which search provider is asked.
    pub(crate) web_search_provider: Option<Setting<String>>,
    /// The search providers by name.
    pub(crate) searches: BTreeMap<String, SearchService>,
    /// What the user should know of how this came about; one line each.
    pub(crate) notices: Vec<String>,
}

/// Tables that are put together from several layers.
#[derive(Default)]
struct Drafts {
    providers: BTreeMap<String, provider::Draft>,
    searches: BTreeMap<String, search::Draft>,
}

/// Reads every layer. Blocks while it reads.
///
/// `workspace_root` is where the repository's file is looked for; `overrides` is the layer of the flags.
///
/// # Errors
/// The first wrong thing of a layer, named with its file and line, its variable or its flag.
pub(crate) fn load(
    environment: &Environment,
    workspace_root: &Path,
    overrides: &[(Entry, Origin)],
) -> Result<Config, Fault> {
    let mut config = Config::built_in();
    let mut drafts = Drafts::default();
    let user_file = environment.xdg("XDG_CONFIG_HOME", ".config").map(|dir| dir.join("sluice").join("config.toml"));
    if let Some(path) = user_file {
        for (entry, origin) in read::file(&path)? {
            config.set(entry, origin, &mut drafts);
        }
    }
    let repository = workspace_root.join(".sluice").join("config.toml");
    let entries = read::file(&repository)?;
    let by_variable = key::KEYS.iter().filter(|key| key.variable.and_then(|name| environment.variable(name)).is_some());
    let said: Vec<String> =
        by_variable.map(key::Key::full_name).chain(overrides.iter().map(|(entry, _)| entry.name())).collect();
    let notices = config.tighten(&repository, entries, &said);
    config.notices.extend(notices);
    for key in key::KEYS {
        let Some(variable) = key.variable else { continue };
        let Some(text) = environment.variable(variable) else { continue };
        let entry = key.takes.read_variable(text).map_err(|why| {
            let cause = format!("the variable {variable} {why}");
            Fault::config("config-variable", cause, format!("correct or unset {variable}"))
        })?;
        config.set(entry, Origin::Variable(variable), &mut drafts);
    }
    for (entry, origin) in overrides {
        config.set(entry.clone(), origin.clone(), &mut drafts);
    }
    config.providers = provider::all(drafts.providers, environment.home())?;
    config.searches = search::all(drafts.searches, environment.home())?;
    Ok(config)
}

impl Entry {
    /// The key's full name.
    fn name(&self) -> String {
        let name = match self {
            Self::Model(_) => "model",
            Self::ClaudeCodeHooks(_) => "hooks.claude_code",
            Self::CodexHooks(_) => "hooks.codex",
            Self::HooksOnFailure(_) => "hooks.on_failure",
            Self::PermissionMode(_) => "permissions.mode",
            Self::AnswerTimeout(_) => "permissions.answer_timeout",
            Self::PermissionNotice(_) => "notifications.permission_after",
            Self::IdleNotice(_) => "notifications.idle_after",
            Self::SandboxMode(_) => "sandbox.mode",
            Self::SandboxNetwork(_) => "sandbox.network",
            Self::MaxContinuations(_) => "limits.max_continuations",
            Self::ParallelCalls(_) => "limits.parallel_calls",
            Self::MaxOutputTokens(_) => "limits.max_output_tokens",
            Self::Retries(_) => "model_retry.retries",
            Self::RetryBase(_) => "model_retry.base_ms",
            Self::RetryCap(_) => "model_retry.cap_ms",
            Self::McpStartupTimeout(_) => "mcp.startup_timeout",
            Self::McpCallTimeout(_) => "mcp.call_timeout",
            Self::WebAllowPrivate(_) => "web.allow_private",
            Self::WebPrivateHosts(_) => "web.private_hosts",
            Self::WebSearchProvider(_) => "web.search_provider",
            Self::Search { name, .. } => return format!("web.{}.{name}", search::SEARCHES),
            Self::Provider { name, .. } => return format!("{}.{name}", key::PROVIDERS),
        };
        name.to_owned()
    }
}

impl Config {
    /// The values that hold when nobody sets any.
    fn built_in() -> Self {
        let (limits, retry) = (Limits::default(), RetryPolicy::default());
        Self {
            model: None,
            providers: BTreeMap::new(),
            claude_code_hooks: Setting::built_in(true),
            codex_hooks: Setting::built_in(true),
            hooks_on_failure: Setting::built_in(OnFailure::default()),
            permission_mode: Setting::built_in(Mode::default()),
            repository_mode: None,
            answer_timeout: None,
            permission_notice: Setting::built_in(Duration::from_secs(6)),
            idle_notice: Setting::built_in(Duration::from_secs(60)),
            sandbox_mode: Setting::built_in(SandboxMode::WorkspaceWrite),
            sandbox_network: Setting::built_in(true),
            max_continuations: Setting::built_in(limits.max_continuations),
            parallel_calls: Setting::built_in(limits.parallel_calls),
            max_output_tokens: None,
            retries: Setting::built_in(retry.retries),
            retry_base: Setting::built_in(retry.base),
            retry_cap: Setting::built_in(retry.cap),
            mcp_startup_timeout: Setting::built_in(MCP_STARTUP),
            mcp_call_timeout: Setting::built_in(MCP_CALL),
            web_allow_private: Setting::built_in(false),
            web_private_hosts: None,
            web_search_provider: None,
            searches: BTreeMap::new(),
            notices: Vec::new(),
        }
    }

    fn set(&mut self, entry: Entry, origin: Origin, drafts: &mut Drafts) {
        match entry {
            Entry::Model(value) => self.model = Some(Setting { value, origin }),
            Entry::ClaudeCodeHooks(value) => self.claude_code_hooks.set(value, origin),
            Entry::CodexHooks(value) => self.codex_hooks.set(value, origin),
            Entry::HooksOnFailure(value) => self.hooks_on_failure.set(value, origin),
            Entry::PermissionMode(value) => self.permission_mode.set(value, origin),
            Entry::AnswerTimeout(value) => self.answer_timeout = Some(Setting { value, origin }),
            Entry::PermissionNotice(value) => self.permission_notice.set(value, origin),
            Entry::IdleNotice(value) => self.idle_notice.set(value, origin),
            Entry::SandboxMode(value) => self.sandbox_mode.set(value, origin),
            Entry::SandboxNetwork(value) => self.sandbox_network.set(value, origin),
            Entry::MaxContinuations(value) => self.max_continuations.set(value, origin),
            Entry::ParallelCalls(value) => self.parallel_calls.set(value, origin),
            Entry::MaxOutputTokens(value) => self.max_output_tokens = Some(Setting { value, origin }),
            Entry::Retries(value) => self.retries.set(value, origin),
            Entry::RetryBase(value) => self.retry_base.set(value, origin),
            Entry::RetryCap(value) => self.retry_cap.set(value, origin),
            Entry::McpStartupTimeout(value) => self.mcp_startup_timeout.set(value, origin),
            Entry::McpCallTimeout(value) => self.mcp_call_timeout.set(value, origin),
            Entry::WebAllowPrivate(value) => self.web_allow_private.set(value, origin),
            Entry::WebPrivateHosts(value) => self.web_private_hosts = Some(Setting { value, origin }),
            Entry::WebSearchProvider(value) => self.web_search_provider = Some(Setting { value, origin }),
            Entry::Search { name, entry } => drafts.searches.entry(name).or_default().set(entry, origin),
            Entry::Provider { name, entry } => drafts.providers.entry(name).or_default().set(entry, origin),
        }
    }

    /// The bounds of a turn: these values and the budgets that only flags know.
    pub(crate) fn limits(&self, plan: &SessionPlan) -> Limits {
        Limits {
            max_turns: plan.max_turns,
            max_steps: plan.max_steps,
            max_continuations: self.max_continuations.value,
            parallel_calls: self.parallel_calls.value,
            max_output_tokens: self.max_output_tokens.as_ref().map(|setting| setting.value),
            timeout: plan.timeout,
        }
    }

    /// How failed requests are repeated.
    pub(crate) fn retry(&self) -> RetryPolicy {
        RetryPolicy { retries: self.retries.value, base: self.retry_base.value, cap: self.retry_cap.value }
    }
}

#[cfg(test)]
mod tests;
