//! Schemas that are not ours, such as those of MCP servers: any draft that `jsonschema` knows, 2020-12 when a schema
//! names none.
//!
//! References to other documents are refused, never fetched. Numbers are compared as the validator holds them, which
//! may round; the value itself stays exact.

use std::fmt;
use std::sync::Arc;

use jsonschema::{Retrieve, Uri, Validator};
use serde_json::Value;

use crate::json::Json;

/// No more than so many violations are told of one value.
const MOST_TOLD: usize = 20;

/// A compiled schema of any draft.
#[derive(Clone)]
pub struct ForeignSchema(Arc<Validator>);

struct NoFetching;

impl Retrieve for NoFetching {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("it refers to {uri}, and schemas are not fetched").into())
    }
}

impl ForeignSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What the compiler says of it.
    pub fn compile(schema: &Json) -> Result<Self, String> {
        let compiled = jsonschema::options().with_retriever(NoFetching).build(schema.view());
        compiled.map(|validator| Self(Arc::new(validator))).map_err(|e| e.to_string())
    }

    /// What is wrong with a value whose root is called `value`; empty when it fits.
    #[must_use]
    pub fn violations(&self, value: &Json) -> Vec<String> {
        self.violations_as("value", value)
    }

    /// What is wrong with a value; `root` is what the value is called.
    #[must_use]
    pub fn violations_as(&self, root: &str, value: &Json) -> Vec<String> {
        self.0
            .iter_errors(value.view())
            .take(MOST_TOLD)
            .map(|e| format!("{root}{}: {}", e.instance_path(), e))
            .collect()
    }
}

impl fmt::Debug for ForeignSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignSchema")
    }
}
