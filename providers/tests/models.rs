//! One suite over every model provider: the same case, told in each provider's own words, has the same end.
//!
//! A case is a folder of `models/`: `case.json` says what is asked and what has to come; `openai.http` and
//! `anthropic.http` are a server's whole answer, head and body, played on a loopback socket; `script.json` is a script.
//! A `<hold>` at the end of an answer keeps the connection open; otherwise it is closed there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[allow(dead_code, reason = "the other suite over a server uses the rest")]
#[path = "suite/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::{Message, Role};
use sluice_harness::ids::SessionId;
use sluice_harness::json::Json;
use sluice_harness::seam::model::{
    Model, ModelEvent, ModelFault, ModelRequest, ModelStream, Purpose, Retry, ToolSchema, Usage,
};
use sluice_providers::anthropic::{AnthropicModel, AnthropicOptions};
use sluice_providers::http::{HttpModelConfig, Timeouts};
use sluice_providers::openai::OpenAiModel;
use sluice_providers::script::ScriptModel;
use sluice_providers::secret::Secret;

use server::{Act, Server};

const WATCHDOG: Duration = Duration::from_secs(60);
const KEY: &str = "sk-very-secret-key";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    /// By provider; `all` for those that have no list of their own.
    expect: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default = "yes")]
    images: bool,
    /// What the request's body holds, by provider.
    #[serde(default)]
    sent: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    not_sent: Vec<String>,
    /// Whether a pause ends the answer soon.
    #[serde(default)]
    impatient: bool,
    /// After so many events the signal fires.
    cancel_after: Option<usize>,
}

fn yes() -> bool {
    true
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// Plays every case that a provider has, and says what differed.
async fn play(provider: &str, file: &str, least: usize) {
    let mut wrong = Vec::new();
    let mut played = 0;
    for folder in folders() {
        let case: Case = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap())
            .unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let Ok(answer) = std::fs::read_to_string(folder.join(file)) else { continue };
        // However the bytes are cut into pieces.
        for size in [usize::MAX, 7] {
            let name = format!("{} ({})", folder.file_name().unwrap().display(), case.about);
            if let Err(why) = one(provider, &case, &answer, size).await {
                wrong.push(format!("{name}: {why}"));
            }
        }
        played += 1;
    }
    assert!(wrong.is_empty(), "{provider}:\n{}", wrong.join("\n"));
    assert!(played >= least, "{provider} has only {played} cases");
}

async fn one(provider: &str, case: &Case, answer: &str, size: usize) -> Result<(), String> {
    let server = if provider == "script" { None } else { Some(Server::start(vec![acts(answer, size)])) };
    let url = server.as_ref().map(Server::url).unwrap_or_default();
    let model = model(provider, case, answer, &url);
    let came = told(&*model, case).await;
    let expected = case.expect.get(provider).or(case.expect.get("all")).unwrap();
    if came != *expected {
        return Err(format!("came {came:#?}\nexpected {expected:#?}"));
    }
    let Some(server) = server else { return Ok(()) };
    if case.cancel_after.is_some() {
        server.wait_closed().await;
    }
    let body = server.requests().remove(0).body;
    let misses = case.sent.get(provider).into_iter().flatten().find(|piece| !body.contains(*piece));
    let leaks = case.not_sent.iter().find(|piece| body.contains(*piece));
    match misses.or(leaks) {
        Some(piece) => Err(format!("{piece} is missing from or not wanted in {body}")),
        None => Ok(()),
    }
}

fn model(provider: &str, case: &Case, script: &str, url: &str) -> Box<dyn Model> {
    let mut timeouts = Timeouts::default();
    if case.impatient {
        timeouts.idle = Duration::from_secs(1);
    }
    let config = HttpModelConfig {
        name: "acme".to_owned(),
        model: "acme-chat".to_owned(),
        base_url: url.to_owned(),
        api_key: Some(Secret::new(KEY)),
        api_key_env: Some("ACME_API_KEY".to_owned()),
        headers: Vec::new(),
        effort: None,
        context_window: None,
        images: case.images,
        timeouts,
    };
    match provider {
        "openai" => Box::new(OpenAiModel::new(config).unwrap()),
        "anthropic" => {
            let options = AnthropicOptions { prompt_cache: false, thinking_tokens: None };
            Box::new(AnthropicModel::new(config, options).unwrap())
        }
        "script" => Box::new(ScriptModel::from_text("case", script, Path::new("/"), None).unwrap()),
        other => panic!("{other} is no provider"),
    }
}

/// A written answer as what a server does: the head with the line ends of HTTP, the body in pieces.
fn acts(answer: &str, size: usize) -> Vec<Act> {
    let (answer, end) = match answer.trim_end().strip_suffix("<hold>") {
        Some(answer) => (answer, Act::HoldOpen),
        None => (answer, Act::Close),
    };
    let (head, body) = answer.split_once("\n\n").expect("a head, a blank line and a body");
    let head = format!("{}\r\nconnection: close\r\n\r\n", head.replace('\n', "\r\n"));
    let pieces = body.as_bytes().chunks(size.min(body.len().max(1))).map(|piece| Act::Send(piece.to_vec()));
    std::iter::once(Act::Send(head.into_bytes())).chain(pieces).chain([end]).collect()
}

