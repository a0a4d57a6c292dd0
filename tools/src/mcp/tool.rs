//! One tool of a server, as an ordinary tool of the session.
//!
//! What the server says of it is shown and decides nothing: every call may do anything, whatever its hints are.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::plain_text;
use sluice_harness::json::Json;
use sluice_harness::seam::mcp::{McpFault, ServerTool};
use sluice_harness::tool::{BodyView, CallCard, CallKind, CardItem, Content, SchemaOrigin, Tool, ToolFailure, Verdict};

use super::result;
use super::server::Server;
use crate::arguments::{one_line, schema};

/// How much of a description a model is told.
const LONGEST_DESCRIPTION: usize = 10_000;
/// How much of the arguments a card shows.
const SHOWN: usize = 2000;

pub(super) struct McpTool {
    server: Arc<Server>,
    name: String,
    offered: ServerTool,
    description: String,
}

impl McpTool {
    pub(super) fn new(server: Arc<Server>, name: String, offered: ServerTool) -> Self {
        let description = offered.description.chars().take(LONGEST_DESCRIPTION).collect();
        Self { server, name, offered, description }
    }

    fn failure(&self, fault: &McpFault) -> ToolFailure {
        let remedy = match fault {
            McpFault::Inexact { .. } => " Give it as a string, or with fewer digits.",
            McpFault::NotStarted { .. }
            | McpFault::Silent { .. }
            | McpFault::Ended { .. }
            | McpFault::Protocol { .. }
            | McpFault::Refused { .. }
            | McpFault::Cancelled => "",
        };
        let text = format!("the MCP server {} did not do it: {fault}.{remedy}", self.server.name());
        ToolFailure::coded("McpError", fault.code(), text)
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Json {
        self.offered.input_schema.clone()
    }

    fn output(&self) -> Json {
        schema(&json!({}))
    }

    fn schema_origin(&self) -> SchemaOrigin {
        SchemaOrigin::Foreign
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.server.call_timeout())
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            let called = self.server.call(&self.offered.name, body.input(), body.scene().cancel).await;
            called.map(result::value).map_err(|fault| self.failure(&fault))
        })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        result::content(value)
    }

    fn verdict(&self, _input: &Json, value: &Json) -> Verdict {
        if result::is_error(value) { Verdict::Failed(plain_text(&result::content(value))) } else { Verdict::Succeeded }
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let title = self.offered.title.as_deref().unwrap_or(&self.offered.name);
        let kind = if self.offered.read_only_hint { CallKind::Read } else { CallKind::Other };
        let arguments: String = input.text().chars().take(SHOWN).collect();
        CallCard {
            title: format!("{}: {}", one_line(self.server.name()), one_line(title)),
            kind,
            items: vec![CardItem::Text(arguments)],
            locations: Vec::new(),
        }
    }
}
