//! `models`: the configured providers, where each comes from, and which model would be used.
//!
//! Nothing is connected to, and no key is shown. The invariant: what is said of the model that would be used is what
//! [`resolve`](super::resolve) makes of it, so that the list cannot disagree with a run.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use sluice_bridges::workspace_root;

use crate::cli::{ListFormat, ModelsPlan};
use crate::config::{Config, Dialect, Entry, Environment, KeySource, Origin, Protocol, Provider, load};
use crate::fault::Fault;

/// Lists what a session in the current folder would have. Blocks while it reads files.
///
/// # Errors
/// When the configuration is wrong, or `out` cannot be written to.
pub(crate) fn run(environment: &Environment, plan: &ModelsPlan, out: &mut dyn Write) -> Result<(), Fault> {
    let home = environment.home().unwrap_or_else(|| environment.temp());
    let root = workspace_root(environment.cwd(), home, |path| path.exists());
    let flags: Vec<_> = plan.model.iter().map(|name| (Entry::Model(name.clone()), Origin::Flag("--model"))).collect();
    let config = load(environment, &root, &flags)?;
    let rows: Vec<Row> = config.providers.iter().map(|(name, provider)| Row::of(name, provider, environment)).collect();
    let used = Used::of(&config, environment);
    match plan.format {
        ListFormat::Human => human(&rows, &used, out),
        ListFormat::Json => json(&rows, &used, out),
    }
    .map_err(|error| Fault::output(&error))
}

/// A provider as it is listed; the names are those of the JSON lines.
#[derive(Debug, Serialize)]
struct Row {
    provider: String,
    kind: &'static str,
    base_url: Option<String>,
    key: Option<Key>,
    images: bool,
    context_window: Option<u64>,
    source: String,
}

/// Where a provider's key is looked for; never the key.
#[derive(Debug, Serialize)]
struct Key {
    variable: Option<String>,
    file: Option<String>,
    found: bool,
}

impl Row {
    fn of(name: &str, provider: &Provider, environment: &Environment) -> Self {
        let (kind, base_url, key, images, context_window) = match &provider.protocol {
            Protocol::Script => ("script", None, None, true, None),
            Protocol::Http { dialect, base_url, key, options } => {
                let kind = match dialect {
                    Dialect::OpenAi => "openai",
                    Dialect::Anthropic => "anthropic",
                };
                let key = key.as_ref().map(|source| Key::of(source, environment));
                (
                    kind,
                    Some(shown_address(base_url)),
                    key,
                    super::takes_images(*dialect, options),
                    options.context_window,
                )
            }
        };
        let source = provider.origin.to_string();
        Self { provider: name.to_owned(), kind, base_url, key, images, context_window, source }
    }
}

/// An address without what may be secret in it: a login, and what follows its path.
fn shown_address(address: &str) -> String {
    let (address, rest) = address.split_at(address.find(['?', '#']).unwrap_or(address.len()));
    let mark = if rest.is_empty() { "" } else { "?…" };
    let start = address.find("://").map_or(0, |at| at + 3);
    let (scheme, after) = address.split_at(start);
    let (authority, path) = after.split_at(after.find(['/', '\\']).unwrap_or(after.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}…@{host}{path}{mark}"),
        None => format!("{address}{mark}"),
    }
}

impl Key {
    fn of(source: &KeySource, environment: &Environment) -> Self {
        let set = |variable: &str| environment.variable(variable).is_some_and(|key| !key.trim().is_empty());
        let filled = |file: &Path| std::fs::read_to_string(file).is_ok_and(|key| !key.trim().is_empty());
        Self {
            variable: source.variable.clone(),
            file: source.file.as_ref().map(|file| file.display().to_string()),
            found: source.variable.as_deref().is_some_and(set) || source.file.as_deref().is_some_and(filled),
        }
    }

    fn shown(&self) -> String {
        let places: Vec<&str> = [&self.variable, &self.file].into_iter().flatten().map(String::as_str).collect();
        format!("{} ({})", places.join(" or "), if self.found { "set" } else { "missing" })
    }
}

/// The model that would be used.
#[derive(Debug, Serialize)]
struct Used {
    model: String,
    source: String,
    usable: bool,
    problem: Option<String>,
}

impl Used {
    fn of(config: &Config, environment: &Environment) -> Self {
        let (model, source) = match &config.model {
            Some(name) => (name.value.clone(), name.origin.to_string()),
            None => ("script:demo".to_owned(), "no model is named".to_owned()),
        };
        let problem = super::resolve(config, environment, crate::demo::SCRIPT).err().map(|fault| fault.cause);
        Self { model, source, usable: problem.is_none(), problem }
    }
}

fn json(rows: &[Row], used: &Used, out: &mut dyn Write) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut *out, row)?;
        writeln!(out)?;
    }
    serde_json::to_writer(&mut *out, used)?;
    writeln!(out)
}

fn human(rows: &[Row], used: &Used, out: &mut dyn Write) -> io::Result<()> {
    for row in rows {
        let address = row.base_url.as_deref().unwrap_or("-");
        let key = row.key.as_ref().map_or_else(|| "no key".to_owned(), Key::shown);
        writeln!(out, "{:<12} {:<10} {address}\n    {key}; {}", row.provider, row.kind, row.source)?;
    }
    match &used.problem {
        None => writeln!(out, "\nused: {} ({})", used.model, used.source),
        Some(problem) => writeln!(out, "\nnot usable: {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_address_has_no_login_and_no_query() {
        for (given, shown) in [
            ("https://api.example.com/v1", "https://api.example.com/v1"),
            ("https://me:secret@host:1/v1?key=secret#x", "https://…@host:1/v1?…"),
            ("me:secret@host", "…@host"),
            ("http://h#secret", "http://h?…"),
        ] {
            assert_eq!(shown_address(given), shown);
        }
    }
}
