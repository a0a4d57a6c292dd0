//! The subset by table: what compiles, what is refused and where, what a value violates and in which order.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use super::{ArgumentSchema, ForeignSchema, Schema};
use crate::json::Json;

#[track_caller]
fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

#[track_caller]
fn refused(schema: &str) -> Vec<String> {
    Schema::compile(&json(schema)).expect_err(schema).iter().map(ToString::to_string).collect()
}

#[track_caller]
fn check(schema: &str, value: &str, expected: &[&str]) {
    let schema = Schema::compile(&json(schema)).unwrap_or_else(|e| panic!("{schema}: {e:?}"));
    assert_eq!(schema.validate_as("arguments", &json(value)), expected, "{value}");
}

const OPEN: &str = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]}"#;
const CLOSED: &str = r#"{"type":"object","additionalProperties":false,"required":["z","a"],
    "properties":{"a":{"type":"string"},"b":{"type":"array","items":{"type":"integer"}},"z":{"type":"boolean"}}}"#;

#[test]
fn r_020_unknown_keywords_are_refused_wherever_they_stand() {
    for (schema, at) in [
        (r#"{"type":"string","pattern":"x"}"#, "schema.pattern"),
        (r#"{"type":"string","minLength":1}"#, "schema.minLength"),
        (r#"{"type":"string","format":"uri"}"#, "schema.format"),
        (r#"{"$ref":"x"}"#, "schema.$ref"),
        (r#"{"anyOf":[{},{}]}"#, "schema.anyOf"),
        (r#"{"type":"object","properties":{"a":{"type":"number","minimum":0}}}"#, "schema.properties.a.minimum"),
        (r#"{"type":"array","items":{"not":{}}}"#, "schema.items.not"),
        (r#"{"oneOf":[{},{"nullable":true}]}"#, "schema.oneOf[1].nullable"),
        (r#"{"description":1}"#, "schema.description"),
        (r#"{"title":null}"#, "schema.title"),
        (r#"{"examples":1}"#, "schema.examples"),
    ] {
        let said = refused(schema);
        assert!(said.len() == 1 && said[0].starts_with(at), "{schema}: {said:?}");
    }
    check(r#"{"description":"d","title":"t","default":{"x":1},"examples":[1,null]}"#, "1", &[]);
}

#[test]
fn r_021_a_type_is_one_word_and_its_absence_means_any_json() {
    for value in ["null", "true", "1", "1.5", "\"a\"", "[]", "{}"] {
        check("{}", value, &[]);
    }
    assert!(refused(r#"{"type":["string","null"]}"#)[0].starts_with("schema.type: must be a single string"));
    assert!(refused(r#"{"type":"any"}"#)[0].starts_with("schema.type: `any` is no type"));
    assert_eq!(refused(r#"{"enum":[1],"required":[]}"#).len(), 2);
    assert!(refused("true")[0].starts_with("schema: a schema must be an object"));
}

#[test]
fn r_022_exactly_one_branch_must_match_and_the_count_is_told() {
    let schema = r#"{"oneOf":[{"type":"integer"},{"type":"number"},{"type":"string"}]}"#;
    check(schema, "\"a\"", &[]);
    check(schema, "1.5", &[]);
    check(schema, "1", &["arguments must match exactly one of 3 forms, and matches 2"]);
    check(schema, "null", &["arguments must match exactly one of 3 forms, and matches 0"]);
    assert!(refused(r#"{"oneOf":[{}]}"#)[0].starts_with("schema.oneOf: needs at least two"));
    assert!(refused(r#"{"oneOf":{}}"#)[0].starts_with("schema.oneOf: must be an array"));
    assert_eq!(refused(r#"{"type":"string","enum":["a"],"oneOf":[{},{}]}"#).len(), 2);
}

#[test]
fn r_023_each_clause_is_refused_and_all_are_listed_together() {
    for (schema, at) in [
        (r#"{"type":"object","required":["a"]}"#, "schema.required[0]: `a` is not among"),
        (r#"{"type":"object","required":[1]}"#, "schema.required[0]"),
        (r#"{"type":"object","required":"a"}"#, "schema.required"),
        (r#"{"type":"object","properties":[]}"#, "schema.properties"),
        (r#"{"type":"object","additionalProperties":{}}"#, "schema.additionalProperties"),
        (r#"{"type":"string","enum":[]}"#, "schema.enum"),
        (r#"{"type":"string","enum":["a",1]}"#, "schema.enum[1]: is an integer where a string"),
        (r#"{"type":"integer","enum":[1.5]}"#, "schema.enum[0]"),
        (r#"{"type":"string","const":1}"#, "schema.const"),
        (r#"{"type":"string","enum":["a"],"const":"b"}"#, "schema.const: is not among"),
        (r#"{"type":"object","enum":[{}]}"#, "schema.enum"),
        (r#"{"type":"array","const":[]}"#, "schema.const"),
        (r#"{"type":"string","items":{}}"#, "schema.items"),
        (r#"{"type":"object","items":{}}"#, "schema.items"),
        (r#"{"type":"array","properties":{}}"#, "schema.properties"),
        (r#"{"type":"string","additionalProperties":true}"#, "schema.additionalProperties"),
        (r#"{"type":"number","required":[]}"#, "schema.required"),
    ] {
        let said = refused(schema);
        assert!(said.len() == 1 && said[0].starts_with(at), "{schema}: {said:?}");
    }
    let many = refused(
        r#"{"type":"object","pattern":1,"properties":{"a b":{"type":"x"},"c":{"type":"array","enum":[1]}},"required":["d","c","c"]}"#,
    );
    let paths: Vec<_> = many.iter().map(|v| v.split(": ").next().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "schema.pattern",
            "schema.properties[\"a b\"].type",
            "schema.properties.c.enum",
            "schema.required[0]",
            "schema.required[2]"
        ]
    );
}

#[test]
fn r_024_schemas_and_values_as_deep_as_json_may_be_are_walked() {
    let depth = 60;
    let schema = format!("{}{{}}{}", r#"{"type":"array","items":"#.repeat(depth), "}".repeat(depth));
    check(&schema, &format!("{}1{}", "[".repeat(depth), "]".repeat(depth)), &[]);
    let branches = format!("{}{{\"type\":\"null\"}}{}", r#"{"oneOf":[{"type":"string"},"#.repeat(50), "]}".repeat(50));
    check(&branches, "null", &[]);
}

#[test]
fn r_025_names_with_a_meaning_elsewhere_are_plain_data() {
    let schema = r#"{"type":"object","additionalProperties":false,"required":["__proto__"],
        "properties":{"__proto__":{"type":"string"},"constructor":{"type":"integer"},"toString":{},"":{}}}"#;
    check(schema, r#"{"__proto__":"x","constructor":1,"toString":null,"":[]}"#, &[]);
    check(
        schema,
        r#"{"constructor":"x","hasOwnProperty":1}"#,
        &[
            "arguments.__proto__ is required",
            "arguments.constructor must be an integer, and is a string",
            "arguments.hasOwnProperty is not a known property",
        ],
    );
}

#[test]
fn r_027_nothing_is_defaulted_or_coerced() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer","default":1}},"required":["a"]}"#;
    check(schema, "{}", &["arguments.a is required"]);
    for (value, fits) in [
        ("1", true),
        ("1.0", true),
        ("10e-1", true),
        ("1e3", true),
        ("0", true),
        ("0.0", true),
        ("-5.00", true),
        ("123456789012345678901234567890", true),
        ("1.5", false),
        ("1e-1", false),
        ("9007199254740993.5", false),
        ("\"1\"", false),
        ("true", false),
        ("null", false),
    ] {
        let schema = Schema::compile(&json(r#"{"type":"integer"}"#)).unwrap();
        assert_eq!(schema.validate(&json(value)).is_empty(), fits, "{value}");
    }
}

#[test]
fn r_023_constants_compare_by_exact_value_and_not_by_spelling() {
    let schema = r#"{"type":"number","enum":[9007199254740993,1.50,1e2]}"#;
    for value in ["9007199254740993", "9007199254740993.0", "1.5", "100", "1e2", "10.0e1"] {
        check(schema, value, &[]);
    }
    for value in ["9007199254740992", "1.51", "-100", "1000"] {
        check(schema, value, &["arguments must be one of 9007199254740993, 1.5, 100"]);
    }
    check(r#"{"type":"string","const":"a"}"#, r#""\u0061""#, &[]);
    check(r#"{"type":"string","const":"a"}"#, "\"b\"", &["arguments must be \"a\""]);
}

#[test]
fn r_028_violations_come_required_first_then_declared_then_extra() {
    check(OPEN, r#"{"b":1,"more":2}"#, &[]);
    check(OPEN, r#"{"a":1}"#, &["arguments.b is required", "arguments.a must be a string, and is an integer"]);
    check(OPEN, "[]", &["arguments must be an object, and is an array"]);
    check(
        CLOSED,
        r#"{"q x":1,"b":[1,"x",2.5],"a":null,"p":1}"#,
        &[
            "arguments.z is required",
            "arguments.a must be a string, and is null",
            "arguments.b[1] must be an integer, and is a string",
            "arguments.b[2] must be an integer, and is a number",
            "arguments[\"q x\"] is not a known property",
            "arguments.p is not a known property",
        ],
    );
}

#[test]
fn a_foreign_schema_may_use_all_of_its_draft() {
    let schema = ForeignSchema::compile(&json(
        r##"{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"^x"},"b":{"$ref":"#/$defs/n"}},
            "$defs":{"n":{"minimum":3}},"required":["a"]}"##,
    ))
    .unwrap();
    assert!(schema.violations(&json(r#"{"a":"xy","b":3}"#)).is_empty());
    assert_eq!(schema.violations(&json(r#"{"a":"y","b":1}"#)).len(), 2);
    let either = ArgumentSchema::Foreign(schema);
    let said = either.validate_as("arguments", &json(r#"{"a":"y"}"#));
    assert!(said[0].starts_with("arguments/a: "), "{said:?}");
}

#[test]
fn a_foreign_schema_that_names_no_draft_is_read_as_2020_12() {
    let schema = r#"{"prefixItems":[{"type":"string"}]}"#;
    assert!(!ForeignSchema::compile(&json(schema)).unwrap().violations(&json("[1]")).is_empty());
    let old = r#"{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}]}"#;
    assert!(ForeignSchema::compile(&json(old)).unwrap().violations(&json("[1]")).is_empty());
}

#[test]
fn a_foreign_schema_that_does_not_compile_or_points_elsewhere_is_refused() {
    for schema in [
        r#"{"type":"nonsense"}"#,
        r#"{"$ref":"https://example.com/s.json"}"#,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r##"{"$ref":"#/missing"}"##,
        r#"{"pattern":"("}"#,
        r#"{"required":1}"#,
    ] {
        assert!(ForeignSchema::compile(&json(schema)).is_err(), "{schema}");
    }
}
