//! Reading what a hook printed, as far as both dialects do it alike: trimming, JSON, and what is legible in noise.
//!
//! Nothing here decides: a dialect asks whether a text is one JSON object, or which whole objects stand by themselves
//! in a noisy text, and judges them by its own rules.

use serde_json::Value;
use sluice_harness::json::Json;

/// How much of each output stream is kept, in bytes.
pub(crate) const OUTPUT_CAP: usize = 8 << 20;

/// A text for the model that a hook printed, or that holds what one printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Printed {
    pub(crate) text: String,
    /// How many bytes the hook printed beyond what is kept; the text ends with a note that says so.
    pub(crate) missing: u64,
}

impl Printed {
    /// How many bytes the whole has.
    pub(crate) fn whole(&self) -> u64 {
        (self.text.len() as u64).saturating_add(self.missing)
    }
}

impl From<String> for Printed {
    fn from(text: String) -> Self {
        Self { text, missing: 0 }
    }
}

/// What is said of an output in UTF-16.
pub(crate) const UTF16: &str = "it is UTF-16, and only UTF-8 is read; make the hook print UTF-8";

/// Whether bytes are text in UTF-16: a mark at the beginning and zeros behind it, or every other byte zero.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    let start: Vec<u8> = bytes.iter().copied().take(64).collect();
    let zeros = |from: usize| start.len() >= 8 && start.iter().skip(from).step_by(2).all(|byte| *byte == 0);
    let marked = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    (marked && start.contains(&0)) || zeros(0) || zeros(1)
}

/// The text without surrounding white space; a byte order mark counts as white space.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

/// Reads one JSON object, as leniently as the two programs do: a repeated key counts with its last value, a lone
/// surrogate becomes the replacement character.
pub(crate) fn parse_object(text: &str) -> Result<Json, String> {
    if let Ok(json) = Json::parse(text) {
        return if json.view().is_object() { Ok(json) } else { Err("it is no object".to_owned()) };
    }
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(first) => serde_json::from_str(&without_lone_surrogates(text)).map_err(|_| first.to_string())?,
    };
    if !value.is_object() {
        return Err("it is no object".to_owned());
    }
    Json::of(&value).map_err(|e| e.to_string())
}

/// The text with every `\uD8xx` escape that has no partner replaced.
fn without_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let unit = surrogate(escape);
        let taken = match unit {
            Some(high @ 0xD800..=0xDBFF) => {
                let _ = high;
                match escape.get(6..).and_then(surrogate) {
                    Some(0xDC00..=0xDFFF) => {
                        out.push_str(escape.get(..12).unwrap_or_default());
                        12
                    }
                    _ => {
                        out.push_str("\\ufffd");
                        6
                    }
                }
            }
            Some(_) => {
                out.push_str("\\ufffd");
                6
            }
            None => {
                let two: String = escape.chars().take(2).collect();
                out.push_str(&two);
                two.len()
            }
        };
        rest = escape.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

fn surrogate(escape: &str) -> Option<u32> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    (0xD800..=0xDFFF).contains(&unit).then_some(unit)
}

/// The text without terminal control sequences.
pub(crate) fn without_ansi(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => {
                for c in chars.by_ref() {
                    if ('@'..='~').contains(&c) {
                        break;
                    }
                }
            }
            Some(']') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' {
                        break;
                    }
                    if c == '\u{1b}' && chars.peek() == Some(&'\\') {
                        chars.next();
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    out
}

/// How much text that turns out to be no JSON value is read in search of one, in bytes, before that is given up.
const NOISE_BUDGET: usize = 4 << 20;

/// The text begins so many values that never end, or one so deep or with a number so large, that no object in it can
/// be told from its surroundings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooNoisy;

/// The whole JSON objects that stand by themselves in a text, beside other text or other objects but not inside
/// another JSON value. Empty when the text is one object and nothing else: that is no noise.
pub(crate) fn objects_in_noise(text: &str) -> Result<Vec<String>, TooNoisy> {
    let whole = trimmed(text);
    if parse_object(whole).is_ok() {
        return Ok(Vec::new());
    }
    let mut found = standing_objects(whole)?;
    // Control sequences may stand inside an object; one that never ends may also swallow one, so both texts are read.
    let plain = without_ansi(whole);
    if plain != whole {
        for object in standing_objects(&plain)? {
            if !found.contains(&object) {
                found.push(object);
            }
        }
    }
    Ok(found)
}

