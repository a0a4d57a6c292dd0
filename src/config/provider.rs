//! Providers of models: those that are built in, those that are configured, and how the two become one.
//!
//! What is configured replaces the built-in values key by key. The invariant: a [`Provider`] can be used as it is,
//! save that its key may be missing, which only matters to who uses it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::key::{PROVIDERS, ProviderEntry, ProviderKind};
use super::{Origin, Setting};
use crate::fault::Fault;

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Provider {
    /// What it speaks.
    pub(crate) protocol: Protocol,
    /// Where it is configured; built in, where it is not.
    pub(crate) origin: Origin,
}

/// What a provider speaks, and what is needed for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// A dialect over HTTP.
    Http {
        /// Which.
        dialect: Dialect,
        /// Where.
        base_url: String,
        /// Where its key is; `None` where it needs none.
        key: Option<KeySource>,
        /// What else is said of its models.
        options: HttpOptions,
    },
    /// Its models are scripts.
    Script,
}

/// A dialect over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Chat completions as OpenAI has them.
    OpenAi,
    /// Messages as Anthropic has them.
    Anthropic,
}

/// What is said of the models of a provider; what is not said is the dialect's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HttpOptions {
    /// Whether they take images.
    pub(crate) images: Option<bool>,
    /// Their tokens of context.
    pub(crate) context_window: Option<u64>,
    /// The thinking level.
    pub(crate) effort: Option<String>,
    /// The budget of reasoning, for [`Dialect::Anthropic`] alone.
    pub(crate) thinking_tokens: Option<u64>,
    /// Whether to ask for a cache, for [`Dialect::Anthropic`] alone.
    pub(crate) prompt_cache: Option<bool>,
    /// Until an answer begins.
    pub(crate) first_byte: Option<Duration>,
    /// Between two pieces of one.
    pub(crate) idle: Option<Duration>,
}

/// Where a key is. At least one of the two is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySource {
    /// The variable; looked at first.
    pub(crate) variable: Option<String>,
    /// The file.
    pub(crate) file: Option<PathBuf>,
}

/// A built-in provider.
struct Preset {
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    variable: Option<&'static str>,
    images: Option<bool>,
}

const PRESETS: &[Preset] = &[
    Preset {
        name: "anthropic",
        kind: ProviderKind::Anthropic,
        base_url: "https://api.anthropic.com",
        variable: Some("ANTHROPIC_API_KEY"),
        images: None,
    },
    Preset {
        name: "deepseek",
        kind: ProviderKind::OpenAi,
        base_url: "https://api.deepseek.com",
        variable: Some("DEEPSEEK_API_KEY"),
        images: None,
    },
    Preset {
        name: "openai",
        kind: ProviderKind::OpenAi,
        base_url: "https://api.openai.com/v1",
        variable: Some("OPENAI_API_KEY"),
        images: Some(true),
    },
    Preset {
        name: "ollama",
        kind: ProviderKind::OpenAi,
        base_url: "http://127.0.0.1:11434/v1",
        variable: None,
        images: None,
    },
];

/// What the configuration says of a provider so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    kind: Option<Setting<ProviderKind>>,
    base_url: Option<Setting<String>>,
    api_key_env: Option<Setting<String>>,
    api_key_file: Option<Setting<String>>,
    options: HttpOptions,
    /// The last option, and the last one that only [`Dialect::Anthropic`] has.
    option: Option<Setting<&'static str>>,
    anthropic_option: Option<Setting<&'static str>>,
    thinking: Option<Origin>,
    first: Option<Origin>,
}

impl Draft {
    pub(super) fn set(&mut self, entry: ProviderEntry, origin: Origin) {
        if self.first.is_none() {
            self.first = Some(origin.clone());
        }
        match entry {
            ProviderEntry::Kind(value) => self.kind = Some(Setting { value, origin }),
            ProviderEntry::BaseUrl(value) => self.base_url = Some(Setting { value, origin }),
            ProviderEntry::ApiKeyEnv(value) => self.api_key_env = Some(Setting { value, origin }),
            ProviderEntry::ApiKeyFile(value) => self.api_key_file = Some(Setting { value, origin }),
            ProviderEntry::Images(value) => {
                self.options.images = Some(value);
                self.note("images", origin);
            }
            ProviderEntry::ContextWindow(value) => {
                self.options.context_window = Some(value);
                self.note("context_window", origin);
            }
            ProviderEntry::Effort(value) => {
                self.options.effort = Some(value);
                self.note("effort", origin);
            }
            ProviderEntry::FirstByteTimeout(value) => {
                self.options.first_byte = Some(value);
                self.note("first_byte_timeout", origin);
            }
            ProviderEntry::IdleTimeout(value) => {
                self.options.idle = Some(value);
                self.note("idle_timeout", origin);
            }
            ProviderEntry::ThinkingTokens(value) => {
                self.options.thinking_tokens = Some(value);
                self.thinking = Some(origin.clone());
                self.anthropic_option = Some(Setting { value: "thinking_tokens", origin: origin.clone() });
                self.note("thinking_tokens", origin);
            }
            ProviderEntry::PromptCache(value) => {
                self.options.prompt_cache = Some(value);
                self.anthropic_option = Some(Setting { value: "prompt_cache", origin: origin.clone() });
                self.note("prompt_cache", origin);
            }
        }
    }