fn request(case: &Case) -> ModelRequest {
    let messages = if case.messages.is_empty() { vec![Message::text(Role::User, "hi")] } else { case.messages.clone() };
    ModelRequest {
        session: SessionId::new("s"),
        agent: None,
        purpose: Purpose::Turn,
        index: 0,
        system: "be brief".to_owned(),
        messages,
        tools: vec![ToolSchema {
            name: "Bash".to_owned(),
            description: "Runs".to_owned(),
            parameters: Json::parse(r#"{"type":"object","maximum":1.0}"#).unwrap(),
        }],
        max_output_tokens: None,
    }
}

/// What came, line by line; pieces of one text are one line.
async fn told(model: &dyn Model, case: &Case) -> Vec<String> {
    let cancel = Cancel::new();
    let mut events = Vec::new();
    let opened = tokio::time::timeout(WATCHDOG, model.stream(request(case), &cancel)).await.expect("no answer");
    match opened {
        Ok(mut stream) => {
            let mut count = 0;
            loop {
                let next = if case.cancel_after == Some(count) {
                    // The signal fires while the next event is waited for.
                    let cancel = cancel.clone();
                    let (next, _) = tokio::join!(next(&mut stream), async move { cancel.cancel(CancelCause::User) });
                    next
                } else {
                    next(&mut stream).await
                };
                let Some(event) = next else { break };
                count += 1;
                push(&mut events, event);
            }
        }
        Err(fault) => push(&mut events, Err(fault)),
    }
    let mut lines: Vec<String> = events.iter().map(line).collect();
    // The script reports no tokens unless it is told to.
    lines.retain(|line| line != "usage: 0 read, 0 written");
    lines
}

async fn next(stream: &mut Box<dyn ModelStream>) -> Option<Result<ModelEvent, ModelFault>> {
    tokio::time::timeout(WATCHDOG, stream.next()).await.expect("no event")
}

fn push(events: &mut Vec<Result<ModelEvent, ModelFault>>, event: Result<ModelEvent, ModelFault>) {
    match (events.last_mut(), &event) {
        (Some(Ok(ModelEvent::Text(so_far))), Ok(ModelEvent::Text(more)))
        | (Some(Ok(ModelEvent::Thinking(so_far))), Ok(ModelEvent::Thinking(more))) => so_far.push_str(more),
        _ => events.push(event),
    }
}

fn line(event: &Result<ModelEvent, ModelFault>) -> String {
    match event {
        Ok(ModelEvent::Thinking(text)) => format!("thinking {text:?}"),
        Ok(ModelEvent::ThinkingSignature(text)) => format!("signature {text:?}"),
        Ok(ModelEvent::RedactedThinking(data)) => format!("redacted {data:?}"),
        Ok(ModelEvent::Text(text)) => format!("text {text:?}"),
        Ok(ModelEvent::ToolCall { id, name, arguments }) => {
            format!("call {} {name} {arguments}", id.as_deref().unwrap_or("-"))
        }
        Ok(ModelEvent::Usage(usage)) => counts(*usage),
        Ok(ModelEvent::Stop(stop)) => format!("stop {}", serde_json::to_value(stop).unwrap().as_str().unwrap()),
        Err(fault) => {
            let shown = format!("{fault} {fault:?}");
            assert!(!shown.contains(KEY), "the key is shown: {shown}");
            assert!(fault.message.len() > 20, "no sentence: {fault}");
            let retry = match fault.retry {
                Retry::No => "no retry".to_owned(),
                Retry::Backoff => "retry".to_owned(),
                Retry::After(wait) => format!("retry after {wait:?}"),
            };
            format!("fault {} ({retry})", serde_json::to_value(fault.kind).unwrap().as_str().unwrap())
        }
    }
}

fn counts(usage: Usage) -> String {
    let Usage { input_tokens, output_tokens, cached_input_tokens, cache_creation_input_tokens } = usage;
    let mut text = format!("usage: {input_tokens} read");
    if cached_input_tokens > 0 {
        text.push_str(&format!(", {cached_input_tokens} of them cached"));
    }
    if cache_creation_input_tokens > 0 {
        text.push_str(&format!(", {cache_creation_input_tokens} put into a cache"));
    }
    format!("{text}, {output_tokens} written")
}

#[tokio::test]
async fn chat_completions_are_like_every_other_model() {
    play("openai", "openai.http", 25).await;
}

#[tokio::test]
async fn messages_are_like_every_other_model() {
    play("anthropic", "anthropic.http", 25).await;
}

#[tokio::test]
async fn a_script_is_like_every_other_model() {
    play("script", "script.json", 15).await;
}

#[test]
fn every_case_is_told_by_two_providers_at_least() {
    for folder in folders() {
        let files = ["openai.http", "anthropic.http", "script.json"];
        let told = files.iter().filter(|file| folder.join(file).exists()).count();
        assert!(told >= 2, "{}", folder.display());
    }
}
