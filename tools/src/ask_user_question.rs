//! `AskUserQuestion`: asks the person, through whoever can reach them.
//!
//! A hook may answer in the person's place by rewriting the input with `answers`; the model may not: what it writes
//! there itself is not looked at. Without anybody to ask the call fails and says so.

use serde::Serialize;
use serde_json::{Map, Value, json};
use sluice_harness::Fut;
use sluice_harness::content::Block;
use sluice_harness::context::ContextFault;
use sluice_harness::json::{Json, JsonObject};
use sluice_harness::scene::SessionFacts;
use sluice_harness::seam::questions::{Asking, Choice, Picks, Question, Questions};
use sluice_harness::tool::{
    BodyView, CallCard, CallFacts, CallKind, CardItem, Content, Effect, Rewritten, Tool, ToolFailure,
};

use crate::arguments::{one_line, schema};
use crate::failure;

const ERROR: &str = "AskError";

/// The tool.
#[derive(Debug, Default)]
pub struct AskUserQuestion;

/// The value; Claude Code's members.
#[derive(Debug, Serialize)]
struct AskValue {
    questions: Value,
    answers: Map<String, Value>,
}

impl AskUserQuestion {
    async fn run(&self, body: &BodyView<'_>) -> Result<Json, ToolFailure> {
        let input = body.input();
        let questions = questions(input);
        if questions.is_empty() {
            return Err(ToolFailure::coded(ERROR, "EMPTY_QUESTIONS", "there is no question; ask at least one"));
        }
        let session = body.scene().session;
        if session.agent.is_some() {
            let words = "a subagent cannot ask the person; put the question into your answer instead";
            return Err(ToolFailure::coded(ERROR, "DELEGATED_CALLER", words));
        }
        let answers = match written(input).filter(|_| body.rewritten() == Rewritten::Yes) {
            Some(answers) => answers,
            None => {
                let asked = match body.scene().context.lease::<dyn Questions>() {
                    Ok(asked) => asked,
                    Err(ContextFault::Missing { .. }) => {
                        let words = "nobody can be asked here; decide yourself and say what you assumed, or end with \
                                     the question";
                        return Err(ToolFailure::coded(ERROR, "NO_PROVIDER", words));
                    }
                    Err(fault) => return Err(ToolFailure::coded(ERROR, "ASK_ABORTED", fault.to_string())),
                };
                let asking = Asking { session: &session.id, call_id: body.call_id(), questions: &questions };
                let answered = tokio::select! {
                    biased;
                    cause = body.scene().cancel.cancelled() => {
                        let words = format!("the question was withdrawn: cancelled by {cause}");
                        return Err(ToolFailure::coded(ERROR, "ASK_ABORTED", words));
                    }
                    answered = asked.ask(asking) => answered,
                };
                let answered = answered.map_err(|fault| ToolFailure::coded(ERROR, fault.code(), fault.to_string()))?;
                let pairs = questions.iter().zip(answered);
                pairs.map(|(asked, labels)| (asked.question.clone(), Value::String(labels.join(", ")))).collect()
            }
        };
        let questions = input.view().get("questions").cloned().unwrap_or_default();
        Json::of(&AskValue { questions, answers }).map_err(|fault| failure::of_value(&fault))
    }
}

/// The questions of an input.
fn questions(input: &Json) -> Vec<Question> {
    let text = |holder: &Value, key: &str| holder.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |holder: &Value, key: &str| holder.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    list(input.view(), "questions")
        .iter()
        .map(|question| Question {
            question: text(question, "question"),
            header: text(question, "header"),
            choices: list(question, "options")
                .iter()
                .map(|choice| Choice { label: text(choice, "label"), description: text(choice, "description") })
                .collect(),
            picks: match question.get("multiSelect").and_then(Value::as_bool) {
                Some(true) => Picks::Any,
                Some(false) | None => Picks::One,
            },
        })
        .collect()
}

