//! The way between the library's types and the seam's.
//!
//! Its values hold numbers as 64 bits. What goes to a server is compared with what the model wrote, number by number,
//! and refused where it would be rounded; what comes from a server is as the library read it.

use rmcp::model::{CallToolResult, JsonObject, Tool};
use sluice_harness::json::Json;
use sluice_harness::seam::mcp::{CallOutcome, McpFault, ServerTool};

/// How much of a foreign text is shown in an error.
const SHOWN: usize = 400;

/// A tool as the seam has it. A schema that is no exact JSON becomes `null`, which does not compile.
pub(super) fn tool(tool: &Tool) -> ServerTool {
    let annotations = tool.annotations.as_ref();
    ServerTool {
        name: tool.name.to_string(),
        title: tool.title.clone().or_else(|| annotations.and_then(|a| a.title.clone())),
        description: tool.description.as_deref().unwrap_or_default().to_owned(),
        input_schema: Json::of(&*tool.input_schema).unwrap_or_else(|_| Json::null()),
        read_only_hint: annotations.and_then(|a| a.read_only_hint).unwrap_or(false),
    }
}

/// The tools of a page that is no proper one, each for itself, and where the next page is; `None` where there is no list.
/// A tool that is none keeps its name alone: its schema is `null`, which does not compile.
pub(super) fn tools_one_by_one(page: &serde_json::Value) -> Option<(Vec<ServerTool>, Option<String>)> {
    let read = |given: &serde_json::Value| {
        serde_json::from_value::<Tool>(given.clone()).map(|given| tool(&given)).unwrap_or_else(|_| ServerTool {
            name: given.get("name").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned(),
            title: None,
            description: String::new(),
            input_schema: Json::null(),
            read_only_hint: false,
        })
    };
    let tools = page.get("tools")?.as_array()?.iter().map(read).collect();
    Some((tools, page.get("nextCursor").and_then(serde_json::Value::as_str).map(str::to_owned)))
}

/// The arguments as they are sent.
pub(super) fn arguments(arguments: &Json) -> Result<JsonObject, McpFault> {
    let object: JsonObject = serde_json::from_str(arguments.text())
        .map_err(|error| McpFault::Protocol { why: format!("the arguments are no JSON object: {error}") })?;
    let sent = serde_json::to_string(&object).unwrap_or_default();
    if sent != arguments.text() {
        let (wanted, sent) = (numbers(arguments.text()), numbers(&sent));
        let differs = wanted.iter().zip(&sent).find(|(wanted, sent)| decimal(wanted) != decimal(sent));
        if let Some((number, _)) = differs {
            return Err(McpFault::Inexact { number: (*number).to_owned() });
        }
    }
    Ok(object)
}

/// The numbers of a compact JSON text, in order.
fn numbers(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let (mut at, mut quoted) = (0, false);
    while let Some(byte) = bytes.get(at) {
        match (quoted, byte) {
            (true, b'\\') => at += 1,
            (_, b'"') => quoted = !quoted,
            (false, b'-' | b'0'..=b'9') => {
                let rest = text.get(at..).unwrap_or_default();
                let end = rest.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
                let number = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                found.push(number);
                at += number.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// A number as sign, digits without zeros around them, and exponent: equal for equal values.
fn decimal(number: &str) -> (bool, String, i64) {
    let (negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let exponent = exponent.trim_start_matches('+').parse().unwrap_or(i64::MAX / 2);
    let exponent = exponent - fraction.len() as i64 + (digits.len() - kept.len()) as i64;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() { (negative, String::new(), 0) } else { (negative, kept.to_owned(), exponent) }
}

/// A result as the seam has it.
pub(super) fn outcome(result: &CallToolResult) -> Result<CallOutcome, McpFault> {
    let exact = |fault: sluice_harness::json::JsonFault| McpFault::Protocol { why: format!("its result is {fault}") };
    Ok(CallOutcome {
        content: result.content.iter().map(Json::of).collect::<Result<_, _>>().map_err(exact)?,
        structured: result.structured_content.as_ref().map(Json::of).transpose().map_err(exact)?,
        is_error: result.is_error.unwrap_or(false),
    })
}

/// The beginning of a foreign text.
pub(super) fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(SHOWN).collect::<String>())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn numbers_arrive_exactly_or_the_call_is_refused() {
        let sent = |text: &str| arguments(&Json::parse(text).unwrap()).map(|object| object.len());
        for text in [r#"{}"#, r#"{"a":1,"b":[2.50,-3e2,1.0E+2,0,0.0],"c":"12345678901234567890123"}"#, r#"{"a":0.1}"#] {
            assert!(sent(text).is_ok(), "{text}");
        }
        for (text, number) in [
            (r#"{"a":12345678901234567890123}"#, "12345678901234567890123"),
            (r#"{"s":"\"1\\","a":[0.1234567890123456789]}"#, "0.1234567890123456789"),
        ] {
            assert_eq!(sent(text), Err(McpFault::Inexact { number: number.to_owned() }));
        }
    }
}
