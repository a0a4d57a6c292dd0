//! What a call gave: as the value that hooks see, and as the content that the model reads.
//!
//! The value is the protocol's own result object (`content`, `structuredContent`, `isError`). A hook of the Claude
//! dialect may put a bare list of blocks in its place. Readers are soft: a block of a shape that nobody knows is named,
//! never dropped.

use serde_json::Value;
use sluice_harness::content::Block;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::seam::mcp::CallOutcome;
use sluice_harness::tool::Content;

use crate::image;

/// How many characters of text one result may bring before the model.
const MOST_TEXT: usize = 100_000;
/// How many blocks it may bring.
const MOST_BLOCKS: usize = 1000;

/// The value of an outcome.
pub(super) fn value(outcome: CallOutcome) -> Json {
    let mut object = JsonObject::new();
    let texts: Vec<&str> = outcome.content.iter().map(Json::text).collect();
    // Blocks that are valid by themselves are valid in a list; only a depth beyond the cap is refused, and said.
    let content = Json::parse(&format!("[{}]", texts.join(","))).unwrap_or_else(|_| {
        let note = serde_json::json!([{ "type": "text", "text": "(the result is nested too deeply to be kept)" }]);
        Json::of(&note).unwrap_or_else(|_| Json::null())
    });
    object.set("content", content);
    if let Some(structured) = outcome.structured {
        object.set("structuredContent", structured);
    }
    if outcome.is_error {
        let _ = object.put("isError", &true);
    }
    object.to_json()
}

/// What the model reads of a value.
pub(super) fn content(value: &Json) -> Content {
    let mut left = MOST_TEXT;
    let given = blocks(value.view());
    let mut blocks = Content::new();
    for block in given {
        if blocks.len() == MOST_BLOCKS || (left == 0 && !brings_no_text(block)) {
            continue;
        }
        blocks.push(shown(block, &mut left));
    }
    let more = given.len() - blocks.len();
    if more > 0 {
        blocks.push(Block::text(format!("[… {more} more blocks of the result are left out …]")));
    }
    let structured = value.view().get("structuredContent").filter(|_| blocks.is_empty());
    if structured.is_some()
        && let Some(exact) = value.object().and_then(|object| object.get("structuredContent").cloned())
    {
        blocks.push(Block::text(cut(exact.text(), &mut left)));
    }
    if blocks.is_empty() {
        blocks.push(Block::text("(the tool gave no output)"));
    }
    blocks
}

/// Whether the value says that the tool failed.
pub(super) fn is_error(value: &Json) -> bool {
    value.view().get("isError").and_then(Value::as_bool).unwrap_or(false)
}

fn blocks(value: &Value) -> &[Value] {
    let list = if value.is_array() { Some(value) } else { value.get("content") };
    list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether a block is a picture, which no text is counted for.
fn brings_no_text(block: &Value) -> bool {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    text("type") == "image" && image::flaw(text("mimeType"), text("data")).is_none()
}

/// A picture that can be sent, or a word about one that cannot.
fn picture(media_type: &str, data: &str, left: &mut usize) -> Block {
    match image::flaw(media_type, data) {
        None => Block::Image { media_type: media_type.to_owned(), data: data.to_owned() },
        Some(flaw) => Block::text(cut(&format!("[an image {flaw}: not shown]"), left)),
    }
}

fn shown(block: &Value, left: &mut usize) -> Block {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "text" => Block::text(cut(text("text"), left)),
        "image" => picture(text("mimeType"), text("data"), left),
        "resource" => resource(block.get("resource").unwrap_or(&Value::Null), left),
        "resource_link" => {
            let words = [text("name"), text("uri"), text("description")];
            let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
            Block::text(cut(&format!("[resource: {}]", words.join(", ")), left))
        }
        kind => {
            let words = format!("[{} content, {} bytes, not shown]", one_word(kind), block.to_string().len());
            Block::text(cut(&words, left))
        }
    }
}

fn resource(resource: &Value, left: &mut usize) -> Block {
    let text = |key: &str| resource.get(key).and_then(Value::as_str);
    let (uri, kind) = (text("uri").unwrap_or_default(), text("mimeType").unwrap_or_default());
    match (text("text"), text("blob")) {
        (Some(words), _) => Block::text(cut(&format!("[resource: {uri}]\n{words}"), left)),
        (None, Some(blob)) if image::flaw(kind, blob).is_none() => picture(kind, blob, left),
        (None, blob) => {
            let bytes = blob.map_or(0, |blob| blob.len() / 4 * 3);
            Block::text(cut(&format!("[resource: {uri}, {kind}, about {bytes} bytes, not shown]"), left))
        }
    }
}

