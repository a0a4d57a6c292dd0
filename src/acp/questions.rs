//! The client as one who can be asked questions with choices, for the tool `AskUserQuestion`.
//!
//! A client that shows forms gets all questions in one (`elicitation/create`, ACP v1), each with room for words of the
//! person's own. Any other is asked by `session/request_permission`, one question after the other; where several
//! choices may be picked the same question comes again, without what was picked, until *done* is picked. Nothing is
//! taken for an answer that was not offered: everything else ends the asking, and no half of it is kept.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use sluice_harness::Fut;
use sluice_harness::seam::questions::{Answer, Asking, Picks, Question, QuestionFault, Questions};
use sluice_harness::tool::CallKind;
use sluice_protocol::acp::schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationContentValue,
    ElicitationFormMode, ElicitationSchema, ElicitationSessionScope, EnumOption, MultiSelectPropertySchema,
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse, StringPropertySchema,
    ToolCallId,
};
use sluice_protocol::{Peer, PeerError};

use super::feed::Feed;
use super::update::{self, Call, Status};

const PERMISSION: &str = "session/request_permission";
const ELICITATION: &str = "elicitation/create";
const DONE: &str = "done";
const DECLINE: &str = "decline";

/// Whether the client shows forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    Shown,
    Unknown,
}

/// Asks the client.
pub(super) struct Asker {
    peer: Peer,
    feed: Feed,
    forms: Forms,
    timeout: Option<Duration>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dialog<'a> {
    session_id: &'a str,
    tool_call: Call,
    options: Vec<PermissionOption>,
}

impl Asker {
    pub(super) fn new(peer: Peer, feed: Feed, forms: Forms, timeout: Option<Duration>) -> Self {
        Self { peer, feed, forms, timeout }
    }

    async fn all(&self, asking: Asking<'_>) -> Result<Vec<Answer>, QuestionFault> {
        // The announced call comes first on the wire.
        self.feed.settled().await.map_err(|_| aborted("the session is being closed"))?;
        if self.forms == Forms::Shown {
            return self.by_form(asking).await;
        }
        let mut answers = Vec::new();
        for question in asking.questions {
            answers.push(match question.picks {
                Picks::One => vec![self.one(asking, question).await?],
                Picks::Any => self.any(asking, question).await?,
            });
        }
        Ok(answers)
    }

    async fn one(&self, asking: Asking<'_>, question: &Question) -> Result<String, QuestionFault> {
        let left: Vec<usize> = (0..question.choices.len()).collect();
        match self.dialog(asking, question, &left, None).await? {
            Picked::Choice(place) => Ok(label(question, place)),
            Picked::Done => Err(strange()),
        }
    }

    async fn any(&self, asking: Asking<'_>, question: &Question) -> Result<Vec<String>, QuestionFault> {
        let mut left: Vec<usize> = (0..question.choices.len()).collect();
        let mut picked: Vec<usize> = Vec::new();
        while !left.is_empty() {
            let so_far: Vec<String> = picked.iter().map(|place| label(question, *place)).collect();
            let done =
                if so_far.is_empty() { "None of these".to_owned() } else { format!("Done: {}", so_far.join(", ")) };
            match self.dialog(asking, question, &left, Some(done)).await? {
                Picked::Done => break,
                Picked::Choice(place) => {
                    left.retain(|other| *other != place);
                    picked.push(place);
                }
            }
        }
        picked.sort_unstable();
        Ok(picked.into_iter().map(|place| label(question, place)).collect())
    }

    /// One dialog with these choices, and with an end of choosing where there is one.
    async fn dialog(
        &self,
        asking: Asking<'_>,
        question: &Question,
        left: &[usize],
        done: Option<String>,
    ) -> Result<Picked, QuestionFault> {
        let once = PermissionOptionKind::AllowOnce;
        let mut options: Vec<_> = left
            .iter()
            .map(|place| PermissionOption::new(format!("choice_{place}"), label(question, *place), once))
            .collect();
        options.extend(done.map(|name| PermissionOption::new(DONE, name, once)));
        options.push(PermissionOption::new(DECLINE, "Do not answer", PermissionOptionKind::RejectOnce));
        let offered: Vec<String> = options.iter().map(|option| option.option_id.0.to_string()).collect();
        let mut call = Call::status(asking.call_id.as_str(), Status::InProgress);
        call.title = Some(question.question.clone());
        call.kind = Some(CallKind::Other);
        call.content = Some(vec![update::text(described(question))]);
        let dialog = Dialog { session_id: asking.session.as_str(), tool_call: call, options };
        let response: RequestPermissionResponse = self.request(PERMISSION, &dialog).await?;
        let RequestPermissionOutcome::Selected(selected) = response.outcome else {
            return Err(aborted("the person did not answer"));
        };
        let id = &*selected.option_id.0;
        if id == DECLINE {
            return Err(aborted("the person chose not to answer"));
        }
        if !offered.iter().any(|offered| offered == id) {
            return Err(strange());
        }
        match id.strip_prefix("choice_").and_then(|place| place.parse().ok()) {
            Some(place) => Ok(Picked::Choice(place)),
            None => Ok(Picked::Done),
        }
    }

