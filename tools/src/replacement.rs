//! Literal replacement in a text: what Edit and MultiEdit do, apart from any file.
//!
//! Pure, and the same on replay: a card is rebuilt from the input and the former text alone. Texts are matched with
//! `\n` line ends and without a byte order mark; both are restored afterwards.

use thiserror::Error;

/// Which occurrences are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The only one; more are an error.
    TheOnly,
    /// Every one.
    All,
}

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) which: Which,
}

/// Why a replacement could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ReplacementFault {
    #[error("old_string is empty. Give the text to replace, or use Write to set the whole file.")]
    Empty,
    #[error("old_string and new_string are equal: there is nothing to change.")]
    Equal,
    #[error(
        "old_string was not found in the file. It must match the file's text exactly, white space included; \
         read the file again and copy the text without the line numbers."
    )]
    NotFound,
    #[error(
        "old_string was found {count} times. Add lines around it until it is unique, or set replace_all to true \
         to change every occurrence."
    )]
    Ambiguous { count: usize },
}

impl ReplacementFault {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Empty | Self::NotFound => "FS_EDIT_NOT_FOUND",
            Self::Equal => "FS_EDIT_NO_CHANGE",
            Self::Ambiguous { .. } => "FS_AMBIGUOUS_EDIT",
        }
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A text taken apart: the body with plain line ends, and what has to be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenText {
    pub(crate) body: String,
    has_mark: bool,
    windows_ends: bool,
}

impl OpenText {
    /// Takes a file's text apart.
    pub(crate) fn of(text: &str) -> Self {
        let body = text.strip_prefix(BYTE_ORDER_MARK);
        let (has_mark, body) = (body.is_some(), body.unwrap_or(text));
        let windows = body.matches("\r\n").count();
        let plain = body.matches('\n').count() - windows;
        Self { body: plain_ends(body), has_mark, windows_ends: windows > plain }
    }

    /// The text with another body, in the same style.
    pub(crate) fn close(&self, body: &str) -> String {
        let mut text = String::with_capacity(body.len() + 3);
        if self.has_mark {
            text.push(BYTE_ORDER_MARK);
        }
        if self.windows_ends {
            text.push_str(&body.replace('\n', "\r\n"))
        } else {
            text.push_str(body)
        }
        text
    }
}

fn plain_ends(text: &str) -> String {
    text.replace("\r\n", "\n")
}

/// Does one replacement in a body with plain line ends.
pub(crate) fn replace(body: &str, replacement: &Replacement) -> Result<String, ReplacementFault> {
    let old = plain_ends(replacement.old.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&replacement.old));
    let new = plain_ends(replacement.new.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&replacement.new));
    if old.is_empty() {
        return Err(ReplacementFault::Empty);
    }
    if old == new {
        return Err(ReplacementFault::Equal);
    }
    match (body.matches(old.as_str()).count(), replacement.which) {
        (0, _) => Err(ReplacementFault::NotFound),
        (1, _) | (_, Which::All) => Ok(body.replace(old.as_str(), &new)),
        (count, Which::TheOnly) => Err(ReplacementFault::Ambiguous { count }),
    }
}

/// Does several replacements one after another; the number of the one that failed counts from 1.
pub(crate) fn replace_each(body: &str, all: &[Replacement]) -> Result<String, (usize, ReplacementFault)> {
    let mut body = body.to_owned();
    for (at, replacement) in all.iter().enumerate() {
        body = replace(&body, replacement).map_err(|fault| (at + 1, fault))?;
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn only(old: &str, new: &str) -> Replacement {
        Replacement { old: old.to_owned(), new: new.to_owned(), which: Which::TheOnly }
    }

    fn edited(text: &str, replacement: &Replacement) -> String {
        let open = OpenText::of(text);
        open.close(&replace(&open.body, replacement).unwrap())
    }

    #[test]
    fn r_401_line_ends_are_matched_as_plain_and_restored_by_the_dominant_style() {
        assert_eq!(edited("a\r\nb\r\nc\r\n", &only("a\nb", "x\ny")), "x\r\ny\r\nc\r\n");
        assert_eq!(edited("a\nb\n", &only("a\r\nb", "x\r\ny")), "x\ny\n");
        assert_eq!(edited("a\r\nb\r\nc\n", &only("b", "B")), "a\r\nB\r\nc\r\n");
        assert_eq!(edited("a\r\nb\nc\n", &only("b", "B")), "a\nB\nc\n");
    }

    #[test]
    fn a_byte_order_mark_is_kept() {
        assert_eq!(edited("\u{feff}a\n", &only("a", "b")), "\u{feff}b\n");
        assert_eq!(edited("\u{feff}a\n", &only("\u{feff}a", "b")), "\u{feff}b\n");
    }

    #[test]
    fn r_401_each_fault_has_its_code() {
        let codes = [only("", "x"), only("a", "a"), only("nope", "x"), only("b", "x")]
            .map(|one| replace("a b b b", &one).unwrap_err().code());
        assert_eq!(codes, ["FS_EDIT_NOT_FOUND", "FS_EDIT_NO_CHANGE", "FS_EDIT_NOT_FOUND", "FS_AMBIGUOUS_EDIT"]);
        assert!(replace("a b b b", &only("b", "x")).unwrap_err().to_string().contains("3 times"));
    }

    #[test]
    fn every_occurrence_is_replaced_when_asked() {
        let all = Replacement { which: Which::All, ..only("b", "x") };
        assert_eq!(edited("a b b\n", &all), "a x x\n");
    }

    #[test]
    fn several_replacements_build_on_each_other_or_name_the_one_that_failed() {
        assert_eq!(replace_each("a", &[only("a", "b"), only("b", "c")]).unwrap(), "c");
        assert_eq!(replace_each("a", &[only("a", "b"), only("a", "c")]).unwrap_err(), (2, ReplacementFault::NotFound));
    }
}
