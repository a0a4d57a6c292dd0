//! One configuration file as entries, each with its line.
//!
//! The first thing that is wrong, in the order of the file, is the error; it names the file, the line and the key.

use std::io;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Origin;
use super::key::{Entry, KEYS, Key, PROVIDER_KEYS, PROVIDERS};
use super::search::{SEARCH_KEYS, SEARCHES};
use super::takes::Written;
use crate::fault::{Fault, nearest};

/// The entries of a file; none when there is no such file.
///
/// # Errors
/// When the file cannot be read, is no TOML, or holds a key or value that means nothing.
pub(super) fn file(path: &Path) -> Result<Vec<(Entry, Origin)>, Fault> {
    let regular = || match std::fs::metadata(path)?.is_file() {
        true => std::fs::read(path),
        // A pipe that came with a repository would be waited for without end.
        false => Err(io::Error::other("it is no regular file")),
    };
    let bytes = match regular() {
        Ok(bytes) => bytes,
        // A path through something that is no folder names nothing either.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(e) => return Err(Fault::unreadable("config-unreadable", "the configuration", path, &e)),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes().iter().take(error.utf8_error().valid_up_to()).filter(|b| **b == b'\n').count();
        Fault::config(
            "config-syntax",
            format!("{} line {line}: this is no UTF-8 text", path.display()),
            "save the file as UTF-8",
        )
    })?;
    entries(path, &text)
}

/// The entries of a file's text.
pub(super) fn entries(path: &Path, text: &str) -> Result<Vec<(Entry, Origin)>, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reading = Reading { path, text, entries: Vec::new(), wrong: None };
    match DeTable::parse(text) {
        Ok(root) => reading.root(root.get_ref()),
        Err(error) => {
            let cause = format!("this is not valid TOML: {}", error.message());
            reading.wrong(error.span().unwrap_or_default(), "config-syntax", cause, "correct the line".to_owned());
        }
    }
    match reading.wrong {
        Some((_, fault)) => Err(fault),
        None => Ok(reading.entries),
    }
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    entries: Vec<(Entry, Origin)>,
    /// Where the first wrong thing begins, and what it is.
    wrong: Option<(usize, Fault)>,
}

type Member<'t, 'i> = (&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>);

