//! A parsed view of a compact text that [`scan`](super::scan) has already checked.
//!
//! `serde_json` would refuse what is nested as deep as we accept, and a policy that looked at a refused value would
//! see nothing in it. Recursion is bounded by the check that came before.

use serde_json::{Map, Number, Value};

/// The view; `null` for a text that was never checked.
pub(super) fn of(text: &str) -> Value {
    let mut reader = Reader { text, at: 0 };
    reader.value().unwrap_or(Value::Null)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// The text up to the next byte that `ends` it.
    fn until(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let from = self.at;
        while self.peek().is_some_and(|b| !ends(b)) {
            self.at += 1;
        }
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn value(&mut self) -> Option<Value> {
        match self.peek()? {
            b'{' => {
                self.at += 1;
                let mut members = Map::new();
                while !self.eat(b'}') {
                    let key = self.string()?;
                    self.eat(b':').then_some(())?;
                    members.insert(key, self.value()?);
                    self.eat(b',');
                }
                Some(Value::Object(members))
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.eat(b']') {
                    items.push(self.value()?);
                    self.eat(b',');
                }
                Some(Value::Array(items))
            }
            b'"' => self.string().map(Value::String),
            _ => match self.until(|b| matches!(b, b',' | b'}' | b']')) {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                "null" => Some(Value::Null),
                number => serde_json::from_str::<Number>(number).ok().map(Value::Number),
            },
        }
    }

    fn string(&mut self) -> Option<String> {
        let from = self.at;
        self.eat(b'"').then_some(())?;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(from..self.at)?).ok()
    }
}