fn one_word(kind: &str) -> String {
    let word: String = kind.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect();
    if word.is_empty() { "unknown".to_owned() } else { word }
}

/// As much of a text as there is room for.
fn cut(text: &str, left: &mut usize) -> String {
    let many = text.chars().count();
    if many <= *left {
        *left -= many;
        return text.to_owned();
    }
    let kept: String = text.chars().take(*left).collect();
    *left = 0;
    format!("{kept}\n[… the rest of {many} characters is left out …]")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn outcome(blocks: &[&str], structured: Option<&str>) -> CallOutcome {
        CallOutcome {
            content: blocks.iter().map(|text| Json::parse(text).unwrap()).collect(),
            structured: structured.map(|text| Json::parse(text).unwrap()),
            is_error: false,
        }
    }

    #[test]
    fn each_kind_of_block_is_shown_or_named() {
        let blocks = [
            r#"{"type":"text","text":"hi"}"#,
            r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#,
            r#"{"type":"resource","resource":{"uri":"file:///a","text":"inside"}}"#,
            r#"{"type":"resource","resource":{"uri":"file:///b","mimeType":"application/zip","blob":"AAAAAAAA"}}"#,
            r#"{"type":"resource_link","name":"c","uri":"file:///c"}"#,
            r#"{"type":"hologram","x":1}"#,
        ];
        let value = value(outcome(&blocks, Some(r#"{"k":1.50}"#)));
        assert!(value.text().ends_with(r#""structuredContent":{"k":1.50}}"#), "{value}");
        let content = content(&value);
        assert_eq!(content.first(), Some(&Block::text("hi")));
        assert!(matches!(content.get(1), Some(Block::Image { media_type, .. }) if media_type == "image/png"));
        assert_eq!(content.get(2), Some(&Block::text("[resource: file:///a]\ninside")));
        assert_eq!(
            content.get(3),
            Some(&Block::text("[resource: file:///b, application/zip, about 6 bytes, not shown]"))
        );
        assert_eq!(content.get(4), Some(&Block::text("[resource: c, file:///c]")));
        assert_eq!(content.get(5), Some(&Block::text("[hologram content, 25 bytes, not shown]")));
    }

    #[test]
    fn structured_content_alone_is_the_text_and_nothing_is_said_to_be_nothing() {
        assert_eq!(content(&value(outcome(&[], Some(r#"{"k":1.50}"#)))), [Block::text(r#"{"k":1.50}"#)]);
        assert_eq!(content(&value(outcome(&[], None))), [Block::text("(the tool gave no output)")]);
    }

    #[test]
    fn a_list_that_a_hook_put_in_place_of_the_result_is_read_too() {
        let list = Json::parse(r#"[{"type":"text","text":"redacted"}]"#).unwrap();
        assert_eq!(content(&list), [Block::text("redacted")]);
        assert!(!is_error(&list));
    }

    #[test]
    fn text_beyond_the_limit_is_cut_and_said_to_be() {
        let long = format!(r#"{{"type":"text","text":"{}"}}"#, "é".repeat(MOST_TEXT + 5));
        let content = content(&value(outcome(&[&long, r#"{"type":"text","text":"more"}"#], None)));
        let text = sluice_harness::content::plain_text(&content);
        assert!(text.contains("[… the rest of 100005 characters is left out …]"));
        assert!(text.ends_with("[… 1 more blocks of the result are left out …]"), "{}", text.len());
    }

    #[test]
    fn blocks_without_number_are_one_note() {
        let tiny = r#"{"type":"text","text":"tiny"}"#;
        let content = content(&value(outcome(&vec![tiny; 50_000], None)));
        assert_eq!(content.len(), MOST_BLOCKS + 1);
        assert_eq!(content.last(), Some(&Block::text("[… 49000 more blocks of the result are left out …]")));
    }

    #[test]
    fn an_image_that_no_model_takes_is_a_note() {
        let blocks = [
            r#"{"type":"image","mimeType":"image/svg+xml","data":"AAAA"}"#,
            r#"{"type":"image","mimeType":"image/png","data":"not base64!"}"#,
            r#"{"type":"image","data":"AAAA"}"#,
            r#"{"type":"resource","resource":{"uri":"file:///b","mimeType":"image/bmp","blob":"AAAA"}}"#,
        ];
        let content = content(&value(outcome(&blocks, None)));
        assert!(content.iter().all(|block| matches!(block, Block::Text(_))), "{content:?}");
        let text = sluice_harness::content::plain_text(&content);
        assert!(text.contains("image/svg+xml") && text.contains("not base64") && text.contains("image/bmp"), "{text}");
    }
}
