//! The OpenAI-compatible model against a scripted server on a loopback socket.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "suite/server.rs"]
mod server;

use std::time::Duration;

use serde_json::Value;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::ids::SessionId;
use sluice_harness::json::Json;
use sluice_harness::seam::model::{
    FaultKind, Model, ModelEvent, ModelFault, ModelRequest, ModelStream, Purpose, Retry, StopReason, ToolSchema, Usage,
};
use sluice_providers::http::{HttpModelConfig, Timeouts};
use sluice_providers::openai::OpenAiModel;
use sluice_providers::secret::Secret;

use server::{Act, Server, event, json_answer, stream, stream_of};

const WATCHDOG: Duration = Duration::from_secs(60);
const KEY: &str = "sk-very-secret-key";

fn config(base_url: &str) -> HttpModelConfig {
    HttpModelConfig {
        name: "acme".to_owned(),
        model: "acme-chat".to_owned(),
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new(KEY)),
        api_key_env: Some("ACME_API_KEY".to_owned()),
        headers: vec![("x-team".to_owned(), Secret::new("hidden-team"))],
        effort: None,
        context_window: Some(1000),
        images: true,
        timeouts: Timeouts::default(),
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        session: SessionId::new("s"),
        agent: None,
        purpose: Purpose::Turn,
        index: 0,
        system: "be brief".to_owned(),
        messages: vec![Message::text(Role::User, "hi")],
        tools: Vec::new(),
        max_output_tokens: None,
    }
}

async fn open(model: &OpenAiModel, cancel: &Cancel) -> Result<Box<dyn ModelStream>, ModelFault> {
    tokio::time::timeout(WATCHDOG, model.stream(request(), cancel)).await.expect("no answer")
}

async fn next(stream: &mut Box<dyn ModelStream>) -> Option<Result<ModelEvent, ModelFault>> {
    tokio::time::timeout(WATCHDOG, stream.next()).await.expect("no event")
}

/// All events, and the fault that ended them if one did.
async fn ask(config: HttpModelConfig) -> (Vec<ModelEvent>, Option<ModelFault>) {
    let model = OpenAiModel::new(config).unwrap();
    let mut events = Vec::new();
    let cancel = Cancel::new();
    let mut stream = match open(&model, &cancel).await {
        Ok(stream) => stream,
        Err(fault) => return (events, Some(checked(fault))),
    };
    while let Some(event) = next(&mut stream).await {
        match event {
            Ok(event) => events.push(event),
            Err(fault) => {
                assert!(next(&mut stream).await.is_none(), "nothing follows a fault");
                return (events, Some(checked(fault)));
            }
        }
    }
    (events, None)
}

/// Every fault is looked at for secrets and for its remedy.
fn checked(fault: ModelFault) -> ModelFault {
    let shown = format!("{fault} {fault:?}");
    assert!(!shown.contains(KEY) && !shown.contains("hidden-team") && !shown.contains("Bearer"), "{shown}");
    assert!(shown.starts_with("acme: "), "{shown}");
    fault
}

async fn answer(acts: Vec<Act>) -> (Vec<ModelEvent>, Option<ModelFault>) {
    let server = Server::start(vec![acts]);
    ask(config(&server.url())).await
}

async fn fine(acts: Vec<Act>) -> Vec<ModelEvent> {
    let (events, fault) = answer(acts).await;
    assert_eq!(fault, None);
    events
}

async fn refused(acts: Vec<Act>) -> ModelFault {
    let (events, fault) = answer(acts).await;
    assert_eq!(events, []);
    fault.expect("it was accepted")
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn call(id: Option<&str>, name: &str, arguments: &str) -> ModelEvent {
    ModelEvent::ToolCall { id: id.map(str::to_owned), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn stop(reason: StopReason) -> ModelEvent {
    ModelEvent::Stop(reason)
}

#[tokio::test]
async fn text_reasoning_and_tokens_come_through() {
    let events = fine(stream(&[
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"reasoning":"so"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"Hel"}}],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}"#,
        "[DONE]",
    ]))
    .await;
    let usage = Usage { input_tokens: 7, output_tokens: 2, cached_input_tokens: 3, ..Usage::default() };
    assert_eq!(
        events,
        [
            ModelEvent::Thinking("hm".to_owned()),
            ModelEvent::Thinking("so".to_owned()),
            text("Hel"),
            text("lo"),
            ModelEvent::Usage(usage),
            stop(StopReason::EndTurn)
        ]
    );
}

