//! From the configuration to the web: who fetches pages, and which services search.
//!
//! A key that is missing makes its service unusable and is no error of the start, for a session need not search. No key
//! appears in a fault.

use std::sync::Arc;

use sluice_harness::seam::web::{FetchProvider, Providers, SearchProvider};
use sluice_providers::secret::Secret;
use sluice_providers::web::{HttpFetch, PrivateHosts, ProxySettings, SearchConfig, WebSearch};

use crate::config::{Config, Environment, KeySource};
use crate::fault::{Fault, words};

/// The web as a session has it.
#[derive(Clone)]
pub(crate) struct Web {
    /// Who fetches.
    pub(crate) fetch: Arc<Providers<dyn FetchProvider>>,
    /// Who searches; nobody, unless the configuration names somebody.
    pub(crate) search: Arc<Providers<dyn SearchProvider>>,
    /// The variables that hold keys of search services; commands that the model proposes do not inherit them.
    pub(crate) key_variables: Vec<String>,
}

impl Web {
    /// No web at all.
    pub(crate) fn none() -> Self {
        let (fetch, search) = (Providers::for_fetch(None), Providers::for_search(None));
        Self { fetch: Arc::new(fetch), search: Arc::new(search), key_variables: Vec::new() }
    }
}

/// The web as the configuration wants it. Blocks while it reads keys.
///
/// # Errors
/// When a service's address cannot be used.
pub(crate) fn providers(config: &Config, environment: &Environment) -> Result<Web, Fault> {
    let proxies = proxies(environment);
    let hosts = config.web_private_hosts.as_ref().map(|setting| setting.value.as_str()).unwrap_or_default();
    let private = if config.web_allow_private.value {
        PrivateHosts::all()
    } else {
        PrivateHosts::these(PrivateHosts::split(hosts))
    };
    let mut fetch = Providers::for_fetch(None);
    fetch.add(Arc::new(HttpFetch::new(private, proxies.clone()))).map_err(Fault::internal)?;
    let named = config.web_search_provider.as_ref().map(|setting| setting.value.trim().to_owned());
    let mut search = Providers::for_search(named);
    let mut key_variables = Vec::new();
    for (name, service) in &config.searches {
        let service_config = SearchConfig {
            name: name.clone(),
            kind: service.kind,
            base_url: service.base_url.clone(),
            key: service.key.as_ref().map(|source| read_key(source, environment)),
            proxies: proxies.clone(),
        };
        let provider = WebSearch::new(service_config).map_err(|error| {
            let remedy = format!("correct the search provider `{name}` ({})", service.origin);
            Fault::config("config-provider", error.to_string(), remedy)
        })?;
        search.add(Arc::new(provider)).map_err(Fault::internal)?;
        key_variables.extend(service.key.as_ref().and_then(|source| source.variable.clone()));
    }
    Ok(Web { fetch: Arc::new(fetch), search: Arc::new(search), key_variables })
}

/// The key, or why there is none.
fn read_key(source: &KeySource, environment: &Environment) -> Result<Secret, String> {
    let set = source.variable.as_deref().and_then(|variable| environment.variable(variable)).map(str::trim);
    if let Some(key) = set.filter(|key| !key.is_empty()) {
        return Ok(Secret::new(key));
    }
    let Some(file) = &source.file else {
        let variable = source.variable.as_deref().unwrap_or_default();
        return Err(format!("it needs a key, and the variable {variable} is not set"));
    };
    match std::fs::read_to_string(file) {
        Ok(text) if !text.trim().is_empty() => Ok(Secret::new(text)),
        Ok(_) => Err(format!("it needs a key, and {} is empty", file.display())),
        Err(error) => Err(format!("it needs a key, and {} cannot be read: {}", file.display(), words(&error))),
    }
}

/// The proxies of the environment, as curl reads them. A program that a web server started has a header in
/// `HTTP_PROXY`, so nothing there is believed.
fn proxies(environment: &Environment) -> ProxySettings {
    if environment.variable("REQUEST_METHOD").is_some() {
        return ProxySettings::default();
    }
    let first = |names: [&str; 2]| names.iter().find_map(|name| environment.variable(name)).unwrap_or("").to_owned();
    ProxySettings {
        all: first(["ALL_PROXY", "all_proxy"]),
        http: first(["HTTP_PROXY", "http_proxy"]),
        https: first(["HTTPS_PROXY", "https_proxy"]),
        except: first(["NO_PROXY", "no_proxy"]),
    }
}
