//! What rules say of calls, and what is no rule.

use super::super::{Behaviour, Mode, Rule};
use super::{cases, facts_of, judge, store, texts, word};

/// Whether a deny rule, in a mode that allows all else, denies.
fn denies(rule: &str, tool: &str, what: &str) -> bool {
    word(&judge(&store(Mode::BypassPermissions, &[(Behaviour::Deny, rule)]), tool, what)) == "deny-rule"
}

/// Whether an allow rule, in a mode that denies all else, allows.
fn allows(rules: &[&str], tool: &str, what: &str) -> bool {
    let rules: Vec<_> = rules.iter().map(|rule| (Behaviour::Allow, *rule)).collect();
    word(&judge(&store(Mode::DontAsk, &rules), tool, what)) == "run"
}

#[test]
fn a_command_deny_rule_hits_and_misses_by_the_table() {
    for case in cases("command-rules.json").as_array().unwrap() {
        let rule = case["rule"].as_str().unwrap();
        for key in ["hits", "hits_beyond_if"] {
            for command in texts(case, key) {
                assert!(denies(rule, "Bash", command), "{rule} should deny {command:?}");
            }
        }
        for key in ["misses", "misses_beyond_if"] {
            for command in texts(case, key) {
                assert!(!denies(rule, "Bash", command), "{rule} should not deny {command:?}");
            }
        }
    }
}

#[test]
fn a_path_rule_hits_and_misses_by_the_table() {
    for case in cases("path-rules.json").as_array().unwrap() {
        let (rule, tool) = (case["rule"].as_str().unwrap(), case["tool"].as_str().unwrap());
        for path in texts(case, "hits") {
            assert!(denies(rule, tool, path), "{rule} should deny {tool} of {path}");
        }
        for path in texts(case, "misses") {
            assert!(!denies(rule, tool, path), "{rule} should not deny {tool} of {path}");
        }
    }
}

#[test]
fn a_command_allow_rule_must_cover_every_part() {
    for (rules, command, runs) in [
        (&["Bash(npm *)"][..], "npm test", true),
        (&["Bash(npm:*)"], "npm", true),
        (&["Bash(npm *)"], "npx test", false),
        (&["Bash(npm *)"], "npm test && rm -rf x", false),
        (&["Bash(npm *)"], "npm test\nrm -rf x", false),
        (&["Bash(npm *)"], "npm test & rm x", false),
        (&["Bash(npm *)"], "npm test $(rm x)", false),
        (&["Bash(npm *)"], "npm test `rm x`", false),
        (&["Bash(npm *)"], "npm test <(rm x)", false),
        (&["Bash(npm *)"], "npm test > f", false),
        (&["Bash(npm *)"], "npm test 2>&1", true),
        (&["Bash(npm *)"], "npm test >/dev/null", true),
        (&["Bash(npm *)"], "PATH=. npm test", false),
        (&["Bash(npm *)"], "sudo npm test", false),
        (&["Bash(npm *)"], "./npm test", false),
        (&["Bash(npm *)"], "npm 'test", false),
        (&["Bash(npm *)"], "npm test <<E\nx\nE", false),
        (&["Bash(npm *)"], "npm() { rm x; }", false),
        (&["Bash(npm *)"], "cd src && npm test | head -5", true),
        (&["Bash(npm *)"], "cd .. && npm test", false),
        (&["Bash(npm *)", "Bash(make)"], "npm test && make", true),
        (&["Bash(npm *)", "Bash(git *)"], "npm test && git push; make", false),
        (&["Bash(git push)"], "git push", true),
        (&["Bash(git push)"], "git push origin", false),
        (&["Bash(git push)"], "'git push'", false),
        (&["Bash(* --help)"], "foo --help", true),
        (&["Bash(* --help)"], "$X --help", false),
        (&["Bash(rm a b)"], "rm 'a b'", false),
        (&["Bash(cd *)"], "cd /etc && cat passwd", false),
        (&["Bash(pushd *)"], "pushd /etc; cat passwd", false),
        (&["Bash"], "rm -rf x > f <<E\nE", true),
        (&["Bash(*)"], "rm -rf x", true),
        (&["*"], "rm -rf x", true),
    ] {
        assert_eq!(allows(rules, "Bash", command), runs, "{rules:?} and {command:?}");
    }
}

