//! What a question does not show: the values of secrets, replaced by [`REDACTED`] in a call's input and its card.
//!
//! Pure, and never applied to what runs. A person must still see what would run, so what might hide a command stays:
//! a value that the shell computes, and, where the quoting is in doubt, anything longer than one word.

use crate::json::{Json, JsonObject};
use crate::tool::{CallCard, CallKind, CardItem};

/// What stands in place of a secret.
const REDACTED: &str = "<redacted>";

/// Words that make a name a secret's, alone, in the plural, or at the end of a run-together word.
const SECRETS: [&str; 7] = ["token", "password", "passphrase", "secret", "authorization", "cookie", "credential"];

/// What runs together with `key` in a secret's name; `key` at any word's end would take `monkey` too.
const KEYS: [&str; 8] = ["api", "access", "auth", "private", "secret", "signing", "encryption", "ssh"];

/// Members whose strings are command lines, or words of one.
const COMMANDS: [&str; 7] = ["command", "commands", "cmd", "script", "args", "argv", "arguments"];

/// How an `Authorization` header may begin; the secret follows.
const SCHEMES: [&str; 6] = ["bearer", "basic", "token", "digest", "apikey", "negotiate"];

/// An input without its secrets.
pub(super) fn input(input: &Json) -> Json {
    value(input, Text::Plain)
}

/// A card without the secrets of a command line; other cards are made from the redacted input and stay as they are.
pub(super) fn card(card: CallCard) -> CallCard {
    match card.kind {
        CallKind::Execute => {}
        CallKind::Read
        | CallKind::Edit
        | CallKind::Delete
        | CallKind::Move
        | CallKind::Search
        | CallKind::Think
        | CallKind::Fetch
        | CallKind::Other => return card,
    }
    let items = card.items.into_iter().map(|item| match item {
        CardItem::Text(text) => CardItem::Text(command(&text)),
        diff @ CardItem::Diff { .. } => diff,
    });
    CallCard { title: command(&card.title), items: items.collect(), ..card }
}

/// What the strings of a value are.
#[derive(Clone, Copy)]
enum Text {
    Plain,
    Command,
}

fn value(json: &Json, text: Text) -> Json {
    if let Some(members) = json.object() {
        let mut shown = JsonObject::new();
        for (key, member) in members.iter() {
            let text = if COMMANDS.contains(&key.to_ascii_lowercase().as_str()) { Text::Command } else { text };
            let hidden = is_secret(key) && !is_harmless(key, member);
            shown.set(key, if hidden { string(REDACTED) } else { value(member, text) });
        }
        return shown.to_json();
    }
    if let Ok(items) = json.decode::<Vec<Json>>() {
        let items: Vec<Json> = items.iter().map(|item| value(item, text)).collect();
        return Json::of(&items).unwrap_or_else(|_| string(REDACTED));
    }
    match (text, json.view().as_str()) {
        (Text::Command, Some(line)) => string(&command(line)),
        (Text::Command | Text::Plain, _) => json.clone(),
    }
}

fn string(text: &str) -> Json {
    Json::of(text).unwrap_or_else(|_| Json::null())
}

/// Nothing is hidden by hiding these: no value, and a count of tokens.
fn is_harmless(key: &str, value: &Json) -> bool {
    let counted = value.view().is_number() && key.to_ascii_lowercase().ends_with("tokens");
    counted || matches!(value.text(), "null" | "true" | "false" | r#""""#)
}

/// Whether a name is a secret's, by its words: `apiKey`, `DB_PASSWORD`, `x-auth-token`.
fn is_secret(name: &str) -> bool {
    words(name).iter().any(|word| {
        let one = word.trim_end_matches(|c: char| c.is_ascii_digit());
        let one = one.strip_suffix('s').unwrap_or(one);
        let key = one.strip_suffix("key").is_some_and(|before| before.is_empty() || KEYS.contains(&before));
        key || SECRETS.iter().any(|secret| one.ends_with(secret))
    })
}

/// The words of a name in lower case, split at signs and at the humps of a camel.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut all = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|b| letters.get(b));
        let after = letters.get(at + 1);
        let hump = letter.is_uppercase()
            && before
                .is_some_and(|b| b.is_lowercase() || (b.is_uppercase() && after.is_some_and(|a| a.is_lowercase())));
        if hump || !letter.is_alphanumeric() {
            all.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(last) = all.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
    }
    all.retain(|word| !word.is_empty());
    all
}

