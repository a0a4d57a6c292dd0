//! Anthropic's messages, played on loopback: a whole turn with a call, and what goes back to the provider.

use serde_json::{Value, json};

use crate::log::Log;
use crate::place::{Done, Place};
use crate::server::{Answer, Server};

const KEY: &str = "sk-ant-e2e-5f2d1c0b9a8877665544332211";

fn place(server: &Server) -> Place {
    let mut place = Place::new();
    let config = format!(
        "model = \"claude/m\"\n[providers.claude]\nkind = \"anthropic\"\nbase_url = \"{}\"\napi_key_env = \"E2E_KEY\"\n\
         context_window = 1000\n[model_retry]\nretries = 1\nbase_ms = 1\ncap_ms = 2\n",
        server.url
    );
    place.write_home(".config/sluice/config.toml", &config);
    place.set("E2E_KEY", KEY);
    place.set("NO_PROXY", "127.0.0.1");
    place
}

fn events(events: &[Value]) -> Answer {
    let shown = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    Answer::Stream(events.iter().map(shown).collect())
}

fn block(index: u64, begin: &Value, deltas: &[Value]) -> Vec<Value> {
    let mut all = vec![json!({"type": "content_block_start", "index": index, "content_block": begin})];
    all.extend(deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
    all.push(json!({"type": "content_block_stop", "index": index}));
    all
}

fn answer(blocks: Vec<Vec<Value>>, stop: &str) -> Answer {
    let usage =
        json!({"input_tokens": 3, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1});
    let mut all =
        vec![json!({"type": "message_start", "message": {"role": "assistant", "content": [], "usage": usage}})];
    all.extend(blocks.concat());
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}}));
    all.push(json!({"type": "message_stop"}));
    events(&all)
}

fn text(text: &str) -> Vec<Value> {
    block(0, &json!({"type": "text", "text": ""}), &[json!({"type": "text_delta", "text": text})])
}

