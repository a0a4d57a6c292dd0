//! The background shells of each session: which there are, how far each was read, and how their ends are told.
//!
//! `Bash` starts them, `BashOutput` reads them, `KillShell` ends them. A shell belongs to the agent that started it: its
//! watcher is a task of that agent's scope, so that it ends with the session at the latest. The invariant: an end that
//! the model did not bring about itself is put into the conversation once. Words are in [`words`].

pub(crate) mod words;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sluice_harness::content::Role;
use sluice_harness::context::{Context, ContextFault, Rank};
use sluice_harness::ids::{Seq, SessionId};
use sluice_harness::log::{EventKind, LogHandle};
use sluice_harness::point::prompt::ContextMessage;
use sluice_harness::point::session::{SessionEnd, SessionEndView};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::scene::{Scene, SessionFacts};
use sluice_harness::seam::conversation::Conversation;
use sluice_harness::seam::live::NoticeLevel;
use sluice_harness::seam::process::End;
use sluice_harness::seam::process::running::{Mark, Running};
use sluice_harness::tool::ToolFailure;
use sluice_harness::{Fut, Plugin, PluginFault};

/// How many shells of one agent may run at once.
const MOST_RUNNING: usize = 16;
/// How many that have ended are kept, to be read.
const MOST_ENDED: usize = 32;

/// A background shell was started. Its number is its place among these events, so that no id comes twice in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellStarted {
    /// Such as `bash_1`.
    pub id: String,
    /// What it runs.
    pub command: String,
}

impl EventKind for ShellStarted {
    const TYPE: &'static str = "shell/started";
    const IGNORABLE: bool = true;
}

/// A background shell has ended. For inspection; the model learns of it by a context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellEnded {
    /// Which.
    pub id: String,
    /// How, in words: `exit code 0`.
    pub how: String,
}

impl EventKind for ShellEnded {
    const TYPE: &'static str = "shell/ended";
    const IGNORABLE: bool = true;
}

/// Whose a shell is: a session, and the subagent in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Owner(SessionId, Option<String>);

impl Owner {
    fn of(session: &SessionFacts) -> Self {
        Self(session.id.clone(), session.agent.as_ref().map(|agent| agent.id.clone()))
    }
}

/// One background shell.
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) running: Box<dyn Running>,
    /// How far it was read; held while somebody reads.
    pub(crate) read: tokio::sync::Mutex<Mark>,
    /// Set when whoever would be told of its end brought it about.
    killed: AtomicBool,
}

impl Job {
    /// Ends it on the model's own wish, and waits for the end.
    pub(crate) async fn kill(&self) -> End {
        self.killed.store(true, Ordering::Release);
        self.running.stop();
        self.running.ended().await
    }
}

/// The background shells of every session that shares a set of tools.
#[derive(Default)]
pub struct Jobs(Mutex<HashMap<Owner, Vec<Arc<Job>>>>);

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Jobs").field(&self.all().len()).finish()
    }
}

