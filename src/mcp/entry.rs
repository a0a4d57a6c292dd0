//! One entry of `mcpServers`, in the shape of Claude Code's `.mcp.json`, read and checked.

use serde_json::{Map, Value};
use sluice_bridges::{Problem, Severity};

use super::Target;
use super::expand::expand;

/// Why servers that speak the older transport are refused.
pub(super) const NO_SSE: &str = "its type is `sse`, a transport that is not spoken here; where it has a streamable HTTP \
                                 address too, name that with the type `http`";

/// An entry that is dropped, with the reason.
pub(super) fn dropped(origin: &str, name: &str, why: &str) -> Problem {
    Problem::new(
        Severity::Warning,
        "mcp-entry-invalid",
        format!("The MCP server `{name}` in {origin} is left out: {why}."),
        "Correct the entry; the others count.",
    )
}

/// Reads an entry; fields that are not known are added to `unknown`.
///
/// # Errors
/// What is wrong, with the field.
pub(super) fn read<'v>(
    entry: &Value,
    variable: &impl Fn(&str) -> Option<&'v str>,
    unknown: &mut Vec<String>,
) -> Result<Target, String> {
    let Value::Object(fields) = entry else { return Err("it is no object".to_owned()) };
    let kind = match fields.get("type") {
        None if fields.contains_key("url") => "http",
        None => "stdio",
        Some(Value::String(kind)) => kind.as_str(),
        Some(_) => return Err("`type` must be a text".to_owned()),
    };
    let (known, target): (&[&str], Target) = match kind {
        "stdio" => (
            &["type", "command", "args", "env"],
            Target::Stdio {
                command: required(fields, "command", variable)?,
                args: texts(fields, "args", variable)?,
                env: pairs(fields, "env", variable)?,
            },
        ),
        "http" | "streamable-http" => (
            &["type", "url", "headers"],
            Target::Http { url: required(fields, "url", variable)?, headers: pairs(fields, "headers", variable)? },
        ),
        "sse" => return Err(NO_SSE.to_owned()),
        other => return Err(format!("its type `{other}` is not known; the types are stdio and http")),
    };
    unknown.extend(fields.keys().filter(|field| !known.contains(&field.as_str())).cloned());
    Ok(target)
}

fn required<'v>(
    fields: &Map<String, Value>,
    field: &str,
    variable: &impl Fn(&str) -> Option<&'v str>,
) -> Result<String, String> {
    match fields.get(field) {
        None => Err(format!("`{field}` is missing")),
        Some(value) => match text(field, value, variable)? {
            text if text.trim().is_empty() => Err(format!("`{field}` is empty")),
            text => Ok(text),
        },
    }
}

fn texts<'v>(
    fields: &Map<String, Value>,
    field: &str,
    variable: &impl Fn(&str) -> Option<&'v str>,
) -> Result<Vec<String>, String> {
    match fields.get(field) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().enumerate().map(|(at, item)| text(&format!("{field}[{at}]"), item, variable)).collect()
        }
        Some(_) => Err(format!("`{field}` must be a list of texts")),
    }
}

fn pairs<'v>(
    fields: &Map<String, Value>,
    field: &str,
    variable: &impl Fn(&str) -> Option<&'v str>,
) -> Result<Vec<(String, String)>, String> {
    match fields.get(field) {
        None => Ok(Vec::new()),
        Some(Value::Object(members)) => members
            .iter()
            .map(|(name, value)| Ok((name.clone(), text(&format!("{field}.{name}"), value, variable)?)))
            .collect(),
        Some(_) => Err(format!("`{field}` must be an object of texts")),
    }
}

fn text<'v>(field: &str, value: &Value, variable: &impl Fn(&str) -> Option<&'v str>) -> Result<String, String> {
    let Value::String(text) = value else { return Err(format!("`{field}` must be a text")) };
    let text = expand(text, variable)
        .map_err(|name| format!("`{field}` needs the variable {name}, which is not set and has no default"))?;
    if text.contains('\0') { Err(format!("`{field}` has a NUL byte")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test may panic")]

    use serde_json::json;

    use super::*;

    fn read_one(entry: &Value) -> Result<Target, String> {
        read(entry, &|name| (name == "KEY").then_some("k1"), &mut Vec::new())
    }

    #[test]
    fn both_kinds_of_server_are_read_with_their_variables() {
        let entry = json!({ "command": "${BIN:-npx}", "args": ["-y", "${KEY}"], "env": { "TOKEN": "${KEY}" } });
        let target = Target::Stdio {
            command: "npx".to_owned(),
            args: vec!["-y".to_owned(), "k1".to_owned()],
            env: vec![("TOKEN".to_owned(), "k1".to_owned())],
        };
        assert_eq!(read_one(&entry), Ok(target));
        let entry = json!({ "type": "http", "url": "https://x/mcp", "headers": { "Authorization": "Bearer ${KEY}" } });
        let headers = vec![("Authorization".to_owned(), "Bearer k1".to_owned())];
        let target = Target::Http { url: "https://x/mcp".to_owned(), headers };
        assert_eq!(read_one(&entry), Ok(target));
    }

    #[test]
    fn what_is_wrong_with_an_entry_is_said_with_its_field() {
        for (entry, words) in [
            (json!(5), "no object"),
            (json!({}), "`command` is missing"),
            (json!({ "command": " " }), "`command` is empty"),
            (json!({ "command": ["npx"] }), "`command` must be a text"),
            (json!({ "command": "a", "args": "b" }), "`args` must be a list"),
            (json!({ "command": "a", "args": ["b", 1] }), "`args[1]` must be a text"),
            (json!({ "command": "a", "env": { "N": 1 } }), "`env.N` must be a text"),
            (json!({ "command": "${NOPE}" }), "`command` needs the variable NOPE"),
            (json!({ "type": "http" }), "`url` is missing"),
            (json!({ "type": "sse", "url": "https://x" }), "streamable HTTP"),
            (json!({ "type": "carrier-pigeon" }), "`carrier-pigeon` is not known"),
        ] {
            let why = read_one(&entry).unwrap_err();
            assert!(why.contains(words), "{entry}: {why}");
        }
    }
}
