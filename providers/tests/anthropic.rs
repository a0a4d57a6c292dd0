//! What Anthropic's messages alone have, against a scripted server on a loopback socket: the request to the byte, and
//! content that no other dialect knows. What every model has is in `models.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[allow(dead_code, reason = "the other suites over a server use the rest")]
#[path = "suite/server.rs"]
mod server;

use std::time::Duration;

use sluice_harness::cancel::Cancel;
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::ids::SessionId;
use sluice_harness::json::Json;
use sluice_harness::seam::model::{Model, ModelEvent, ModelRequest, Purpose, StopReason, ToolSchema};
use sluice_providers::anthropic::{AnthropicModel, AnthropicOptions};
use sluice_providers::http::{HttpModelConfig, Timeouts};
use sluice_providers::secret::Secret;

use server::{Act, Request, Server, stream};

const WATCHDOG: Duration = Duration::from_secs(60);
const PLAIN: AnthropicOptions = AnthropicOptions { prompt_cache: false, thinking_tokens: None };

fn config(base_url: &str) -> HttpModelConfig {
    HttpModelConfig {
        name: "acme".to_owned(),
        model: "acme-chat".to_owned(),
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new("sk-key")),
        api_key_env: None,
        headers: vec![("anthropic-beta".to_owned(), Secret::new("of-the-future"))],
        effort: None,
        context_window: None,
        images: true,
        timeouts: Timeouts::default(),
    }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        session: SessionId::new("s"),
        agent: None,
        purpose: Purpose::Turn,
        index: 0,
        system: String::new(),
        messages,
        tools: Vec::new(),
        max_output_tokens: None,
    }
}

async fn ask(
    answer: Vec<Act>,
    options: AnthropicOptions,
    edit: impl FnOnce(&mut HttpModelConfig),
    request: ModelRequest,
) -> (Request, Vec<ModelEvent>) {
    let server = Server::start(vec![answer]);
    let mut config = config(&server.url());
    edit(&mut config);
    let model = AnthropicModel::new(config, options).unwrap();
    let cancel = Cancel::new();
    let mut stream = tokio::time::timeout(WATCHDOG, model.stream(request, &cancel)).await.unwrap().unwrap();
    let mut events = Vec::new();
    while let Some(event) = tokio::time::timeout(WATCHDOG, stream.next()).await.unwrap() {
        events.push(event.unwrap());
    }
    (server.requests().remove(0), events)
}

