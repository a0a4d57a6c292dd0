//! Providers of models: those that are built in, those that are configured, and how the two become one.
//!
//! What is configured replaces the built-in values key by key. The invariant: a [`Provider`] can be used as it is,
//! save that its key may be missing, which only matters to who uses it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// Chat completions over HTTP.
    OpenAi {
        /// Where.
        base_url: String,
        /// Where its key is; `None` where it needs none.
        key: Option<KeySource>,
    },
    /// Its models are scripts.
    Script,
}

/// Where a key is. At least one of the two is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySource {
    /// The variable; looked at first.
    pub(crate) variable: Option<String>,
    /// The file.
    pub(crate) file: Option<PathBuf>,
}

/// The built-in ones: name, address and the variable of the key.
pub(crate) const BUILT_IN: &[(&str, &str, Option<&str>)] = &[
    ("deepseek", "https://api.deepseek.com", Some("DEEPSEEK_API_KEY")),
    ("openai", "https://api.openai.com/v1", Some("OPENAI_API_KEY")),
    ("ollama", "http://127.0.0.1:11434/v1", None),
];

/// What the configuration says of a provider so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    kind: Option<Setting<ProviderKind>>,
    base_url: Option<Setting<String>>,
    api_key_env: Option<Setting<String>>,
    api_key_file: Option<Setting<String>>,
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
        }
    }
}

/// All providers.
///
/// # Errors
/// When a configured one lacks something, or has an address that is none.
pub(super) fn all(drafts: BTreeMap<String, Draft>, home: Option<&Path>) -> Result<BTreeMap<String, Provider>, Fault> {
    let mut drafts = drafts;
    for (name, base_url, variable) in BUILT_IN {
        let draft = drafts.entry((*name).to_owned()).or_default();
        let built_in = |text: &str| Some(Setting { value: text.to_owned(), origin: Origin::BuiltIn });
        let takes_preset = draft.kind.as_ref().is_none_or(|kind| kind.value == ProviderKind::OpenAi);
        if takes_preset {
            draft.kind.get_or_insert(Setting { value: ProviderKind::OpenAi, origin: Origin::BuiltIn });
            draft.base_url = draft.base_url.take().or_else(|| built_in(base_url));
            draft.api_key_env = draft.api_key_env.take().or_else(|| variable.and_then(built_in));
        }
    }
    drafts.into_iter().map(|(name, draft)| provider(&name, draft, home).map(|provider| (name, provider))).collect()
}

fn provider(name: &str, draft: Draft, home: Option<&Path>) -> Result<Provider, Fault> {
    let origin = draft.first.unwrap_or(Origin::BuiltIn);
    let lacks = |key: &str, remedy: &str| {
        Fault::config("config-provider", format!("{origin}: the provider `{name}` has no `{key}`"), remedy)
    };
    let kind = draft.kind.ok_or_else(|| lacks("kind", "add kind = \"openai\" (or \"script\") to its table"))?;
    let protocol = match kind.value {
        ProviderKind::Script => {
            let useless = [&draft.base_url, &draft.api_key_env, &draft.api_key_file];
            if let Some(setting) = useless.into_iter().flatten().next() {
                return Err(Fault::config(
                    "config-provider",
                    format!("{}: the provider `{name}` plays scripts and has neither address nor key", setting.origin),
                    "remove the key, or use kind = \"openai\"",
                ));
            }
            Protocol::Script
        }
        ProviderKind::OpenAi => {
            let address = draft.base_url.ok_or_else(|| {
                lacks("base_url", "add its address, such as base_url = \"https://api.example.com/v1\"")
            })?;
            check_address(name, &address)?;
            let variable = draft.api_key_env.map(|setting| setting.value);
            let file = draft.api_key_file.map(|setting| setting.origin.resolve(&setting.value, home));
            let named = variable.is_some() || file.is_some();
            Protocol::OpenAi { base_url: address.value, key: named.then_some(KeySource { variable, file }) }
        }
        // Refused where it was read.
        ProviderKind::Anthropic => return Err(lacks("kind", "use kind = \"openai\" or \"script\"")),
    };
    Ok(Provider { protocol, origin })
}

fn check_address(name: &str, address: &Setting<String>) -> Result<(), Fault> {
    let rest = address.value.strip_prefix("https://").or_else(|| address.value.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace)) {
        return Ok(());
    }
    Err(Fault::config(
        "config-value",
        format!(
            "{}: `{PROVIDERS}.{name}.base_url` must be an http or https address, not `{}`",
            address.origin, address.value
        ),
        "write it whole, such as https://api.example.com/v1",
    ))
}