/// A command line without the values of its secrets.
fn command(line: &str) -> String {
    // Where comments, here-documents or the shell's own escapes may bend the quoting, quotes are not believed.
    let sure = !["#", "<<", "$'", "\n"].iter().any(|doubt| line.contains(doubt));
    let mut out = String::new();
    let mut rest = line;
    let mut quote: Option<char> = None;
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|c| !is_name(c)).map_or(rest, |end| rest.split_at(end).0);
        if name.is_empty() {
            let mut taken = first.len_utf8();
            match (first, quote) {
                ('\\', None | Some('"')) => taken += rest.chars().nth(1).map_or(0, char::len_utf8),
                ('\'' | '"', None) => quote = Some(first),
                (_, Some(open)) if open == first => quote = None,
                _ => {}
            }
            rest = pass(&mut out, rest, taken);
            continue;
        }
        let header = quote.is_some() && out.ends_with(['"', '\'']);
        let follows = quote.is_some() && out.ends_with(": ");
        rest = pass(&mut out, rest, name.len());
        let bearer = name.eq_ignore_ascii_case("bearer") && rest.starts_with(' ') && (header || follows);
        let Some(lead) = (if bearer { Some(1) } else { sign(name, rest) }) else { continue };
        // A header with a space in it begins with its quote; elsewhere the next word may be what is run.
        if !bearer && !header && rest.split_at(lead).0.contains(' ') {
            continue;
        }
        // A quote that closes the surrounding one is no part of what follows.
        if !bearer && !rest.starts_with('\\') && quote.is_some_and(|q| rest.split_at(lead).0.contains(q)) {
            continue;
        }
        rest = pass(&mut out, rest, lead);
        if let Some((scheme, _)) = rest.split_once(' ')
            && SCHEMES.iter().any(|s| scheme.eq_ignore_ascii_case(s))
            && quote.is_some()
        {
            rest = pass(&mut out, rest, scheme.len() + 1);
        }
        let length = secret(rest, quote, sure);
        if length > 0 {
            out.push_str(REDACTED);
            rest = rest.split_at(length).1;
        }
    }
    out
}

fn pass<'a>(out: &mut String, rest: &'a str, length: usize) -> &'a str {
    let (passed, rest) = rest.split_at(length);
    out.push_str(passed);
    rest
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// How long the sign is that stands between a secret's name and its value: `=`, `: `, `":`.
fn sign(name: &str, after: &str) -> Option<usize> {
    if !is_secret(name) {
        return None;
    }
    let bare = after.trim_start_matches('\\').trim_start_matches(['"', '\'']);
    let bare = if bare.starts_with(':') { bare } else { after };
    match bare.chars().next()? {
        '=' => Some(1),
        ':' => {
            let value = bare.trim_start_matches(':').trim_start_matches(' ');
            (!value.starts_with("//")).then(|| after.len() - value.len())
        }
        _ => None,
    }
}

/// How much of the text is one secret value that hides nothing else; 0 when there is none.
fn secret(text: &str, outer: Option<char>, sure: bool) -> usize {
    let escaped = text.starts_with("\\\"") || text.starts_with("\\'");
    let opening = text.chars().nth(usize::from(escaped)).filter(|c| matches!(c, '"' | '\'') && Some(*c) != outer);
    if let Some(open) = opening.or_else(|| escaped.then_some('"')) {
        let skipped = 1 + usize::from(escaped);
        let inside = text.split_at(skipped).1;
        let length = if open == '"' && !escaped { closing(inside) } else { inside.find(open) };
        let Some(length) = length else { return 0 };
        let inside = inside.split_at(length).0;
        let word = !inside.contains(|c: char| ends_word(c) || Some(c) == outer);
        // An escaped quote is closed by an escaped one, or not at all.
        if escaped && !inside.ends_with('\\') {
            return 0;
        }
        if computes(inside) || length == 0 || !(word || (sure && outer.is_none())) {
            return 0;
        }
        return skipped + length + 1;
    }
    let length = bare(text, sure && outer.is_none());
    let word = text.split_at(length).0;
    // What a parenthesis follows is begun by the word.
    let begins = text.split_at(length).1.starts_with('(');
    if computes(word) || begins { 0 } else { length }
}

/// How long a word without quotes is; what is escaped belongs to it, where that is sure.
fn bare(text: &str, escapes: bool) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let ends = !escaped && (ends_word(*c) || matches!(c, '"' | '\'' | ',' | '}'));
        escaped = escapes && *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Where a double quote closes.
fn closing(inside: &str) -> Option<usize> {
    let mut escaped = false;
    inside
        .char_indices()
        .find(|(_, c)| {
            let closes = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            closes
        })
        .map(|(at, _)| at)
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`')
}

/// Whether the shell makes the value: what it runs for that must be seen, and the name of a variable is no secret.
fn computes(value: &str) -> bool {
    let variable =
        value.strip_prefix('$').is_some_and(|name| name.chars().all(|c| is_name(c) || matches!(c, '{' | '}')));
    variable || value.contains("$(") || value.contains('`') || value.contains("${")
}

#[cfg(test)]
mod tests;
