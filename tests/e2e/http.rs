//! A real provider's wire, played on loopback: the same end as the script model, documented codes for what goes wrong,
//! and a key that is seen by nobody but the provider.

use serde_json::{Value, json};

use crate::log::Log;
use crate::place::{Done, Place};
use crate::server::{Answer, Server, call, text};

const KEY: &str = "sk-e2e-5f2d1c0b9a8877665544332211";

/// A place whose configured model is the server's.
fn place(server: &Server) -> Place {
    let mut place = Place::new();
    let config = format!(
        "model = \"local/m\"\n[providers.local]\nkind = \"openai\"\nbase_url = \"{}\"\napi_key_env = \"E2E_KEY\"\n\
         [model_retry]\nretries = 2\nbase_ms = 1\ncap_ms = 2\n",
        server.url
    );
    place.write_home(".config/sluice/config.toml", &config);
    place.set("E2E_KEY", KEY);
    place.set("NO_PROXY", "127.0.0.1");
    place
}

fn run(place: &Place, more: &[&str]) -> Done {
    let mut args = vec!["run", "what is here?", "--output-format", "json", "--allowed-tools", "Bash"];
    args.extend(more);
    let done = place.run_sluice(args);
    place.assert_nothing_left();
    done
}

/// An event without what two runs may differ in.
fn bare(event: &Value) -> Value {
    const DIFFERS: [&str; 12] = [
        "seq", "time", "ms", "duration_ms", "turn_id", "prompt_id", "run_id", "provider", "model", "usage", "call_seq",
        "system",
    ];
    match event {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| !DIFFERS.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), bare(value))).collect()
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        other => other.clone(),
    }
}

const COMMAND: &str = "ls; echo \"key: $E2E_KEY\"; env | grep -c sk-e2e; echo 'é \"q\"'";

fn fragments() -> Vec<String> {
    let arguments = json!({"command": COMMAND}).to_string();
    let (mut parts, mut rest) = (Vec::new(), arguments.as_str());
    while !rest.is_empty() {
        let end = rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at);
        let (part, after) = rest.split_at(end);
        parts.push(part.to_owned());
        rest = after;
    }
    parts
}

#[test]
fn a_provider_over_http_leads_to_the_same_end_as_the_script() {
    let parts = fragments();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let server = Server::start(vec![
        Answer::Stream(call("call_1", "Bash", &parts)),
        Answer::Stream(text(&["There is ", "a ", "README 🙂."])),
    ]);
    let over_http = place(&server);
    over_http.write("README.md", "# Here\n");
    let http = run(&over_http, &[]);

    let scripted = Place::new();
    scripted.write("README.md", "# Here\n");
    let model = scripted.script(&json!({"steps": [
        {"text": "Let me look.", "tool_calls": [{"name": "Bash", "input": {"command": COMMAND}}]},
        {"text": "There is a README 🙂."}
    ]}));
    let script = run(&scripted, &["--model", &model]);

    assert_eq!((http.code, script.code), (0, 0), "{http:?} {script:?}");
    assert_eq!(http.result()["result"], "There is a README 🙂.");
    assert_eq!(http.result()["result"], script.result()["result"]);
    let (http_log, script_log) = (Log::read(&over_http.logs()[0]), Log::read(&scripted.logs()[0]));
    http_log.assert_closed();
    let (_, output) = http_log.result("call_1");
    assert_eq!(output, "README.md\nkey: \n0\né \"q\"", "the key is not in a command's environment");
    let bare = |log: &Log| log.events.iter().map(bare).collect::<Vec<_>>();
    assert_eq!(bare(&http_log), bare(&script_log));

    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|request| request.path == "/v1/chat/completions"), "{seen:#?}");
    assert!(seen[0].headers.contains(&format!("authorization: bearer {KEY}")), "the provider is told the key");
    let messages = seen[1].body["messages"].as_array().unwrap();
    let at = messages.iter().position(|message| message["role"] == "assistant").unwrap();
    assert_eq!(messages[at]["tool_calls"][0]["id"], "call_1");
    assert_eq!((&messages[at + 1]["role"], &messages[at + 1]["tool_call_id"]), (&json!("tool"), &json!("call_1")));
    let log = std::fs::read_to_string(&over_http.logs()[0]).unwrap();
    for (what, text) in [("the log", &log), ("stdout", &http.stdout), ("stderr", &http.stderr)] {
        assert!(!text.contains(KEY), "the key is in {what}");
    }
}

