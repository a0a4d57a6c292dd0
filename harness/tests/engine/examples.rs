//! The example plugins, run: what their pages promise is what happens.
//!
//! The tally is pre, guard, wrapper, body, post, finalizer, observer.

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::Plugin;
use sluice_harness::context::Rank;
use sluice_harness::json::Json;
use sluice_harness::registry;
use sluice_harness::tool::{Access, CallFacts, ToolFailure};

use crate::kit::{Custom, allow, one, ready};
use crate::rig::{Rig, answers, text};

#[path = "../../../examples/custom_tool.rs"]
#[expect(dead_code, reason = "its `main` belongs to the example")]
mod custom_tool;
#[path = "../../../examples/invariant_guard.rs"]
#[expect(dead_code, reason = "its `main` belongs to the example")]
mod invariant_guard;
#[path = "../../../examples/permission_gate.rs"]
#[expect(dead_code, reason = "its `main` belongs to the example")]
mod permission_gate;
#[path = "../../../examples/timeout.rs"]
#[expect(dead_code, reason = "its `main` belongs to the example")]
mod timeout;

const ALL: [usize; 7] = [1; 7];

/// A tool that says what it does to a file.
fn touches(rig: &Rig, path: &'static str, access: Access) {
    let mut tool = Custom::new("touch", &rig.counts, answers("touched"));
    tool.facts = Box::new(move |_| CallFacts { paths: vec![(path.into(), access)], ..CallFacts::default() });
    registry::register(&rig.root, Arc::new(tool)).unwrap();
}

#[tokio::test]
async fn the_permission_gate_denies_writes_outside_its_folder_alone() {
    let denied = "Error: /etc/passwd lies outside /srv/site; write there instead";
    for (path, access, said) in [
        ("/srv/site/a", Access::Write, "touched"),
        ("/etc/passwd", Access::Read, "touched"),
        ("/etc/passwd", Access::Write, denied),
    ] {
        let rig = Rig::new();
        touches(&rig, path, access);
        permission_gate::PermissionGate { folder: "/srv/site".into() }.mount(&rig.root).unwrap();
        let one = one(&rig, "touch", "{}").await;
        assert_eq!(text(&one.result), said);
        assert_eq!(rig.counts.tally(), if said == denied { [1, 0, 0, 0, 1, 1, 1] } else { ALL });
    }
}

#[tokio::test]
async fn the_invariant_guard_denies_what_everybody_else_allowed() {
    for (path, denied) in [("/w/.git/config", true), ("/w/.gitignore", false)] {
        let rig = Rig::new();
        touches(&rig, path, Access::Write);
        invariant_guard::HandsOffGit.mount(&rig.root).unwrap();
        rig.pre(Rank::NORMAL, |_, _| ready(Ok(allow())));
        let one = one(&rig, "touch", "{}").await;
        assert_eq!(text(&one.result).starts_with("Error: /w/.git/config belongs to git"), denied);
        assert_eq!(rig.counts.tally(), if denied { [1, 1, 0, 0, 1, 1, 1] } else { ALL });
    }
}

#[tokio::test]
async fn the_timeout_stops_a_call_that_takes_too_long() {
    for slow in [false, true] {
        let rig = Rig::new();
        rig.probe(
            "probe",
            Arc::new(move |body| {
                Box::pin(async move {
                    if slow {
                        body.scene().cancel.cancelled().await;
                        return Err(ToolFailure::new("stopped"));
                    }
                    Ok(Json::of("quick").unwrap())
                })
            }),
        );
        let limit = if slow { Duration::from_millis(20) } else { Duration::from_secs(60) };
        timeout::DefaultTimeout { limit }.mount(&rig.root).unwrap();
        let one = one(&rig, "probe", "{}").await;
        let said = if slow { "Error: probe took longer than 20ms and was stopped" } else { "quick" };
        assert_eq!(text(&one.result), said);
        assert_eq!(rig.counts.tally(), ALL);
    }
}

#[tokio::test]
async fn the_custom_tool_counts_words() {
    let rig = Rig::new();
    registry::register(&rig.root, Arc::new(custom_tool::WordCount)).unwrap();
    let counted = one(&rig, "WordCount", r#"{"text":"three small words"}"#).await;
    assert_eq!(text(&counted.result), "3 words");
    let refused = one(&rig, "WordCount", r#"{"txt":"x"}"#).await;
    assert_eq!(refused.code(), Some("INVALID_ARGS"));
}
