//! Images as `Read` shows them: told by their first bytes, never by their name.
//!
//! Nothing is decoded or scaled here; the bytes go to the model as they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use sluice_harness::content::Block;

/// The largest image that is shown, in bytes: what stays within 5 MiB as base64, which is what models take.
pub(super) const LARGEST_IMAGE: u64 = 5 * 1024 * 1024 / 4 * 3;

/// The value of an image, as Claude Code has it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageFile {
    base64: String,
    r#type: &'static str,
    original_size: usize,
}

/// The value of an image; `None` when the bytes are none that is known.
pub(super) fn image(bytes: &[u8]) -> Option<ImageFile> {
    let r#type = media_type(bytes)?;
    Some(ImageFile { base64: STANDARD.encode(bytes), r#type, original_size: bytes.len() })
}

/// Whether a name promises an image; for the words about one that is too large.
pub(super) fn may_be_one(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    matches!(extension.to_ascii_lowercase().as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp")
}

/// The image for models that take one, and a line of text for all.
pub(super) fn render(path: &str, file: Option<&Value>) -> Vec<Block> {
    let text = |key: &str| file.and_then(|file| file.get(key)).and_then(Value::as_str).unwrap_or_default();
    let size = file.and_then(|file| file.get("originalSize")).and_then(Value::as_u64).unwrap_or(0);
    let media_type = text("type");
    vec![
        Block::text(format!("The image {path} ({media_type}, {size} bytes):")),
        Block::Image { media_type: media_type.to_owned(), data: text("base64").to_owned() },
    ]
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn images_are_told_by_their_first_bytes() {
        let kinds: [(&[u8], Option<&str>); 8] = [
            (b"\x89PNG\r\n\x1a\n\0\0", Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a\x01", Some("image/gif")),
            (b"GIF87a", Some("image/gif")),
            (b"RIFF\x04\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x04\0\0\0WAVE", None),
            (b"\x89PNG", None),
            (b"", None),
        ];
        for (bytes, kind) in kinds {
            assert_eq!(media_type(bytes), kind, "{bytes:?}");
        }
        let gif = image(b"GIF89a\x01").unwrap();
        assert_eq!((gif.base64.as_str(), gif.original_size), ("R0lGODlhAQ==", 7));
    }

    #[test]
    fn the_largest_image_fits_five_mebibytes_of_base64() {
        assert_eq!(STANDARD.encode(vec![0; usize::try_from(LARGEST_IMAGE).unwrap()]).len(), 5 * 1024 * 1024);
    }
}
