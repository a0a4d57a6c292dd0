//! Tables of matchers, as captured from both programs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "test code")]

use super::{Match, Matcher, PatternFault};

const TRIED: &[Option<&str>] = &[
    None,
    Some(""),
    Some("*"),
    Some("Bash"),
    Some("bash"),
    Some("Bas"),
    Some("Bash|Read"),
    Some("Bash, Read"),
    Some(" Bash "),
    Some("Read"),
    Some("B.*"),
    Some("^Bash$"),
    Some("ash$"),
    Some(".*"),
    Some("Ba[s]h"),
    Some("["),
    Some("(?i)bash"),
    Some("Task"),
    Some("Agent"),
    Some("Bash|"),
    Some("Write|Ba.h"),
    Some("!Read"),
    Some("*Bash"),
    Some("Bash(touch *)"),
    Some("mcp__srv"),
    Some("mcp__srv__.*"),
    Some("mcp__srv__echo"),
    Some("mcp__.*__echo"),
    Some("mcp__srv__*"),
    Some("mcp__*"),
];

#[track_caller]
fn claude(subjects: &[&str], fired: &[Option<&str>]) {
    for tried in TRIED {
        let expected = if fired.contains(tried) { Match::Yes } else { Match::No };
        assert_eq!(Matcher::claude(*tried).0.matches(subjects), expected, "{tried:?} against {subjects:?}");
    }
}

#[test]
fn claude_matchers_fire_as_captured_for_bash() {
    claude(
        &["Bash"],
        &[
            None,
            Some(""),
            Some("*"),
            Some("Bash"),
            Some("Bash|Read"),
            Some("Bash, Read"),
            Some(" Bash "),
            Some("B.*"),
            Some("^Bash$"),
            Some("ash$"),
            Some(".*"),
            Some("Ba[s]h"),
            Some("Bash|"),
            Some("Write|Ba.h"),
        ],
    );
}

#[test]
fn claude_matchers_fire_as_captured_for_an_mcp_tool() {
    claude(
        &["mcp__srv__echo"],
        &[
            None,
            Some(""),
            Some("*"),
            Some(".*"),
            Some("mcp__srv__.*"),
            Some("mcp__srv__echo"),
            Some("mcp__.*__echo"),
            Some("mcp__srv__*"),
            Some("mcp__*"),
        ],
    );
}

#[test]
fn claude_matchers_fire_as_captured_for_an_agent_by_its_old_name() {
    claude(&["Agent", "Task"], &[None, Some(""), Some("*"), Some(".*"), Some("Task"), Some("Agent")]);
}

#[test]
fn claude_lists_split_on_bars_and_commas_alike() {
    for text in ["Write|Edit", "Write,Edit", "Write, Edit"] {
        let (matcher, fault) = Matcher::claude(Some(text));
        assert_eq!(fault, None);
        assert_eq!(matcher.matches(&["Edit"]), Match::Yes, "{text}");
        assert_eq!(matcher.matches(&["Bash"]), Match::No, "{text}");
    }
}

#[test]
fn patterns_that_javascript_refuses_never_match_and_are_named() {
    for text in ["[", "(?i)bash", "*Bash", "Bash(", "a)", "(?P<n>x)", "a**", "x\\"] {
        let (matcher, fault) = Matcher::claude(Some(text));
        assert!(matches!(fault, Some(PatternFault::Refused(_))), "{text}: {fault:?}");
        assert_eq!(matcher.matches(&["Bash"]), Match::No, "{text}");
    }
}

#[test]
fn javascript_only_spellings_keep_their_meaning() {
    for (text, subject, expected) in [
        ("^[^]+$", "Bash", Match::Yes),
        ("^Ba[]", "Bash", Match::No),
        ("^a{$", "a{", Match::Yes),
        ("^x]$", "x]", Match::Yes),
        ("^\\w+\\d$", "Tool7", Match::Yes),
        ("^(?!Bash$).+", "Read", Match::Yes),
        ("^(?!Bash$).+", "Bash", Match::No),
        ("^(a)\\1$", "aa", Match::Yes),
        ("^[a&&b]$", "&", Match::Yes),
        ("^Bash\\z", "Bash", Match::No),
        ("^\\x42ash$", "Bash", Match::Yes),
    ] {
        let (matcher, fault) = Matcher::claude(Some(text));
        assert_eq!(fault, None, "{text}");
        assert_eq!(matcher.matches(&[subject]), expected, "{text} against {subject}");
    }
}

#[test]
fn a_runaway_pattern_is_unclear_and_never_hangs() {
    let (matcher, _) = Matcher::claude(Some("^(?=(a+)+$)(a|a?)+\\1$"));
    let subject = "a".repeat(40) + "!";
    let begun = std::time::Instant::now();
    assert_ne!(matcher.matches(&[&subject]), Match::Yes);
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    let (matcher, _) = Matcher::claude(Some("a.b"));
    assert_eq!(matcher.matches(&[&"x".repeat(600)]), Match::Unclear);
}

#[test]
fn codex_matchers_fire_as_captured() {
    let patch = ["apply_patch", "Edit", "Write"];
    for (text, subjects, expected) in [
        (None, &patch[..], Match::Yes),
        (Some(""), &patch[..], Match::Yes),
        (Some("*"), &patch[..], Match::Yes),
        (Some("^apply_patch$"), &patch[..], Match::Yes),
        (Some("Edit|Write"), &patch[..], Match::Yes),
        (Some("MultiEdit"), &patch[..], Match::No),
        (Some("^Bash$"), &patch[..], Match::No),
        (Some("Bas"), &["Bash"][..], Match::No),
        (Some("bash"), &["Bash"][..], Match::No),
        (Some("Write,Edit"), &patch[..], Match::No),
        (Some("mcp__srv"), &["mcp__srv__echo"][..], Match::No),
        (Some("mcp__srv__.*"), &["mcp__srv__echo"][..], Match::Yes),
    ] {
        assert_eq!(Matcher::codex(text).0.matches(subjects), expected, "{text:?}");
    }
    assert!(matches!(Matcher::codex(Some("(?=x)")).1, Some(PatternFault::Refused(_))));
    assert!(matches!(Matcher::codex(Some("[")).1, Some(PatternFault::Refused(_))));
}
