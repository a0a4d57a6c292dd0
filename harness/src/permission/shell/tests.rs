//! How lines split into commands, as text: one command per line, nested ones indented, then the flags.
#![allow(clippy::unwrap_used, reason = "tests")]

use expect_test::{Expect, expect};

use super::scan;

fn check(line: &str, expected: &Expect) {
    let scanned = scan(line);
    let mut out = String::new();
    for command in &scanned.commands {
        let words: Vec<_> = command
            .assignments
            .iter()
            .chain(&command.words)
            .map(|w| format!("{}{}{}", w.text, if w.dynamic { "†" } else { "" }, if w.glob { "*" } else { "" }))
            .collect();
        let redirects: Vec<_> = command.redirects.iter().map(|r| format!(" {:?}:{}", r.flow, r.target.text)).collect();
        out += &format!("{}{}{}\n", if command.nested { "  " } else { "" }, words.join("¦"), redirects.concat());
    }
    let flags = scanned.flags;
    for (name, set) in [
        ("substitution", flags.substitution),
        ("control-flow", flags.control_flow),
        ("redirection", flags.redirection),
        ("unclear", flags.unclear),
    ] {
        if set {
            out += &format!("[{name}]\n");
        }
    }
    expected.assert_eq(&out);
}

#[test]
fn separators_split_and_quotes_do_not() {
    check(
        "a b; c && d || e | f & g\nh",
        &expect![[r#"
        a¦b
        c
        d
        e
        f
        g
        h
    "#]],
    );
    check(
        r#"echo 'a;b' "c && d" e\;f"#,
        &expect![[r#"
        echo¦a;b¦c && d¦e;f
    "#]],
    );
    check(
        "A=1 B='x y' run a=b",
        &expect![[r#"
        A=1¦B=x y¦run¦a=b
    "#]],
    );
    check(
        "(a; { b; }) | c",
        &expect![[r#"
        a
        b
        c
    "#]],
    );
    check(
        "a \\\n b # c; d\ne",
        &expect![[r#"
        a¦b
        e
    "#]],
    );
}

#[test]
fn inner_commands_are_found() {
    check(
        r#"echo "$(a "$(b)")" `c \`d\`` <(e) ${x:-$(f)} $((1 + $(g)))"#,
        &expect![[r#"
          b
          a¦$(b)†
          d
          c¦`d`†
          e
          f
          g
          1¦+¦$(g)†
        echo¦$(a "$(b)")†¦`c \`d\``†¦<(e)†¦${x:-$(f)}†¦$((1 + $(g)))†
        [substitution]
    "#]],
    );
}

#[test]
fn redirections_are_told_from_harmless_ones() {
    check(
        "a > f 2>> g < h &> i",
        &expect![[r#"
        a Out:f Out:g In:h Out:i
        [redirection]
    "#]],
    );
    check(
        "a 2>&1 >/dev/null 2> /dev/null <&- 3>&-",
        &expect![[r#"
        a
    "#]],
    );
    check(
        "a <<E\nb\nE",
        &expect![[r#"
        a In:E
        b
        E
        [redirection]
        [unclear]
    "#]],
    );
}

#[test]
fn control_flow_is_seen_through() {
    check(
        "for f in *; do rm $f; done",
        &expect![[r#"
        rm¦$f†
        [control-flow]
    "#]],
    );
    check(
        "if ! a; then b; else c; fi",
        &expect![[r#"
        a
        b
        c
        [control-flow]
    "#]],
    );
    check(
        "case x in y) z;; esac",
        &expect![[r#"
        z
        [control-flow]
        [unclear]
    "#]],
    );
}

#[test]
fn expansions_mark_their_words() {
    check(
        r#"a $X "$Y" '$Z' x$ {b,c} {} *.rs '*' ~/d $'\x72m' !! [ a ]"#,
        &expect![[r#"
        a¦$X†¦$Y†¦$Z¦x$¦{b,c}†¦{}¦*.rs*¦*¦~/d†¦rm†¦!!†¦[¦a¦]
    "#]],
    );
}

#[test]
fn what_is_not_understood_is_unclear() {
    for line in [
        "a 'b", "a \"b", "a `b", "a $(b", "a ${b", "(a", "a)", "a (b)", "f() { a; }", "a <<E", "a >", "a &&", "| a",
        "a;;b", "a\u{0}", "a\\",
    ] {
        assert!(scan(line).flags.unclear, "{line:?}");
    }
}