impl Jobs {
    fn all(&self) -> MutexGuard<'_, HashMap<Owner, Vec<Arc<Job>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, session: &SessionFacts) -> Vec<Arc<Job>> {
        self.all().get(&Owner::of(session)).cloned().unwrap_or_default()
    }

    /// Refuses one more than may run at once.
    pub(crate) fn check_room(&self, session: &SessionFacts) -> Result<(), ToolFailure> {
        let running: Vec<_> = self.of(session).into_iter().filter(|job| job.running.end().is_none()).collect();
        if running.len() < MOST_RUNNING {
            return Ok(());
        }
        let ids: Vec<&str> = running.iter().map(|job| job.id.as_str()).collect();
        let message = format!(
            "{MOST_RUNNING} background shells are running already ({}); end one with KillShell first",
            ids.join(", ")
        );
        Err(ToolFailure::coded("ShellError", "SHELL_LIMIT", message))
    }

    /// Takes over a shell that was just started, and watches it; its id.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        scene: Scene<'_>,
        command: &str,
        running: Box<dyn Running>,
    ) -> Result<String, ToolFailure> {
        let id = format!("bash_{}", started_so_far(scene.log) + 1);
        let started = ShellStarted { id: id.clone(), command: command.to_owned() };
        scene.log.append(&started).map_err(|fault| {
            ToolFailure::coded("LogError", "LOG_WRITE_FAILED", format!("the shell could not be kept: {fault}"))
        })?;
        let job = Arc::new(Job {
            id: id.clone(),
            command: command.to_owned(),
            running,
            read: tokio::sync::Mutex::default(),
            killed: AtomicBool::new(false),
        });
        self.watch(scene, Arc::clone(&job)).map_err(|fault| ToolFailure::new(fault.to_string()))?;
        let mut all = self.all();
        let own = all.entry(Owner::of(scene.session)).or_default();
        let mut ended = own.iter().filter(|job| job.running.end().is_some()).count();
        own.retain(|job| {
            let too_many = ended >= MOST_ENDED && job.running.end().is_some();
            ended -= usize::from(too_many);
            !too_many
        });
        own.push(job);
        Ok(id)
    }

    fn watch(&self, scene: Scene<'_>, job: Arc<Job>) -> Result<(), ContextFault> {
        let (context, log) = (scene.context.clone(), scene.log.clone());
        let watched = move |disposed: sluice_harness::cancel::Cancel| async move {
            let by_itself = tokio::select! {
                end = job.running.ended() => Some(end),
                _ = disposed.cancelled() => None,
            };
            let end = match by_itself {
                Some(end) => end,
                None => {
                    job.running.stop();
                    job.running.ended().await
                }
            };
            if !job.killed.load(Ordering::Acquire)
                && let Ok(conversation) = context.lease::<dyn Conversation>()
            {
                let text = words::notice(&job.id, &job.command, &end);
                conversation.inject(ContextMessage { source: "Bash:background".to_owned(), role: Role::System, text });
            }
            // For inspection alone; a log that is closed by now takes nothing more.
            let _ = log.append(&ShellEnded { id: job.id.clone(), how: words::how(&end) });
        };
        scene.context.run("background shell", watched).map(|_| ())
    }

    /// The shell with this id.
    pub(crate) fn find(&self, scene: Scene<'_>, id: &str) -> Result<Arc<Job>, ToolFailure> {
        let own = self.of(scene.session);
        if let Some(job) = own.iter().find(|job| job.id == id) {
            return Ok(Arc::clone(job));
        }
        let known: Vec<String> = own
            .iter()
            .map(|job| {
                let state = if job.running.end().is_none() { "running" } else { "ended" };
                format!("{} ({state})", job.id)
            })
            .collect();
        let remedy = if known.is_empty() {
            "there is none; start one with Bash and run_in_background".to_owned()
        } else {
            format!("there are {}", known.join(", "))
        };
        let gone = events_of_starts(scene.log).any(|started| started.id == id);
        let what = if gone {
            format!("the background shell {id:?} is gone: it ended with the agent or the program that ran it")
        } else {
            format!("there is no background shell {id:?}")
        };
        Err(ToolFailure::coded("ShellError", "SHELL_NOT_FOUND", format!("{what}; {remedy}")))
    }

    /// Ends all shells of an agent and forgets them; those that were still running.
    async fn end_all(&self, session: &SessionFacts) -> Vec<Arc<Job>> {
        let own = self.all().remove(&Owner::of(session)).unwrap_or_default();
        let running: Vec<_> = own.into_iter().filter(|job| job.running.end().is_none()).collect();
        for job in &running {
            job.killed.store(true, Ordering::Release);
            job.running.stop();
        }
        for job in &running {
            job.running.ended().await;
        }
        running
    }
}

fn events_of_starts(log: &LogHandle) -> impl Iterator<Item = ShellStarted> {
    let events = log.since(Seq(0));
    events.into_iter().filter(|event| *event.kind == *ShellStarted::TYPE).filter_map(|event| event.decode())
}

fn started_so_far(log: &LogHandle) -> usize {
    log.since(Seq(0)).iter().filter(|event| *event.kind == *ShellStarted::TYPE).count()
}

/// Ends background shells with their session, after its end hooks, and says which were still running.
pub struct JobsPlugin {
    jobs: Arc<Jobs>,
}

impl JobsPlugin {
    /// The plugin for the shells that the tools share.
    #[must_use]
    pub fn new(jobs: Arc<Jobs>) -> Self {
        Self { jobs }
    }
}

const PLUGIN_NAME: &str = "background shells";

impl Plugin for JobsPlugin {
    fn name(&self) -> &str {
        PLUGIN_NAME
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        context
            .listen::<SessionEnd>(Rank::OUTER, EndShells { jobs: self.jobs })
            .map(|_| ())
            .map_err(|fault| PluginFault { plugin: PLUGIN_NAME.to_owned(), why: fault.to_string() })
    }
}

struct EndShells {
    jobs: Arc<Jobs>,
}

impl Listener<SessionEnd> for EndShells {
    fn name(&self) -> &str {
        PLUGIN_NAME
    }

    fn decide<'a>(
        &'a self,
        view: SessionEndView<'a>,
        next: Next<'a, SessionEnd>,
    ) -> Fut<'a, Result<(), ListenerFault>> {
        Box::pin(async move {
            let answer = next.delegate().await;
            for job in self.jobs.end_all(view.scene.session).await {
                let text = words::ended_with_session(&job.id, &job.command);
                view.scene.tell(NoticeLevel::Warning, "Bash", text).await;
            }
            answer
        })
    }
}
