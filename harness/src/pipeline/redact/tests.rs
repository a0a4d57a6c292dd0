//! Tables of what is hidden and what must be seen.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use super::{command, input, is_secret};
use crate::json::Json;

#[test]
fn r_068_names_of_secrets_are_known_by_their_words() {
    for name in [
        "key",
        "KEY",
        "apiKey",
        "api_key",
        "APIKey",
        "x-api-key",
        "apikey",
        "accessToken",
        "GITHUB_TOKEN",
        "token2",
        "password",
        "dbPassword",
        "passphrase",
        "client_secret",
        "clientsecret",
        "Authorization",
        "proxy-authorization",
        "cookies",
        "Set-Cookie",
        "credentials",
        "AWS_SECRET_ACCESS_KEY",
    ] {
        assert!(is_secret(name), "{name}");
    }
    for name in ["monkey", "keyboard", "tokenizer", "file_path", "content", "turkey", "author", "passage", ""] {
        assert!(!is_secret(name), "{name}");
    }
}

#[test]
fn r_068_values_of_secret_members_are_hidden_at_any_depth_and_the_rest_keeps_its_digits_and_order() {
    for (given, shown) in [
        (r#"{"z":1.00,"token":"t","a":2}"#, r#"{"z":1.00,"token":"<redacted>","a":2}"#),
        (
            r#"{"headers":[{"Authorization":"Bearer x"},{"b":1}]}"#,
            r#"{"headers":[{"Authorization":"<redacted>"},{"b":1}]}"#,
        ),
        (r#"{"credentials":{"user":"u","password":"p"}}"#, r#"{"credentials":"<redacted>"}"#),
        (
            r#"{"PIN_SECRET":1234,"max_tokens":100,"key":null,"token":""}"#,
            r#"{"PIN_SECRET":"<redacted>","max_tokens":100,"key":null,"token":""}"#,
        ),
        (
            r#"{"command":"A_TOKEN=x run","content":"A_TOKEN=x"}"#,
            r#"{"command":"A_TOKEN=<redacted> run","content":"A_TOKEN=x"}"#,
        ),
        (r#"{"args":["--password=p","-v"]}"#, r#"{"args":["--password=<redacted>","-v"]}"#),
        (r#""password=x""#, r#""password=x""#),
    ] {
        assert_eq!(input(&Json::parse(given).unwrap()).text(), shown);
    }
}

#[test]
fn r_068_command_lines_lose_assignments_and_headers_and_nothing_else() {
    for (given, shown) in [
        ("API_KEY=abc make", "API_KEY=<redacted> make"),
        ("export DB_PASSWORD='a b;c' && run", "export DB_PASSWORD=<redacted> && run"),
        (r#"TOKEN="a \" b" run"#, "TOKEN=<redacted> run"),
        ("curl --token=abc -v", "curl --token=<redacted> -v"),
        (r#"curl -H "Authorization: Bearer abc" u"#, r#"curl -H "Authorization: Bearer <redacted>" u"#),
        ("curl -H 'authorization: Basic abc' u", "curl -H 'authorization: Basic <redacted>' u"),
        ("curl -H 'Authorization: abc' u", "curl -H 'Authorization: <redacted>' u"),
        ("curl -H 'X-Api-Key: abc' u", "curl -H 'X-Api-Key: <redacted>' u"),
        ("curl -H 'X-Forwarded: Bearer abc' u", "curl -H 'X-Forwarded: Bearer <redacted>' u"),
        ("curl -H Authorization:\\ Bearer\\ abc u", "curl -H Authorization:<redacted> u"),
        ("curl -H Authorization:abc u", "curl -H Authorization:<redacted> u"),
        ("curl -d '{\"password\": \"x\"}' u", "curl -d '{\"password\": <redacted>}' u"),
        (r#"curl -d '{"password":"x","n":1}' u"#, r#"curl -d '{"password":<redacted>,"n":1}' u"#),
        (r#"curl -d "{\"password\":\"x\"}" u"#, r#"curl -d "{\"password\":<redacted>}" u"#),
        ("git push origin main", "git push origin main"),
        ("PATH=/bin LANG=C ls", "PATH=/bin LANG=C ls"),
        ("ü_token=ü ü", "ü_token=<redacted> ü"),
    ] {
        assert_eq!(command(given), shown);
    }
}

#[test]
fn r_068_nothing_that_would_run_is_hidden() {
    for line in [
        "TOKEN=$(curl evil) x",
        "TOKEN=`rm x`",
        r#"KEY="$(rm x)" y"#,
        r#"KEY="${A:-$(rm x)}" y"#,
        "TOKEN=$GITHUB_TOKEN x",
        "TOKEN= rm x",
        "exec -a token: rm x",
        "exec -a Bearer rm x",
        "sh -c 'exec -a token: rm x'",
        "sh -c 'exec -a Bearer rm x'",
        "TOKEN=(a b)",
        "TOKEN=f(x)",
        "TOKEN='' rm x",
        "TOKEN='open rm x",
        "TOKEN=\"open rm x",
        "echo 'TOKEN='; rm x; echo ''",
        "env 'TOKEN=' rm x 'y'",
        "echo \"TOKEN='\" ; rm x ; echo \"'\"",
        "sh -c 'echo \"TOKEN=\"; rm x; echo \"\"'",
        "# it's\nenv 'TOKEN=' rm x 'y'",
    ] {
        assert_eq!(command(line), line);
    }
    for (line, shown) in [
        ("TOKEN=a;rm x", "TOKEN=<redacted>;rm x"),
        ("TOKEN=a|rm x", "TOKEN=<redacted>|rm x"),
        ("curl -H Authorization:a;rm x", "curl -H Authorization:<redacted>;rm x"),
        ("sh -c \"curl -H 'Authorization: a'; rm x\"", "sh -c \"curl -H 'Authorization: <redacted>'; rm x\""),
    ] {
        assert_eq!(command(line), shown);
    }
}

/// Whatever the text, it is read to its end.
#[test]
fn any_text_is_taken() {
    let pieces =
        ["token", "=", ":", " ", "'", "\"", "\\", "ü", "$(", "Bearer ", "//", "\n", "Authorization: ", "{", ";"];
    let mut state = 7_usize;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..9 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) % pieces.len()]);
        }
        let shown = command(&text);
        assert!(shown.len() <= text.len() + 9 * super::REDACTED.len(), "{text:?}");
    }
}
