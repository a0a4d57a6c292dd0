//! Notifications that a person is waited for, and settings that change while a session runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::Fut;
use sluice_harness::agent::{SettingsChanged, TurnEnd};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::Block;
use sluice_harness::context::Rank;
use sluice_harness::ids::Seq;
use sluice_harness::point::ListenerFault;
use sluice_harness::point::approval::Approval;
use sluice_harness::point::configuration::{ConfigurationChange, ConfigurationDecision};
use sluice_harness::point::notification::{Notification, NotificationKind, while_waiting};
use sluice_harness::point::tools::AskOrigin;
use sluice_harness::scene::Scene;
use sluice_harness::seam::approval::ApprovalOutcome;
use sluice_harness::seam::settings::{Settings, SettingsChange, SettingsSource};

use crate::kit::{ask, logged_end, on, one, ready, sees};
use crate::rig::{Play, Rig, answers, prompt, text};

const PATIENCE: Duration = Duration::from_secs(60);

type Raised = Arc<Mutex<Vec<NotificationKind>>>;

fn raised(rig: &Rig) -> Raised {
    let raised = Raised::default();
    let seen = Arc::clone(&raised);
    sees::<Notification, _>(rig, move |view| seen.lock().unwrap().push(view.kind));
    raised
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_prompt_raises_one_notification_after_its_patience() {
    let rig = Rig::new();
    let raised = raised(&rig);
    rig.plays([Play::Text("one"), Play::Text("two"), Play::Text("three")]);
    let agent = rig.agent().with_idle_notice(PATIENCE);
    tokio::time::sleep(PATIENCE * 3).await;
    assert!(raised.lock().unwrap().is_empty(), "nothing is waited for before the first turn");
    agent.prompt(vec![Block::text("go")], &Cancel::new()).await;
    tokio::time::sleep(PATIENCE / 2).await;
    // A prompt in time: the wait before it is told of by nobody.
    agent.prompt(vec![Block::text("go")], &Cancel::new()).await;
    tokio::time::sleep(PATIENCE * 3 / 4).await;
    assert!(raised.lock().unwrap().is_empty());
    tokio::time::sleep(PATIENCE * 5).await;
    assert_eq!(*raised.lock().unwrap(), [NotificationKind::Idle]);
    agent.prompt(vec![Block::text("go")], &Cancel::new()).await;
    // Closed while it waits: its scope takes the wait along.
    agent.close("other", Duration::from_secs(1)).await.unwrap();
    tokio::time::sleep(PATIENCE * 5).await;
    assert_eq!(*raised.lock().unwrap(), [NotificationKind::Idle]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_stands_raises_a_notification_and_one_answered_in_time_does_not() {
    for (takes, expected) in [(PATIENCE / 2, vec![]), (PATIENCE * 2, vec![NotificationKind::PermissionPrompt])] {
        let rig = Rig::new();
        let raised = raised(&rig);
        rig.probe("probe", answers("ran"));
        rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
        on::<Approval, _>(&rig, Rank::NORMAL, move |view, _| {
            Box::pin(async move {
                let person = tokio::time::sleep(takes);
                while_waiting(view.scene, NotificationKind::PermissionPrompt, PATIENCE, person).await;
                Ok(ApprovalOutcome::AllowedOnce)
            })
        });
        rig.plays([Play::Calls(vec![("c1", "probe", "{}")]), Play::Text("done")]);
        let agent = rig.agent();
        agent.prompt(vec![Block::text("go")], &Cancel::new()).await;
        assert_eq!(*raised.lock().unwrap(), expected);
        assert_eq!(rig.counts.tally(), [1; 7]);
    }
}

#[tokio::test]
async fn what_an_observer_of_notifications_does_changes_nothing() {
    let rig = Rig::new();
    sees::<Notification, _>(&rig, |_| panic!("no bell"));
    let raised = raised(&rig);
    let called = Arc::new(tokio::sync::Notify::new());
    let calls = Arc::clone(&called);
    sees::<Notification, _>(&rig, move |_| calls.notify_one());
    rig.probe("probe", answers("ran"));
    rig.pre(Rank::NORMAL, |_, _| ready(Ok(ask(None, AskOrigin::Rule))));
    on::<Approval, _>(&rig, Rank::NORMAL, move |view, _| {
        let called = Arc::clone(&called);
        Box::pin(async move {
            // The person comes because they were called.
            while_waiting(view.scene, NotificationKind::PermissionPrompt, Duration::ZERO, called.notified()).await;
            Ok(ApprovalOutcome::AllowedOnce)
        })
    });
    let one = one(&rig, "probe", "{}").await;
    assert_eq!(text(&one.result), "ran");
    assert_eq!(raised.lock().unwrap().len(), 1);
    assert_eq!(rig.counts.tally(), [1; 7]);
}

/// Settings with one file, changed as often as is said.
#[derive(Default)]
struct Files {
    /// Changes that wait, and what became of all.
    waiting: Mutex<usize>,
    became: Mutex<Vec<&'static str>>,
}

struct Shared(Arc<Files>);

fn change() -> SettingsChange {
    SettingsChange { owner: "test".into(), source: SettingsSource::Project, path: PathBuf::from("/p/settings.json") }
}

impl Settings for Shared {
    fn changed<'a>(&'a self, _: Scene<'a>) -> Fut<'a, Vec<SettingsChange>> {
        ready((0..*self.0.waiting.lock().unwrap()).map(|_| change()).collect())
    }
    fn apply<'a>(&'a self, _: Scene<'a>, taken: &'a SettingsChange) -> Fut<'a, ()> {
        assert_eq!(*taken, change());
        *self.0.waiting.lock().unwrap() -= 1;
        self.0.became.lock().unwrap().push("applied");
        ready(())
    }
    fn decline(&self, _: &SettingsChange) {
        *self.0.waiting.lock().unwrap() -= 1;
        self.0.became.lock().unwrap().push("declined");
    }
}

fn settings(rig: &Rig, waiting: usize) -> Arc<Files> {
    let files = Arc::new(Files { waiting: Mutex::new(waiting), ..Files::default() });
    rig.root.provide::<dyn Settings>(Arc::new(Shared(Arc::clone(&files)))).unwrap();
    files
}

fn logged(agent: &sluice_harness::agent::Agent) -> Vec<SettingsChanged> {
    agent.log().since(Seq(0)).iter().filter_map(|e| e.decode()).collect()
}

#[tokio::test]
async fn changed_settings_count_unless_a_listener_keeps_them_out_or_fails() {
    type Answer = fn() -> Result<ConfigurationDecision, ListenerFault>;
    let cases: [(Option<Answer>, &str, Option<&str>); 4] = [
        (None, "applied", None),
        (Some(|| Ok(ConfigurationDecision::Apply)), "applied", None),
        (
            Some(|| Ok(ConfigurationDecision::Keep { by: "gate".into(), reason: "not now".into() })),
            "declined",
            Some("gate"),
        ),
        (Some(|| Err(ListenerFault::new("gate", "broke"))), "declined", Some("gate")),
    ];
    for (answer, became, by) in cases {
        let rig = Rig::new();
        let files = settings(&rig, 1);
        if let Some(answer) = answer {
            on::<ConfigurationChange, _>(&rig, Rank::NORMAL, move |view, _| {
                assert_eq!(*view.change, change());
                ready(answer())
            });
        }
        rig.plays([Play::Text("done")]);
        let agent = rig.agent();
        prompt(&agent, &Cancel::new()).await;
        assert_eq!(*files.became.lock().unwrap(), [became]);
        let logged = logged(&agent);
        assert_eq!(logged.len(), 1);
        assert_eq!((logged[0].kept_out_by.as_deref(), logged[0].path.as_str()), (by, "/p/settings.json"));
        assert_eq!(logged[0].reason.is_some(), by.is_some());
    }
}

#[tokio::test]
async fn an_outer_listener_cannot_apply_what_a_failed_one_was_to_judge() {
    let rig = Rig::new();
    let files = settings(&rig, 1);
    on::<ConfigurationChange, _>(&rig, Rank::NORMAL, |_, next| {
        Box::pin(async move {
            let _ = next.delegate().await;
            Ok(ConfigurationDecision::Apply)
        })
    });
    on::<ConfigurationChange, _>(&rig, Rank(1), |_, _| panic!("no idea"));
    rig.plays([Play::Text("done")]);
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(*files.became.lock().unwrap(), ["declined"]);
}

#[tokio::test]
async fn settings_are_looked_at_before_each_turn_and_each_further_request() {
    let rig = Rig::new();
    let files = settings(&rig, 0);
    let changes = Arc::clone(&files);
    rig.probe(
        "probe",
        Arc::new(move |_| {
            *changes.waiting.lock().unwrap() += 1;
            ready(Ok(crate::kit::json(r#""ok""#)))
        }),
    );
    let seen = Arc::clone(&files);
    rig.pre(Rank::NORMAL, move |_, next| {
        seen.became.lock().unwrap().push("call");
        next.delegate()
    });
    rig.plays([
        Play::Calls(vec![("c1", "probe", "{}"), ("c2", "probe", "{}")]),
        Play::Calls(vec![("c3", "probe", "{}")]),
        Play::Text("done"),
    ]);
    let agent = rig.agent();
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(*files.became.lock().unwrap(), ["call", "call", "applied", "applied", "call", "applied"]);
    assert_eq!(rig.counts.tally(), [3; 7]);
}

#[tokio::test]
async fn a_change_that_a_cancelled_turn_did_not_judge_is_offered_to_the_next_one() {
    let rig = Rig::new();
    let files = settings(&rig, 1);
    let cancel = Cancel::new();
    let fires = cancel.clone();
    on::<ConfigurationChange, _>(&rig, Rank::NORMAL, move |_, next| {
        fires.cancel(CancelCause::User);
        next.delegate()
    });
    rig.plays([Play::Text("done")]);
    let agent = rig.agent();
    prompt(&agent, &cancel).await;
    assert_eq!(logged_end(&agent), TurnEnd::Cancelled { cause: CancelCause::User });
    assert!(files.became.lock().unwrap().is_empty() && logged(&agent).is_empty());
    prompt(&agent, &Cancel::new()).await;
    assert_eq!(*files.became.lock().unwrap(), ["applied"]);
}
