//! From a schema's text to a `Shape`, collecting every violation of the subset.

use std::borrow::Cow;

use super::SchemaViolation;
use super::exact::Node;
use crate::json::{Json, compact};

/// A checked schema.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// Any JSON.
    Any,
    /// Exactly one of these.
    OneOf(Vec<Shape>),
    /// An object.
    Object(ObjectShape),
    /// An array, of such items.
    Array(Option<Box<Shape>>),
    /// A scalar, one of the allowed values where there are any.
    Scalar(Kind, Option<Vec<Node<'static>>>),
}

/// An object's properties, in the order of the schema.
#[derive(Debug, Clone)]
pub(super) struct ObjectShape {
    pub(super) properties: Vec<(String, Shape)>,
    pub(super) required: Vec<String>,
    pub(super) extra: Extra,
}

/// What becomes of keys that are not declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Welcome,
    Refused,
}

/// The scalar types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Integer,
    Bool,
    Null,
}

impl Kind {
    /// Whether a value is of the type; an integer may be written `1.0`.
    pub(super) fn admits(self, value: &Node<'_>) -> bool {
        match (self, value) {
            (Self::Text, Node::Text(_))
            | (Self::Number, Node::Number(_))
            | (Self::Bool, Node::Bool(_))
            | (Self::Null, Node::Null) => true,
            (Self::Integer, Node::Number(number)) => number.is_integer(),
            (Self::Text | Self::Number | Self::Integer | Self::Bool | Self::Null, _) => false,
        }
    }

    /// With its article, for messages.
    pub(super) fn named(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Integer => "an integer",
            Self::Bool => "a boolean",
            Self::Null => "null",
        }
    }
}

const ANNOTATIONS: &[&str] = &["description", "title", "default", "examples"];
const KEYWORDS: &[&str] =
    &["type", "oneOf", "properties", "required", "additionalProperties", "items", "enum", "const"];
const TYPES: &str = "object, array, string, number, integer, boolean, null";

/// Compiles, or lists every violation in document order.
pub(super) fn compile(schema: &Json) -> Result<Shape, Vec<SchemaViolation>> {
    let mut compiler = Compiler { violations: Vec::new() };
    let shape = match compact::read::<Node<'_>>(schema.text()) {
        Some(node) => compiler.schema("schema", &node),
        None => {
            compiler.say("schema", "cannot be read");
            Shape::Any
        }
    };
    if compiler.violations.is_empty() { Ok(shape) } else { Err(compiler.violations) }
}

struct Compiler {
    violations: Vec<SchemaViolation>,
}

impl Compiler {
    fn say(&mut self, path: &str, what: impl Into<String>) {
        self.violations.push(SchemaViolation { path: path.to_owned(), what: what.into() });
    }

    /// One level; recursion is bounded by the depth that a [`Json`] can have.
    fn schema(&mut self, path: &str, node: &Node<'_>) -> Shape {
        let Node::Object(members) = node else {
            self.say(path, format!("a schema must be an object, and this is {}", node.kind()));
            return Shape::Any;
        };
        for (key, value) in members {
            self.annotation(path, key, value);
        }
        if let Some(branches) = node.get("oneOf") {
            return self.one_of(path, members, branches);
        }
        let Some(kind) = node.get("type") else {
            self.only(path, members, &[], "needs a `type` beside it");
            return Shape::Any;
        };
        let Node::Text(kind) = kind else {
            self.say(&format!("{path}.type"), format!("must be a single string; one of {TYPES}"));
            return Shape::Any;
        };
        match kind.as_ref() {
            "object" => self.object(path, members, node),
            "array" => {
                self.only(path, members, &["type", "items"], "does not apply to arrays");
                let items = node.get("items").map(|items| self.schema(&format!("{path}.items"), items));
                Shape::Array(items.map(Box::new))
            }
            "string" => self.scalar(path, members, node, Kind::Text),
            "number" => self.scalar(path, members, node, Kind::Number),
            "integer" => self.scalar(path, members, node, Kind::Integer),
            "boolean" => self.scalar(path, members, node, Kind::Bool),
            "null" => self.scalar(path, members, node, Kind::Null),
            other => {
                self.say(&format!("{path}.type"), format!("`{other}` is no type; one of {TYPES}"));
                Shape::Any
            }
        }
    }

    fn annotation(&mut self, path: &str, key: &str, value: &Node<'_>) {
        let at = member(path, key);
        match (key, value) {
            ("description" | "title", Node::Text(_)) | ("default", _) | ("examples", Node::Array(_)) => {}
            ("description" | "title", _) => self.say(&at, "must be a string"),
            ("examples", _) => self.say(&at, "must be an array"),
            _ if KEYWORDS.contains(&key) => {}
            _ => self.say(&at, format!("the keyword `{key}` is not supported")),
        }
    }

