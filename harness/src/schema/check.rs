//! Holding a value against a `Shape`: every violation, in walk order, on a stack of its own.

use super::compile::{Extra, Kind, ObjectShape, Shape, member};
use super::exact::Node;

enum Step<'a> {
    /// Look at a value.
    Look { shape: &'a Shape, path: String, value: &'a Node<'a> },
    /// Name the keys that were not declared, once the declared ones have been looked at.
    Extras { shape: &'a ObjectShape, path: String, members: &'a [(std::borrow::Cow<'a, str>, Node<'a>)] },
}

/// All violations of a value whose root has the given name.
pub(super) fn violations(shape: &Shape, root: &str, value: &Node<'_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut stack = vec![Step::Look { shape, path: root.to_owned(), value }];
    while let Some(step) = stack.pop() {
        match step {
            Step::Look { shape, path, value } => look(shape, path, value, &mut stack, &mut found),
            Step::Extras { shape, path, members } => {
                for (key, _) in members {
                    if !shape.properties.iter().any(|(known, _)| known == key) {
                        found.push(format!("{} is not a known property", member(&path, key)));
                    }
                }
            }
        }
    }
    found
}

fn look<'a>(shape: &'a Shape, path: String, value: &'a Node<'a>, stack: &mut Vec<Step<'a>>, found: &mut Vec<String>) {
    match shape {
        Shape::Any => {}
        Shape::OneOf(branches) => {
            // Only this nests; a schema's depth bounds it.
            let fitting = branches.iter().filter(|branch| violations(branch, &path, value).is_empty()).count();
            if fitting != 1 {
                found.push(format!("{path} must match exactly one of {} forms, and matches {fitting}", branches.len()));
            }
        }
        Shape::Scalar(kind, allowed) => scalar(*kind, allowed.as_deref(), &path, value, found),
        Shape::Array(items) => {
            let Node::Array(values) = value else {
                found.push(format!("{path} must be an array, and is {}", value.kind()));
                return;
            };
            if let Some(items) = items {
                for (n, value) in values.iter().enumerate().rev() {
                    stack.push(Step::Look { shape: items, path: format!("{path}[{n}]"), value });
                }
            }
        }
        Shape::Object(shape) => {
            let Node::Object(members) = value else {
                found.push(format!("{path} must be an object, and is {}", value.kind()));
                return;
            };
            for name in &shape.required {
                if value.get(name).is_none() {
                    found.push(format!("{} is required", member(&path, name)));
                }
            }
            if shape.extra == Extra::Refused {
                stack.push(Step::Extras { shape, path: path.clone(), members });
            }
            for (name, property) in shape.properties.iter().rev() {
                if let Some(value) = value.get(name) {
                    stack.push(Step::Look { shape: property, path: member(&path, name), value });
                }
            }
        }
    }
}

fn scalar(kind: Kind, allowed: Option<&[Node<'static>]>, path: &str, value: &Node<'_>, found: &mut Vec<String>) {
    if !kind.admits(value) {
        found.push(format!("{path} must be {}, and is {}", kind.named(), value.kind()));
        return;
    }
    let Some(allowed) = allowed else { return };
    if !allowed.iter().any(|one| one == value) {
        let all: Vec<String> = allowed.iter().map(shown).collect();
        found.push(format!(
            "{path} must be {}",
            if let [one] = all.as_slice() { one.clone() } else { format!("one of {}", all.join(", ")) }
        ));
    }
}

fn shown(value: &Node<'_>) -> String {
    match value {
        Node::Null => "null".to_owned(),
        Node::Bool(b) => b.to_string(),
        Node::Number(number) => number.to_string(),
        Node::Text(text) => serde_json::Value::from(text.as_ref()).to_string(),
        Node::Array(_) | Node::Object(_) => value.kind().to_owned(),
    }
}
