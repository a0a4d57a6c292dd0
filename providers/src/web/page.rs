//! A body as text that can be read: decoded, and Markdown where it was HTML.
//!
//! A page comes from a stranger. It is parsed piece by piece, so that cancelling ends it; one that is nested too deeply
//! to be walked is given as it is. What was lost or cut is said in a note.

use encoding_rs::{Encoding, UTF_8};
use htmd::HtmlToMarkdown;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, RcDom};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::web::LONGEST_TEXT;

/// A tree that is deeper is not walked: the converter calls itself once a level.
const DEEPEST: usize = 256;
/// How much is parsed between two looks at the signal and the depth.
const PIECE: usize = 8 * 1024;
/// Where a page says its own encoding.
const META: usize = 1024;

/// What a body is, by its declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A page.
    Html(Option<String>),
    /// Other text.
    Text(Option<String>),
    /// Not declared; text if it looks like it.
    Unknown,
    /// Something else, by its name.
    Other(String),
}

impl Kind {
    /// Of a `content-type` header.
    pub(super) fn of(header: Option<&str>) -> Self {
        let Some(header) = header.map(str::trim).filter(|header| !header.is_empty()) else { return Self::Unknown };
        let mut parts = header.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            key.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        const TEXT: &[&str] = &[
            "application/json",
            "application/xml",
            "application/javascript",
            "application/x-javascript",
            "application/ecmascript",
            "application/x-ndjson",
            "application/yaml",
            "application/x-yaml",
            "application/toml",
            "application/graphql",
            "application/sql",
            "application/x-sh",
            "application/x-tex",
            "application/rtf",
            "application/x-www-form-urlencoded",
            "message/rfc822",
            "image/svg+xml",
        ];
        match name.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html(charset),
            _ if name.starts_with("text/") || name.ends_with("+json") || name.ends_with("+xml") => Self::Text(charset),
            _ if TEXT.contains(&name.as_str()) => Self::Text(charset),
            _ => Self::Other(name),
        }
    }
}

/// A body of no declared type that is no text.
#[derive(Debug)]
pub(super) struct Binary;

/// The text of a body, and what the reader should know of it.
pub(super) fn readable(kind: &Kind, bytes: &[u8], cancel: &Cancel) -> Result<(String, Vec<String>), Binary> {
    let mut notes = Vec::new();
    let text = match kind {
        Kind::Html(charset) => {
            let html = decode(bytes, charset.as_deref().or_else(|| declared(bytes)), &mut notes);
            markdown(&html, cancel).unwrap_or_else(|| {
                notes.push("The page is nested too deeply to be converted; this is its HTML.".to_owned());
                html
            })
        }
        Kind::Text(charset) => decode(bytes, charset.as_deref(), &mut notes),
        Kind::Unknown | Kind::Other(_) if bytes.contains(&0) => return Err(Binary),
        Kind::Unknown | Kind::Other(_) => decode(bytes, None, &mut notes),
    };
    let whole = text.chars().count();
    let text = match text.char_indices().nth(LONGEST_TEXT) {
        Some((at, _)) => {
            notes.push(format!("The text was cut: these are the first {LONGEST_TEXT} of {whole} characters."));
            text.get(..at).unwrap_or_default().to_owned()
        }
        None => text,
    };
    Ok((text, notes))
}

/// The encoding that a page names in its first bytes.
fn declared(bytes: &[u8]) -> Option<&str> {
    let head = bytes.get(..bytes.len().min(META)).unwrap_or_default();
    let lower = head.to_ascii_lowercase();
    let at = lower.windows(8).position(|window| window == b"charset=")? + 8;
    let rest = head.get(at..)?;
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|b| !b.is_ascii_alphanumeric() && !b"-_:.".contains(b)).unwrap_or(rest.len());
    std::str::from_utf8(rest.get(..end)?).ok().filter(|label| !label.is_empty())
}

/// Decodes by a byte order mark, else the declared encoding, else UTF-8.
fn decode(bytes: &[u8], label: Option<&str>, notes: &mut Vec<String>) -> String {
    let encoding = match label.map(|label| (label, Encoding::for_label(label.as_bytes()))) {
        Some((_, Some(encoding))) => encoding,
        Some((label, None)) => {
            notes.push(format!("The declared encoding {label:?} is unknown; the text was read as UTF-8."));
            UTF_8
        }
        None => UTF_8,
    };
    let (text, used, lossy) = encoding.decode(bytes);
    if lossy {
        notes.push(format!("Some bytes were no valid {} and are shown as \u{fffd}.", used.name()));
    }
    text.into_owned()
}

