//! Images that people put into prompts, whatever front end they come by.
//!
//! The invariant: an image that is taken can be sent to a provider as it is; any other is refused in a sentence.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sluice_harness::content::Block;
use sluice_harness::context::Context;
use sluice_harness::seam::model::Model;

/// What every provider that takes images at all reads.
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The block of an image.
///
/// # Errors
/// What is wrong with it, to go on after "it is an image".
pub(crate) fn block(media_type: &str, data: &str) -> Result<Block, String> {
    if !TYPES.contains(&media_type) {
        return Err(format!("of the type `{media_type}`, not one of {}", TYPES.join(", ")));
    }
    if STANDARD.decode(data).is_ok_and(|bytes| !bytes.is_empty()) {
        return Ok(Block::Image { media_type: media_type.to_owned(), data: data.to_owned() });
    }
    Err("whose data is not base64".to_owned())
}

/// Whether a prompt holds an image that the session's model does not take; then why, to go on after "it is an image".
pub(crate) fn not_taken(content: &[Block], session: &Context) -> Option<String> {
    if !content.iter().any(|block| matches!(block, Block::Image { .. })) {
        return None;
    }
    let model = session.lease::<dyn Model>().ok()?;
    if model.takes_images() {
        return None;
    }
    let info = model.info();
    Some(format!(
        "and the model {}/{} is not known to take images; if it does, set images = true in [providers.{}]",
        info.provider, info.model, info.provider
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test may panic")]

    use super::*;

    #[test]
    fn only_images_that_can_be_sent_are_taken() {
        for data in ["AAAA", "AA==", "AAA=", "iVBORw0K", "+/+/"] {
            assert!(block("image/png", data).is_ok(), "{data}");
        }
        for data in ["", "=", "====", "A===", "AAA", "AA A", "AAAA\n", "AA=A", "-_-_"] {
            assert_eq!(block("image/png", data).unwrap_err(), "whose data is not base64", "{data:?}");
        }
        assert!(block("image/svg+xml", "AAAA").unwrap_err().contains("image/svg+xml"));
    }
}