#[tokio::test]
async fn tool_calls_are_put_together_however_they_come() {
    // In fragments, two at a time.
    let events = fine(stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"Bash","arguments":""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"Read","arguments":"{\"f\""}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":1.10"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":"}"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"prompt_cache_hit_tokens":1}}"#,
        "[DONE]",
    ]))
    .await;
    let usage = Usage { input_tokens: 1, output_tokens: 1, cached_input_tokens: 1, ..Usage::default() };
    let two = [call(Some("a"), "Bash", r#"{"n":1.10}"#), call(Some("b"), "Read", r#"{"f":2}"#)];
    assert_eq!(events, [&two[..], &[ModelEvent::Usage(usage), stop(StopReason::ToolUse)]].concat());
    // Whole, under one index, from a server that says it merely stopped.
    let events = fine(stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"Y","arguments":"{}"}}]},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]))
    .await;
    assert_eq!(events, [call(Some("a"), "X", "{}"), call(Some("b"), "Y", "{}"), stop(StopReason::ToolUse)]);
    // Without ids and indices, arguments given as an object, digits kept.
    let events = fine(stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"X","arguments":{"n":1.10}}},{"id":"","function":{"name":"X","arguments":null}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ]))
    .await;
    assert_eq!(events, [call(None, "X", r#"{"n":1.10}"#), call(None, "X", ""), stop(StopReason::ToolUse)]);
}

#[tokio::test]
async fn reasons_to_stop_are_told_apart() {
    let finish = |reason: &str| {
        stream(&[&format!(r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"{reason}"}}]}}"#), "[DONE]"])
    };
    assert_eq!(fine(finish("length")).await, [text("a"), stop(StopReason::MaxTokens)]);
    assert_eq!(fine(finish("content_filter")).await, [text("a"), stop(StopReason::Refusal)]);
    assert_eq!(fine(finish("eos")).await, [text("a"), stop(StopReason::EndTurn)]);
    let cut = stream(&[
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"X","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"Y","arguments":"{\"a"}}]},"finish_reason":"length"}]}"#,
        "[DONE]",
    ]);
    assert_eq!(fine(cut).await, [call(Some("a"), "X", "{}"), stop(StopReason::MaxTokens)], "half a call is none");
}

