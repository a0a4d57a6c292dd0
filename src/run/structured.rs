//! `--json-schema`: the final answer must be one JSON value that fits.
//!
//! The schema is the user's own, of any draft. The model is told of it in the system prompt; an answer that does not
//! fit is sent back with what is wrong, a few times, and then the run fails in words. Nothing that does not fit is ever
//! passed off as an answer.

use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::content::Role;
use sluice_harness::context::{Context, ContextFault, Rank};
use sluice_harness::json::Json;
use sluice_harness::point::turn::{ContinuationDecision, ContinuationView, Steering, StopWord, TurnContinuation};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::schema::ForeignSchema;

use crate::fault::Fault;

/// How often an answer is sent back in one turn.
const TRIES: usize = 2;
const SOURCE: &str = "--json-schema";

/// The schema of the final answer.
#[derive(Debug, Clone)]
pub(crate) struct AnswerSchema {
    schema: ForeignSchema,
    text: Arc<str>,
}

impl AnswerSchema {
    /// Compiles the user's schema; `origin` names it in messages.
    ///
    /// # Errors
    /// When it is no JSON, or no schema.
    pub(crate) fn compile(origin: &str, text: &str) -> Result<Self, Fault> {
        let wrong = |why: String| {
            Fault::usage(
                "json-schema",
                format!("the schema {origin} (--json-schema) cannot be used: {why}"),
                "correct it; any draft of JSON Schema is fine",
            )
        };
        let json = Json::parse(text).map_err(|fault| wrong(fault.to_string()))?;
        let schema = ForeignSchema::compile(&json).map_err(wrong)?;
        Ok(Self { schema, text: json.text().into() })
    }

    /// What the model is told.
    pub(crate) fn instruction(&self) -> String {
        format!(
            "Your final answer must be one JSON value that fits the JSON Schema below, with nothing before or after \
             it.\n{}",
            self.text
        )
    }

    /// The value of an answer, or what is wrong with it.
    pub(crate) fn judge(&self, answer: &str) -> Result<Json, String> {
        let value = Json::parse(without_fence(answer)).map_err(|fault| format!("it is not one JSON value: {fault}"))?;
        match self.schema.violations_as("answer", &value) {
            violations if violations.is_empty() => Ok(value),
            violations => Err(violations.join("; ")),
        }
    }

    /// Mounts what sends an answer back that does not fit.
    pub(crate) fn mount(self, context: &Context) -> Result<(), ContextFault> {
        context.listen::<TurnContinuation>(Rank::POLICY, self).map(|_| ())
    }
}

/// Models like to fence JSON, also when asked not to.
fn without_fence(answer: &str) -> &str {
    let text = answer.trim();
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inside.map_or(text, |inside| inside.strip_prefix("json").unwrap_or(inside).trim())
}

impl Listener<TurnContinuation> for AnswerSchema {
    fn name(&self) -> &str {
        SOURCE
    }

    fn decide<'a>(
        &'a self,
        view: ContinuationView<'a>,
        next: Next<'a, TurnContinuation>,
    ) -> Fut<'a, Result<ContinuationDecision, ListenerFault>> {
        Box::pin(async move {
            let decision = next.delegate().await?;
            let sent_back = view.continuations.iter().filter(|c| c.source == SOURCE).count();
            let ends = matches!(decision, ContinuationDecision::Stop(StopWord::Completed));
            match self.judge(view.last_message.unwrap_or_default()) {
                Err(why) if ends && sent_back < TRIES => Ok(ContinuationDecision::Continue(vec![Steering {
                    source: SOURCE.to_owned(),
                    role: Role::User,
                    text: format!(
                        "Your answer does not fit the required JSON Schema: {why}. Answer again with the JSON value alone."
                    ),
                }])),
                Ok(_) | Err(_) => Ok(decision),
            }
        })
    }
}
