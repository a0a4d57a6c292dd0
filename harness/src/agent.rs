//! The agent loop: one prompt becomes one turn, a turn is steps, a step is one model exchange and its calls.
//!
//! The loop owns the order of things and nothing else: what is decided is decided at the points, what happened is in
//! the log. A turn is closed in every exit; a defect of a plugin ends a turn, never the loop. The turn
//! itself is in [`turn`], one exchange in [`exchange`], the calls of a step in [`batch`].

mod batch;
pub mod end;
mod exchange;
mod idle;
mod inbox;
mod jitter;
pub mod report;
mod settings;
mod start;
mod turn;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::cancel::{Cancel, CancelCause};
use crate::content::Block;
use crate::context::{Context, DisposeReport};
use crate::log::{LogError, LogHandle, SessionLog};
use crate::point::prompt::ContextMessage;
use crate::point::session::{SessionEnd, SessionEndView, StartSource};
use crate::point::turn::Steering;
use crate::scene::{SessionFacts, SessionScene, StopLatch};
use crate::seam::conversation::Conversation;
use crate::seam::live::{LiveEvent, LiveSink};
use crate::{Fut, point::contained_call};

pub use end::{Budget, CompletedHow, TurnEnd};
pub use jitter::Jitter;
pub use report::{Denial, TurnReport};
pub use settings::SettingsChanged;

/// What bounds a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At most so many model exchanges for one prompt, said as `max_turns` (the word of `claude -p`).
    pub max_turns: Option<u32>,
    /// The same, said as `max_steps`.
    pub max_steps: Option<u32>,
    /// At most so many continuations forced by hooks in one turn, whatever happens between.
    pub max_continuations: u32,
    /// How many parallel calls may be in flight.
    pub parallel_calls: NonZeroUsize,
    /// At most so many output tokens a request.
    pub max_output_tokens: Option<u64>,
    /// How long a turn may take.
    pub timeout: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        // Not zero, as the compiler sees: a constant that panicked would not build.
        const TEN: NonZeroUsize = NonZeroUsize::new(10).unwrap();
        Self {
            max_turns: None,
            max_steps: None,
            max_continuations: 25,
            parallel_calls: TEN,
            max_output_tokens: None,
            timeout: None,
        }
    }
}

/// How failed requests are repeated, before their first content only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// At most so many repetitions of one request.
    pub retries: u32,
    /// The first wait; doubled each time.
    pub base: Duration,
    /// The longest wait; a provider that wants longer is given up on.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 5, base: Duration::from_millis(500), cap: Duration::from_secs(10) }
    }
}

/// What an agent is made of.
pub struct AgentSpec {
    /// Its own scope: providers, tools, policies and bridges are mounted here or around it.
    pub context: Context,
    /// The session.
    pub session: Arc<SessionFacts>,
    /// Its log, just created or opened.
    pub log: SessionLog,
    /// The user's ear.
    pub live: Arc<dyn LiveSink>,
    /// The system prompt.
    pub system: String,
    /// Bounds.
    pub limits: Limits,
    /// Repetitions.
    pub retry: RetryPolicy,
    /// Why the session begins.
    pub source: StartSource,
}

/// A front end's ear whose defects change nothing: a panic in it must not take a running body with it.
struct ContainedSink(Arc<dyn LiveSink>);

impl LiveSink for ContainedSink {
    fn send(&self, event: LiveEvent) -> Fut<'_, ()> {
        let sending = contained_call(move || self.0.send(event));
        Box::pin(async move {
            if let Err(panic) = sending.await {
                tracing::warn!(%panic, "a live sink panicked; what it was told is lost");
            }
        })
    }
}

/// An agent with its session.
pub struct Agent {
    context: Context,
    session: Arc<SessionFacts>,
    log: Mutex<Option<SessionLog>>,
    handle: LogHandle,
    live: Arc<dyn LiveSink>,
    system: String,
    limits: Limits,
    retry: RetryPolicy,
    jitter: Jitter,
    source: StartSource,
    promises: Mutex<start::Promises>,
    inbox: Arc<inbox::Inbox>,
    /// Fires when the agent is being closed, or its scope disposed: a running turn ends then.
    closing: Cancel,
    /// Whether this agent has sent a request yet.
    asked: AtomicBool,
    idle: idle::Idle,
}