#[tokio::test]
async fn pieces_may_be_cut_anywhere_even_inside_a_character() {
    let body: String = [
        r#"{"choices":[{"delta":{"content":"h\u00e9 é → 🦀"}}]}"#,
        r#"{"choices":[{"delta":{"content":"!"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]
    .iter()
    .map(|data| event(data).replace('\n', "\r\n"))
    .collect();
    for size in [1, 2, 3, 7] {
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
        assert_eq!(fine(stream_of(&pieces)).await, [text("hé é → 🦀"), text("!"), stop(StopReason::EndTurn)]);
    }
}

#[tokio::test]
async fn an_end_is_taken_with_or_without_its_mark() {
    let said = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let finished = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let whole = [text("a"), stop(StopReason::EndTurn)];
    assert_eq!(fine(stream(&[said, finished])).await, whole, "no [DONE]");
    assert_eq!(fine(stream(&[said, "[DONE]"])).await, whole, "no reason");
    let unended = format!("{}data: {finished}", event(said));
    assert_eq!(fine(stream_of(&[unended.as_bytes()])).await, whole, "no blank line");
    // Open for ever after the end.
    let mut hanging = stream(&[said, finished, "[DONE]"]);
    hanging.pop();
    hanging.push(Act::HoldOpen);
    assert_eq!(fine(hanging).await, whole);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = r#"{"choices":[{"message":{"content":"a","tool_calls":[{"id":"x","function":{"name":"X","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let usage = Usage { input_tokens: 1, output_tokens: 2, cached_input_tokens: 0, ..Usage::default() };
    let expected = [text("a"), call(Some("x"), "X", "{}"), ModelEvent::Usage(usage), stop(StopReason::ToolUse)];
    assert_eq!(fine(json_answer(200, &[], body)).await, expected);
}

#[tokio::test]
async fn a_stream_that_ends_early_is_cut_off() {
    let said = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    for pieces in [vec![event(said)], vec![event(said), "data: {\"choices\":[{\"del".to_owned()]] {
        let pieces: Vec<&[u8]> = pieces.iter().map(|p| p.as_bytes()).collect();
        let (events, fault) = answer(stream_of(&pieces)).await;
        let fault = fault.expect("it was accepted");
        assert_eq!((events, fault.kind, fault.retry), (vec![text("a")], FaultKind::BadResponse, Retry::Backoff));
        assert!(fault.message.contains("cut off"), "{fault}");
    }
    // The connection breaks inside a counted body.
    let head =
        Act::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n".to_vec());
    let (events, fault) = answer(vec![head, Act::Send(event(said).into_bytes()), Act::Close]).await;
    let fault = fault.unwrap();
    assert_eq!((events, fault.kind), (vec![text("a")], FaultKind::Network));
    assert!(fault.message.contains("cut off"), "{fault}");
    // Nothing at all.
    assert_eq!(refused(stream(&[])).await.kind, FaultKind::BadResponse);
    assert_eq!(refused(stream(&["[DONE]"])).await.kind, FaultKind::BadResponse);
}

#[tokio::test]
async fn an_error_inside_a_good_stream_is_a_fault() {
    let said = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    for (error, kind) in [
        (
            r#"{"error":{"message":"sk-very-secret-key broke","type":"server_error","code":null}}"#,
            FaultKind::Overloaded,
        ),
        (r#"{"error":{"message":"slow down","code":429}}"#, FaultKind::RateLimit),
        (r#"{"error":{"message":"slow down","type":"rate_limit_exceeded"}}"#, FaultKind::RateLimit),
        (r#"{"error":"This model's maximum context length is 10 tokens"}"#, FaultKind::ContextOverflow),
        (r#"{"error":{"message":"bad","type":"invalid_request_error"}}"#, FaultKind::BadRequest),
    ] {
        let (events, fault) = answer(stream(&[said, error])).await;
        assert_eq!((events, fault.unwrap().kind), (vec![text("a")], kind), "{error}");
    }
    let named = format!("{}event: error\ndata: {{\"message\":\"broke\"}}\n\n", event(said));
    let (_, fault) = answer(stream_of(&[named.as_bytes()])).await;
    assert!(fault.unwrap().message.contains("broke"));
    let (_, fault) = answer(stream(&["not json"])).await;
    assert_eq!(fault.unwrap().kind, FaultKind::BadResponse);
}

#[tokio::test]
async fn statuses_become_kinds_with_their_remedy() {
    let error = |message: &str, code: &str| format!(r#"{{"error":{{"message":"{message}","code":"{code}"}}}}"#);
    for (status, headers, body, kind, retry, says) in [
        (401, &[][..], error("Incorrect key sk-very-secret-key", "x"), FaultKind::Auth, Retry::No, "ACME_API_KEY"),
        (403, &[], error("no", "x"), FaultKind::Auth, Retry::No, "ACME_API_KEY"),
        (402, &[], error("Insufficient Balance", "x"), FaultKind::RateLimit, Retry::No, "Insufficient Balance"),
        (
            429,
            &[("retry-after", "7")],
            error("slow", "x"),
            FaultKind::RateLimit,
            Retry::After(Duration::from_secs(7)),
            "slow",
        ),
        (
            429,
            &[("retry-after-ms", "1500")],
            String::new(),
            FaultKind::RateLimit,
            Retry::After(Duration::from_millis(1500)),
            "too many",
        ),
        (
            429,
            &[("retry-after", "Tue, 31 Dec 2199 23:59:59 GMT")],
            String::new(),
            FaultKind::RateLimit,
            Retry::After(Duration::from_secs(24 * 60 * 60)),
            "too many",
        ),
        (429, &[("retry-after", "soon")], error("slow", "x"), FaultKind::RateLimit, Retry::Backoff, "slow"),
        (429, &[], error("used up", "insufficient_quota"), FaultKind::RateLimit, Retry::No, "quota"),
        (500, &[], "<html>oops</html>".to_owned(), FaultKind::Overloaded, Retry::Backoff, "500"),
        (
            503,
            &[("retry-after", "2")],
            error("busy", "x"),
            FaultKind::Overloaded,
            Retry::After(Duration::from_secs(2)),
            "busy",
        ),
        (408, &[], String::new(), FaultKind::Overloaded, Retry::Backoff, "408"),
        (400, &[], error("maximum context length is 8192 tokens", "x"), FaultKind::ContextOverflow, Retry::No, "8192"),
        (400, &[], error("too long", "context_length_exceeded"), FaultKind::ContextOverflow, Retry::No, "Compact"),
        (400, &[], error("unknown field", "x"), FaultKind::BadRequest, Retry::No, "unknown field"),
        (404, &[], error("no such model", "x"), FaultKind::BadRequest, Retry::No, "acme-chat"),
        (422, &[], "plain words".to_owned(), FaultKind::BadRequest, Retry::No, "plain words"),
    ] {
        let fault = refused(json_answer(status, headers, &body)).await;
        assert_eq!((fault.kind, fault.retry), (kind, retry), "{status}: {fault}");
        assert!(fault.message.contains(says), "{status}: {fault}");
    }
}

#[tokio::test]
async fn a_web_page_in_place_of_an_answer_speaks_of_the_address() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<html>hi</html>";
    let fault = refused(vec![Act::Send(page.as_bytes().to_vec()), Act::Close]).await;
    assert_eq!((fault.kind, fault.retry), (FaultKind::BadResponse, Retry::No));
    assert!(fault.message.contains("web page") && fault.message.contains("base_url"), "{fault}");
}

#[tokio::test]
async fn a_redirect_is_followed_only_where_it_stays() {
    let elsewhere = refused(json_answer(307, &[("location", "http://127.0.0.2:9/v1/chat/completions")], "")).await;
    assert_eq!((elsewhere.kind, elsewhere.retry), (FaultKind::BadResponse, Retry::No));
    assert!(elsewhere.message.contains("base_url"), "{elsewhere}");
    let good = stream(&[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let server = Server::start(vec![json_answer(307, &[("location", "/other")], ""), good]);
    let (events, fault) = ask(config(&server.url())).await;
    assert_eq!((events, fault), (vec![text("a"), stop(StopReason::EndTurn)], None));
    assert_eq!(server.requests()[1].line, "POST /other HTTP/1.1");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named() {
    let server = Server::start(Vec::new());
    let url = server.url();
    drop(server);
    let (_, fault) = ask(config(&url)).await;
    let fault = fault.unwrap();
    assert_eq!((fault.kind, fault.retry), (FaultKind::Network, Retry::Backoff));
    let address = url.trim_start_matches("http://").trim_end_matches("/v1");
    assert!(fault.message.contains(address) && fault.message.contains("refused"), "{fault}");
}

#[tokio::test]
async fn an_https_address_without_tls_behind_it_is_a_fault() {
    let server = Server::start(vec![json_answer(200, &[], "{}")]);
    let (_, fault) = ask(config(&server.url().replace("http://", "https://"))).await;
    let fault = fault.unwrap();
    // Without any certificate on the machine the client itself cannot be built, which is said as such.
    assert!(matches!(fault.kind, FaultKind::Network | FaultKind::Internal), "{fault}");
}

#[tokio::test]
async fn silence_has_a_limit_before_and_inside_an_answer() {
    let server = Server::start(vec![vec![Act::HoldOpen]]);
    let mut impatient = config(&server.url());
    impatient.timeouts.first_byte = Duration::from_millis(200);
    let fault = ask(impatient).await.1.unwrap();
    assert_eq!((fault.kind, fault.retry), (FaultKind::Network, Retry::Backoff));
    assert!(fault.message.contains("200 ms"), "{fault}");
    let mut stalled = stream_of(&[event(r#"{"choices":[{"delta":{"content":"a"}}]}"#).as_bytes(), b"data: {\"cho"]);
    stalled.pop();
    stalled.push(Act::HoldOpen);
    let server = Server::start(vec![stalled]);
    let mut impatient = config(&server.url());
    impatient.timeouts.idle = Duration::from_millis(200);
    let (events, fault) = ask(impatient).await;
    assert_eq!((events, fault.unwrap().kind), (vec![text("a")], FaultKind::Network));
}

#[tokio::test]
async fn cancelling_or_dropping_closes_the_connection() {
    let stalled = || {
        let mut acts = stream_of(&[event(r#"{"choices":[{"delta":{"content":"a"}}]}"#).as_bytes(), b"data: {\"cho"]);
        acts.pop();
        acts.push(Act::HoldOpen);
        acts
    };
    // While the answer stalls in the middle of a piece.
    let server = Server::start(vec![stalled()]);
    let model = OpenAiModel::new(config(&server.url())).unwrap();
    let cancel = Cancel::new();
    let mut stream = open(&model, &cancel).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().unwrap(), text("a"));
    let (event, _) = tokio::join!(next(&mut stream), async { cancel.cancel(CancelCause::User) });
    assert!(event.unwrap().unwrap_err().message.contains("cancelled by the user"));
    assert!(next(&mut stream).await.is_none());
    server.wait_closed().await;
    drop(stream);
    // By dropping the stream, the signal untouched.
    let server = Server::start(vec![stalled()]);
    let model = OpenAiModel::new(config(&server.url())).unwrap();
    let cancel = Cancel::new();
    let mut stream = open(&model, &cancel).await.unwrap();
    assert_eq!(next(&mut stream).await.unwrap().unwrap(), text("a"));
    drop(stream);
    server.wait_closed().await;
    // Before the first byte.
    let server = Server::start(vec![vec![Act::HoldOpen]]);
    let model = OpenAiModel::new(config(&server.url())).unwrap();
    let cancel = Cancel::new();
    let (answer, ()) = tokio::join!(open(&model, &cancel), async {
        server.wait_request().await;
        cancel.cancel(CancelCause::User);
    });
    assert!(answer.is_err());
    server.wait_closed().await;
}

#[tokio::test]
async fn a_next_that_is_dropped_loses_nothing() {
    let pieces: Vec<String> =
        (0..50).map(|n| event(&format!(r#"{{"choices":[{{"delta":{{"content":"{n} "}}}}]}}"#))).collect();
    let mut bytes: Vec<&[u8]> = pieces.iter().flat_map(|p| p.as_bytes().chunks(5)).collect();
    let end = event("[DONE]");
    bytes.push(end.as_bytes());
    let server = Server::start(vec![stream_of(&bytes)]);
    let model = OpenAiModel::new(config(&server.url())).unwrap();
    let cancel = Cancel::new();
    let mut stream = open(&model, &cancel).await.unwrap();
    let mut said = String::new();
    loop {
        // Polled once and dropped, over and over.
        let event = tokio::select! {
            biased;
            event = stream.next() => event,
            () = tokio::task::yield_now() => continue,
        };
        match event {
            Some(Ok(ModelEvent::Text(text))) => said.push_str(&text),
            Some(Ok(_)) => {}
            Some(Err(fault)) => panic!("{fault}"),
            None => break,
        }
    }
    let expected: String = (0..50).map(|n| format!("{n} ")).collect();
    assert_eq!(said, expected);
}

async fn sent(request: ModelRequest, config: impl FnOnce(HttpModelConfig) -> HttpModelConfig) -> server::Request {
    let good = stream(&[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, "[DONE]"]);
    let server = Server::start(vec![good]);
    let model = OpenAiModel::new(config(self::config(&server.url()))).unwrap();
    let cancel = Cancel::new();
    let mut stream = model.stream(request, &cancel).await.unwrap();
    while next(&mut stream).await.is_some() {}
    server.requests().remove(0)
}

#[tokio::test]
async fn the_request_is_encoded_for_the_wire() {
    let tool_use = |id: &str, input: &str, raw: Option<&str>| Block::ToolUse {
        id: id.to_owned(),
        name: "Bash".to_owned(),
        input: Json::parse(input).unwrap(),
        raw: raw.map(str::to_owned),
    };
    let result = |id: &str, content: Vec<Block>| Message {
        role: Role::Tool,
        content: vec![Block::ToolResult { tool_use_id: id.to_owned(), content, is_error: false }],
    };
    let image = || Block::Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
    let thinking = || Block::Thinking { text: "hm".to_owned(), signature: None };
    let conversation = ModelRequest {
        messages: vec![
            Message { role: Role::User, content: vec![Block::text("look"), image()] },
            Message::text(Role::Developer, "note"),
            Message { role: Role::Assistant, content: vec![thinking(), Block::text("plain")] },
            Message {
                role: Role::Assistant,
                content: vec![
                    thinking(),
                    tool_use("1", r#"{"n":1.10}"#, Some("{ \"n\": 1.10 }")),
                    tool_use("2", "{}", Some("{broken")),
                    tool_use("3", r#"{"a":1}"#, None),
                ],
            },
            Message::text(Role::System, "injected meanwhile"),
            result("1", vec![Block::text("out"), image()]),
            result("2", vec![Block::text("bad")]),
            Message::text(Role::User, "go on"),
        ],
        tools: vec![ToolSchema {
            name: "Bash".to_owned(),
            description: "Runs".to_owned(),
            parameters: Json::parse(r#"{"type":"object","maximum":1.0}"#).unwrap(),
        }],
        max_output_tokens: Some(99),
        ..request()
    };
    let sent = sent(conversation, |c| HttpModelConfig { effort: Some("high".to_owned()), ..c }).await;
    assert_eq!(sent.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("x-team"), Some("hidden-team"));
    let expected = concat!(
        r#"{"model":"acme-chat","messages":["#,
        r#"{"role":"system","content":"be brief"},"#,
        r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},"#,
        r#"{"role":"user","content":"<system-reminder>\nnote\n</system-reminder>"},"#,
        r#"{"role":"assistant","content":"plain"},"#,
        r#"{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":["#,
        r#"{"id":"1","type":"function","function":{"name":"Bash","arguments":"{ \"n\": 1.10 }"}},"#,
        r#"{"id":"2","type":"function","function":{"name":"Bash","arguments":"{}"}},"#,
        r#"{"id":"3","type":"function","function":{"name":"Bash","arguments":"{\"a\":1}"}}]},"#,
        r#"{"role":"tool","content":"out\n[image content]","tool_call_id":"1"},"#,
        r#"{"role":"tool","content":"bad","tool_call_id":"2"},"#,
        r#"{"role":"tool","content":"(no result: the call was interrupted)","tool_call_id":"3"},"#,
        r#"{"role":"user","content":"<system-reminder>\ninjected meanwhile\n</system-reminder>"},"#,
        r#"{"role":"user","content":[{"type":"text","text":"<system-reminder>\nShown by a tool:\n</system-reminder>"},"#,
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},"#,
        r#"{"role":"user","content":"go on"}],"#,
        r#""tools":[{"type":"function","function":{"name":"Bash","description":"Runs","parameters":{"type":"object","maximum":1.0}}}],"#,
        r#""stream":true,"stream_options":{"include_usage":true},"max_tokens":99,"reasoning_effort":"high"}"#,
    );
    assert_eq!(sent.body, expected);
}

#[tokio::test]
async fn the_address_may_be_written_in_several_ways() {
    for ending in ["", "/", "/chat/completions"] {
        let sent = sent(request(), |c| HttpModelConfig { base_url: format!("{}{ending}", c.base_url), ..c }).await;
        assert_eq!(sent.line, "POST /v1/chat/completions HTTP/1.1");
        let body: Value = serde_json::from_str(&sent.body).unwrap();
        assert!(body.get("tools").is_none() && body.get("max_tokens").is_none(), "{body}");
    }
}

#[test]
fn a_configuration_that_cannot_work_is_refused_without_showing_secrets() {
    let refused = |config: HttpModelConfig| {
        let said = OpenAiModel::new(config).err().expect("it was accepted").to_string();
        assert!(said.contains("acme") && !said.contains("hidden"), "{said}");
        said
    };
    for url in ["nonsense", "ftp://host", "http://", "https://user:hidden@host"] {
        assert!(refused(config(url)).contains("base_url"));
    }
    let bad_key = HttpModelConfig { api_key: Some(Secret::new("hidden\nkey")), ..config("http://h") };
    assert!(refused(bad_key).contains("ACME_API_KEY"));
    let bad_header =
        HttpModelConfig { headers: vec![("bad name".to_owned(), Secret::new("hidden"))], ..config("http://h") };
    assert!(refused(bad_header).contains("bad name"));
    let shown = format!("{:?} {}", config("http://h"), Secret::new(KEY));
    assert!(!shown.contains(KEY) && !shown.contains("hidden-team"), "{shown}");
}
