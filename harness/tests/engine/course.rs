//! Turns from the prompt to their end.

use sluice_harness::agent::{CompletedHow, TurnEnd};
use sluice_harness::cancel::Cancel;

use crate::rig::{Play, Rig, answers, calls, kinds, prompt, results, text};

#[tokio::test]
async fn r_176_a_plain_turn_writes_its_events_in_order() {
    let rig = Rig::new();
    rig.probe("probe", answers("ok"));
    rig.plays([Play::Calls(vec![("c1", "probe", r#"{"n": 1.0}"#)]), Play::Text("done")]);
    let agent = rig.agent();
    let report = prompt(&agent, &Cancel::new()).await;
    assert_eq!(report.end, TurnEnd::Completed { how: CompletedHow::Normal, note: None });
    assert_eq!((report.text.as_str(), report.steps), ("done", 2));
    assert_eq!(
        kinds(&agent),
        [
            "turn/start", "prompt/received", "step/start", "user/message", "request/header", "request/sent",
            "assistant/message", "tool/call", "tool/result", "step/end", "step/start", "request/sent",
            "assistant/message", "step/end", "turn/end",
        ]
    );
    assert_eq!(rig.counts.tally(), [1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(calls(&agent)[0].arguments, r#"{"n": 1.0}"#);
    assert_eq!(calls(&agent)[0].input.as_ref().unwrap().text(), r#"{"n":1.0}"#);
    assert_eq!(text(&results(&agent)[0]), "ok");
}
