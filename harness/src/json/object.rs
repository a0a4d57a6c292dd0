//! An ordered JSON object that can be edited without touching the digits of what stays.
//!
//! Tool definitions use it to normalise arguments (fill a default, make a path absolute); bridges use it to lay a
//! rewritten field over an input. Keys keep their place; a new key goes to the end.

use serde::Serialize;

use super::{Json, JsonFault};

/// An object as its members in order; keys are unique.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonObject {
    members: Vec<(String, Json)>,
}

impl JsonObject {
    /// An object without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an object's members in order; `None` when the value is no object.
    #[must_use]
    pub fn read(json: &Json) -> Option<Self> {
        let members: OrderedMembers = serde_json::from_str(json.text()).ok()?;
        Some(Self { members: members.0 })
    }

    /// The value of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.members.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Whether the object has no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.members.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Sets a member: in its place when the key exists, else at the end.
    pub fn set(&mut self, key: &str, value: Json) {
        match self.members.iter_mut().find(|(k, _)| k == key) {
            Some((_, slot)) => *slot = value,
            None => self.members.push((key.to_owned(), value)),
        }
    }

    /// Sets a member to the JSON of a serialisable value.
    ///
    /// # Errors
    /// As [`Json::of`].
    pub fn put<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), JsonFault> {
        self.set(key, Json::of(value)?);
        Ok(())
    }

    /// Removes a member and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let at = self.members.iter().position(|(k, _)| k == key)?;
        Some(self.members.remove(at).1)
    }

    /// The object as a value, members in order.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut text = String::from("{");
        for (at, (key, value)) in self.members.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::Value::from(key.as_str()).to_string());
            text.push(':');
            text.push_str(value.text());
        }
        text.push('}');
        // Every part is compact and valid already, and keys are unique, so only a depth beyond the cap could be
        // refused; the empty object then stands in, and validation names what is missing.
        Json::from_compact(text).unwrap_or_else(|_| Json::null())
    }
}

impl Json {
    /// The JSON `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(std::sync::Arc::new(super::Inner {
            raw: serde_json::value::RawValue::NULL.to_owned(),
            view: std::sync::OnceLock::new(),
        }))
    }
}

struct OrderedMembers(Vec<(String, Json)>);

impl<'de> serde::Deserialize<'de> for OrderedMembers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> serde::de::Visitor<'de> for Visit {
            type Value = OrderedMembers;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<OrderedMembers, A::Error> {
                let mut members = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some(entry) = map.next_entry::<String, Json>()? {
                    members.push(entry);
                }
                Ok(OrderedMembers(members))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}