    /// Says of every constraint that is not among `welcome` that it has no place here.
    fn only(&mut self, path: &str, members: &[(Cow<'_, str>, Node<'_>)], welcome: &[&str], why: &str) {
        for (key, _) in members {
            let key = key.as_ref();
            if KEYWORDS.contains(&key) && !welcome.contains(&key) && !ANNOTATIONS.contains(&key) {
                self.say(&member(path, key), why);
            }
        }
    }

    fn one_of(&mut self, path: &str, members: &[(Cow<'_, str>, Node<'_>)], branches: &Node<'_>) -> Shape {
        self.only(path, members, &["oneOf"], "must not stand beside `oneOf`");
        let at = format!("{path}.oneOf");
        let Node::Array(branches) = branches else {
            self.say(&at, "must be an array of schemas");
            return Shape::Any;
        };
        if branches.len() < 2 {
            self.say(&at, "needs at least two branches");
        }
        let compiled = branches.iter().enumerate().map(|(n, branch)| self.schema(&format!("{at}[{n}]"), branch));
        Shape::OneOf(compiled.collect())
    }

    fn object(&mut self, path: &str, members: &[(Cow<'_, str>, Node<'_>)], node: &Node<'_>) -> Shape {
        let welcome = ["type", "properties", "required", "additionalProperties"];
        self.only(path, members, &welcome, "does not apply to objects");
        let mut shape = ObjectShape { properties: Vec::new(), required: Vec::new(), extra: Extra::Welcome };
        match node.get("properties") {
            None => {}
            Some(Node::Object(properties)) => {
                for (name, property) in properties {
                    let at = member(&format!("{path}.properties"), name);
                    let property = self.schema(&at, property);
                    shape.properties.push((name.to_string(), property));
                }
            }
            Some(_) => self.say(&format!("{path}.properties"), "must be an object of schemas"),
        }
        match node.get("required") {
            None => {}
            Some(Node::Array(names)) => {
                for (n, name) in names.iter().enumerate() {
                    let at = format!("{path}.required[{n}]");
                    let Node::Text(name) = name else {
                        self.say(&at, "must be a string");
                        continue;
                    };
                    if !shape.properties.iter().any(|(known, _)| known == name) {
                        self.say(&at, format!("`{name}` is not among the properties"));
                    } else if shape.required.iter().any(|known| known == name) {
                        self.say(&at, format!("`{name}` is required twice"));
                    } else {
                        shape.required.push(name.to_string());
                    }
                }
            }
            Some(_) => self.say(&format!("{path}.required"), "must be an array of names"),
        }
        match node.get("additionalProperties") {
            None | Some(Node::Bool(true)) => {}
            Some(Node::Bool(false)) => shape.extra = Extra::Refused,
            Some(_) => self.say(&format!("{path}.additionalProperties"), "must be true or false"),
        }
        Shape::Object(shape)
    }

    fn scalar(&mut self, path: &str, members: &[(Cow<'_, str>, Node<'_>)], node: &Node<'_>, kind: Kind) -> Shape {
        self.only(path, members, &["type", "enum", "const"], "does not apply to scalars");
        let mut allowed = None;
        match node.get("enum") {
            None => {}
            Some(Node::Array(values)) if !values.is_empty() => {
                for (n, value) in values.iter().enumerate() {
                    if !kind.admits(value) {
                        self.say(
                            &format!("{path}.enum[{n}]"),
                            format!("is {} where {} is declared", value.kind(), kind.named()),
                        );
                    }
                }
                allowed = Some(values.iter().map(owned).collect::<Vec<_>>());
            }
            Some(_) => self.say(&format!("{path}.enum"), "must be an array with at least one value"),
        }
        if let Some(value) = node.get("const") {
            let at = format!("{path}.const");
            if !kind.admits(value) {
                self.say(&at, format!("is {} where {} is declared", value.kind(), kind.named()));
            } else if allowed.as_ref().is_some_and(|all| !all.contains(value)) {
                self.say(&at, "is not among the values of `enum`");
            }
            allowed = Some(vec![owned(value)]);
        }
        Shape::Scalar(kind, allowed)
    }
}

fn owned(value: &Node<'_>) -> Node<'static> {
    match value {
        Node::Null => Node::Null,
        Node::Bool(b) => Node::Bool(*b),
        Node::Number(n) => Node::Number(n.clone()),
        Node::Text(t) => Node::Text(Cow::Owned(t.to_string())),
        Node::Array(items) => Node::Array(items.iter().map(owned).collect()),
        Node::Object(members) => {
            Node::Object(members.iter().map(|(k, v)| (Cow::Owned(k.to_string()), owned(v))).collect())
        }
    }
}

/// The path of a member; a key that is no plain name is quoted.
pub(super) fn member(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
    if plain { format!("{path}.{key}") } else { format!("{path}[{}]", serde_json::Value::from(key)) }
}
