//! Images that people put into prompts, whatever front end they come by.
//!
//! The invariant: an image that is taken can be sent to a provider as it is; any other is refused in a sentence.

use sluice_harness::content::Block;
use sluice_harness::context::Context;
use sluice_harness::seam::model::Model;

/// The block of an image.
///
/// # Errors
/// What is wrong with it, to go on after "it is an image".
pub(crate) fn block(media_type: &str, data: &str) -> Result<Block, String> {
    match sluice_tools::image::flaw(media_type, data) {
        Some(flaw) => Err(flaw),
        None => Ok(Block::Image { media_type: media_type.to_owned(), data: data.to_owned() }),
    }
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
