//! An object or list of JSON taken apart into its members' own texts and the white space between them.
//!
//! Put together again it is the same text, byte for byte; what is added or taken out follows the style that is there.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in order; values as they are written.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

/// The items of a list, as they are written.
pub(crate) struct Items<'a>(pub(crate) Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    if members.iter().any(|(other, _)| *other == key) {
                        return Err(A::Error::custom(format_args!("`{key}` is there twice")));
                    }
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Items<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element::<&RawValue>()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Visit)
    }
}

/// Whether a text is JSON.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Where a value that was read out of `text` stands in it.
pub(crate) fn place_in(text: &str, value: &RawValue) -> Range<usize> {
    // The value borrows from the text, so the difference of the addresses is its offset.
    let start = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + value.get().len()
}

/// How an object is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Style {
    /// From the brace to the first key.
    pub(crate) open: String,
    /// From one value to the next key.
    pub(crate) between: String,
    /// From a key to its value.
    pub(crate) colon: String,
    /// From the last value to the brace.
    pub(crate) close: String,
}

impl Style {
    /// Every member on a line of its own, `indent` deep in a parent that is `outer` deep.
    pub(crate) fn lines(outer: &str, indent: &str) -> Self {
        Self {
            open: format!("{{\n{indent}"),
            between: format!(",\n{indent}"),
            colon: ": ".to_owned(),
            close: format!("\n{outer}}}"),
        }
    }

    /// All on one line.
    pub(crate) fn compact(space: &str) -> Self {
        Self { open: "{".to_owned(), between: format!(",{space}"), colon: format!(":{space}"), close: "}".to_owned() }
    }

    /// What stands before a member on a line of its own; `None` when members share a line.
    pub(crate) fn indent(&self) -> Option<&str> {
        self.open.rsplit_once('\n').map(|(_, indent)| indent)
    }

    /// What stands before the closing brace on a line of its own.
    pub(crate) fn outer(&self) -> &str {
        self.close.rsplit_once('\n').map_or("", |(_, rest)| rest.trim_end_matches('}'))
    }
}

/// An object that can be changed and written again.
pub(crate) struct Layout {
    pub(crate) style: Style,
    /// Keys as plain text, values as JSON text.
    members: Vec<(String, String)>,
}

impl Layout {
    /// Takes an object apart; `None` when it is none, or an empty one, which has no style.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let Members(members) = serde_json::from_str(text).ok()?;
        let places: Vec<Range<usize>> = members.iter().map(|(_, value)| place_in(text, value)).collect();
        let (first, last) = (places.first()?, places.last()?);
        // Between two values there are white space, a comma, and a key, which is all between the outermost quotes.
        let head = text.get(..first.start)?;
        let (open, colon) = (head.get(..head.find('"')?)?, head.get(head.rfind('"')? + 1..)?);
        let between = match places.get(1) {
            Some(second) => {
                let gap = text.get(first.end..second.start)?;
                gap.get(..gap.find('"')?)?.to_owned()
            }
            None => format!(",{}", open.strip_prefix('{')?),
        };
        let style =
            Style { open: open.to_owned(), between, colon: colon.to_owned(), close: text.get(last.end..)?.to_owned() };
        let members = members.into_iter().map(|(key, value)| (key, value.get().to_owned())).collect();
        Some(Self { style, members })
    }

    /// An object without members yet.
    pub(crate) fn empty(style: Style) -> Self {
        Self { style, members: Vec::new() }
    }

    /// A member's value as it is written.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.members.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Puts JSON text in a member's place; a new one goes where the order of keys wants it, else to the end.
    pub(crate) fn set(&mut self, key: &str, value: String) {
        if let Some((_, old)) = self.members.iter_mut().find(|(name, _)| name == key) {
            *old = value;
            return;
        }
        let at = if self.members.is_sorted_by_key(|(name, _)| name.clone()) {
            self.members.iter().take_while(|(name, _)| name.as_str() < key).count()
        } else {
            self.members.len()
        };
        self.members.insert(at, (key.to_owned(), value));
    }

    /// Takes a member out.
    pub(crate) fn remove(&mut self, key: &str) {
        self.members.retain(|(name, _)| name != key);
    }

    /// The object as text.
    pub(crate) fn text(&self) -> String {
        let Style { open, between, colon, close } = &self.style;
        let members: Vec<String> =
            self.members.iter().map(|(key, value)| format!("{}{colon}{value}", quoted(key))).collect();
        format!("{open}{}{close}", members.join(between))
    }
}

/// A text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn an_object_put_together_again_is_the_same_text() {
        for text in [
            r#"{"a":1}"#,
            r#"{ "a" : 1.0e5 , "b" : [1,  2] }"#,
            "{\n  \"a\": {\n    \"x\": 12345678901234567890.0\n  },\n  \"b\": \"\u{e9}\\u00e9\"\n}",
            r#"{"a, \"b\": ":1, "c":2}"#,
        ] {
            assert_eq!(Layout::of(text).unwrap().text(), text);
        }
        assert!(Layout::of("{}").is_none() && Layout::of("[1]").is_none() && Layout::of("7").is_none());
        assert!(Layout::of(r#"{"a":1,"a":2}"#).is_none(), "which of them would be meant");
    }

    #[test]
    fn members_come_in_the_order_of_keys_or_last() {
        let mut sorted = Layout::of(r#"{"a":1,"c":2}"#).unwrap();
        sorted.set("b", "3".to_owned());
        sorted.set("a", "4".to_owned());
        assert_eq!(sorted.text(), r#"{"a":4,"b":3,"c":2}"#);
        let mut other = Layout::of(r#"{"c":1, "a":2}"#).unwrap();
        other.set("b", "3".to_owned());
        other.remove("c");
        assert_eq!(other.text(), r#"{"a":2, "b":3}"#);
    }
}
