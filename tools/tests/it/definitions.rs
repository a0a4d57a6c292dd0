//! What holds of every tool's definition.

use std::sync::Arc;

use serde_json::json;
use sluice_harness::content::Block;
use sluice_harness::json::Json;
use sluice_harness::permission::{Behaviour, Rule};
use sluice_harness::tool::{CallKind, CardItem, Concurrency, Effect, Tool};
use sluice_tools::{BashConfig, builtin};

use crate::world::World;

fn tools() -> Vec<Arc<dyn Tool>> {
    builtin(BashConfig::default())
}

fn tool(name: &str) -> Arc<dyn Tool> {
    tools().into_iter().find(|tool| tool.name() == name).unwrap()
}

#[test]
fn the_names_are_claude_codes() {
    let names: Vec<String> = tools().iter().map(|tool| tool.name().to_owned()).collect();
    let expected = [
        "Bash", "BashOutput", "KillShell", "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Glob", "Grep",
        "TodoWrite", "WebFetch", "WebSearch", "AskUserQuestion",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn r_020_every_schema_is_in_the_strict_subset_and_roots_stay_open() {
    // Registering compiles both schemas and refuses whatever is outside the subset.
    drop(World::new());
    for tool in tools() {
        assert!(tool.parameters().view().get("additionalProperties").is_none(), "{}", tool.name());
    }
}

#[test]
fn r_030_presentation_is_soft_with_arguments_that_no_longer_fit() {
    for arguments in [
        "{}",
        "[]",
        "null",
        r#"{"file_path":1,"command":[],"edits":"x","todos":{},"offset":-1,"questions":[1],"url":[]}"#,
    ] {
        let input = Json::parse(arguments).unwrap();
        for tool in tools() {
            let _ = (tool.facts(&input), tool.concurrency(&input), tool.present_call(&input));
            let _ = (tool.render(&input, &input), tool.verdict(&input, &input), tool.meta(&input, &input));
            let _ = tool.present_result(&input, &[Block::text("x")], Some(&input));
        }
    }
}

#[test]
fn facts_tell_policy_what_a_call_touches() {
    let effects: Vec<Effect> = tools().iter().map(|tool| tool.facts(&Json::empty_object()).effect).collect();
    use Effect::{Anything, Edits, Fetches, Reads, Session};
    let expected =
        [Anything, Reads, Session, Reads, Edits, Edits, Edits, Edits, Reads, Reads, Session, Fetches, Fetches, Session];
    assert_eq!(effects, expected);
    let input = Json::parse(r#"{"command":"ls"}"#).unwrap();
    assert_eq!(tool("Bash").facts(&input).command.as_deref(), Some("ls"));
    let parallel: Vec<bool> =
        tools().iter().map(|tool| tool.concurrency(&Json::empty_object()) == Concurrency::Parallel).collect();
    let expected = [false, false, false, true, false, false, false, false, true, true, false, true, true, false];
    assert_eq!(parallel, expected);
}

#[test]
fn a_shell_calls_title_is_its_command_on_one_line() {
    let input = Json::of(&json!({"command": "printf 'a\u{1b}[31mb';\nexit 3", "description": "does things"})).unwrap();
    let card = tool("Bash").present_call(&input);
    assert_eq!(card.title, "printf 'a[31mb'; exit 3");
    assert_eq!(card.kind, CallKind::Execute);
}

#[test]
fn an_edits_card_is_its_replacement_and_a_reads_location_has_its_line() {
    let input = Json::parse(r#"{"file_path":"/p/a","old_string":"x","new_string":"y","offset":5}"#).unwrap();
    let card = tool("Edit").present_call(&input);
    let diff = CardItem::Diff { path: "/p/a".into(), old: Some("x".to_owned()), new: "y".to_owned() };
    assert_eq!(card.items, [diff]);
    assert_eq!(tool("Read").present_call(&input).locations[0].line, Some(5));
}

#[tokio::test]
async fn a_finished_change_shows_the_true_former_and_new_text() {
    let world = World::new();
    let long: String = (1..=1000).map(|n| format!("line {n}\r\n")).collect();
    world.write("a.txt", &long);
    let card_of = |name: &str, done: &crate::world::Done| {
        let input = Json::of(&done.input).unwrap();
        let value = Json::of(done.value.as_ref().unwrap()).unwrap();
        let tool = tool(name);
        tool.present_result(&input, &tool.render(&input, &value), tool.meta(&input, &value).as_ref())
    };
    world.call("Read", &json!({"file_path": "a.txt"})).await.assert_fine();
    let edited =
        world.call("Edit", &json!({"file_path": "a.txt", "old_string": "line 500\n", "new_string": "LINE\n"})).await;
    let diff = CardItem::Diff { path: world.path("a.txt"), old: Some(long), new: world.text("a.txt") };
    assert_eq!(card_of("Edit", &edited).items, [diff]);

    let made = world.call("Write", &json!({"file_path": "n.txt", "content": "new\n"})).await;
    let diff = CardItem::Diff { path: world.path("n.txt"), old: None, new: "new\n".to_owned() };
    assert_eq!(card_of("Write", &made).items, [diff]);
    let over = world.call("Write", &json!({"file_path": "n.txt", "content": "newer\n"})).await;
    let diff = CardItem::Diff { path: world.path("n.txt"), old: Some("new\n".to_owned()), new: "newer\n".to_owned() };
    assert_eq!(card_of("Write", &over).items, [diff]);

    let large = "x".repeat(300 * 1024);
    let made = world.call("Write", &json!({"file_path": "l.txt", "content": large})).await;
    assert!(matches!(card_of("Write", &made).items.as_slice(), [CardItem::Text(_)]));
}

#[tokio::test]
async fn searches_leave_out_what_a_deny_rule_hides() {
    let world = World::new();
    world.write("secret/k.txt", "needle\n");
    world.write("open/k.txt", "needle\n");
    let rule = Rule::parse("Read(./secret/**)").unwrap();
    world.scene.session.permissions.add_rules("test", &world.root, Behaviour::Deny, vec![rule]);
    let open = world.path("open/k.txt").display().to_string();
    let glob = world.call("Glob", &json!({"pattern": "**/*.txt"})).await;
    assert_eq!(glob.text, open);
    let grep = world.call("Grep", &json!({"pattern": "needle"})).await;
    assert_eq!(grep.text, open);
    let grep = world.call("Grep", &json!({"pattern": "needle", "output_mode": "content"})).await;
    assert_eq!(grep.text, format!("{open}:1:needle"));
}