/// Answers that stand in the input, in any form that a hook may give them.
fn written(input: &Json) -> Option<Map<String, Value>> {
    let answers = input.view().get("answers")?.as_object()?.clone();
    (!answers.is_empty()).then_some(answers)
}

/// What makes questions senseless.
fn check(questions: &[Question]) -> Result<(), String> {
    for (at, question) in questions.iter().enumerate() {
        let number = at + 1;
        if question.question.trim().is_empty() {
            return Err(format!("question {number} is empty; say what is asked"));
        }
        if questions.iter().take(at).any(|earlier| earlier.question == question.question) {
            return Err(format!("question {number} repeats an earlier one; ask each once"));
        }
        if question.choices.is_empty() {
            return Err(format!("question {number} has no options; give at least one"));
        }
        for (place, choice) in question.choices.iter().enumerate() {
            if choice.label.trim().is_empty() {
                return Err(format!("option {} of question {number} has an empty label", place + 1));
            }
            if question.choices.iter().take(place).any(|earlier| earlier.label == choice.label) {
                return Err(format!("question {number} has the option {:?} twice", choice.label));
            }
        }
    }
    Ok(())
}

impl Tool for AskUserQuestion {
    fn name(&self) -> &str {
        "AskUserQuestion"
    }

    fn description(&self) -> &str {
        "Asks the person one or more questions with options, and waits for the answers. Use it where the choice is \
         theirs and cannot be read from the task or the files."
    }

    fn parameters(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "description": "The questions, each with at least one option.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "question": {"type": "string", "description": "The whole question."},
                            "header": {"type": "string", "description": "A word or two for a heading."},
                            "options": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "label": {"type": "string", "description": "The choice in a few words."},
                                        "description": {"type": "string", "description": "What it means."}
                                    },
                                    "required": ["label"]
                                }
                            },
                            "multiSelect": {"type": "boolean", "description": "Whether several may be chosen."}
                        },
                        "required": ["question", "options"]
                    }
                }
            },
            "required": ["questions"]
        }))
    }

    fn output(&self) -> Json {
        schema(&json!({
            "type": "object",
            "properties": {"questions": {"type": "array"}, "answers": {"type": "object"}},
            "required": ["questions", "answers"]
        }))
    }

    fn normalise(&self, arguments: JsonObject, _session: &SessionFacts) -> Result<JsonObject, String> {
        check(&questions(&arguments.to_json()))?;
        Ok(arguments)
    }

    fn facts(&self, _input: &Json) -> CallFacts {
        CallFacts { effect: Effect::Session, ..CallFacts::default() }
    }

    fn execute<'a>(&'a self, body: BodyView<'a>) -> Fut<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { self.run(&body).await })
    }

    fn render(&self, _input: &Json, value: &Json) -> Content {
        let answers = value.view().get("answers").and_then(Value::as_object);
        let said = answers.into_iter().flatten().map(|(question, answer)| {
            let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            format!("- {question}\n  {}", if answer.is_empty() { "(none of the options)" } else { &answer })
        });
        vec![Block::text(format!("The answers:\n{}", said.collect::<Vec<_>>().join("\n")))]
    }

    fn present_call(&self, input: &Json) -> CallCard {
        let questions = questions(input);
        let lines = |question: &Question| {
            let options = question.choices.iter().map(|choice| match choice.description.as_str() {
                "" => format!("- {}", choice.label),
                description => format!("- {}: {description}", choice.label),
            });
            std::iter::once(question.question.clone()).chain(options).collect::<Vec<_>>().join("\n")
        };
        let title = match questions.as_slice() {
            [one] => one_line(&one.question),
            several => format!("Ask {} questions", several.len()),
        };
        CallCard {
            title,
            kind: CallKind::Other,
            items: questions.iter().map(|question| CardItem::Text(lines(question))).collect(),
            locations: Vec::new(),
        }
    }
}
