//! The script model. Cases are files in `tests/script/`: a script, the requests that are put to it, and the events
//! that come back, one line each. A new case needs no Rust.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::{Block, Message, Role};
use sluice_harness::ids::SessionId;
use sluice_harness::json::Json;
use sluice_harness::seam::model::{
    FaultKind, Model, ModelEvent, ModelFault, ModelRequest, ModelStream, Purpose, Retry, ToolSchema,
};
use sluice_providers::script::{ScriptError, ScriptModel};

const WATCHDOG: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Why the case is there.
    #[allow(dead_code, reason = "for readers")]
    about: String,
    script: Box<RawValue>,
    requests: Vec<Asked>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    index: u64,
    #[serde(default)]
    purpose: Option<Purpose>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    system: String,
    #[serde(default)]
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<ToolSchema>,
    events: Vec<String>,
}

fn request(index: u64) -> ModelRequest {
    ModelRequest {
        session: SessionId::new("s-1"),
        agent: None,
        purpose: Purpose::Turn,
        index,
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        max_output_tokens: None,
    }
}

fn embedded(script: &str) -> ScriptModel {
    ScriptModel::from_text("demo", script, Path::new(""), None).unwrap()
}

async fn open(model: &ScriptModel, request: ModelRequest, cancel: &Cancel) -> Result<Box<dyn ModelStream>, ModelFault> {
    tokio::time::timeout(WATCHDOG, model.stream(request, cancel)).await.expect("no answer")
}

async fn next(stream: &mut Box<dyn ModelStream>) -> Option<Result<ModelEvent, ModelFault>> {
    tokio::time::timeout(WATCHDOG, stream.next()).await.expect("no event")
}

async fn events(model: &ScriptModel, request: ModelRequest) -> Vec<String> {
    let mut lines = Vec::new();
    match open(model, request, &Cancel::new()).await {
        Err(fault) => lines.push(format!("at once: {}", shown(&Err(fault)))),
        Ok(mut stream) => {
            while let Some(event) = next(&mut stream).await {
                lines.push(shown(&event));
            }
        }
    }
    lines
}

fn shown(event: &Result<ModelEvent, ModelFault>) -> String {
    match event {
        Ok(ModelEvent::Thinking(text)) => format!("thinking {text:?}"),
        Ok(ModelEvent::ThinkingSignature(text)) => format!("signature {text:?}"),
        Ok(ModelEvent::RedactedThinking(data)) => format!("redacted {data:?}"),
        Ok(ModelEvent::Text(text)) => format!("text {text:?}"),
        Ok(ModelEvent::ToolCall { id, name, arguments }) => {
            format!("call {} {name} {arguments}", id.as_deref().unwrap_or("-"))
        }
        Ok(ModelEvent::Usage(usage)) => {
            format!("usage {} {} {}", usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)
        }
        Ok(ModelEvent::Stop(stop)) => format!("stop {}", serde_json::to_value(stop).unwrap().as_str().unwrap()),
        Err(fault) => {
            let retry = match fault.retry {
                Retry::No => "no retry",
                Retry::Backoff => "retry",
                Retry::After(_) => "retry after",
            };
            format!("fault {} ({retry}): {fault}", serde_json::to_value(fault.kind).unwrap().as_str().unwrap())
        }
    }
}

