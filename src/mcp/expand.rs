//! `${NAME}` and `${NAME:-default}` in entries, as Claude Code writes them. Everything else that has a `$` stays.

/// The text with its variables put in.
///
/// # Errors
/// The name of a variable that is not set and has no default.
pub(super) fn expand<'v>(text: &str, variable: impl Fn(&str) -> Option<&'v str>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once("${") {
        out.push_str(before);
        let inner = from.split_once('}').filter(|(inner, _)| is_reference(inner));
        let Some((inner, after)) = inner else {
            out.push_str("${");
            rest = from;
            continue;
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match (variable(name), default) {
            // As in a shell, an empty one counts as not set where there is a default.
            (Some(""), Some(default)) | (None, Some(default)) => out.push_str(default),
            (Some(value), _) => out.push_str(value),
            (None, None) => return Err(name.to_owned()),
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn is_reference(inner: &str) -> bool {
    let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_and_a_missing_one_without_a_default_is_named() {
        let known = |name: &str| match name {
            "A" => Some("x"),
            "EMPTY" => Some(""),
            _ => None,
        };
        for (text, expected) in [
            ("${A}/y/${A}", "x/y/x"),
            ("${NONE:-a:-b}${EMPTY:-c}${EMPTY}", "a:-bc"),
            ("$A ${1} ${A", "$A ${1} ${A"),
            ("${a b}${A}", "${a b}x"),
        ] {
            assert_eq!(expand(text, known).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("${A}${NONE}", known), Err("NONE".to_owned()));
    }
}