#[test]
fn what_a_server_does_wrong_is_exit_1_with_a_documented_code() {
    const LIMIT: &str = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    const NO_KEY: &str = r#"{"error":{"message":"invalid api key","code":"invalid_api_key"}}"#;
    let table: Vec<(&str, Answer, &str, usize)> = vec![
        ("401", Answer::Status(401, NO_KEY), "auth", 1),
        ("403", Answer::Status(403, NO_KEY), "auth", 1),
        ("429", Answer::Status(429, LIMIT), "rate_limit", 3),
        ("500", Answer::Status(500, "<html>oops</html>"), "overloaded", 3),
        ("503", Answer::Status(503, ""), "overloaded", 3),
        (
            "a context that is too long",
            Answer::Status(400, r#"{"error":{"message":"too long","code":"context_length_exceeded"}}"#),
            "context_overflow",
            1,
        ),
        (
            "an error in a 200",
            Answer::Json(json!({"error": {"message": "the model is on fire", "type": "server_error"}})),
            "",
            0,
        ),
        (
            "an error in the stream",
            Answer::Stream(vec!["data: {\"error\":{\"message\":\"the model is on fire\"}}\n\n".to_owned()]),
            "",
            0,
        ),
        ("a stream that is cut", Answer::Cut(text(&["half of "])[..2].to_vec()), "network", 0),
        ("an empty stream", Answer::Stream(vec![]), "", 0),
        ("no JSON", Answer::Stream(vec!["data: {oops\n\n".to_owned()]), "bad_response", 0),
        ("a page", Answer::Status(200, "<html>a login page</html>"), "bad_response", 0),
    ];
    let codes = ["auth", "rate_limit", "overloaded", "network", "bad_response", "context_overflow"];
    for (what, answer, code, requests) in table {
        let server = Server::start(vec![answer]);
        let place = place(&server);
        let done = run(&place, &[]);
        assert_eq!(done.code, 1, "{what}: {done:?}");
        let result = done.result();
        assert_eq!(
            (&result["is_error"], &result["subtype"]),
            (&json!(true), &json!("error_during_execution")),
            "{what}"
        );
        let found = result["errors"][0]["code"].as_str().unwrap();
        assert!(
            if code.is_empty() { codes.contains(&found) } else { found == code },
            "{what}: {found}, not {code}: {result:#}"
        );
        assert!(done.stderr.contains(&format!("[{found}]")), "{what}: {}", done.stderr);
        assert!(!done.stderr.contains(KEY) && !done.stdout.contains(KEY), "{what}: {done:?}");
        let said = done.stderr.lines().filter(|line| !line.contains("is sent again"));
        assert_eq!(said.count(), 1, "{what}: {}", done.stderr);
        if requests > 0 {
            assert_eq!(server.seen().len(), requests, "{what}: requests");
        }
        Log::read(&place.logs()[0]).assert_closed();
        if std::env::var_os("SHOW").is_some() {
            println!("{what}: {}", done.stderr);
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_a_network_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let server = Server::start(vec![Answer::Status(500, "")]);
    let place = place(&server);
    let config = place.home().join(".config/sluice/config.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace(&server.url, &url);
    std::fs::write(config, text).unwrap();
    let done = run(&place, &[]);
    assert_eq!((done.code, &done.result()["errors"][0]["code"]), (1, &json!("network")), "{done:?}");
    assert_eq!(done.result()["result"], "");
}

#[test]
fn a_failure_that_passes_is_tried_again_and_leaves_no_trace_in_the_answer() {
    let server = Server::start(vec![Answer::Status(500, ""), Answer::Status(429, ""), Answer::Stream(text(&["fine"]))]);
    let place = place(&server);
    let done = run(&place, &[]);
    assert_eq!((done.code, &done.result()["result"]), (0, &json!("fine")), "{done:?}");
    assert_eq!(server.seen().len(), 3);
    assert_eq!(Log::read(&place.logs()[0]).of("request/retry").len(), 2);
}
