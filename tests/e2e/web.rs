//! `WebFetch` and `WebSearch` of the built program, against a real server on loopback, which the user's configuration
//! allows where a test is not about its being refused.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::log::Log;
use crate::place::{Done, Place};
use crate::record;

/// A server of fixed answers by path: whole heads without the status line's protocol, and bodies.
struct Pages {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Pages {
    fn start(pages: &[(&str, &str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let pages: BTreeMap<String, (String, String)> = pages
            .iter()
            .map(|(path, head, body)| ((*path).to_owned(), ((*head).to_owned(), (*body).to_owned())))
            .collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        // It ends with the test's process; nothing waits for it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let (mut reader, mut head) = (BufReader::new(&stream), String::new());
                while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let known = pages.get(path.split('?').next().unwrap_or_default());
                let missing = ("404 Not Found\r\ncontent-type: text/plain".to_owned(), "no such page".to_owned());
                let (status, body) = known.cloned().unwrap_or(missing);
                log.lock().unwrap().push(head);
                let length = body.len();
                // A client that goes away in the middle is its own business.
                let _ =
                    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

const HTML: &str = "200 OK\r\ncontent-type: text/html; charset=utf-8";
const JSON: &str = "200 OK\r\ncontent-type: application/json";

fn place(config: &str) -> Place {
    let place = Place::new();
    place.write_home(".config/sluice/config.toml", config);
    place
}

/// Runs a prompt in which the model makes these calls at once and then ends.
fn run(place: &Place, calls: &[(&str, Value)], more: &[&str]) -> Done {
    let calls: Vec<Value> = calls.iter().map(|(name, input)| json!({"name": name, "input": input})).collect();
    let model = place.script(&json!({"steps": [{"tool_calls": calls}, {"text": "done"}]}));
    let mut args = vec!["run", "go", "--model", &model, "--output-format", "json"];
    args.extend(more);
    let done = place.run_sluice(args);
    place.assert_nothing_left();
    Log::read(&place.logs()[0]).assert_closed();
    done
}

/// The text and the error mark of a call's result, as the model got it.
fn result(place: &Place, call: &str) -> (String, bool) {
    let log = Log::read(place.logs().last().unwrap());
    let (event, text) = log.result(call);
    (text, event["is_error"] == true)
}

#[test]
fn a_page_of_an_allowed_site_reaches_the_model_as_markdown() {
    let pages = Pages::start(&[
        ("/guide", HTML, "<h1>Guide</h1><p>Press the <b>red</b> button.</p><script>steal()</script>"),
        ("/data", JSON, r#"{"a": 1.50}"#),
    ]);
    let place = place("[web]\nprivate_hosts = \"127.0.0.1\"\n");
    let url = |path: &str| format!("{}{path}", pages.url);
    let calls = [
        ("WebFetch", json!({"url": url("/guide"), "prompt": "which button?"})),
        ("WebFetch", json!({"url": url("/data")})),
        ("WebFetch", json!({"url": url("/nothing")})),
    ];
    let done = run(&place, &calls, &["--allowed-tools", "WebFetch(domain:127.0.0.1)"]);
    assert_eq!(done.code, 0, "{done:?}");
    let guide = format!(
        "{} answered 200 OK:\n(asked of it: which button?)\n\n# Guide\n\nPress the **red** button.",
        url("/guide")
    );
    assert_eq!(result(&place, "call_1"), (guide, false));
    assert!(result(&place, "call_2").0.ends_with("\n\n{\"a\": 1.50}"));
    let (missing, failed) = result(&place, "call_3");
    assert!(missing.contains("answered 404 Not Found:\n\nno such page") && !failed, "{missing}");
}

#[test]
fn a_hook_sees_the_value_of_a_fetch() {
    let pages = Pages::start(&[("/p", HTML, "<p>hello</p>")]);
    let place = place("[web]\nallow_private = true\n");
    let hook = json!({"matcher": "WebFetch", "hooks": [{"type": "command", "command": "cat > payload"}]});
    place.write_home(".claude/settings.json", &json!({"hooks": {"PostToolUse": [hook]}}).to_string());
    let input = json!({"url": format!("{}/p", pages.url), "prompt": "what"});
    run(&place, &[("WebFetch", input.clone())], &["--allowed-tools", "WebFetch"]);
    let payload: Value = serde_json::from_str(&place.read("payload")).unwrap();
    assert_eq!(payload["tool_input"], input);
    let response = payload["tool_response"].as_object().unwrap();
    let keys: Vec<&str> = response.keys().map(String::as_str).collect();
    assert_eq!(keys, ["bytes", "code", "codeText", "result", "durationMs", "url"]);
    assert_eq!((&response["result"], &response["bytes"]), (&json!("hello"), &json!(12)));
}

#[test]
fn r_442_private_addresses_are_not_reached_and_a_repository_cannot_open_them() {
    let pages = Pages::start(&[("/", HTML, "secret")]);
    let place = place("");
    place.write(".sluice/config.toml", "[web]\nallow_private = true\nprivate_hosts = \"127.0.0.1\"\n");
    let port = pages.url.rsplit(':').next().unwrap();
    let hosts = ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:7f00:1]", "169.254.169.254"];
    let calls: Vec<_> =
        hosts.iter().map(|host| ("WebFetch", json!({"url": format!("http://{host}:{port}/")}))).collect();
    let done = run(&place, &calls, &["--allowed-tools", "WebFetch"]);
    assert!(done.stderr.contains("is not followed (web.allow_private, web.private_hosts)"), "{}", done.stderr);
    for (at, host) in hosts.iter().enumerate() {
        let (text, failed) = result(&place, &format!("call_{}", at + 1));
        assert!(failed && text.contains("is not fetched: it "), "{host}: {text}");
    }
    assert_eq!(pages.seen(), Vec::<String>::new());
}

#[test]
fn rules_speak_of_the_host_that_is_asked_whatever_the_url_looks_like() {
    let pages = Pages::start(&[("/", HTML, "page")]);
    let place = place("[web]\nallow_private = true\n");
    let port = pages.url.rsplit(':').next().unwrap();
    let calls = [
        ("WebFetch", json!({"url": format!("http://127.0.0.1:{port}/")})),
        ("WebFetch", json!({"url": format!("http://2130706433:{port}/")})),
        ("WebFetch", json!({"url": format!("http://localhost:{port}/")})),
    ];
    let rules = ["--allowed-tools", "WebFetch", "--disallowed-tools", "WebFetch(domain:127.0.0.1)"];
    let done = run(&place, &calls, &rules);
    let by: Vec<_> = done.result()["permission_denials"].as_array().unwrap().iter().map(|d| d["by"].clone()).collect();
    assert_eq!(by, [json!("rule"), json!("rule")], "both spellings are one host");
    assert!(!result(&place, "call_3").1);
    assert_eq!(pages.seen().len(), 1);
}

#[test]
fn a_fetch_asks_by_default_and_a_redirect_elsewhere_is_a_call_of_its_own() {
    let inner = Pages::start(&[("/inner", HTML, "inner")]);
    let target = inner.url.replace("127.0.0.1", "localhost") + "/inner";
    let head = format!("302 Found\r\nlocation: {target}");
    let pages = Pages::start(&[("/out", &head, "")]);
    let place = place("[web]\nallow_private = true\n");
    let calls = [("WebFetch", json!({"url": format!("{}/out", pages.url)})), ("WebFetch", json!({"url": target}))];
    let done = run(&place, &calls, &["--allowed-tools", "WebFetch(domain:127.0.0.1)"]);
    let (text, failed) = result(&place, "call_1");
    assert!(!failed && text.contains(&format!("This page has moved to {target}")), "{text}");
    assert_eq!(done.result()["permission_denials"][0]["by"], "nobody-to-ask");
    assert_eq!((pages.seen().len(), inner.seen().len()), (1, 0));
}

#[test]
fn senseless_urls_are_refused_before_anybody_is_asked() {
    let place = place("");
    let calls: Vec<_> = ["ftp://example.com/", "https://u:p@example.com/", "example.com"]
        .map(|url| ("WebFetch", json!({"url": url})))
        .to_vec();
    let done = run(&place, &calls, &[]);
    assert_eq!(done.result()["permission_denials"], json!([]));
    for call in ["call_1", "call_2", "call_3"] {
        let (text, failed) = result(&place, call);
        assert!(failed && text.contains("invalid arguments: url "), "{text}");
    }
}

/// The names of the tools that the model was told of.
fn offered(place: &Place) -> Vec<String> {
    let request = record::read(&place.record()).remove(0);
    request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn r_440_a_search_goes_to_the_provider_that_is_configured_and_its_key_to_nobody_else() {
    let found =
        r#"{"web":{"results":[{"title":"Rust","url":"https://www.rust-lang.org/","description":"a language"}]}}"#;
    let brave = Pages::start(&[("/res/v1/web/search", JSON, found)]);
    let other = Pages::start(&[("/search", JSON, r#"{"results":[]}"#)]);
    let services = format!(
        "[web.search.paid]\nkind = \"brave\"\nbase_url = \"{}\"\napi_key_env = \"SEARCH_KEY\"\n\
         [web.search.own]\nkind = \"searxng\"\nbase_url = \"{}\"\n",
        brave.url, other.url
    );
    let mut place = place(&format!("[web]\nsearch_provider = \"paid\"\n{services}"));
    place.set("SEARCH_KEY", "brave-e2e-secret");
    let calls = [("WebSearch", json!({"query": "rust"})), ("Bash", json!({"command": "echo \"key: [$SEARCH_KEY]\""}))];
    let rules = ["--allowed-tools", "WebSearch", "--allowed-tools", "Bash"];
    let done = run(&place, &calls, &rules);
    let expected = "Pages found for \"rust\":\n- Rust <https://www.rust-lang.org/>\n\nWhat they say:\n\
                    https://www.rust-lang.org/: a language";
    assert_eq!(result(&place, "call_1"), (expected.to_owned(), false), "{done:?}");
    assert_eq!(result(&place, "call_2").0.trim(), "key: []");
    assert!(brave.seen()[0].to_lowercase().contains("x-subscription-token: brave-e2e-secret"));
    assert_eq!(other.seen().len(), 0);
    let log = std::fs::read_to_string(&place.logs()[0]).unwrap();
    assert!(!log.contains("brave-e2e-secret") && !done.stderr.contains("brave-e2e-secret"));
    assert!(offered(&place).contains(&"WebSearch".to_owned()));

    // Two that can be used and none named; one whose key is missing leaves the other; a name that nobody has.
    let turns: [(String, &str, &str); 3] = [
        (services.clone(), "brave-e2e-secret", "several search providers can be used (own, paid)"),
        (services.clone(), "", "Pages found for \"rust\":\n(none)"),
        (
            format!("[web]\nsearch_provider = \"nobody\"\n{services}"),
            "",
            "`nobody` does not exist; the providers are own, paid",
        ),
    ];
    for (config, key, words) in turns {
        let mut place = self::place(&config);
        place.set("SEARCH_KEY", key);
        run(&place, &[("WebSearch", json!({"query": "rust"}))], &rules);
        let (text, _) = result(&place, "call_1");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn without_a_search_provider_the_search_is_not_offered_and_a_fetch_is() {
    let place = place("");
    run(&place, &[("Bash", json!({"command": "true"}))], &[]);
    let names = offered(&place);
    assert!(!names.contains(&"WebSearch".to_owned()) && names.contains(&"WebFetch".to_owned()), "{names:?}");
}

#[test]
fn a_wrong_search_table_is_one_clear_sentence() {
    for (config, words) in [
        (
            "[web.search.a]\nkind = \"google\"\n",
            "`web.search.a.kind` must be one of \"searxng\", \"brave\", \"tavily\"",
        ),
        ("[web.search.a]\nkind = \"searxng\"\n", "the search provider `a` has no `base_url`"),
        ("[web.search.a]\nbase_url = \"http://x\"\n", "the search provider `a` has no `kind`"),
        (
            "[web.search.a]\nkind = \"brave\"\nbase_url = \"x\"\n",
            "`web.search.a.base_url` must be an http or https address",
        ),
        (
            "[web.search.a]\nknid = \"brave\"\n",
            "the key `web.search.a.knid` is unknown; did you mean `web.search.a.kind`?",
        ),
        ("[web]\nsearch = \"a\"\n", "`web.search` must be a table"),
        ("[web]\nallow_privat = true\n", "did you mean `web.allow_private`?"),
    ] {
        let place = place(config);
        let done = place.run_sluice(["run", "hi"]);
        assert_eq!(done.code, 2, "{config}: {done:?}");
        assert!(done.stderr.contains(words), "{config}: {}", done.stderr);
    }
}
