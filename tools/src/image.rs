//! Which images any provider of models takes: the one rule for prompts and for what tools give.
//!
//! The invariant: an image without a flaw can be sent as it is; one with a flaw would be refused with every request that
//! holds it, so it must not come into a conversation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What every provider that takes images at all reads.
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// What is wrong with an image, to go on after "it is an image".
#[must_use]
pub fn flaw(media_type: &str, data: &str) -> Option<String> {
    if !TYPES.contains(&media_type) {
        let shown: String = media_type.chars().filter(|c| !c.is_control()).take(60).collect();
        return Some(format!("of the type `{shown}`, not one of {}", TYPES.join(", ")));
    }
    let good = STANDARD.decode(data).is_ok_and(|bytes| !bytes.is_empty());
    (!good).then(|| "whose data is not base64".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_that_can_be_sent_have_no_flaw() {
        for data in ["AAAA", "AA==", "AAA=", "iVBORw0K", "+/+/"] {
            assert_eq!(flaw("image/png", data), None, "{data}");
        }
        for data in ["", "=", "====", "A===", "AAA", "AA A", "AAAA\n", "AA=A", "-_-_"] {
            assert_eq!(flaw("image/png", data).as_deref(), Some("whose data is not base64"), "{data:?}");
        }
        assert!(flaw("image/svg+xml", "AAAA").is_some_and(|flaw| flaw.contains("image/svg+xml")));
    }
}