fn fine() -> Vec<Act> {
    stream(&[
        r#"{"type":"message_start","message":{}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ])
}

async fn sent(options: AnthropicOptions, edit: impl FnOnce(&mut HttpModelConfig), request: ModelRequest) -> Request {
    ask(fine(), options, edit, request).await.0
}

fn hi() -> ModelRequest {
    request(vec![Message::text(Role::User, "hi")])
}

#[tokio::test]
async fn the_request_is_encoded_for_the_wire() {
    let call = |id: &str, input: &str, raw: Option<&str>| Block::ToolUse {
        id: id.to_owned(),
        name: "Bash".to_owned(),
        input: Json::parse(input).unwrap(),
        raw: raw.map(str::to_owned),
    };
    let result = |id: &str, content: Vec<Block>, is_error| Message {
        role: Role::Tool,
        content: vec![Block::ToolResult { tool_use_id: id.to_owned(), content, is_error }],
    };
    let thinking = |text: &str, signature: Option<&str>| Block::Thinking {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
    };
    let image = || Block::Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
    let tool = |name: &str| ToolSchema {
        name: name.to_owned(),
        description: "Runs".to_owned(),
        parameters: Json::parse(r#"{"type":"object","maximum":1.0}"#).unwrap(),
    };
    let conversation = ModelRequest {
        system: "be brief".to_owned(),
        tools: vec![tool("Bash"), tool("Read")],
        max_output_tokens: Some(99),
        ..request(vec![
            Message::text(Role::System, "first of all"),
            Message { role: Role::User, content: vec![Block::text("look"), Block::text(" \n"), image()] },
            Message { role: Role::Assistant, content: vec![thinking("idle", Some("x")), Block::text("plain")] },
            Message {
                role: Role::Assistant,
                content: vec![
                    thinking("hm", Some("c2ln")),
                    thinking("unproven", None),
                    thinking("", Some("b21pdHRlZA==")),
                    call("1", r#"{"n":1.10}"#, Some("{ \"n\": 1.10 }")),
                    Block::RedactedThinking { data: "aGlkZGVu".to_owned() },
                    call("2", "{}", Some("{broken")),
                    call("3", "{}", None),
                ],
            },
            Message::text(Role::Developer, "injected meanwhile"),
            result("1", vec![Block::text("out"), image()], false),
            result("2", vec![Block::text("bad")], true),
            result("0", vec![Block::text("from before")], false),
        ])
    };
    let options = AnthropicOptions { prompt_cache: true, thinking_tokens: None };
    // An id as another provider gave it.
    let conversation = renamed(conversation, "3", "functions.Bash:3");
    let sent = sent(options, |_| {}, conversation).await;
    assert_eq!(sent.line, "POST /v1/messages HTTP/1.1");
    for (name, value) in
        [("x-api-key", "sk-key"), ("anthropic-version", "2023-06-01"), ("anthropic-beta", "of-the-future")]
    {
        assert_eq!(sent.header(name), Some(value), "{name}");
    }
    assert_eq!(sent.header("authorization"), None);
    let expected = concat!(
        r#"{"model":"acme-chat","max_tokens":99,"#,
        r#""system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],"messages":["#,
        r#"{"role":"user","content":[{"type":"text","text":"<system-reminder>\nfirst of all\n</system-reminder>"},{"type":"text","text":"look"},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"plain"},{"type":"thinking","thinking":"hm","signature":"c2ln"},"#,
        r#"{"type":"thinking","thinking":"","signature":"b21pdHRlZA=="},{"type":"tool_use","id":"1","name":"Bash","input":{ "n": 1.10 }},"#,
        r#"{"type":"redacted_thinking","data":"aGlkZGVu"},{"type":"tool_use","id":"2","name":"Bash","input":{}},"#,
        r#"{"type":"tool_use","id":"functions_Bash_3","name":"Bash","input":{}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"out"},"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},"#,
        r#"{"type":"tool_result","tool_use_id":"2","content":"bad","is_error":true},"#,
        r#"{"type":"tool_result","tool_use_id":"functions_Bash_3","content":"(no result: the call was interrupted)","is_error":true},"#,
        r#"{"type":"text","text":"<system-reminder>\ninjected meanwhile\n</system-reminder>"},"#,
        r#"{"type":"text","text":"<system-reminder>\nResult of an earlier call:\nfrom before\n</system-reminder>","cache_control":{"type":"ephemeral"}}]}],"#,
        r#""tools":[{"name":"Bash","description":"Runs","input_schema":{"type":"object","maximum":1.0}},"#,
        r#"{"name":"Read","description":"Runs","input_schema":{"type":"object","maximum":1.0},"cache_control":{"type":"ephemeral"}}],"stream":true}"#,
    );
    assert_eq!(sent.body, expected);
}

fn renamed(mut request: ModelRequest, from: &str, to: &str) -> ModelRequest {
    for block in request.messages.iter_mut().flat_map(|message| &mut message.content) {
        match block {
            Block::ToolUse { id, .. } | Block::ToolResult { tool_use_id: id, .. } if id == from => to.clone_into(id),
            _ => {}
        }
    }
    request
}

#[tokio::test]
async fn what_is_not_asked_for_is_not_sent() {
    let sent = sent(PLAIN, |_| {}, hi()).await;
    let expected = r#"{"model":"acme-chat","max_tokens":32000,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"stream":true}"#;
    assert_eq!(sent.body, expected);
}

#[tokio::test]
async fn reasoning_is_asked_for_by_level_or_by_budget() {
    let level = sent(PLAIN, |config| config.effort = Some("high".to_owned()), hi()).await;
    assert!(
        level.body.ends_with(r#""thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}"#),
        "{}",
        level.body
    );
    let budget = |tokens| AnthropicOptions { thinking_tokens: Some(tokens), ..PLAIN };
    let both = sent(budget(4096), |config| config.effort = Some("high".to_owned()), hi()).await;
    assert!(both.body.ends_with(r#""thinking":{"type":"enabled","budget_tokens":4096}}"#), "{}", both.body);
    let short = |limit| ModelRequest { max_output_tokens: Some(limit), ..hi() };
    let halved = sent(budget(4096), |_| {}, short(4000)).await;
    assert!(halved.body.ends_with(r#""budget_tokens":2000}}"#), "room for an answer: {}", halved.body);
    let none = sent(budget(4096), |_| {}, short(1000)).await;
    assert!(!none.body.contains("thinking"), "no room for both: {}", none.body);
}

#[tokio::test]
async fn the_address_may_be_written_in_several_ways() {
    for (ending, path) in [
        ("", "/v1/messages"),
        ("/", "/v1/messages"),
        ("/v1", "/v1/messages"),
        ("/v1/", "/v1/messages"),
        ("/v1/messages", "/v1/messages"),
        ("/anthropic", "/anthropic/v1/messages"),
    ] {
        let edit = |config: &mut HttpModelConfig| {
            config.base_url = format!("{}{ending}", config.base_url.trim_end_matches("/v1"));
        };
        assert_eq!(sent(PLAIN, edit, hi()).await.line, format!("POST {path} HTTP/1.1"), "{ending}");
    }
}

#[tokio::test]
async fn hidden_reasoning_and_calls_come_in_their_places() {
    let answer = stream(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"aGlkZGVu"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"Bash","input":{}}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" 1.0}"}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"b"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let (_, events) = ask(answer, PLAIN, |_| {}, hi()).await;
    let call = ModelEvent::ToolCall { id: Some("t".into()), name: "Bash".into(), arguments: "{\"a\": 1.0}".into() };
    let expected = [
        ModelEvent::ThinkingSignature("c2ln".to_owned()),
        ModelEvent::RedactedThinking("aGlkZGVu".to_owned()),
        call,
        ModelEvent::Text("b".to_owned()),
    ];
    assert_eq!(events[..4], expected);
    assert_eq!(events.last(), Some(&ModelEvent::Stop(StopReason::ToolUse)));
}

#[tokio::test]
async fn reasons_to_stop_are_told_apart() {
    for (word, stop) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("pause_turn", StopReason::EndTurn),
        ("tool_use", StopReason::EndTurn),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("refusal", StopReason::Refusal),
        ("of_the_future", StopReason::EndTurn),
    ] {
        let delta = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}"}}}}"#);
        let (_, events) = ask(stream(&[&delta, r#"{"type":"message_stop"}"#]), PLAIN, |_| {}, hi()).await;
        assert_eq!(events.last(), Some(&ModelEvent::Stop(stop)), "{word}");
    }
}
