//! What the lossless reader keeps and what it refuses.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::{Json, JsonFault, MAX_DEPTH};

#[test]
fn r_036_digits_key_order_and_text_survive() {
    for (given, kept) in [
        (r#"{ "b" : 1.10 , "a": 12345678901234567890123 }"#, r#"{"b":1.10,"a":12345678901234567890123}"#),
        ("9007199254740993", "9007199254740993"),
        (r#""h\u00e9 \u2028""#, "\"hé \u{2028}\""),
        ("[ ]", "[]"),
        ("{\n}", "{}"),
        ("1E5", "1E5"),
        ("0e9", "0e9"),
    ] {
        assert_eq!(Json::parse(given).unwrap().text(), kept);
    }
}

#[test]
fn r_036_lossy_text_is_refused() {
    for given in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"\u0061":2}"#,
        "-0",
        "-0.0",
        "1e400",
        "1e-400",
        r#""\ud800""#,
        r#""\udc00\ud800""#,
        "NaN",
        "01",
        "1.",
        "[1,]",
        "{\"a\":1,}",
        "\"a\nb\"",
        "1 2",
        "",
        "tru",
        "{a:1}",
    ] {
        assert!(Json::parse(given).is_err(), "{given} was taken");
    }
    assert!(matches!(Json::parse_bytes(b"\"\xff\""), Err(JsonFault::NotUtf8 { at: 1 })));
}

#[test]
fn r_024_depth_is_capped_without_a_stack_overflow() {
    let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert!(Json::parse(&deep(MAX_DEPTH)).is_ok());
    assert!(matches!(Json::parse(&deep(MAX_DEPTH + 1)), Err(JsonFault::Depth { .. })));
    assert!(matches!(Json::parse(&deep(1_000_000)), Err(JsonFault::Depth { .. })));
}

#[test]
fn r_024_the_deepest_value_survives_an_envelope_and_can_be_looked_at() {
    let text = format!(r#"{{"a":{}1{}}}"#, "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
    let json = Json::parse(&text).unwrap();
    let enclosed = Json::of(&std::collections::BTreeMap::from([("data", vec![&json])])).unwrap();
    let back: std::collections::BTreeMap<String, Vec<Json>> = enclosed.decode().unwrap();
    assert_eq!(back["data"][0], json);
    let mut seen = &json.view()["a"];
    for _ in 0..MAX_DEPTH - 1 {
        seen = &seen[0];
    }
    assert_eq!(seen, 1);
}

#[test]
fn a_view_shows_every_kind_of_value() {
    let text = r#"{"s":"h\"é","n":[0,-1,1.5,18446744073709551615,1e3],"t":true,"f":false,"z":null,"o":{}}"#;
    assert_eq!(*Json::parse(text).unwrap().view(), serde_json::from_str::<serde_json::Value>(text).unwrap());
}

#[test]
fn r_036_non_finite_floats_are_an_error_never_null() {
    assert!(Json::of(&f64::NAN).is_err());
    assert!(Json::of(&vec![1.0, f64::INFINITY]).is_err());
    assert!(Json::of(&Some(f32::NEG_INFINITY)).is_err());
    assert_eq!(Json::of(&Option::<f64>::None).unwrap().text(), "null");
}

#[test]
fn an_object_is_edited_in_place_and_keeps_the_digits_of_the_rest() {
    let json = Json::parse(r#"{"file_path":"a","n":1.50,"z":null}"#).unwrap();
    let mut object = json.object().unwrap();
    object.put("file_path", "/p/a").unwrap();
    object.put("new", &false).unwrap();
    assert_eq!(object.to_json().text(), r#"{"file_path":"/p/a","n":1.50,"z":null,"new":false}"#);
    assert!(Json::parse("[1]").unwrap().object().is_none());
}