#[test]
fn a_turn_over_messages_keeps_reasoning_digits_and_the_order_of_blocks() {
    let thinking = [
        json!({"type": "thinking_delta", "thinking": "hm"}),
        json!({"type": "signature_delta", "signature": "c2lnbmVk"}),
    ];
    let call = |index, id: &str, parts: &[&str]| {
        let deltas: Vec<Value> =
            parts.iter().map(|part| json!({"type": "input_json_delta", "partial_json": part})).collect();
        block(index, &json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}}), &deltas)
    };
    let server = Server::start(vec![
        answer(
            vec![
                block(0, &json!({"type": "thinking", "thinking": "", "signature": ""}), &thinking),
                call(1, "toolu_1", &["{\"command\": \"echo 1\", ", "\"timeout\": 1000.0}"]),
                block(2, &json!({"type": "redacted_thinking", "data": "aGlkZGVu"}), &[]),
                call(3, "toolu_2", &["{\"command\": \"echo two\"}"]),
            ],
            "tool_use",
        ),
        answer(vec![text("There are two.")], "end_turn"),
    ]);
    let place = place(&server);
    let done = place.run_sluice(["run", "go", "--output-format", "json", "--allowed-tools", "Bash"]);
    place.assert_nothing_left();
    assert_eq!(done.code, 0, "{done:?}");
    let result = done.result();
    assert_eq!(result["result"], "There are two.");
    let usage = json!({"input_tokens": 6, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 14, "output_tokens": 4});
    assert_eq!(result["usage"], usage);

    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| request.path == "/v1/messages"), "{seen:#?}");
    assert!(seen[0].headers.contains(&format!("x-api-key: {KEY}")), "the provider is told the key");
    let messages = seen[1].body["messages"].as_array().unwrap();
    let assistant = messages.iter().find(|message| message["role"] == "assistant").unwrap();
    let kinds: Vec<&str> =
        assistant["content"].as_array().unwrap().iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["thinking", "tool_use", "redacted_thinking", "tool_use"]);
    assert_eq!(assistant["content"][0], json!({"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}));
    assert_eq!(assistant["content"][1]["input"].to_string(), "{\"command\":\"echo 1\",\"timeout\":1000.0}");
    let results = &messages.last().unwrap()["content"];
    assert_eq!((&results[0]["tool_use_id"], &results[1]["tool_use_id"]), (&json!("toolu_1"), &json!("toolu_2")));
    assert_eq!((&results[0]["content"], &results[1]["content"]), (&json!("1"), &json!("two")));

    let log = Log::read(&place.logs()[0]);
    log.assert_closed();
    let text = std::fs::read_to_string(&place.logs()[0]).unwrap();
    assert!(text.contains("1000.0") && text.contains("aGlkZGVu"), "{text}");
    for (what, text) in [("the log", &text), ("stdout", &done.stdout), ("stderr", &done.stderr)] {
        assert!(!text.contains(KEY), "the key is in {what}");
    }
}

#[test]
fn a_key_that_the_server_repeats_is_shown_nowhere() {
    const ECHO: &str =
        r#"{"type":"error","error":{"type":"X","message":"no use for sk-ant-e2e-5f2d1c0b9a8877665544332211 here"}}"#;
    let inside: Value = serde_json::from_str(ECHO).unwrap();
    for (what, answer, code) in [
        ("401", Answer::Status(401, ECHO), "auth"),
        ("400", Answer::Status(400, ECHO), "bad_response"),
        ("529", Answer::Status(529, ECHO), "overloaded"),
        ("an error in the stream", events(&[inside]), "overloaded"),
        ("no JSON", Answer::Stream(vec![format!("data: {KEY}\n\n")]), "bad_response"),
    ] {
        let server = Server::start(vec![answer]);
        let place = place(&server);
        let log = place.home().join("diagnostics.log");
        let args = ["run", "go", "--output-format", "json", "-v", "--log-file", log.to_str().unwrap()];
        let done = place.run_sluice(args);
        assert_eq!((done.code, &done.result()["errors"][0]["code"]), (1, &json!(code)), "{what}: {done:?}");
        let mut told = vec![done.stdout.clone(), done.stderr.clone(), std::fs::read_to_string(&log).unwrap()];
        told.extend(place.logs().iter().map(|log| std::fs::read_to_string(log).unwrap()));
        assert_eq!(told.len(), 4, "{what}");
        assert!(told.iter().all(|text| !text.contains(KEY)), "{what}: {told:#?}");
    }
}

const IMAGE: &str = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0K"}}]}}"#;

fn piped(place: &Place, more: &str) -> Done {
    place.write("in.jsonl", IMAGE);
    place.run(place.shell(&format!("\"$SLUICE\" run --input-format stream-json {more} < in.jsonl")))
}

#[test]
fn an_image_on_stdin_reaches_a_model_that_takes_it() {
    let server = Server::start(vec![answer(vec![text("a picture")], "end_turn")]);
    let place = place(&server);
    let done = piped(&place, "--output-format json");
    assert_eq!((done.code, &done.result()["result"]), (0, &json!("a picture")), "{done:?}");
    let messages = server.seen()[0].body["messages"].clone();
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0K"});
    assert_eq!(messages[0]["content"][1]["source"], source, "{messages:#}");
}

#[test]
fn an_image_for_a_model_that_takes_none_is_said_and_nothing_is_asked() {
    let server = Server::start(vec![answer(vec![text("never")], "end_turn")]);
    let place = place(&server);
    let config = place.home().join(".config/sluice/config.toml");
    let blind = std::fs::read_to_string(&config).unwrap().replace("context_window", "images = false\ncontext_window");
    std::fs::write(&config, blind).unwrap();
    let done = piped(&place, "");
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("claude/m") && done.stderr.contains("images = true"), "{}", done.stderr);
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn silence_ends_when_the_configuration_says_so() {
    let half = vec!["event: ping\ndata: {\"type\":\"ping\"}\n\n".to_owned(), "data: {\"type".to_owned()];
    for (limit, pieces, says) in [
        ("first_byte_timeout = 0.3", Vec::new(), "sent nothing for 300 ms"),
        ("idle_timeout = 0.4", half, "sent nothing for 400 ms"),
    ] {
        let server = Server::start(vec![Answer::Stall(pieces)]);
        let place = place(&server);
        let config = place.home().join(".config/sluice/config.toml");
        let hasty = std::fs::read_to_string(&config)
            .unwrap()
            .replace("context_window", &format!("{limit}\ncontext_window"))
            .replace("retries = 1", "retries = 0");
        std::fs::write(&config, hasty).unwrap();
        let done = place.run_sluice(["run", "go", "--output-format", "json"]);
        let error = &done.result()["errors"][0];
        assert_eq!((done.code, &error["code"]), (1, &json!("network")), "{limit}: {done:?}");
        assert!(error["message"].as_str().unwrap().contains(says), "{limit}: {error}");
    }
}
