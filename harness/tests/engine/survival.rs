//! a panic in any seam ends a turn at most, never the loop; the log stays balanced and the next prompt works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluice_harness::agent::{CompletedHow, TurnEnd};
use sluice_harness::cancel::Cancel;
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::log::event::AssistantMessage;
use sluice_harness::point::prompt::PromptSubmit;
use sluice_harness::point::session::SessionStart;
use sluice_harness::point::turn::{TurnContinuation, TurnEnded};
use sluice_harness::seam::live::{LiveEvent, LiveSink, Silent};
use sluice_harness::seam::model::{Model, ModelEvent, ModelFault, ModelStream, StopReason};

use crate::kit::{FnModel, agent_with, assert_balanced, assert_pairs, on, ready, sees};
use crate::rig::{Play, Rig, answers, prompt};

/// Panics the first time.
#[derive(Clone, Default)]
struct Once(Arc<AtomicBool>);

impl Once {
    fn fire(&self) {
        assert!(self.0.swap(true, Ordering::SeqCst), "first time");
    }
}

/// A sink that panics at everything it is told.
struct Rude;

impl LiveSink for Rude {
    fn send(&self, event: LiveEvent) -> sluice_harness::Fut<'_, ()> {
        match event {
            LiveEvent::Text { .. } => Box::pin(async { panic!("rude in flight") }),
            _ => panic!("rude at once"),
        }
    }
}

/// A stream that says something and then panics once, before or while it is polled.
struct Breaks(Once, u8, bool);

impl ModelStream for Breaks {
    fn next(&mut self) -> sluice_harness::Fut<'_, Option<Result<ModelEvent, ModelFault>>> {
        self.1 += 1;
        match self.1 {
            1 => ready(Some(Ok(ModelEvent::Text("half".into())))),
            2 if self.2 => {
                self.0.fire();
                ready(Some(Ok(ModelEvent::Stop(StopReason::EndTurn))))
            }
            2 => {
                let once = self.0.clone();
                Box::pin(async move {
                    once.fire();
                    Some(Ok(ModelEvent::Stop(StopReason::EndTurn)))
                })
            }
            _ => ready(None),
        }
    }
}

#[tokio::test]
async fn r_201_a_panicking_listener_of_any_point_ends_the_turn_at_most() {
    for point in ["prompt", "continuation", "start", "promise", "ended", "live"] {
        let rig = Rig::new();
        rig.probe("probe", answers("ok"));
        let once = Once::default();
        match point {
            "prompt" => on::<PromptSubmit, _>(&rig, Rank::NORMAL, move |_, next| {
                once.fire();
                next.delegate()
            }),
            "continuation" => on::<TurnContinuation, _>(&rig, Rank::NORMAL, move |_, next| {
                once.fire();
                next.delegate()
            }),
            "start" => sees::<SessionStart, _>(&rig, move |_| once.fire()),
            "promise" => sees::<SessionStart, _>(&rig, move |view| {
                let once = once.clone();
                view.promise(
                    "p",
                    Duration::from_secs(60),
                    Box::pin(async move {
                        once.fire();
                        Default::default()
                    }),
                );
            }),
            "ended" => sees::<TurnEnded, _>(&rig, move |_| once.fire()),
            _ => {}
        }
        let turn = [Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")];
        // A prompt that fails before its step asks the model nothing.
        rig.plays(turn.clone());
        let live: Arc<dyn LiveSink> = if point == "live" { Arc::new(Rude) } else { Arc::new(Silent) };
        let agent = agent_with(&rig, live);
        let first = prompt(&agent, &Cancel::new()).await;
        let fails = ["prompt", "continuation"].contains(&point);
        assert_eq!(matches!(first.end, TurnEnd::Error { .. }), fails, "{point}: {:?}", first.end);
        assert_balanced(&agent);
        if point != "prompt" {
            rig.plays(turn);
        }
        let second = prompt(&agent, &Cancel::new()).await;
        let expected = TurnEnd::Completed { how: CompletedHow::Normal, note: None };
        assert_eq!(second.end, expected, "{point}");
        assert_balanced(&agent);
        assert_pairs(&agent, if point == "prompt" { &["c1"] } else { &["c1", "c1_2"] });
    }
}

#[tokio::test]
async fn r_201_r_216_a_panicking_model_ends_the_turn_without_a_retry_and_keeps_what_was_visible() {
    for part in ["info", "stream", "stream in flight", "next", "next in flight"] {
        let rig = Rig::new();
        let agent = rig.agent();
        let (once, info) = (Once::default(), rig.player.info());
        let (at_info, at_stream) = (once.clone(), once.clone());
        let model = FnModel {
            info: Box::new(move || {
                if part == "info" {
                    at_info.fire();
                }
                info.clone()
            }),
            stream: Box::new(move |_, _| {
                if part == "stream" {
                    at_stream.fire();
                }
                let once = at_stream.clone();
                Box::pin(async move {
                    if part == "stream in flight" {
                        once.fire();
                    }
                    if !part.starts_with("next") {
                        once.0.store(true, Ordering::SeqCst);
                    }
                    Ok(Box::new(Breaks(once, 0, part == "next")) as Box<dyn ModelStream>)
                })
            }),
        };
        agent.context().provide::<dyn Model>(Arc::new(model)).unwrap();
        let first = prompt(&agent, &Cancel::new()).await;
        let TurnEnd::Error { message, .. } = &first.end else { panic!("{part}: {:?}", first.end) };
        assert!(message.contains("first time"), "{part}: {message}");
        assert_balanced(&agent);
        let kinds = crate::rig::kinds(&agent);
        assert!(!kinds.iter().any(|k| k == "request/retry"), "{part}");
        let saved: Option<AssistantMessage> = agent.log().last();
        let visible = part.starts_with("next").then(|| (vec![Block::text("half")], true));
        assert_eq!(saved.map(|m| (m.content, m.interrupted)), visible, "{part}");
        let second = prompt(&agent, &Cancel::new()).await;
        assert_eq!((second.text.as_str(), matches!(second.end, TurnEnd::Completed { .. })), ("half", true), "{part}");
        assert_balanced(&agent);
    }
}

#[tokio::test]
async fn r_210_a_turn_without_any_model_says_so_and_the_next_one_may_have_it() {
    let root = sluice_harness::context::Context::root("bare");
    let rig = Rig::new();
    let bare = Rig { root, ..rig };
    let agent = bare.agent();
    let first = prompt(&agent, &Cancel::new()).await;
    let TurnEnd::Error { message, .. } = &first.end else { panic!("{:?}", first.end) };
    assert!(message.contains("no provider"), "{message}");
    agent.context().provide::<dyn Model>(Arc::<crate::rig::Player>::clone(&bare.player)).unwrap();
    bare.plays([Play::Text("done")]);
    assert_eq!(prompt(&agent, &Cancel::new()).await.text, "done");
    assert_balanced(&agent);
}