#[tokio::test]
async fn every_case_file_plays_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/script");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut wrong = String::new();
    for path in &paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let case: Case =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let model = embedded(case.script.get());
        for asked in case.requests {
            let request = ModelRequest {
                agent: asked.agent,
                purpose: asked.purpose.unwrap_or(Purpose::Turn),
                system: asked.system,
                messages: asked.messages,
                tools: asked.tools,
                ..request(asked.index)
            };
            let played = events(&model, request).await;
            if played != asked.events {
                wrong.push_str(&format!(
                    "{name}, request {}:\n{}\n",
                    asked.index,
                    serde_json::to_string_pretty(&played).unwrap()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(paths.len() >= 8, "the cases were not found");
}

#[test]
fn what_is_wrong_with_a_script_is_named_with_file_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    for (text, line, expected) in [
        ("{\n  \"stepz\": []\n}", 2, "unknown field `stepz`"),
        ("{\"steps\": [\n  {\"text\": \"a\",\n   \"tools\": []}]}", 3, "unknown field `tools`"),
        ("{\"steps\": [{\"tool_calls\": [{\"name\": \"Bash\", \"inputs\": {}}]}]}", 1, "unknown field `inputs`"),
        ("{\"steps\": [{\"error\": {\"kind\": \"tired\"}}]}", 1, "unknown variant `tired`"),
        ("{\"steps\": [{\"expect\": {\"contain\": []}}]}", 1, "unknown field `contain`"),
        ("{\"steps\": [\n{\"text\": \"a\", \"chunks\": [\"b\"]}]}", 2, "both `text` and `chunks`"),
        ("{\"steps\": [{\"tool_calls\": [{\"name\": \"Bash\"}]}]}", 1, "neither `input` nor `input_text`"),
        (
            "{\"steps\": [{\"tool_calls\": [{\"name\": \"X\", \"input\": {}, \"input_text\": \"\"}]}]}",
            1,
            "both `input` and",
        ),
        ("{\"steps\": [{\"tool_calls\": [{\"name\": \"X\", \"input\": {\"a\":1,\"a\":2}}]}]}", 1, "appears twice"),
        ("{\"when_exhausted\": \"stop\"}", 1, "missing field `steps`"),
        ("{\"steps\": [}", 1, "expected value"),
        ("", 1, "EOF"),
        ("{\"steps\": []} x", 1, "trailing characters"),
        ("{\"steps\": [], \"context_window\": -1}", 1, "-1"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = ScriptModel::load(&path, None).err().unwrap_or_else(|| panic!("accepted: {text}"));
        let said = error.to_string();
        assert!(said.contains(expected) && said.contains("s.json"), "{said}");
        assert!(said.contains(&format!("at line {line}, column ")), "{said}");
        assert_eq!(said.matches("line").count(), 1, "the place is said once: {said}");
    }
    let none = folder.path().join("none.json");
    let error = ScriptModel::load(&none, None).err().unwrap();
    assert!(matches!(error, ScriptError::Read { .. }) && error.to_string().contains("none.json"), "{error}");
}

#[test]
fn the_model_is_called_after_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tour.json");
    std::fs::write(&path, r#"{"steps": [], "context_window": 1000}"#).unwrap();
    let info = ScriptModel::load(&path, None).unwrap().info();
    assert_eq!((info.provider.as_str(), info.model.as_str()), ("script", "tour"));
    assert_eq!((info.effort.as_deref(), info.context_window), (Some("medium"), Some(1000)));
    assert_eq!(embedded(r#"{"steps": []}"#).info().model, "demo");
}

#[tokio::test]
async fn two_sessions_on_one_script_do_not_share_a_place() {
    let model = embedded(r#"{"steps": [{"text": "one"}, {"text": "two"}]}"#);
    let first = |session: &str, index| ModelRequest { session: SessionId::new(session), ..request(index) };
    assert_eq!(events(&model, first("a", 1)).await[0], "text \"two\"");
    assert_eq!(events(&model, first("b", 0)).await[0], "text \"one\"");
    assert_eq!(events(&model, first("a", 0)).await[0], "text \"one\"");
}

fn rich_request() -> ModelRequest {
    let tool_use = Block::ToolUse {
        id: "call_1".to_owned(),
        name: "Bash".to_owned(),
        input: Json::parse(r#"{"n": 1.10, "big": 123456789012345678901234567890}"#).unwrap(),
        raw: Some("raw".to_owned()),
    };
    let result = Block::ToolResult {
        tool_use_id: "call_1".to_owned(),
        content: vec![Block::text("out"), Block::Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() }],
        is_error: true,
    };
    let thinking = Block::Thinking { text: "hm".to_owned(), signature: Some("sig".to_owned()) };
    ModelRequest {
        system: "sys \"é\"".to_owned(),
        messages: vec![
            Message::text(Role::User, "hi"),
            Message { role: Role::Assistant, content: vec![thinking, Block::text("text"), tool_use] },
            Message { role: Role::Tool, content: vec![result] },
            Message::text(Role::Developer, "injected"),
        ],
        tools: vec![ToolSchema {
            name: "Bash".to_owned(),
            description: "Runs".to_owned(),
            parameters: Json::parse(r#"{"type": "object", "maximum": 1.0}"#).unwrap(),
        }],
        ..request(0)
    }
}

#[tokio::test]
async fn the_record_is_one_exact_line_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    std::fs::write(&path, r#"{"steps": [{"text": "a", "expect": {"contains": ["nowhere"]}}], "record": "r.jsonl"}"#)
        .unwrap();
    let model = ScriptModel::load(&path, None).unwrap();
    let missed = events(&model, rich_request()).await;
    let record = folder.path().join("r.jsonl");
    assert!(missed[0].contains("\"nowhere\"") && missed[0].contains(record.to_str().unwrap()), "{missed:?}");
    let exhausted = ModelRequest {
        agent: Some("Explore".to_owned()),
        purpose: Purpose::Compaction,
        max_output_tokens: Some(10),
        ..request(4)
    };
    events(&model, exhausted).await;
    let lines = std::fs::read_to_string(&record).unwrap();
    let expected = concat!(
        r#"{"session":"s-1","agent":null,"purpose":"turn","step":0,"system":"sys \"é\"","messages":["#,
        r#"{"role":"user","content":"hi"},"#,
        r#"{"role":"assistant","content":[{"type":"thinking","text":"hm"},{"type":"text","text":"text"},"#,
        r#"{"type":"tool_use","id":"call_1","name":"Bash","input":{"n":1.10,"big":123456789012345678901234567890}}]},"#,
        r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"call_1","content":["#,
        r#"{"type":"text","text":"out"},{"type":"image","media_type":"image/png","data":"AA=="}],"is_error":true}]},"#,
        r#"{"role":"developer","content":"injected"}],"#,
        r#""tools":[{"name":"Bash","description":"Runs","parameters":{"type":"object","maximum":1.0}}],"params":{}}"#,
        "\n",
        r#"{"session":"s-1","agent":"Explore","purpose":"compaction","step":4,"system":"","messages":[],"tools":[],"params":{"max_output_tokens":10}}"#,
        "\n",
    );
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_record_given_from_outside_wins_and_a_bad_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.jsonl");
    let script = r#"{"steps": [{"text": "a"}], "record": "theirs.jsonl"}"#;
    let model = ScriptModel::from_text("demo", script, folder.path(), Some(mine.clone())).unwrap();
    events(&model, request(0)).await;
    assert_eq!(std::fs::read_to_string(&mine).unwrap().lines().count(), 1);
    assert!(!folder.path().join("theirs.jsonl").exists());
    let bad = folder.path().join("no/such/folder/r.jsonl");
    let model = ScriptModel::from_text("demo", script, folder.path(), Some(bad.clone())).unwrap();
    let said = events(&model, request(0)).await;
    assert!(said[0].contains("fault internal") && said[0].contains(bad.to_str().unwrap()), "{said:?}");
}

#[tokio::test]
async fn the_record_is_written_before_a_delay() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("r.jsonl");
    let script = r#"{"steps": [{"error": {"kind": "overloaded"}, "delay_ms": 600000}]}"#;
    let model = ScriptModel::from_text("demo", script, folder.path(), Some(record.clone())).unwrap();
    let cancel = Cancel::new();
    let (answer, ()) = tokio::join!(open(&model, request(0), &cancel), async {
        while !std::fs::read_to_string(&record).is_ok_and(|text| text.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel(CancelCause::User);
    });
    assert!(answer.err().unwrap().message.contains("cancelled by the user"));
}

#[tokio::test]
async fn delays_end_at_once_on_cancellation() {
    let script = r#"{"steps": [{"chunks": ["a", "b"], "chunk_delay_ms": 600000}, {"text": "a", "delay_ms": 600000}]}"#;
    let model = embedded(script);
    let cancel = Cancel::new();
    let mut stream = open(&model, request(0), &cancel).await.unwrap();
    assert_eq!(shown(&next(&mut stream).await.unwrap()), "text \"a\"");
    let (event, _) = tokio::join!(next(&mut stream), async { cancel.cancel(CancelCause::User) });
    assert_eq!(event.unwrap().unwrap_err().kind, FaultKind::Internal);
    assert!(next(&mut stream).await.is_none());
    let cancel = Cancel::new();
    let mut stream = open(&model, request(1), &cancel).await.unwrap();
    let (event, _) = tokio::join!(next(&mut stream), async { cancel.cancel(CancelCause::User) });
    assert!(event.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn delays_stand_before_the_first_chunk_and_between_chunks() {
    let model = embedded(r#"{"steps": [{"chunks": ["a", "b", "c"], "delay_ms": 1000, "chunk_delay_ms": 10}]}"#);
    let started = tokio::time::Instant::now();
    let mut stream = model.stream(request(0), &Cancel::new()).await.unwrap();
    let mut times = Vec::new();
    // A `next` that is dropped while it waits takes nothing of the wait away and adds nothing.
    assert!(tokio::time::timeout(Duration::from_millis(400), stream.next()).await.is_err());
    while let Some(event) = stream.next().await {
        times.push((shown(&event), started.elapsed().as_millis()));
    }
    let times: Vec<_> = times.iter().map(|(event, at)| (event.as_str(), *at)).collect();
    assert_eq!(times, [("text \"a\"", 1000), ("text \"b\"", 1010), ("text \"c\"", 1020), ("stop end_turn", 1020)]);
}

#[tokio::test]
async fn a_long_repeat_can_be_cancelled_and_lets_others_run() {
    let model = embedded(r#"{"steps": [{"repeat": {"chunk": "x", "times": 18446744073709551615}}]}"#);
    let cancel = Cancel::new();
    let mut stream = open(&model, request(0), &cancel).await.unwrap();
    let mut others = tokio::task::JoinSet::new();
    let theirs = cancel.clone();
    others.spawn(async move { theirs.cancel(CancelCause::User) });
    let mut count = 0u64;
    while let Some(Ok(_)) = next(&mut stream).await {
        count += 1;
    }
    assert_eq!((others.join_all().await, count > 0), (vec![true], true));
}
