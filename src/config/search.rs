//! Search providers, `[web.search.NAME]`: their keys, and what becomes of them.
//!
//! The invariant: a [`SearchService`] has an address and a kind that fit; its key may be missing, which only matters to
//! who searches.

use std::collections::BTreeMap;
use std::path::Path;

use sluice_providers::web::SearchKind;

use super::key::Key;
use super::provider::{KeySource, check_address};
use super::takes::Takes;
use super::{Origin, Setting};
use crate::fault::Fault;

/// The table, in `[web]`, that holds one table a search provider.
pub(super) const SEARCHES: &str = "search";

/// One key of a search provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SearchEntry {
    /// `kind`.
    Kind(SearchKind),
    /// `base_url`.
    BaseUrl(String),
    /// `api_key_env`.
    ApiKeyEnv(String),
    /// `api_key_file`.
    ApiKeyFile(String),
}

/// The keys of one search provider.
pub(crate) const SEARCH_KEYS: &[Key<SearchEntry>] = &[
    Key {
        table: "",
        name: "kind",
        variable: None,
        takes: Takes::Word {
            words: &["searxng", "brave", "tavily"],
            make: |word| {
                let kind = match word {
                    "searxng" => SearchKind::SearXng,
                    "brave" => SearchKind::Brave,
                    "tavily" => SearchKind::Tavily,
                    _ => return None,
                };
                Some(SearchEntry::Kind(kind))
            },
        },
        meaning: "the service it is",
    },
    Key {
        table: "",
        name: "base_url",
        variable: None,
        takes: Takes::Text(SearchEntry::BaseUrl),
        meaning: "where it is; needed for searxng, else the service's own address",
    },
    Key {
        table: "",
        name: "api_key_env",
        variable: None,
        takes: Takes::Text(SearchEntry::ApiKeyEnv),
        meaning: "the variable that holds its key; commands that the model proposes do not inherit it",
    },
    Key {
        table: "",
        name: "api_key_file",
        variable: None,
        takes: Takes::Text(SearchEntry::ApiKeyFile),
        meaning: "the file that holds its key, where the variable is not set; relative to this file's folder, `~/` is the home folder",
    },
];

/// A search provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchService {
    /// What it is.
    pub(crate) kind: SearchKind,
    /// Where it is.
    pub(crate) base_url: String,
    /// Where its key is; `None` where none is named.
    pub(crate) key: Option<KeySource>,
    /// Where it is configured.
    pub(crate) origin: Origin,
}

/// What the configuration says of a search provider so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    kind: Option<Setting<SearchKind>>,
    base_url: Option<Setting<String>>,
    api_key_env: Option<Setting<String>>,
    api_key_file: Option<Setting<String>>,
    first: Option<Origin>,
}

impl Draft {
    pub(super) fn set(&mut self, entry: SearchEntry, origin: Origin) {
        self.first.get_or_insert_with(|| origin.clone());
        match entry {
            SearchEntry::Kind(value) => self.kind = Some(Setting { value, origin }),
            SearchEntry::BaseUrl(value) => self.base_url = Some(Setting { value, origin }),
            SearchEntry::ApiKeyEnv(value) => self.api_key_env = Some(Setting { value, origin }),
            SearchEntry::ApiKeyFile(value) => self.api_key_file = Some(Setting { value, origin }),
        }
    }
}

/// All search providers.
///
/// # Errors
/// When one lacks something, or has an address that is none.
pub(super) fn all(
    drafts: BTreeMap<String, Draft>,
    home: Option<&Path>,
) -> Result<BTreeMap<String, SearchService>, Fault> {
    drafts.into_iter().map(|(name, draft)| service(&name, draft, home).map(|service| (name, service))).collect()
}

fn service(name: &str, draft: Draft, home: Option<&Path>) -> Result<SearchService, Fault> {
    let origin = draft.first.unwrap_or(Origin::BuiltIn);
    let lacks = |key: &str, remedy: &str| {
        Fault::config("config-provider", format!("{origin}: the search provider `{name}` has no `{key}`"), remedy)
    };
    let kind =
        draft.kind.ok_or_else(|| lacks("kind", "add kind = \"searxng\", \"brave\" or \"tavily\" to its table"))?;
    let base_url = match (draft.base_url, kind.value.usual_address()) {
        (Some(address), _) => {
            check_address(&format!("web.{SEARCHES}.{name}"), &address)?;
            address.value
        }
        (None, Some(usual)) => usual.to_owned(),
        (None, None) => {
            return Err(lacks("base_url", "add the instance's address, such as base_url = \"http://127.0.0.1:8888\""));
        }
    };
    let variable = draft.api_key_env.map(|setting| setting.value);
    let file = draft.api_key_file.map(|setting| setting.origin.resolve(&setting.value, home));
    let named = variable.is_some() || file.is_some();
    let key = named.then_some(KeySource { variable, file });
    Ok(SearchService { kind: kind.value, base_url, key, origin })
}
