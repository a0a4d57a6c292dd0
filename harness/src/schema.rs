//! Schemas of arguments and values: the strict subset for our own tools, and `jsonschema` for all others.
//!
//! The subset refuses what it does not check, so that no keyword is accepted and then ignored; a
//! [`Schema`] exists only for a schema that is wholly understood. Validation applies no defaults and coerces nothing.
//! Compiling is in `compile`, walking in `check`, the exact view of values in `exact`.

mod check;
mod compile;
mod exact;
mod foreign;

#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::json::{Json, compact};

pub use foreign::ForeignSchema;

/// The stable code of a schema outside the subset.
pub const UNSUPPORTED_SCHEMA: &str = "UNSUPPORTED_SCHEMA";

/// One thing that is wrong with a schema.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}: {what}")]
pub struct SchemaViolation {
    /// Where, from `schema` on, such as `schema.properties.path.pattern`.
    pub path: String,
    /// What.
    pub what: String,
}

/// A compiled schema of the strict subset.
#[derive(Debug, Clone)]
pub struct Schema(compile::Shape);

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// All violations of the subset, in document order; their common code is [`UNSUPPORTED_SCHEMA`].
    pub fn compile(schema: &Json) -> Result<Self, Vec<SchemaViolation>> {
        compile::compile(schema).map(Self)
    }

    /// What is wrong with a value whose root is called `value`; empty when it fits.
    #[must_use]
    pub fn validate(&self, value: &Json) -> Vec<String> {
        self.validate_as("value", value)
    }

    /// What is wrong with a value, in walk order: missing keys, then declared properties in order, then extra keys
    /// . `root` is what the value is called.
    #[must_use]
    pub fn validate_as(&self, root: &str, value: &Json) -> Vec<String> {
        match compact::read::<exact::Node<'_>>(value.text()) {
            Some(node) => check::violations(&self.0, root, &node),
            None => vec![format!("{root} cannot be read")],
        }
    }
}

/// The schema of a tool's arguments or values, of either kind.
#[derive(Debug, Clone)]
pub enum ArgumentSchema {
    /// Of the strict subset.
    Strict(Schema),
    /// Of a tool that is not ours.
    Foreign(ForeignSchema),
}

impl ArgumentSchema {
    /// What is wrong with a value; empty when it fits. `root` is what the value is called.
    #[must_use]
    pub fn validate_as(&self, root: &str, value: &Json) -> Vec<String> {
        match self {
            Self::Strict(schema) => schema.validate_as(root, value),
            Self::Foreign(schema) => schema.violations_as(root, value),
        }
    }
}
