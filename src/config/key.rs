//! The keys of the configuration: their names, what they take, their variables and their meaning, in one table.
//!
//! Files, variables and flags all end as [`Entry`]s, through what the key [`Takes`].

use std::num::NonZeroUsize;
use std::time::Duration;

use sluice_bridges::OnFailure;
use sluice_harness::permission::Mode;
use sluice_harness::seam::sandbox::SandboxMode;

use super::search::SearchEntry;
use super::takes::Takes;

/// One key with its value, read and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// `model`.
    Model(String),
    /// `hooks.claude_code`.
    ClaudeCodeHooks(bool),
    /// `hooks.codex`.
    CodexHooks(bool),
    /// `hooks.on_failure`.
    HooksOnFailure(OnFailure),
    /// `permissions.mode`.
    PermissionMode(Mode),
    /// `permissions.answer_timeout`.
    AnswerTimeout(Duration),
    /// `notifications.permission_after`.
    PermissionNotice(Duration),
    /// `notifications.idle_after`.
    IdleNotice(Duration),
    /// `sandbox.mode`.
    SandboxMode(SandboxMode),
    /// `sandbox.network`.
    SandboxNetwork(bool),
    /// `limits.max_continuations`.
    MaxContinuations(u32),
    /// `limits.parallel_calls`.
    ParallelCalls(NonZeroUsize),
    /// `limits.max_output_tokens`.
    MaxOutputTokens(u64),
    /// `model_retry.retries`.
    Retries(u32),
    /// `model_retry.base_ms`.
    RetryBase(Duration),
    /// `model_retry.cap_ms`.
    RetryCap(Duration),
    /// `mcp.startup_timeout`.
    McpStartupTimeout(Duration),
    /// `mcp.call_timeout`.
    McpCallTimeout(Duration),
    /// `web.allow_private`.
    WebAllowPrivate(bool),
    /// `web.private_hosts`.
    WebPrivateHosts(String),
    /// `web.search_provider`.
    WebSearchProvider(String),
    /// A key of `[web.search.NAME]`.
    Search {
        /// NAME.
        name: String,
        /// The key.
        entry: SearchEntry,
    },
    /// A key of `[providers.NAME]`.
    Provider {
        /// NAME.
        name: String,
        /// The key.
        entry: ProviderEntry,
    },
}

/// One key of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProviderEntry {
    /// `kind`.
    Kind(ProviderKind),
    /// `base_url`.
    BaseUrl(String),
    /// `api_key_env`.
    ApiKeyEnv(String),
    /// `api_key_file`.
    ApiKeyFile(String),
    /// `images`.
    Images(bool),
    /// `context_window`.
    ContextWindow(u64),
    /// `effort`.
    Effort(String),
    /// `thinking_tokens`.
    ThinkingTokens(u64),
    /// `prompt_cache`.
    PromptCache(bool),
    /// `first_byte_timeout`.
    FirstByteTimeout(Duration),
    /// `idle_timeout`.
    IdleTimeout(Duration),
}

/// Which protocol a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderKind {
    /// Chat completions as OpenAI has them, and many others.
    OpenAi,
    /// Scripts of the script model.
    Script,
    /// Anthropic's messages, and who speaks them too.
    Anthropic,
}

/// A key.
#[derive(Debug)]
pub(crate) struct Key<E: 'static> {
    /// Its table, or empty for the top of the file.
    pub(crate) table: &'static str,
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// The variable that sets it too, if one does.
    pub(crate) variable: Option<&'static str>,
    /// What it takes.
    pub(crate) takes: Takes<E>,
    /// What it means, for the documentation.
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference of the configuration is written from it"))]
    pub(crate) meaning: &'static str,
}

impl<E> Key<E> {
    /// Its full name.
    pub(crate) fn full_name(&self) -> String {
        if self.table.is_empty() { self.name.to_owned() } else { format!("{}.{}", self.table, self.name) }
    }
}

/// The most that fits into 32 bits.
const U32: u64 = u32::MAX as u64;