#[test]
fn an_allow_rule_for_paths_stays_below_its_anchor() {
    for (rule, path, runs) in [
        ("Edit(src/**)", "/p/src/a", true),
        ("Edit(*.ts)", "/p/src/a.ts", true),
        ("Edit(*.ts)", "/home/me/a.ts", false),
        ("Edit(src/**)", "/more/extra/src/a", false),
        ("Edit(//tmp/**)", "/tmp/a", true),
        ("Edit(~/notes/**)", "/home/me/notes/a", true),
        ("Write", "/anywhere", false),
    ] {
        assert_eq!(allows(&[rule], "Edit", path), runs, "{rule} and {path}");
    }
}

#[test]
fn rules_for_other_tools_match_by_name_host_and_word() {
    for (rule, tool, what, hit) in [
        ("mcp__srv", "mcp__srv__echo", "", true),
        ("mcp__srv__*", "mcp__srv__echo", "", true),
        ("mcp__srv__echo", "mcp__srv__echo", "", true),
        ("mcp__srv__e*", "mcp__srv__echo", "", true),
        ("mcp__srv", "mcp__srv2__echo", "", false),
        ("mcp__srv__echo", "mcp__srv__echo2", "", false),
        ("mcp__*", "mcp__srv__echo", "", true),
        ("mcp__my.box", "mcp__my_box__put", "", true),
        ("mcp__my.box__put", "mcp__my_box__put", "", true),
        ("mcp__my.box__*", "mcp__my_box__put", "", true),
        ("mcp__box__put.it", "mcp__box__put_it", "", true),
        ("mcp__büro__ä/b", "mcp__b_ro____b", "", true),
        ("mcp__my.box", "mcp__my-box__put", "", false),
        ("WebFetch(domain:example.com)", "WebFetch", "https://example.com/x", true),
        ("WebFetch(domain:example.com)", "WebFetch", "https://EXAMPLE.com:443/x", true),
        ("WebFetch(domain:example.com)", "WebFetch", "https://api.example.com/", true),
        ("WebFetch(domain:example.com)", "WebFetch", "https://user@example.com/", true),
        ("WebFetch(domain:example.com)", "WebFetch", "https://example.com.evil.org/", false),
        ("WebFetch(domain:example.com)", "WebFetch", "https://badexample.com/", false),
        ("WebFetch(domain:example.com)", "WebFetch", "nonsense", true),
        ("WebFetch(domain:Example.com.)", "WebFetch", "https://example.com/", true),
        ("WebFetch(domain:127.0.0.1)", "WebFetch", "http://127.0.0.1:8765/", true),
        ("WebFetch(domain:[::1])", "WebFetch", "http://[::1]:80/", true),
        ("WebFetch(domain:::1)", "WebFetch", "http://[::1]/", true),
        ("WebFetch(domain:[2001:db8::1])", "WebFetch", "http://[2001:db8::1]:8080/x", true),
        ("WebFetch(domain:[2001:DB8:0:0::1])", "WebFetch", "http://[2001:db8::1]/", true),
        ("WebFetch(domain:[::ffff:1.2.3.4])", "WebFetch", "http://[::ffff:102:304]/", true),
        ("WebFetch(domain:xn--bcher-kva.test)", "WebFetch", "https://XN--bcher-kva.test./", true),
        ("WebFetch(domain:*)", "WebFetch", "https://example.com/", true),
        ("Task", "Agent", "x", true),
        ("Agent(general-purpose)", "Agent", "general-purpose", true),
        ("Task(general-purpose)", "Agent", "general-purpose", true),
        ("Agent(general-purpose)", "Agent", "other", false),
        ("Skill(foo)", "Skill", "foo", true),
        ("Skill(foo *)", "Skill", "foo", true),
        ("TodoWrite", "TodoWrite", "", true),
        ("Read", "Grep", "/p/a", true),
    ] {
        assert_eq!(denies(rule, tool, what), hit, "{rule} on {tool} {what}");
    }
    for (rule, what, runs) in [
        ("WebFetch(domain:example.com)", "https://example.com/x", true),
        ("WebFetch(domain:example.com)", "https://api.example.com/x", false),
        ("WebFetch(domain:*.example.com)", "https://api.example.com/x", true),
        ("WebFetch(domain:example.com)", "https://evil.org/@example.com", false),
        ("WebFetch(domain:example.com)", "https://evil.org\\@example.com", false),
        ("WebFetch(domain:example.com)", "https://example.com@evil.org/", false),
        ("WebFetch(domain:example.com)", "nonsense", false),
    ] {
        assert_eq!(allows(&[rule], "WebFetch", what), runs, "{rule} and {what}");
    }
}

