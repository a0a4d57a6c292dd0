//! Reads a compact text that [`scan`](super::scan) has already checked, into any form that is [`FromCompact`].
//!
//! `serde_json` would refuse what is nested as deep as we accept, and a policy that looked at a refused value would
//! see nothing in it. Recursion is bounded by the check that came before, and keys are unique by it.

use std::borrow::Cow;

use serde_json::{Number, Value};

/// What a value is read into: the usual view, or one with exact numbers.
pub(crate) trait FromCompact<'a>: Sized {
    /// `true`, `false` or `null`, or a number as it was written; `None` for any other word.
    fn word(word: &'a str) -> Option<Self>;
    /// A string, without its escapes.
    fn text(text: Cow<'a, str>) -> Self;
    /// An array.
    fn array(items: Vec<Self>) -> Self;
    /// An object, its members in their order.
    fn object(members: Vec<(Cow<'a, str>, Self)>) -> Self;
}

/// The value; `None` for a text that was never checked.
pub(crate) fn read<'a, S: FromCompact<'a>>(text: &'a str) -> Option<S> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value()?;
    (reader.at == text.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn value<S: FromCompact<'a>>(&mut self) -> Option<S> {
        match self.peek()? {
            b'{' => self
                .listed(b'}', |reader| {
                    let key = reader.string()?;
                    reader.eat(b':')?;
                    Some((key, reader.value()?))
                })
                .map(S::object),
            b'[' => self.listed(b']', Self::value).map(S::array),
            b'"' => self.string().map(S::text),
            _ => {
                let from = self.at;
                while self.peek().is_some_and(|b| !matches!(b, b',' | b'}' | b']')) {
                    self.at += 1;
                }
                S::word(self.text.get(from..self.at)?)
            }
        }
    }

    /// What stands between a bracket and its `end`.
    fn listed<T>(&mut self, end: u8, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.at += 1;
        let mut all = Vec::new();
        while self.peek()? != end {
            if !all.is_empty() {
                self.eat(b',')?;
            }
            all.push(one(self)?);
        }
        self.at += 1;
        Some(all)
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let from = self.at;
        self.eat(b'"')?;
        let mut escaped = false;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        if escaped {
            return serde_json::from_str(self.text.get(from..self.at)?).ok().map(Cow::Owned);
        }
        self.text.get(from + 1..self.at - 1).map(Cow::Borrowed)
    }
}

impl FromCompact<'_> for Value {
    fn word(word: &str) -> Option<Self> {
        Some(match word {
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            "null" => Self::Null,
            number => Self::Number(serde_json::from_str::<Number>(number).ok()?),
        })
    }

    fn text(text: Cow<'_, str>) -> Self {
        Self::String(text.into_owned())
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn object(members: Vec<(Cow<'_, str>, Self)>) -> Self {
        Self::Object(members.into_iter().map(|(key, value)| (key.into_owned(), value)).collect())
    }
}
