//! A tool of one's own: what it takes and gives is a schema, and the body returns a value, never text for the model.

use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::context::Context;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::registry::{self, RegisterFault};
use sluice_harness::tool::{BodyView, CallCard, CallKind, Concurrency, Content, Tool, ToolFailure};

/// Counts the words of a text.
pub(crate) struct WordCount;

fn schema(kind: &str, name: &str) -> Json {
    let text = format!(
        r#"{{"type":"object","properties":{{"{name}":{{"type":"{kind}"}}}},"required":["{name}"],"additionalProperties":false}}"#
    );
    Json::parse(&text).unwrap_or_else(|_| Json::empty_object())
}

impl Tool for WordCount {
    fn name(&self) -> &str {
        "WordCount"
    }
    fn description(&self) -> &str {
        "Counts the words of a text."
    }
    fn parameters(&self) -> Json {
        schema("string", "text")
    }
    fn output(&self) -> Json {
        schema("integer", "words")
    }
    fn concurrency(&self, _: &Json) -> Concurrency {
        Concurrency::Parallel
    }
    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            let words = body.input().str_at("text").unwrap_or_default().split_whitespace().count();
            let mut value = JsonObject::new();
            value.put("words", &words).map_err(|fault| ToolFailure::new(fault.to_string()))?;
            Ok(value.to_json())
        })
    }
    fn render(&self, _: &Json, value: &Json) -> Content {
        vec![Block::text(format!("{} words", value.view().get("words").cloned().unwrap_or_default()))]
    }
    fn present_call(&self, _: &Json) -> CallCard {
        CallCard { title: "Count words".to_owned(), kind: CallKind::Other, items: Vec::new(), locations: Vec::new() }
    }
}

fn main() -> Result<(), RegisterFault> {
    registry::register(&Context::root("example"), std::sync::Arc::new(WordCount)).map(drop)
}