/// HTML as Markdown; `None` when it is nested too deeply, or nobody waits for it any more.
fn markdown(html: &str, cancel: &Cancel) -> Option<String> {
    let mut parser = parse_document(RcDom::default(), ParseOpts::default());
    let mut rest = html;
    while !rest.is_empty() {
        let at = (rest.len() > PIECE).then(|| (0..=PIECE).rev().find(|at| rest.is_char_boundary(*at)));
        let (piece, after) = rest.split_at(at.flatten().unwrap_or(rest.len()));
        parser.process(StrTendril::from_slice(piece));
        // What is deep is left early: a parser looks through all that is open at each new element.
        if cancel.is_cancelled() || last_depth(&parser.tokenizer.sink.sink.document) > DEEPEST {
            return None;
        }
        rest = after;
    }
    let document = parser.finish().document;
    if depth(&document) > DEEPEST {
        return None;
    }
    let converter = HtmlToMarkdown::builder()
        .skip_tags(vec!["script", "style", "noscript", "template", "svg", "iframe", "head"])
        .build();
    Some(converter.tree_to_markdown(&document))
}

/// How deep the tree is where the parser is at work: along the last children.
fn last_depth(document: &Handle) -> usize {
    let (mut node, mut depth) = (document.clone(), 0);
    loop {
        let last = node.children.borrow().last().cloned();
        let Some(last) = last else { return depth };
        depth += 1;
        node = last;
    }
}

/// How deep the tree is.
fn depth(document: &Handle) -> usize {
    let (mut open, mut deepest) = (vec![(document.clone(), 0)], 0);
    while let Some((node, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
    }
    deepest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::time::{Duration, Instant};

    use super::*;

    fn read(header: Option<&str>, bytes: &[u8]) -> (String, Vec<String>) {
        readable(&Kind::of(header), bytes, &Cancel::new()).unwrap()
    }

    #[test]
    fn a_page_is_markdown_without_its_scripts() {
        let html = "<html><head><title>T</title><style>x{}</style></head><body><h1>Hi</h1><script>bad()</script>\
                    <p>A <b>bold</b> <a href=\"/x\">link</a>.</p><ul><li>one<li>two</ul></body></html>";
        let (text, notes) = read(Some("text/html; charset=utf-8"), html.as_bytes());
        assert!(text.starts_with("# Hi\n\nA **bold** [link](/x).\n\n"), "{text}");
        assert!(text.contains("one") && !text.contains("bad()") && !text.contains("x{}"), "{text}");
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn encodings_are_decoded_as_declared_and_what_is_lost_is_said() {
        assert_eq!(read(Some("text/plain; charset=ISO-8859-1"), b"caf\xe9"), ("café".to_owned(), vec![]));
        assert_eq!(read(Some("text/plain"), b"\xff\xfeh\0i\0").0, "hi", "a byte order mark");
        let page = b"<meta charset='windows-1251'><p>\xcf\xf0\xe8\xe2\xe5\xf2";
        assert_eq!(read(Some("text/html"), page), ("Привет".to_owned(), vec![]));
        let (text, notes) = read(Some("text/plain"), b"caf\xe9");
        assert_eq!((text.as_str(), notes.len()), ("caf\u{fffd}", 1));
        assert!(read(Some("text/plain; charset=klingon"), b"x").1[0].contains("\"klingon\" is unknown"));
    }

    #[test]
    fn r_441_types_are_textual_or_told() {
        for name in ["text/plain", "TEXT/CSS", "application/json", "application/ld+json", "application/atom+xml"] {
            assert_eq!(Kind::of(Some(name)), Kind::Text(None), "{name}");
        }
        for name in ["image/png", "application/pdf", "application/octet-stream", "video/mp4"] {
            assert_eq!(Kind::of(Some(name)), Kind::Other(name.to_owned()));
        }
        assert_eq!(Kind::of(Some("text/html;charset=\"UTF-8\"")), Kind::Html(Some("UTF-8".to_owned())));
        assert!(readable(&Kind::of(None), b"PK\x03\x04\0", &Cancel::new()).is_err());
        assert_eq!(read(None, b"plain").0, "plain");
    }

    #[test]
    fn r_441_a_long_text_is_cut_and_says_so() {
        let (text, notes) = read(Some("text/plain"), "é".repeat(LONGEST_TEXT + 5).as_bytes());
        assert_eq!(text.chars().count(), LONGEST_TEXT);
        assert_eq!(notes, ["The text was cut: these are the first 100000 of 100005 characters."]);
    }

    #[test]
    fn a_page_that_is_nested_beyond_reason_is_given_as_it_is_and_soon() {
        for tag in ["<div>", "<table><td>", "<svg><g>"] {
            let html = tag.repeat(4 * 1024 * 1024 / tag.len());
            let started = Instant::now();
            let (text, notes) = read(Some("text/html"), html.as_bytes());
            assert!(text.starts_with(tag) && notes[0].contains("nested too deeply"), "{tag}");
            assert!(started.elapsed() < Duration::from_secs(60), "{tag}: {:?}", started.elapsed());
        }
    }
}