impl Reading<'_> {
    fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }

    fn wrong(&mut self, span: Range<usize>, code: &'static str, cause: String, remedy: String) {
        if self.wrong.as_ref().is_none_or(|(offset, _)| span.start < *offset) {
            let cause = format!("{} line {}: {cause}", self.path.display(), self.line(span.start));
            self.wrong = Some((span.start, Fault::config(code, cause, remedy)));
        }
    }

    fn unknown(&mut self, span: Range<usize>, table: &str, name: &str, known: &[&str]) {
        let key = full_name(table, name);
        let guess = nearest(name, known.iter().copied()).map(|guess| full_name(table, guess));
        // A key in the wrong table is a likely slip, too.
        let elsewhere = || KEYS.iter().find(|key| key.name == name).map(Key::full_name);
        let guess = guess.or_else(elsewhere).map(|guess| format!("; did you mean `{guess}`?")).unwrap_or_default();
        let place = if table.is_empty() { "at the top".to_owned() } else { format!("in [{table}]") };
        let remedy = format!("correct or remove it; the keys {place} are {}", known.join(", "));
        self.wrong(span, "config-key", format!("the key `{key}` is unknown{guess}"), remedy);
    }

    fn root(&mut self, root: &DeTable<'_>) {
        let mut known: Vec<&str> = Vec::new();
        for key in KEYS {
            let name = if key.table.is_empty() { key.name } else { key.table };
            if !known.contains(&name) {
                known.push(name);
            }
        }
        known.push(PROVIDERS);
        for (name, value) in root {
            let word: &str = name.get_ref();
            if word == PROVIDERS {
                if let Some(providers) = self.table(word, value) {
                    for provider in providers {
                        self.provider(provider);
                    }
                }
            } else if KEYS.iter().any(|key| key.table == word) {
                if let Some(table) = self.table(word, value) {
                    for member in table {
                        if (word, &**member.0.get_ref()) == ("web", SEARCHES) {
                            self.searches(member.1);
                        } else {
                            self.member(word, member);
                        }
                    }
                }
            } else if KEYS.iter().any(|key| key.table.is_empty() && key.name == word) {
                self.member("", (name, value));
            } else {
                self.unknown(name.span(), "", word, &known);
            }
        }
    }

    fn table<'t, 'i>(&mut self, name: &str, value: &'t Spanned<DeValue<'i>>) -> Option<&'t DeTable<'i>> {
        if let DeValue::Table(table) = value.get_ref() {
            return Some(table);
        }
        let cause = format!("`{name}` must be a table, not {}", kind(value.get_ref()));
        self.wrong(value.span(), "config-value", cause, format!("write [{name}] and its keys below"));
        None
    }

    fn member(&mut self, table: &str, (name, value): Member<'_, '_>) {
        let word: &str = name.get_ref();
        let Some(key) = KEYS.iter().find(|key| key.table == table && key.name == word) else {
            let known: Vec<&str> = KEYS.iter().filter(|key| key.table == table).map(|key| key.name).collect();
            self.unknown(name.span(), table, word, &known);
            return;
        };
        if let Some(entry) = self.value(&key.full_name(), key, value) {
            self.push(name.span(), entry);
        }
    }

    fn provider(&mut self, (name, value): Member<'_, '_>) {
        let provider: &str = name.get_ref();
        let table = full_name(PROVIDERS, provider);
        if provider.is_empty() || provider == "script" || provider.contains(['/', ':']) {
            let cause = format!("`{provider}` cannot be a provider's name");
            let remedy = "use a word without `/` and `:`, and not `script`, which names scripts".to_owned();
            self.wrong(name.span(), "config-key", cause, remedy);
            return;
        }
        let Some(members) = self.table(&table, value) else { return };
        if members.is_empty() && !super::provider::is_built_in(provider) {
            self.empty(name.span(), &table, "add kind and what it needs, or remove the table");
        }
        for (name, value) in members {
            let word: &str = name.get_ref();
            let Some(key) = PROVIDER_KEYS.iter().find(|key| key.name == word) else {
                let known: Vec<&str> = PROVIDER_KEYS.iter().map(|key| key.name).collect();
                self.unknown(name.span(), &table, word, &known);
                continue;
            };
            let Some(entry) = self.value(&full_name(&table, word), key, value) else { continue };
            self.push(name.span(), Entry::Provider { name: provider.to_owned(), entry });
        }
    }

    fn searches(&mut self, value: &Spanned<DeValue<'_>>) {
        let above = full_name("web", SEARCHES);
        let Some(searches) = self.table(&above, value) else { return };
        for (name, value) in searches {
            let search: &str = name.get_ref();
            let table = full_name(&above, search);
            if search.trim().is_empty() {
                let remedy = "use a word, such as [web.search.mine]".to_owned();
                self.wrong(name.span(), "config-key", "a search provider's name is empty".to_owned(), remedy);
                continue;
            }
            let Some(members) = self.table(&table, value) else { continue };
            if members.is_empty() {
                self.empty(name.span(), &table, "add kind = \"searxng\", \"brave\" or \"tavily\", or remove the table");
            }
            for (name, value) in members {
                let word: &str = name.get_ref();
                let Some(key) = SEARCH_KEYS.iter().find(|key| key.name == word) else {
                    let known: Vec<&str> = SEARCH_KEYS.iter().map(|key| key.name).collect();
                    self.unknown(name.span(), &table, word, &known);
                    continue;
                };
                if let Some(entry) = self.value(&full_name(&table, word), key, value) {
                    self.push(name.span(), Entry::Search { name: search.to_owned(), entry });
                }
            }
        }
    }

    fn empty(&mut self, span: Range<usize>, table: &str, remedy: &str) {
        self.wrong(span, "config-provider", format!("the table [{table}] is empty"), remedy.to_owned());
    }

    fn value<E>(&mut self, name: &str, key: &Key<E>, value: &Spanned<DeValue<'_>>) -> Option<E> {
        match key.takes.make(&written(value.get_ref())) {
            Ok(entry) => Some(entry),
            Err(why) => {
                self.wrong(value.span(), "config-value", format!("`{name}` {why}"), "correct the value".to_owned());
                None
            }
        }
    }

    fn push(&mut self, span: Range<usize>, entry: Entry) {
        let origin = Origin::File { path: self.path.to_owned(), line: self.line(span.start) };
        self.entries.push((entry, origin));
    }
}

fn full_name(table: &str, name: &str) -> String {
    if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }
}

fn written(value: &DeValue<'_>) -> Written {
    match value {
        DeValue::String(text) => Written::Text(text.clone().into_owned()),
        DeValue::Boolean(value) => Written::Switch(*value),
        DeValue::Integer(number) => match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Written::Whole(number),
            Err(_) => number.as_str().parse().map_or(Written::Other("this number"), Written::Number),
        },
        DeValue::Float(number) => number.as_str().parse().map_or(Written::Other("this number"), Written::Number),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => Written::Other(kind(value)),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Boolean(_) => "true or false",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