/// Every key but those of providers.
pub(crate) const KEYS: &[Key<Entry>] = &[
    Key {
        table: "",
        name: "model",
        variable: Some("SLUICE_MODEL"),
        takes: Takes::Text(Entry::Model),
        meaning: "the model: script:PATH, script:demo or PROVIDER/MODEL; a relative path of a script starts at the file's folder",
    },
    Key {
        table: "hooks",
        name: "claude_code",
        variable: Some("SLUICE_HOOKS_CLAUDE_CODE"),
        takes: Takes::Switch(Entry::ClaudeCodeHooks),
        meaning: "whether Claude Code's hooks run (default: true)",
    },
    Key {
        table: "hooks",
        name: "codex",
        variable: Some("SLUICE_HOOKS_CODEX"),
        takes: Takes::Switch(Entry::CodexHooks),
        meaning: "whether Codex's hooks run (default: true)",
    },
    Key {
        table: "hooks",
        name: "on_failure",
        variable: Some("SLUICE_HOOKS_ON_FAILURE"),
        takes: Takes::Word {
            words: &["continue", "block"],
            make: |word| match word {
                "continue" => Some(Entry::HooksOnFailure(OnFailure::Continue)),
                "block" => Some(Entry::HooksOnFailure(OnFailure::Block)),
                _ => None,
            },
        },
        meaning: "what a hook that cannot start, crashes or runs out of time does where it can block (default: continue)",
    },
    Key {
        table: "permissions",
        name: "mode",
        variable: Some("SLUICE_PERMISSION_MODE"),
        takes: Takes::Word {
            words: &["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"],
            make: |word| word.parse().ok().map(Entry::PermissionMode),
        },
        meaning: "the permission mode that sessions begin in (default: default)",
    },
    Key {
        table: "permissions",
        name: "answer_timeout",
        variable: Some("SLUICE_ANSWER_TIMEOUT"),
        takes: Takes::Seconds(Entry::AnswerTimeout),
        meaning: "how many seconds a question may stand before it counts as not answered (default: for ever)",
    },
    Key {
        table: "notifications",
        name: "permission_after",
        variable: Some("SLUICE_NOTIFY_PERMISSION_AFTER"),
        takes: Takes::Seconds(Entry::PermissionNotice),
        meaning: "how many seconds a question stands in an editor before the Notification hooks run (default: 6)",
    },
    Key {
        table: "notifications",
        name: "idle_after",
        variable: Some("SLUICE_NOTIFY_IDLE_AFTER"),
        takes: Takes::Seconds(Entry::IdleNotice),
        meaning: "how many seconds an editor's session waits for a prompt before the Notification hooks run (default: 60)",
    },
    Key {
        table: "sandbox",
        name: "mode",
        variable: Some("SLUICE_SANDBOX"),
        takes: Takes::Word {
            words: &["read-only", "workspace-write", "off"],
            make: |word| word.parse().ok().map(Entry::SandboxMode),
        },
        meaning: "what commands of the model may change; required once it is named (default: workspace-write, as far as the kernel can)",
    },
    Key {
        table: "sandbox",
        name: "network",
        variable: Some("SLUICE_NETWORK"),
        takes: Takes::Word {
            words: &["on", "off"],
            make: |word| match word {
                "on" => Some(Entry::SandboxNetwork(true)),
                "off" => Some(Entry::SandboxNetwork(false)),
                _ => None,
            },
        },
        meaning: "whether commands of the model may reach the network (default: on)",
    },
    Key {
        table: "limits",
        name: "max_continuations",
        variable: Some("SLUICE_MAX_CONTINUATIONS"),
        takes: Takes::Count {
            least: 0,
            most: U32,
            make: |number| u32::try_from(number).ok().map(Entry::MaxContinuations),
        },
        meaning: "how many continuations hooks may force in one turn (default: 25)",
    },
    Key {
        table: "limits",
        name: "parallel_calls",
        variable: Some("SLUICE_PARALLEL_CALLS"),
        takes: Takes::Count {
            least: 1,
            most: 1024,
            make: |number| NonZeroUsize::new(usize::try_from(number).ok()?).map(Entry::ParallelCalls),
        },
        meaning: "how many parallel tool calls may be in flight (default: 10)",
    },
    Key {
        table: "limits",
        name: "max_output_tokens",
        variable: Some("SLUICE_MAX_OUTPUT_TOKENS"),
        takes: Takes::Count { least: 1, most: u64::MAX, make: |number| Some(Entry::MaxOutputTokens(number)) },
        meaning: "the most output tokens of one request (default: the provider's own)",
    },
    Key {
        table: "model_retry",
        name: "retries",
        variable: Some("SLUICE_MODEL_RETRIES"),
        takes: Takes::Count { least: 0, most: U32, make: |number| u32::try_from(number).ok().map(Entry::Retries) },
        meaning: "how often a failed model request is repeated before its answer begins (default: 5)",
    },
    Key {
        table: "model_retry",
        name: "base_ms",
        variable: Some("SLUICE_MODEL_RETRY_BASE_MS"),
        takes: Takes::Count { least: 0, most: U32, make: |ms| Some(Entry::RetryBase(Duration::from_millis(ms))) },
        meaning: "the first wait in milliseconds, doubled each time (default: 500)",
    },
    Key {
        table: "model_retry",
        name: "cap_ms",
        variable: Some("SLUICE_MODEL_RETRY_CAP_MS"),
        takes: Takes::Count { least: 0, most: U32, make: |ms| Some(Entry::RetryCap(Duration::from_millis(ms))) },
        meaning: "the longest wait in milliseconds (default: 10000)",
    },
    Key {
        table: "mcp",
        name: "startup_timeout",
        variable: Some("SLUICE_MCP_STARTUP_TIMEOUT"),
        takes: Takes::Seconds(Entry::McpStartupTimeout),
        meaning: "how many seconds an MCP server may take until its tools are there (default: 10)",
    },
    Key {
        table: "mcp",
        name: "call_timeout",
        variable: Some("SLUICE_MCP_CALL_TIMEOUT"),
        takes: Takes::Seconds(Entry::McpCallTimeout),
        meaning: "how many seconds a call of an MCP tool may take (default: 600)",
    },
    Key {
        table: "web",
        name: "allow_private",
        variable: Some("SLUICE_WEB_ALLOW_PRIVATE"),
        takes: Takes::Switch(Entry::WebAllowPrivate),
        meaning: "whether WebFetch may reach every host, this machine and private networks included (default: false)",
    },
    Key {
        table: "web",
        name: "private_hosts",
        variable: Some("SLUICE_WEB_PRIVATE_HOSTS"),
        takes: Takes::Hosts(Entry::WebPrivateHosts),
        meaning: "hosts that WebFetch may reach although they are not public, divided by commas; `*.name` is all below a name",
    },
    Key {
        table: "web",
        name: "search_provider",
        variable: Some("SLUICE_WEB_SEARCH_PROVIDER"),
        takes: Takes::Text(Entry::WebSearchProvider),
        meaning: "which search provider WebSearch asks (default: the only one that can be used)",
    },
];