    async fn by_form(&self, asking: Asking<'_>) -> Result<Vec<Answer>, QuestionFault> {
        let scope = ElicitationSessionScope::new(asking.session.as_str().to_owned())
            .tool_call_id(ToolCallId::new(asking.call_id.as_str().to_owned()));
        let questions: Vec<&str> = asking.questions.iter().map(|question| question.question.as_str()).collect();
        let mode = ElicitationFormMode::new(scope, form(asking.questions));
        let request = CreateElicitationRequest::new(mode, questions.join("\n"));
        let response: CreateElicitationResponse = self.request(ELICITATION, &request).await?;
        let content = match response.action {
            ElicitationAction::Accept(accepted) => accepted.content.unwrap_or_default(),
            ElicitationAction::Decline => return Err(aborted("the person chose not to answer")),
            ElicitationAction::Cancel => return Err(aborted("the person did not answer")),
            _ => return Err(strange()),
        };
        asking.questions.iter().enumerate().map(|(at, question)| filled(&content, at, question)).collect()
    }

    async fn request<R: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        params: impl Serialize,
    ) -> Result<R, QuestionFault> {
        let answer = self.peer.request_as::<R>(method, params);
        let answer = match self.timeout {
            None => answer.await,
            Some(limit) => tokio::time::timeout(limit, answer)
                .await
                .map_err(|_| aborted(format!("nobody answered within {} s", limit.as_secs_f64())))?,
        };
        answer.map_err(|fault| match fault {
            PeerError::Closed => aborted("the client has gone"),
            other => aborted(format!("the client could not ask: {other}")),
        })
    }
}

/// What was picked of a dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Picked {
    Choice(usize),
    Done,
}

fn aborted(why: impl Into<String>) -> QuestionFault {
    QuestionFault::Aborted { why: why.into() }
}

fn strange() -> QuestionFault {
    aborted("the client's answer was none of those that were offered")
}

fn label(question: &Question, place: usize) -> String {
    question.choices.get(place).map(|choice| choice.label.clone()).unwrap_or_default()
}

/// The question with what its choices mean.
fn described(question: &Question) -> String {
    let mut lines = vec![question.question.clone()];
    lines.extend(question.choices.iter().map(|choice| match choice.description.as_str() {
        "" => format!("- {}", choice.label),
        description => format!("- {}: {description}", choice.label),
    }));
    lines.join("\n")
}

/// Names of fields sort as the questions stand.
fn field(at: usize) -> String {
    format!("question_{:03}", at + 1)
}

fn own_words(at: usize) -> String {
    format!("{}_other", field(at))
}

fn form(questions: &[Question]) -> ElicitationSchema {
    let mut form = ElicitationSchema::new();
    for (at, question) in questions.iter().enumerate() {
        let choices: Vec<EnumOption> = question
            .choices
            .iter()
            .map(|choice| {
                let meaning = Some(choice.description.clone()).filter(|text| !text.is_empty());
                EnumOption::new(choice.label.clone(), choice.label.clone()).description(meaning)
            })
            .collect();
        let title = if question.header.is_empty() { question.question.clone() } else { question.header.clone() };
        let asked = question.question.clone();
        form = match question.picks {
            Picks::One => {
                let one = StringPropertySchema::new().title(title).description(asked).one_of(choices);
                form.property(field(at), one, false)
            }
            Picks::Any => {
                let any = MultiSelectPropertySchema::titled(choices).title(title).description(asked);
                form.property(field(at), any, false)
            }
        };
        let other = StringPropertySchema::new().title("Something else".to_owned());
        form = form.property(own_words(at), other, false);
    }
    form
}

/// The answer to one question in a filled form: words of the person's own before any choice.
fn filled(
    content: &BTreeMap<String, ElicitationContentValue>,
    at: usize,
    question: &Question,
) -> Result<Answer, QuestionFault> {
    if let Some(ElicitationContentValue::String(words)) = content.get(&own_words(at))
        && !words.trim().is_empty()
    {
        return Ok(vec![words.trim().to_owned()]);
    }
    let offered = |label: &String| question.choices.iter().any(|choice| choice.label == *label);
    match (content.get(&field(at)), question.picks) {
        (Some(ElicitationContentValue::String(label)), Picks::One) if offered(label) => Ok(vec![label.clone()]),
        (Some(ElicitationContentValue::StringArray(labels)), Picks::Any) if labels.iter().all(offered) => {
            let chosen = question.choices.iter().filter(|choice| labels.contains(&choice.label));
            Ok(chosen.map(|choice| choice.label.clone()).collect())
        }
        (None, Picks::Any) => Ok(Vec::new()),
        (None, Picks::One) => Err(aborted(format!("the person left {:?} unanswered", question.question))),
        (Some(_), Picks::One | Picks::Any) => Err(strange()),
    }
}

impl Questions for Asker {
    fn ask<'a>(&'a self, asking: Asking<'a>) -> Fut<'a, Result<Vec<Answer>, QuestionFault>> {
        Box::pin(self.all(asking))
    }
}
