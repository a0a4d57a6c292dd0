//! `KillShell`: ends a background shell and everything in its process group.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::json::Json;
use sluice_harness::tool::{BodyView, CallCard, CallFacts, CallKind, Content, Effect, Tool, ToolFailure};

use crate::arguments::{one_line, schema, text_at};
use crate::failure;
use crate::jobs::{Jobs, words};

/// The tool.
pub struct KillShell {
    jobs: Arc<Jobs>,
}

/// The value, in Claude Code's shape.
#[derive(Serialize)]
struct KillShellValue {
    message: String,
    shell_id: String,
}

impl KillShell {
    /// The tool for the shells that `Bash` starts.
    #[must_use]
    pub fn new(jobs: Arc<Jobs>) -> Self {
        Self { jobs }
    }

    async fn run(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let id = text_at(body.input(), "shell_id");
        let job = self.jobs.find(body.scene(), id)?;
        let message = match job.running.end() {
            Some(end) => format!("{id} had ended already: {}.", words::how(&end)),
            None => {
                job.kill().await;
                format!("{id} ({}) was stopped.", one_line(&job.command))
            }
        };
        Json::of(&KillShellValue { message, shell_id: id.to_owned() }).map_err(|fault| failure::of_value(&fault))
    }
}

impl Tool for KillShell {
    fn name(&self) -> &str {
        "KillShell"
    }

    fn description(&self) -> &str {
        "Ends a background shell that Bash started with `run_in_background`, with everything it started."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "shell_id": {"type": "string", "description": "The shell's id, such as bash_1."}
            },
            "required": ["shell_id"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "shell_id": {"type": "string"}
            },
            "required": ["message", "shell_id"]
        }))
    }

    fn facts(&self, _input: &Json) -> CallFacts {
        CallFacts { effect: Effect::Session, ..CallFacts::default() }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { self.run(&body).await })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        vec![Block::text(text_at(value, "message"))]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        CallCard {
            title: format!("Stop {}", one_line(text_at(input, "shell_id"))),
            kind: CallKind::Execute,
            items: Vec::new(),
            locations: Vec::new(),
        }
    }
}
