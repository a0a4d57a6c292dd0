//! One firing of an event of the Codex dialect: plan, payload, run, hear.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluice_harness::content::Role;
use sluice_harness::ids::CallId;
use sluice_harness::point::ListenerFault;
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::scene::Scene;
use sluice_harness::seam::host_files::HostFiles;
use sluice_harness::seam::live::NoticeLevel;
use sluice_harness::seam::process::{Environment, Program};

use super::{Bridge, NAME};
use crate::codex::hear::{Heard, hear};
use crate::codex::long_text;
use crate::codex::payload::{Own, payload};
use crate::core::config::{Action, Event, Handler};
use crate::core::fire::{Firing, Ran, Said, Start, conclude, fire};
use crate::core::output::Printed;
use crate::core::plan::{Occasion, plan};
use crate::core::transcript;

/// The limit of a handler that declares none.
pub(in crate::codex) const DEFAULT_LIMIT: Duration = Duration::from_secs(600);

/// What came of a firing.
#[derive(Default)]
pub(super) struct Fired {
    pub(super) ran: Vec<(Ran, Heard)>,
    /// Handlers that matched and cannot be run here.
    pub(super) unrunnable: Vec<Arc<Handler>>,
}

impl Fired {
    /// The answers, in configuration order.
    pub(super) fn heard(&self) -> Vec<&Heard> {
        self.ran.iter().map(|(_, heard)| heard).collect()
    }
}

impl Bridge {
    /// Whether any handler of an event is configured.
    pub(super) fn has(&self, event: Event) -> bool {
        self.handlers.current().of(event).next().is_some()
    }

    /// Runs what is to run.
    pub(super) async fn fire(
        &self,
        scene: Scene<'_>,
        hook: &str,
        subjects: &[&str],
        call_id: Option<&CallId>,
        own: Own<'_>,
    ) -> Result<Fired, ListenerFault> {
        let event = own.event();
        let plan = plan(&self.handlers.current(), Occasion { event, subjects, call: None });
        for handler in &plan.unrunnable {
            let text = format!("the hook `{}` ({}) cannot be run here", handler.label(), handler.place());
            scene.tell(NoticeLevel::Warning, hook, text).await;
        }
        let mut fired = Fired { ran: Vec::new(), unrunnable: plan.unrunnable.clone() };
        if plan.runs.is_empty() {
            return Ok(fired);
        }
        if let Ok(files) = scene.context.lease::<dyn HostFiles>() {
            let path = transcript::codex_path(&scene.session.state_dir, &scene.session.id);
            transcript::ensure(&*files, &path).await;
        }
        let firing = Firing {
            scene,
            owner: &self.owner,
            call_id,
            plan: &plan,
            stdin: payload(scene, own),
            default_limit: DEFAULT_LIMIT,
        };
        let start = |_: usize, handler: &Handler| Start {
            program: match &handler.action {
                Action::Shell { command }
                | Action::Exec { command, .. }
                | Action::Unsupported { label: command, .. } => {
                    Program::Shell { shell: self.config.codex_shell.clone(), line: command.clone() }
                }
            },
            environment: Environment::default(),
        };
        let mut known: BTreeMap<String, String> = self.config.inherited.clone();
        known.entry("HOME".to_owned()).or_insert_with(|| self.config.home.display().to_string());
        for ran in fire(firing, start, &known).await? {
            let heard = hear(event, &ran, self.config.on_failure);
            fired.ran.push((ran, heard));
        }
        let said: Vec<_> = fired
            .ran
            .iter()
            .map(|(ran, heard)| {
                (
                    ran,
                    Said {
                        word: recorded(event, heard.word()),
                        problem: heard.problem.clone(),
                        notices: heard.notices(),
                    },
                )
            })
            .collect();
        conclude(scene, hook, &said).await?;
        Ok(fired)
    }
}

/// The word for the record: what blocks a call denies it.
fn recorded(event: Event, word: &'static str) -> &'static str {
    if event == Event::PreToolUse && word == "block" { "deny" } else { word }
}

/// Contexts as messages of their own, each shortened where it is long.
pub(super) async fn messages(scene: Scene<'_>, event: Event, texts: Vec<Printed>) -> Vec<ContextMessage> {
    let source = format!("{NAME}:{}", event.word());
    let texts = long_text::shorten_all(scene, texts).await;
    texts.into_iter().map(|text| ContextMessage { source: source.clone(), role: Role::Developer, text }).collect()
}
