//! A prompt's content blocks as the conversation takes them.
//!
//! Text, images, links and embedded text are taken, as the capabilities say; anything else is refused by name, never dropped
//! in silence.

use sluice_harness::content::Block;
use sluice_protocol::acp::schema::v1::{ContentBlock, EmbeddedResourceResource};
use sluice_protocol::{RpcError, rpc_error};

use crate::images;

/// The content of a prompt.
///
/// # Errors
/// -32602 for a prompt without text, or with a block that is not taken.
pub(super) fn content(blocks: Vec<ContentBlock>) -> Result<Vec<Block>, RpcError> {
    let refused = |index: usize, what: &str| {
        Err(rpc_error::invalid_params(format_args!(
            "`session/prompt`: prompt[{index}] is {what}; this agent takes text, images, resource links and embedded text"
        )))
    };
    let mut content = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        let text = match block {
            ContentBlock::Text(text) => text.text,
            ContentBlock::ResourceLink(link) if link.name.is_empty() || link.uri.ends_with(&link.name) => {
                format!("[resource: {}]", link.uri)
            }
            ContentBlock::ResourceLink(link) => format!("[resource {}: {}]", link.name, link.uri),
            ContentBlock::Resource(resource) => match resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    format!("[resource: {}]\n{}", text.uri, text.text)
                }
                EmbeddedResourceResource::BlobResourceContents(_) => {
                    return refused(index, "an embedded binary resource");
                }
                _ => return refused(index, "an embedded resource of an unknown kind"),
            },
            ContentBlock::Image(image) => match images::block(&image.mime_type, &image.data) {
                Ok(block) => {
                    content.push(block);
                    continue;
                }
                Err(why) => return refused(index, &format!("an image {why}")),
            },
            ContentBlock::Audio(_) => return refused(index, "audio"),
            _ => return refused(index, "content of an unknown kind"),
        };
        content.push(Block::text(text));
    }
    let empty = content.iter().all(|block| matches!(block, Block::Text(text) if text.trim().is_empty()));
    if empty {
        return Err(rpc_error::invalid_params("`session/prompt`: the prompt is empty"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test may panic")]

    use super::*;

    fn read(json: &str) -> Result<Vec<Block>, RpcError> {
        content(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn text_links_and_embedded_text_become_text_with_the_uri() {
        let taken = read(
            r#"[{"type":"text","text":"look"},
                {"type":"resource_link","name":"a.rs","uri":"file:///w/a.rs"},
                {"type":"resource_link","name":"the rules","uri":"rules"},
                {"type":"resource","resource":{"uri":"marimo_rules.md","text":"be kind"}}]"#,
        );
        let expected = [
            "look",
            "[resource: file:///w/a.rs]",
            "[resource the rules: rules]",
            "[resource: marimo_rules.md]\nbe kind",
        ];
        assert_eq!(taken.unwrap(), expected.map(Block::text));
    }

    #[test]
    fn an_image_is_a_prompt_by_itself() {
        let taken = read(r#"[{"type":"image","data":"AAAA","mimeType":"image/png"}]"#);
        assert_eq!(taken.unwrap(), [Block::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() }]);
    }

    #[test]
    fn what_is_not_taken_is_refused_by_name() {
        let table = [
            (
                r#"[{"type":"image","data":"","mimeType":"image/png"}]"#,
                "prompt[0] is an image whose data is not base64",
            ),
            (
                r#"[{"type":"image","data":"AAAA","mimeType":"image/tiff"}]"#,
                "prompt[0] is an image of the type `image/tiff`",
            ),
            (r#"[{"type":"text","text":"x"},{"type":"audio","data":"","mimeType":"audio/wav"}]"#, "prompt[1] is audio"),
            (r#"[{"type":"resource","resource":{"uri":"u","blob":""}}]"#, "an embedded binary resource"),
            ("[]", "the prompt is empty"),
            (r#"[{"type":"text","text":" \n"}]"#, "the prompt is empty"),
        ];
        for (json, words) in table {
            let error = read(json).unwrap_err();
            assert_eq!(error.code(), -32602, "{json}");
            assert!(error.message().contains(words), "{json}: {}", error.message());
        }
    }
}
