//! One firing of an event: plan, payload, run, hear; the same for every point.

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::ids::CallId;
use sluice_harness::point::ListenerFault;
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::scene::{Scene, StopCause, StopKind};
use sluice_harness::seam::host_files::HostFiles;
use sluice_harness::seam::live::NoticeLevel;

use super::Bridge;
use crate::claude_code::effect::{Answer, message};
use crate::claude_code::hear::{Heard, hear};
use crate::claude_code::payload::{Own, payload};
use crate::claude_code::{environment, long_text, session_end, text};
use crate::core::condition::CallInput;
use crate::core::config::{Action, Event, Handler};
use crate::core::fire::{Firing, Ran, Said, conclude, fire};
use crate::core::output::Printed;
use crate::core::plan::{Occasion, plan};
use crate::core::transcript;

/// What came of a firing.
#[derive(Default)]
pub(super) struct Fired {
    ran: Vec<(Ran, Heard)>,
    /// Handlers that matched and cannot be run here.
    pub(super) unrunnable: Vec<Arc<Handler>>,
}

impl Fired {
    /// The answers, in configuration order.
    pub(super) fn answers(&self) -> Vec<Answer<'_>> {
        self.ran.iter().map(|(ran, heard)| Answer { command: ran.handler.label(), heard }).collect()
    }

    /// The first command that ran, for messages.
    pub(super) fn first_command(&self) -> &str {
        self.ran.first().map_or("hook", |(ran, _)| ran.handler.label())
    }
}

/// An event about to fire.
pub(super) struct Occurrence<'a> {
    pub(super) scene: Scene<'a>,
    /// `<HookName>`, for messages.
    pub(super) hook: &'a str,
    pub(super) subjects: &'a [&'a str],
    pub(super) call_id: Option<&'a CallId>,
    pub(super) call: Option<CallInput<'a>>,
    pub(super) own: Own<'a>,
    /// The word for the record.
    pub(super) word: fn(&str, &Heard) -> &'static str,
}

/// The word of events without decisions of their own.
pub(super) fn plain_word(_: &str, heard: &Heard) -> &'static str {
    heard.word()
}

impl Bridge {
    /// Whether any handler of an event is configured.
    pub(super) fn has(&self, event: Event) -> bool {
        self.handlers.current().of(event).next().is_some()
    }

    /// Runs what is to run.
    pub(super) async fn fire(&self, it: Occurrence<'_>) -> Result<Fired, ListenerFault> {
        let event = it.own.event();
        let scene = it.scene;
        let plan = plan(&self.handlers.current(), Occasion { event, subjects: it.subjects, call: it.call });
        self.say_unrunnable(&it, &plan.unrunnable).await;
        let mut fired = Fired { ran: Vec::new(), unrunnable: plan.unrunnable.clone() };
        if plan.runs.is_empty() {
            return Ok(fired);
        }
        if let Ok(files) = scene.context.lease::<dyn HostFiles>() {
            let path = transcript::claude_path(&scene.session.state_dir, &scene.session.id);
            transcript::ensure(&*files, &path).await;
            if event == Event::SessionStart {
                for at in 0..plan.runs.len() {
                    transcript::ensure(&*files, &environment::env_file(scene, at)).await;
                }
            }
        }
        let set = environment::variables(&self.config, &self.env, scene, event);
        let known = environment::known(&self.config, &set);
        let firing = Firing {
            scene,
            owner: &self.owner,
            call_id: it.call_id,
            plan: &plan,
            stdin: payload(scene, it.own),
            default_limit: default_limit(event),
        };
        let start = |at: usize, handler: &Handler| {
            let mut set = set.clone();
            if event == Event::SessionStart {
                set.push(("CLAUDE_ENV_FILE".to_owned(), environment::env_file(scene, at).display().to_string()));
            }
            environment::start(handler, set)
        };
        let ran = fire(firing, start, &known).await?;
        let mut said = Vec::with_capacity(ran.len());
        for ran in ran {
            let mut heard = hear(event, &ran, self.config.on_failure);
            self.explain_split(&ran, &mut heard);
            fired.ran.push((ran, heard));
        }
        for (ran, heard) in &fired.ran {
            let word = (it.word)(it.hook, heard);
            said.push((ran, Said { word, problem: heard.problem.clone(), notices: heard.notices() }));
        }
        conclude(scene, it.hook, &said).await?;
        Ok(fired)
    }

    async fn say_unrunnable(&self, it: &Occurrence<'_>, handlers: &[Arc<Handler>]) {
        for handler in handlers {
            let Action::Unsupported { kind, label } = &handler.action else { continue };
            if it.own.event() == Event::SessionStart && kind == "http" {
                // Not sent on this event in the reference either.
                continue;
            }
            let text =
                format!("the hook `{label}` ({}) is of type `{kind}`, which cannot be run here", handler.place());
            it.scene.tell(NoticeLevel::Warning, it.hook, text).await;
        }
    }

    /// Adds the cause when a failing command uses the project folder unquoted and the folder's name has spaces.
    fn explain_split(&self, ran: &Ran, heard: &mut Heard) {
        let root = self.config.workspace_root.display().to_string();
        let Action::Shell { command } = &ran.handler.action else { return };
        if ran.missing.is_some() && crate::core::script::splits_unquoted(command, "CLAUDE_PROJECT_DIR", &root) {
            for warning in &mut heard.warnings {
                warning.push_str(&format!(
                    " (the path {root} has spaces: write \"$CLAUDE_PROJECT_DIR\" in quotes in `{command}`)"
                ));
            }
        }
    }
}

/// The contexts of an event as one message, each text shortened where it is long.
pub(super) async fn context_message(scene: Scene<'_>, hook: &str, texts: Vec<String>) -> Option<ContextMessage> {
    if texts.is_empty() {
        return None;
    }
    let texts = long_text::shorten_all(scene, "additionalContext", texts).await;
    let source = hook.split(':').next().unwrap_or(hook);
    Some(message(source, text::context(hook, &texts.join("\n"))))
}

/// Plain texts as messages of their own.
pub(super) async fn plain_messages(scene: Scene<'_>, hook: &str, texts: Vec<Printed>) -> Vec<ContextMessage> {
    let texts = long_text::shorten_all(scene, "stdout", texts).await;
    let source = hook.split(':').next().unwrap_or(hook);
    texts.iter().map(|t| message(source, text::success(hook, t))).collect()
}

/// Sets the stop latch.
pub(super) fn stop_turn(scene: Scene<'_>, hook: &str, reason: Option<String>) {
    scene.stop_turn(StopCause { by: hook.to_owned(), reason, kind: StopKind::Hook });
}

/// The limit of a handler that declares none (observed: 30 s for prompts, 1.5 s at the end, else 600 s).
pub(in crate::claude_code) fn default_limit(event: Event) -> Duration {
    match event {
        Event::UserPromptSubmit => Duration::from_secs(30),
        Event::SessionEnd => session_end::DEFAULT_LIMIT,
        Event::SessionStart
        | Event::PreToolUse
        | Event::PermissionRequest
        | Event::PostToolUse
        | Event::PostToolUseFailure
        | Event::Stop
        | Event::Notification
        | Event::ConfigChange => Duration::from_secs(600),
    }
}

/// The names a matcher may use for a tool.
pub(super) fn tool_names(tool: &str) -> Vec<&str> {
    match tool {
        "Agent" | "Task" => vec!["Agent", "Task"],
        other => vec![other],
    }
}