/// The table that holds one table a provider.
pub(crate) const PROVIDERS: &str = "providers";

/// The keys of one provider.
pub(crate) const PROVIDER_KEYS: &[Key<ProviderEntry>] = &[
    Key {
        table: "",
        name: "kind",
        variable: None,
        takes: Takes::Word {
            words: &["openai", "anthropic", "script"],
            make: |word| match word {
                "openai" => Some(ProviderEntry::Kind(ProviderKind::OpenAi)),
                "script" => Some(ProviderEntry::Kind(ProviderKind::Script)),
                "anthropic" => Some(ProviderEntry::Kind(ProviderKind::Anthropic)),
                _ => None,
            },
        },
        meaning: "the protocol it speaks",
    },
    Key {
        table: "",
        name: "base_url",
        variable: None,
        takes: Takes::Text(ProviderEntry::BaseUrl),
        meaning: "where it is, such as https://api.deepseek.com",
    },
    Key {
        table: "",
        name: "api_key_env",
        variable: None,
        takes: Takes::Text(ProviderEntry::ApiKeyEnv),
        meaning: "the variable that holds its key; commands that the model proposes do not inherit it",
    },
    Key {
        table: "",
        name: "api_key_file",
        variable: None,
        takes: Takes::Text(ProviderEntry::ApiKeyFile),
        meaning: "the file that holds its key, where the variable is not set; relative to this file's folder, `~/` is the home folder",
    },
    Key {
        table: "",
        name: "images",
        variable: None,
        takes: Takes::Switch(ProviderEntry::Images),
        meaning: "whether its models take images (default: true for kind anthropic and for openai itself)",
    },
    Key {
        table: "",
        name: "context_window",
        variable: None,
        takes: Takes::Count { least: 1, most: u64::MAX, make: |number| Some(ProviderEntry::ContextWindow(number)) },
        meaning: "tokens of context of its models, where nobody else says it",
    },
    Key {
        table: "",
        name: "effort",
        variable: None,
        takes: Takes::Text(ProviderEntry::Effort),
        meaning: "the thinking level, in the provider's own word, such as low, medium or high",
    },
    Key {
        table: "",
        name: "thinking_tokens",
        variable: None,
        takes: Takes::Count { least: 1024, most: u64::MAX, make: |number| Some(ProviderEntry::ThinkingTokens(number)) },
        meaning: "kind anthropic: a budget of reasoning in tokens, for models that take one instead of a level",
    },
    Key {
        table: "",
        name: "prompt_cache",
        variable: None,
        takes: Takes::Switch(ProviderEntry::PromptCache),
        meaning: "kind anthropic: whether the provider is asked to cache the conversation so far (default: true)",
    },
    Key {
        table: "",
        name: "first_byte_timeout",
        variable: None,
        takes: Takes::Seconds(ProviderEntry::FirstByteTimeout),
        meaning: "how many seconds an answer may take to begin (default: 120)",
    },
    Key {
        table: "",
        name: "idle_timeout",
        variable: None,
        takes: Takes::Seconds(ProviderEntry::IdleTimeout),
        meaning: "how many seconds an answer may pause (default: 60)",
    },
];
