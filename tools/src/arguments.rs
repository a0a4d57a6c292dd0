//! Reading and normalising arguments: absolute paths, defaults, whole numbers.
//!
//! Nothing here touches the file system. Readers are soft: a member of the wrong type reads as absent, because
//! presentation runs them on replay with arguments that an older schema let through (R-030).

use std::path::{Path, PathBuf};

use sluice_harness::json::{Json, JsonObject};
use sluice_harness::scene::SessionFacts;

/// A schema written as a JSON literal.
pub(crate) fn schema(value: &serde_json::Value) -> Json {
    // A literal has no floats and little depth; were it ever refused, `null` would fail to compile as a schema.
    Json::of(value).unwrap_or_else(|_| Json::null())
}

/// Makes a path member absolute, in its place; an absent one stays absent.
pub(crate) fn make_absolute(arguments: &mut JsonObject, key: &str, session: &SessionFacts) -> Result<(), String> {
    let Some(given) = arguments.get(key).and_then(|value| value.view().as_str().map(str::to_owned)) else {
        return Ok(());
    };
    if given.is_empty() {
        return Err(format!("{key} is empty; give the path of a file or folder"));
    }
    if given.contains('\0') {
        return Err(format!("{key} contains a NUL byte; give a plain path"));
    }
    let absolute = session.absolute(&with_home(&given, std::env::var_os("HOME").map(PathBuf::from)));
    let Some(text) = absolute.to_str() else {
        return Err(format!("{key} cannot be made absolute: the folder {} is not UTF-8", absolute.display()));
    };
    arguments.put(key, text).map_err(|fault| format!("{key}: {fault}"))
}

fn with_home(given: &str, home: Option<PathBuf>) -> PathBuf {
    match (given.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(given),
    }
}

/// Adds a member at the end where it is missing.
pub(crate) fn fill(arguments: &mut JsonObject, key: &str, value: &serde_json::Value) -> Result<(), String> {
    if arguments.get(key).is_none() {
        arguments.put(key, value).map_err(|fault| format!("{key}: {fault}"))?;
    }
    Ok(())
}

/// Refuses a number below `least` or one that is not whole.
pub(crate) fn check_whole(arguments: &JsonObject, key: &str, least: u64) -> Result<(), String> {
    let Some(number) = arguments.get(key).and_then(|value| value.view().as_f64()) else { return Ok(()) };
    if number.fract() == 0.0 && number >= least as f64 {
        return Ok(());
    }
    Err(format!("{key} must be a whole number of at least {least}, not {number}"))
}

/// A path member.
pub(crate) fn path_at(input: &Json, key: &str) -> Option<PathBuf> {
    input.str_at(key).map(PathBuf::from)
}

/// A text member; empty where it is absent.
pub(crate) fn text_at<'a>(input: &'a Json, key: &str) -> &'a str {
    input.str_at(key).unwrap_or_default()
}

/// A whole-number member; `1.0` is one.
pub(crate) fn whole_at(input: &Json, key: &str) -> Option<u64> {
    let value = input.view().get(key)?;
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and in range")]
        (number.fract() == 0.0 && (0.0..=9e15).contains(&number)).then_some(number as u64)
    })
}

/// A boolean member; false where it is absent.
pub(crate) fn flag_at(input: &Json, key: &str) -> bool {
    input.view().get(key).and_then(serde_json::Value::as_bool).unwrap_or(false)
}

/// A text on one line without control characters, for a title.
pub(crate) fn one_line(text: &str) -> String {
    let spaced: String = text.trim().chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c }).collect();
    spaced.chars().filter(|c| !c.is_control()).collect()
}

/// A path for a title.
pub(crate) fn shown(path: Option<&Path>) -> String {
    path.map(|p| one_line(&p.display().to_string())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn a_tilde_is_the_home_folder_only_at_the_front() {
        let home = || Some(PathBuf::from("/home/u"));
        assert_eq!(with_home("~/a/b", home()), PathBuf::from("/home/u/a/b"));
        assert_eq!(with_home("~", home()), PathBuf::from("/home/u"));
        assert_eq!(with_home("~other/a", home()), PathBuf::from("~other/a"));
        assert_eq!(with_home("a/~/b", home()), PathBuf::from("a/~/b"));
        assert_eq!(with_home("~/a", None), PathBuf::from("~/a"));
    }

    #[test]
    fn titles_are_one_line_without_control_characters() {
        assert_eq!(one_line("a\nb\u{1b}[31m\u{7}c\r"), "a b[31mc");
    }

    #[test]
    fn whole_numbers_may_be_written_with_a_fraction_of_zero() {
        let input = Json::parse(r#"{"a":2.0,"b":2.5,"c":-1,"d":7}"#).unwrap();
        assert_eq!(["a", "b", "c", "d"].map(|key| whole_at(&input, key)), [Some(2), None, None, Some(7)]);
    }
}