    fn note(&mut self, option: &'static str, origin: Origin) {
        self.option = Some(Setting { value: option, origin });
    }
}

/// Whether there is a provider of this name without any configuration.
pub(super) fn is_built_in(name: &str) -> bool {
    PRESETS.iter().any(|preset| preset.name == name)
}

/// All providers.
///
/// # Errors
/// When a configured one lacks something, or has an address that is none.
pub(super) fn all(drafts: BTreeMap<String, Draft>, home: Option<&Path>) -> Result<BTreeMap<String, Provider>, Fault> {
    let mut drafts = drafts;
    for preset in PRESETS {
        let draft = drafts.entry(preset.name.to_owned()).or_default();
        let built_in = |text: &str| Some(Setting { value: text.to_owned(), origin: Origin::BuiltIn });
        if draft.kind.as_ref().is_none_or(|kind| kind.value == preset.kind) {
            draft.kind.get_or_insert(Setting { value: preset.kind, origin: Origin::BuiltIn });
            if draft.base_url.is_none() {
                draft.base_url = built_in(preset.base_url);
                draft.options.images = draft.options.images.or(preset.images);
            }
            draft.api_key_env = draft.api_key_env.take().or_else(|| preset.variable.and_then(built_in));
        }
    }
    drafts.into_iter().map(|(name, draft)| provider(&name, draft, home).map(|provider| (name, provider))).collect()
}

fn provider(name: &str, draft: Draft, home: Option<&Path>) -> Result<Provider, Fault> {
    let origin = draft.first.unwrap_or(Origin::BuiltIn);
    let lacks = |key: &str, remedy: &str| {
        Fault::config("config-provider", format!("{origin}: the provider `{name}` has no `{key}`"), remedy)
    };
    let kind = draft
        .kind
        .ok_or_else(|| lacks("kind", "add kind = \"openai\" (or \"anthropic\", or \"script\") to its table"))?;
    let dialect = match kind.value {
        ProviderKind::OpenAi => Dialect::OpenAi,
        ProviderKind::Anthropic => Dialect::Anthropic,
        ProviderKind::Script => {
            let useless = [&draft.base_url, &draft.api_key_env, &draft.api_key_file];
            let useless = useless.into_iter().flatten().map(|setting| &setting.origin);
            if let Some(origin) = useless.chain(draft.option.iter().map(|setting| &setting.origin)).next() {
                return Err(Fault::config(
                    "config-provider",
                    format!("{origin}: the provider `{name}` plays scripts and has neither address nor key"),
                    "remove the key, or use kind = \"openai\"",
                ));
            }
            return Ok(Provider { protocol: Protocol::Script, origin });
        }
    };
    if let (Dialect::OpenAi, Some(option)) = (dialect, &draft.anthropic_option) {
        return Err(Fault::config(
            "config-provider",
            format!("{}: the provider `{name}` is of kind \"openai\", which has no `{}`", option.origin, option.value),
            "remove the key, or use kind = \"anthropic\"",
        ));
    }
    if let (Some(origin), Some(_)) = (&draft.thinking, &draft.options.effort) {
        return Err(Fault::config(
            "config-provider",
            format!(
                "{origin}: the provider `{name}` has both `effort` and `thinking_tokens`, of which only one is sent"
            ),
            "keep `effort`, or `thinking_tokens` for models that take a budget instead of a level",
        ));
    }
    let example = match dialect {
        Dialect::OpenAi => "add its address, such as base_url = \"https://api.example.com/v1\"",
        Dialect::Anthropic => "add its address, such as base_url = \"https://api.example.com\"",
    };
    let address = draft.base_url.ok_or_else(|| lacks("base_url", example))?;
    check_address(&format!("{PROVIDERS}.{name}"), &address)?;
    let variable = draft.api_key_env.map(|setting| setting.value);
    let file = draft.api_key_file.map(|setting| setting.origin.resolve(&setting.value, home));
    let named = variable.is_some() || file.is_some();
    let key = named.then_some(KeySource { variable, file });
    let protocol = Protocol::Http { dialect, base_url: address.value, key, options: draft.options };
    Ok(Provider { protocol, origin })
}

/// Refuses an address that is no http or https URL; `name` is the table that it stands in.
pub(super) fn check_address(name: &str, address: &Setting<String>) -> Result<(), Fault> {
    let rest = address.value.strip_prefix("https://").or_else(|| address.value.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace)) {
        return Ok(());
    }
    Err(Fault::config(
        "config-value",
        format!("{}: `{name}.base_url` must be an http or https address, not `{}`", address.origin, address.value),
        "write it whole, such as https://api.example.com/v1",
    ))
}
