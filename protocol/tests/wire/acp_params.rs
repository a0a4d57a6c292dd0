//! Reading ACP parameters: which member an error names.
//!
//! Lives here: a table of texts and sentences. Invariant: the sentence names the member, not a position.

use serde::Deserialize;
use sluice_protocol::acp::schema::v1::{NewSessionRequest, PromptRequest, SetSessionModeRequest};
use sluice_protocol::{Params, acp};

fn refused<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    let error = acp::parse::<T>("m", &Params::new(Some(text))).unwrap_err();
    assert_eq!(error.code(), -32602);
    error.message().to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only decoding matters")]
struct Nested {
    outer: Vec<Inner>,
    count: Option<u8>,
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only decoding matters")]
struct Inner {
    a: String,
    b: Vec<u8>,
}

#[test]
fn errors_name_the_innermost_member() {
    for (text, sentence) in [
        (
            r#"{"outer":[{"a":"x","b":[]},{"a":1,"b":[]}]}"#,
            "`m`: `outer[1].a`: invalid type: integer `1`, expected a string",
        ),
        (r#"{"outer":[{"a":"x","b":[1,2,"3"]}]}"#, "`m`: `outer[0].b[2]`: invalid type: string \"3\", expected u8"),
        (r#"{"outer":[{"a":"x"}]}"#, "`m`: `outer[0]`: missing field `b`"),
        (r#"{"outer":{}}"#, "`m`: `outer`: invalid type: map, expected a sequence"),
        (r#"{"outer":[],"count":256}"#, "`m`: `count`: invalid value: integer `256`, expected u8"),
        ("{\n \"outer\": [],\n \"co\\u0075nt\": [[]]\n}", "`m`: `count`: invalid type: sequence, expected u8"),
        (r#"{"count":1}"#, "`m`: missing field `outer`"),
        (r#"{"outer":[{"a":"x","b":[]}],"count":{}}"#, "`m`: `count`: invalid type: map, expected u8"),
        (r"7", "`m`: the parameters must be an object"),
        (r#"[[], 1]"#, "`m`: the parameters must be an object"),
    ] {
        assert_eq!(refused::<Nested>(text), sentence, "{text}");
    }
}

#[test]
fn an_error_of_the_type_itself_never_names_the_wrong_member() {
    let text = r#"{"cwd":"/p","mcpServers":[{"name":"b","command":5,"args":[],"env":[]}, {"name":"a"}]}"#;
    let sentence = refused::<NewSessionRequest>(text);
    assert!(sentence.starts_with("`m`: `mcpServers`: "), "{sentence}");
}

#[test]
fn missing_params_count_as_an_empty_object() {
    #[derive(Deserialize)]
    struct Nothing {}
    for params in [None, Some("null"), Some("{}"), Some(r#"{"unknown":1}"#)] {
        assert!(acp::parse::<Nothing>("logout", &Params::new(params)).is_ok());
    }
}

#[test]
fn schema_types_name_their_members_too() {
    let text = r#"{"sessionId":"s","prompt":[{"type":"text","text":"a"},{"type":"hologram"}]}"#;
    let sentence = refused::<PromptRequest>(text);
    assert!(sentence.contains("`prompt[1].type`") && sentence.contains("hologram"), "{sentence}");
    let sentence = refused::<SetSessionModeRequest>(r#"{"sessionId":"s","modeId":null}"#);
    assert!(sentence.contains("`modeId`"), "{sentence}");
}

#[test]
fn messages_are_queued_by_the_session_they_name() {
    let queue = |text| acp::session_queue("any", &Params::new(text));
    assert_eq!(queue(Some(r#"{"x":[{}],"sessionId":"s"}"#)).as_deref(), Some("s"));
    for none in [None, Some("null"), Some("[]"), Some("{}"), Some(r#"{"sessionId":1}"#)] {
        assert_eq!(queue(none), None);
    }
}
