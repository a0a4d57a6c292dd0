//! The strict reader behind [`Json`](super::Json): checks a text and writes it compactly, numbers digit for digit.
//!
//! `serde_json` alone cannot do this: its `Value` rounds numbers, keeps the last of two equal keys and accepts `-0`.

use std::collections::HashSet;

use serde::Serialize;
use thiserror::Error;

/// Nesting beyond this is refused with one result; a stack overflow is no panic and could not be contained.
pub const MAX_DEPTH: usize = 128;

/// Why a text is not lossless JSON. Positions are byte offsets into the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum JsonFault {
    /// The text is not JSON at all.
    #[error("not valid JSON at byte {at}: {what}")]
    Syntax {
        /// Byte offset.
        at: usize,
        /// What was found or missing there.
        what: &'static str,
    },
    /// An object has the same key twice.
    #[error("the key \"{key}\" appears twice in one object at byte {at}")]
    DuplicateKey {
        /// The repeated key.
        key: String,
        /// Byte offset of the second one.
        at: usize,
    },
    /// A number that a 64-bit reader could not hold: `-0`, or an exponent out of range.
    #[error("the number {number} at byte {at} cannot be kept losslessly")]
    Number {
        /// The number's text.
        number: String,
        /// Byte offset.
        at: usize,
    },
    /// A string with a lone surrogate or a broken escape.
    #[error("the string at byte {at} has an escape that is no character")]
    Text {
        /// Byte offset of the string.
        at: usize,
    },
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels at byte {at}")]
    Depth {
        /// Byte offset.
        at: usize,
    },
    /// The bytes are not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Byte offset.
        at: usize,
    },
    /// A Rust value without a JSON form, such as a float that is not finite.
    #[error("the value has no JSON form: {why}")]
    Unserialisable {
        /// The serialiser's words.
        why: String,
    },
}

/// Serialises, refusing floats that are not finite (serde_json would write `null`).
pub(super) fn strict_to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, JsonFault> {
    super::finite::check(value).map_err(|why| JsonFault::Unserialisable { why })?;
    serde_json::to_string(value).map_err(|e| JsonFault::Unserialisable { why: e.to_string() })
}

/// Checks `text` and returns it compactly; `deepest` is how deep it may be nested.
pub(super) fn compact(text: &str, deepest: usize) -> Result<String, JsonFault> {
    let out = String::with_capacity(text.len());
    let mut scan = Scan { text, bytes: text.as_bytes(), at: 0, out, depth: 0, deepest };
    scan.space();
    scan.value()?;
    scan.space();
    if scan.at < scan.bytes.len() {
        return Err(scan.syntax("text after the value"));
    }
    Ok(scan.out)
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    out: String,
    depth: usize,
    deepest: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn syntax(&self, what: &'static str) -> JsonFault {
        JsonFault::Syntax { at: self.at, what }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn slice(&self, from: usize, to: usize) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn value(&mut self) -> Result<(), JsonFault> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(_) => Err(self.syntax("no value begins with this character")),
            None => Err(self.syntax("the text ends where a value is expected")),
        }
    }

    fn nested(&mut self, inner: fn(&mut Self) -> Result<(), JsonFault>) -> Result<(), JsonFault> {
        if self.depth == self.deepest {
            return Err(JsonFault::Depth { at: self.at });
        }
        self.depth += 1;
        inner(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), JsonFault> {
        if !self.slice(self.at, self.at + word.len()).eq(word) {
            return Err(self.syntax("an unknown word"));
        }
        self.at += word.len();
        self.out.push_str(word);
        Ok(())
    }

    fn object(&mut self) -> Result<(), JsonFault> {
        self.at += 1;
        self.out.push('{');
        let mut keys: HashSet<String> = HashSet::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            self.out.push('}');
            return Ok(());
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.syntax("an object key in double quotes is expected"));
            }
            let at = self.at;
            let key = self.string()?;
            if !keys.insert(key.clone()) {
                return Err(JsonFault::DuplicateKey { key, at });
            }
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.syntax("a colon is expected after a key"));
            }
            self.at += 1;
            self.out.push(':');
            self.space();
            self.value()?;
            self.space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.out.push(',');
                }
                Some(b'}') => {
                    self.at += 1;
                    self.out.push('}');
                    return Ok(());
                }
                _ => return Err(self.syntax("a comma or } is expected")),
            }
        }
    }

    fn array(&mut self) -> Result<(), JsonFault> {
        self.at += 1;
        self.out.push('[');
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            self.out.push(']');
            return Ok(());
        }
        loop {
            self.space();
            self.value()?;
            self.space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.out.push(',');
                }
                Some(b']') => {
                    self.at += 1;
                    self.out.push(']');
                    return Ok(());
                }
                _ => return Err(self.syntax("a comma or ] is expected")),
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.syntax("the text ends inside a string")),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(c) if c < 0x20 => return Err(self.syntax("a control character inside a string")),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let decoded: String =
            serde_json::from_str(self.slice(start, self.at)).map_err(|_| JsonFault::Text { at: start })?;
        // Re-encoded, so that escapes are spelled one way and other text stands as itself.
        let encoded = serde_json::to_string(&decoded).map_err(|_| JsonFault::Text { at: start })?;
        self.out.push_str(&encoded);
        Ok(decoded)
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == from { Err(self.syntax("a digit is expected")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.syntax("a number does not begin with 0"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let number = self.slice(start, self.at).to_owned();
        // A reader with 64-bit floats must at least see the same magnitude: infinity, or a zero that was none, is
        // not the number that was written; -0 is written differently by many writers.
        let seen: f64 = number.parse().unwrap_or(f64::INFINITY);
        let written_zero =
            !number.split(['e', 'E']).next().unwrap_or_default().bytes().any(|b| (b'1'..=b'9').contains(&b));
        if !seen.is_finite() || (seen == 0.0 && (!written_zero || number.starts_with('-'))) {
            return Err(JsonFault::Number { number, at: start });
        }
        self.out.push_str(&number);
        Ok(())
    }
}