#[test]
fn a_read_or_edit_deny_rule_reaches_into_shell_lines() {
    for (rule, command, hit) in [
        ("Read(.env)", "cat .env", true),
        ("Read(.env)", "cd sub && cat .env", true),
        ("Read(.env)", "head -5 ./.env | wc", true),
        ("Read(.env)", "grep X --include=a .env", true),
        ("Read(.env)", "git show HEAD:.env", true),
        ("Read(.env)", "xxd < .env", true),
        ("Read(.env)", "sudo cat .env", true),
        ("Read(.env)", "echo .env", false),
        ("Read(.env)", "cat a", false),
        ("Read(~/.ssh/**)", "cat ~/.ssh/id", true),
        ("Read(~/.ssh/**)", "cat /home/me/.ssh/id", true),
        ("Edit(.env)", "echo x > .env", true),
        ("Edit(.env)", "tee -a .env", true),
        ("Edit(.env)", "cat .env", false),
    ] {
        assert_eq!(denies(rule, "Bash", command), hit, "{rule} on {command}");
    }
}

#[test]
fn what_is_no_rule_says_where_it_goes_wrong() {
    for (text, said) in [
        ("", "is empty"),
        ("  ", "is empty"),
        ("Bash(rm *", "opens at character 5"),
        ("Bash(rm *) x", "opens at character 5"),
        ("Bash()", "write `Bash`"),
        ("(rm)", "`(` at character 1"),
        ("!Read", "`!` at character 1"),
        ("Ba sh", "` ` at character 3"),
        ("Bash(a:* b)", "at the end only"),
        ("Bash(:*)", "needs a command"),
        ("WebFetch(example.com)", "domain:"),
        ("WebFetch(domain:http://127.0.0.1)", "without scheme"),
        ("WebFetch(domain:example.com/x)", "without scheme, user and path"),
        ("WebFetch(domain:me@example.com)", "without scheme, user"),
        ("WebFetch(domain:127.0.0.1:8765)", "leave out the port"),
        ("WebFetch(domain:example.com:443)", "leave out the port"),
        ("WebFetch(domain:[::1]:443)", "leave out the port"),
        ("WebFetch(domain:.example.com)", "`*.example.com`"),
        ("WebFetch(domain:bücher.test)", "`xn--` form"),
        ("WebFetch(domain:evil.test/*)", "without scheme"),
        ("WebFetch(domain:a..b)", "it names a host"),
        ("mcp__srv__x(y)", "no parentheses"),
    ] {
        let error = Rule::parse(text).unwrap_err().to_string();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

#[test]
fn always_allow_makes_a_rule_that_covers_the_same_call_and_no_more() {
    for (tool, what, rule) in [
        ("Bash", "npm test", Some("Bash(npm test)")),
        ("Bash", "echo '*' (", None),
        ("Bash", "git log -- '*.rs'", Some("Bash(git log -- '\\*.rs')")),
        ("Bash", "cat <<E\nE", None),
        ("Edit", "/p/src/a", Some("Edit(//p/src/a)")),
        ("mcp__srv__echo", "", Some("mcp__srv__echo")),
    ] {
        let made = Rule::for_call(tool, &facts_of(tool, what));
        assert_eq!(made.as_ref().map(Rule::text), rule, "{tool} {what}");
    }
    assert!(allows(&["Bash(npm test)"], "Bash", "npm test"));
    assert!(!allows(&["Bash(npm test)"], "Bash", "npm test x"));
    assert!(allows(&["Edit(//p/src/a)"], "Edit", "/p/src/a"));
}

#[test]
fn always_for_a_url_means_its_host_and_no_other() {
    let rule = |url: &str| Rule::for_site("WebFetch", url).map(|rule| rule.to_string());
    assert_eq!(rule("https://Docs.Example.com:8443/a?b").as_deref(), Some("WebFetch(domain:docs.example.com)"));
    assert_eq!(rule("https://a*b.com/"), None);
    assert_eq!(rule("nonsense"), None);
    let own = rule("http://[::1]:80/x").unwrap();
    assert!(allows(&[&own], "WebFetch", "http://[::1]/y") && !allows(&[&own], "WebFetch", "http://[::2]/y"));
}