fn standing_objects(text: &str) -> Result<Vec<String>, TooNoisy> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut in_vain = 0;
    while let Some(at) = rest.find(['{', '[']) {
        let from = rest.get(at..).unwrap_or_default();
        let mut values = serde_json::Deserializer::from_str(from).into_iter::<Value>();
        let taken = match values.next() {
            Some(Ok(value)) => {
                let end = values.byte_offset();
                if value.is_object() {
                    found.push(from.get(..end).unwrap_or_default().to_owned());
                }
                end.max(1)
            }
            // Other readers of JSON take it, so what it decides must not be lost.
            Some(Err(error)) if beyond_limits(&error) => return Err(TooNoisy),
            Some(Err(error)) => {
                in_vain += offset_of(&error, from);
                1
            }
            None => 1,
        };
        if in_vain > NOISE_BUDGET {
            return Err(TooNoisy);
        }
        rest = from.get(taken..).unwrap_or_default();
    }
    Ok(found)
}

/// Whether a text is not wrong but nested too deep, or a number in it too large, for this reader. `serde_json` tells
/// that by its words alone.
fn beyond_limits(error: &serde_json::Error) -> bool {
    let why = error.to_string();
    why.starts_with("recursion limit exceeded") || why.starts_with("number out of range")
}

/// How far into a text an error stands, in bytes.
fn offset_of(error: &serde_json::Error, text: &str) -> usize {
    let before = error.line().checked_sub(2).and_then(|line| text.match_indices('\n').nth(line));
    before.map_or(0, |(at, _)| at) + error.column()
}

/// The first line of a text, cut, for a message.
pub(crate) fn first_line(text: &str) -> String {
    cut(without_ansi(trimmed(text)).lines().next().unwrap_or_default(), 120)
}

/// At most so many characters, with `…` where some are missing.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code")]

    use super::*;

    #[test]
    fn an_output_that_is_one_object_is_no_noise() {
        assert_eq!(objects_in_noise("{\"a\":{\"decision\":\"block\"}}"), Ok(Vec::new()));
        assert_eq!(objects_in_noise("\u{feff} {\"a\":1}\n"), Ok(Vec::new()));
    }

    #[test]
    fn objects_beside_text_are_found_and_objects_inside_values_are_not() {
        let found = |text| objects_in_noise(text).unwrap();
        assert_eq!(found("hi [1] {\"a\":1}\n{\"b\":{\"c\":2}} x"), ["{\"a\":1}", "{\"b\":{\"c\":2}}"]);
        assert!(found("[{\"a\":1}]").is_empty());
        assert_eq!(found("\u{1b}[31m{\"a\":1}\u{1b}[0m x"), ["{\"a\":1}"]);
        assert_eq!(found("\u{1b}[1m{\"a\":1}\u{1b}[0m"), ["{\"a\":1}"], "codes alone are noise too");
        assert_eq!(found("\u{1b}[{\"a\":1}"), ["{\"a\":1}"]);
        assert_eq!(found("\u{1b}]0;title {\"a\":1}"), ["{\"a\":1}"]);
        assert_eq!(found("{\u{1b}[1m\"a\"\u{1b}[0m:1}"), ["{\"a\":1}"]);
        assert!(found("{\"continue\": false,").is_empty());
    }

    #[test]
    fn a_search_that_would_take_too_long_is_given_up_and_says_so() {
        let text = format!("{}{{\"decision\":\"block\"}}", "[".repeat(2 << 20));
        assert_eq!(objects_in_noise(&text), Err(TooNoisy));
        assert_eq!(objects_in_noise(&"[ERROR] {x} ".repeat(100_000)), Ok(Vec::new()));
    }

    #[test]
    fn what_is_beyond_the_limits_of_the_reader_is_not_taken_for_nothing() {
        for value in ["1e999".to_owned(), format!("{}{}", "[".repeat(200), "]".repeat(200))] {
            assert_eq!(
                objects_in_noise(&format!("{{\"x\":{value},\"decision\":\"block\"}}")),
                Err(TooNoisy),
                "{value}"
            );
        }
    }

    #[test]
    fn a_lone_surrogate_is_replaced_and_the_rest_is_kept() {
        let json = parse_object("{\"reason\":\"a\\ud800b\\ud83d\\ude00\\\\ud800\"}").unwrap();
        assert_eq!(json.str_at("reason"), Some("a\u{fffd}b😀\\ud800"));
    }

    #[test]
    fn text_in_utf_16_is_told_from_any_other() {
        let text = r#"{"decision":"block"}"#;
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        assert!(is_utf16(&little) && is_utf16(&big));
        assert!(is_utf16(&[&[0xff, 0xfe], little.as_slice()].concat()));
        for other in [text.as_bytes(), b"\xff\xfe bad utf8", "日本".as_bytes(), b"", b"\0", "\u{feff}{}".as_bytes()] {
            assert!(!is_utf16(other), "{other:?}");
        }
    }

    #[test]
    fn a_repeated_key_counts_with_its_last_value() {
        assert_eq!(parse_object("{\"a\":1,\"a\":2}").unwrap().text(), "{\"a\":2}");
    }
}