impl Agent {
    /// Brings an agent to life: session-start listeners are told, and what they promise begins at once. The
    /// first prompt awaits it; nothing else does.
    #[must_use]
    pub fn start(spec: AgentSpec) -> Self {
        let closing = spec.context.cancel_signal().child();
        let inbox = Arc::new(inbox::Inbox::default());
        if let Err(fault) = spec.context.provide::<dyn Conversation>(Arc::<inbox::Inbox>::clone(&inbox)) {
            tracing::warn!(%fault, "what ends after its call cannot be told to this agent");
        }
        let agent = Self {
            handle: spec.log.handle(),
            context: spec.context,
            session: spec.session,
            log: Mutex::new(Some(spec.log)),
            live: Arc::new(ContainedSink(spec.live)),
            system: spec.system,
            limits: spec.limits,
            retry: spec.retry,
            jitter: Jitter::default(),
            source: spec.source,
            closing,
            promises: Mutex::new(start::Promises::none()),
            inbox,
            asked: AtomicBool::new(false),
            idle: idle::Idle::default(),
        };
        let scene = agent.scene(None, agent.context.cancel_signal().child(), Arc::new(StopLatch::new()));
        let promises = start::begin(agent.source, &scene);
        Self { promises: Mutex::new(promises), ..agent }
    }

    /// Moves back-off waits otherwise than by up to a tenth.
    #[must_use]
    pub fn with_jitter(self, jitter: Jitter) -> Self {
        Self { jitter, ..self }
    }

    /// Raises a notification when no prompt came for so long after a turn; without it none is raised.
    #[must_use]
    pub fn with_idle_notice(self, patience: Duration) -> Self {
        Self { idle: idle::Idle::after(patience), ..self }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Arc<SessionFacts> {
        &self.session
    }

    /// The agent's scope.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The session's log, to read and to subscribe to.
    #[must_use]
    pub fn log(&self) -> &LogHandle {
        &self.handle
    }

    fn scene(&self, turn: Option<Arc<crate::scene::TurnFacts>>, cancel: Cancel, latch: Arc<StopLatch>) -> SessionScene {
        SessionScene {
            context: self.context.clone(),
            session: Arc::clone(&self.session),
            log: self.handle.clone(),
            live: Arc::clone(&self.live),
            turn,
            cancel,
            latch,
        }
    }

    /// Puts in a message that the model gets with its next request, and that makes a running turn go on when it would
    /// end. Between turns it waits for the next one.
    pub fn steer(&self, message: Steering) {
        self.inbox.steer(message);
    }

    /// Puts in a context that the model gets with its next request; it never makes a turn go on, nor begins one.
    pub fn inject(&self, context: ContextMessage) {
        self.inbox.inject(context);
    }

    /// Runs one prompt to the end of its turn. One at a time: a second prompt waits for the first.
    ///
    /// The signal is the caller's; firing it ends the turn as cancelled. Every exit closes the turn in the log.
    pub async fn prompt(&self, content: Vec<Block>, cancel: &Cancel) -> TurnReport {
        let mut slot = self.log.lock().await;
        match slot.as_mut().filter(|_| !self.closing.is_cancelled()) {
            Some(log) => {
                self.idle.end();
                let report = turn::run(self, log, content, cancel).await;
                self.idle.begin(self);
                report
            }
            None => TurnReport::failed("the session is closed; start a new one or resume it".to_owned()),
        }
    }

    /// Ends the session: a running turn is cancelled and awaited, session-end listeners run under their own deadlines,
    /// then the scope is disposed and the log closed. Idempotent.
    ///
    /// # Errors
    /// The log's, when its last lines could not be written.
    pub async fn close(&self, reason: &str, grace: Duration) -> Result<DisposeReport, LogError> {
        self.closing.cancel(CancelCause::Disposed);
        let log = self.log.lock().await.take();
        let Some(log) = log else { return Ok(DisposeReport::default()) };
        let owned = self.scene(None, Cancel::new(), Arc::new(StopLatch::new()));
        {
            let scene = owned.scene();
            let waterfall = self.context.waterfall::<SessionEnd>();
            let view = SessionEndView { scene, reason };
            if let Err(fault) = waterfall.run(view, || Box::pin(std::future::ready(Ok(())))).await {
                tracing::warn!(%fault, "a session-end listener failed");
            }
        }
        let report = self.context.dispose(grace).await;
        log.close().await?;
        Ok(report)
    }
}
