//! `sluice acp`: the agent that editors talk to over the Agent Client Protocol, version 1, on stdio.
//!
//! Lives here: the life of the process that serves one connection, from taking the streams to the last child. What the
//! methods do is in [`agent`], what a session sends in [`feed`], questions in [`approval`], ends of turns in [`answer`],
//! the editor's files in [`files`]. The protocol itself is another crate's, the sessions are the composition root's. Invariants: standard output carries
//! protocol messages alone, and the process ends soon after its input does, whatever runs.
//!
//! Choices where ACP is silent: a second prompt in a session where one runs is refused (-32600). What hooks and sluice
//! itself say is shown as messages of their own with the source in brackets. Nothing is sent between turns: what is said
//! there opens the next one.

mod agent;
mod answer;
mod approval;
mod feed;
mod files;
mod prompt;
mod questions;
mod stdio;
mod update;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sluice_bridges::Attendance;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::live::LiveSink;
use sluice_protocol::{Connection, Ended, Options};

use crate::cli::{AcpPlan, Begin};
use crate::config::Environment;
use crate::fault::{Fault, words};
use crate::plan::{self, Planned};
use crate::signals;
use agent::AcpAgent;
use stdio::Trace;

/// The code of a fault that is a missing key; a client makes a login of it.
const KEY_MISSING: &str = "auth";

/// Makes the plan of a session in a folder, which is absolute; may block while it reads files.
pub(crate) type PlanFor = Arc<dyn Fn(PathBuf, Arc<dyn LiveSink>) -> Result<Planned, Fault> + Send + Sync>;

/// Says whether the model that sessions get without further words takes images; may block while it reads files.
pub(crate) type TakesImages = Arc<dyn Fn() -> bool + Send + Sync>;

/// How the agent is served.
pub(crate) struct AcpOptions {
    /// Plans a session.
    pub(crate) plan_for: PlanFor,
    /// What is said of images before there is a session.
    pub(crate) takes_images: TakesImages,
    /// Where all three streams are recorded.
    pub(crate) trace_wire: Option<PathBuf>,
}

impl AcpOptions {
    /// Serves sessions whose defaults are these flags.
    pub(crate) fn new(environment: Environment, plan: AcpPlan) -> Self {
        let AcpPlan { session: flags, trace_wire } = plan;
        let (known, defaults) = (environment.clone(), flags.clone());
        let takes_images = move || plan::takes_images(&known, &defaults);
        let plan_for = move |folder: PathBuf, live: Arc<dyn LiveSink>| {
            plan::session(&environment, &flags, &Begin::Fresh, &folder, Attendance::Attended, live)
        };
        Self { plan_for: Arc::new(plan_for), takes_images: Arc::new(takes_images), trace_wire }
    }
}

/// A cancelled request answers in its own words, for a turn must be closed by itself; this is only the last resort.
const CANCEL_GRACE: Duration = Duration::from_secs(60);
/// How long cancelled prompts may take to answer a client that may still read.
const ANSWER_GRACE: Duration = Duration::from_secs(1);
/// How long they may take after that, with nobody listening.
const SILENT_GRACE: Duration = Duration::from_secs(1);

/// Why the service ends.
enum End {
    Connection(Ended),
    Signal(i32),
}

/// Serves one client until its input ends or a signal comes; returns the exit code.
///
/// # Errors
/// When the streams, the record or the signal handlers cannot be had.
pub(crate) async fn serve(options: AcpOptions) -> Result<u8, Fault> {
    let AcpOptions { plan_for, takes_images, trace_wire } = options;
    let environment = |what: &str, cause: &std::io::Error| {
        Fault::environment(
            "acp-streams",
            format!("{what}: {}", words(cause)),
            "start sluice acp from an editor or a pipe",
        )
    };
    let trace = match &trace_wire {
        Some(path) => Some(Trace::begin(path).map_err(|e| {
            let cause = format!("cannot record to {}: {}", path.display(), words(&e));
            Fault::environment("trace-wire", cause, "name a file that can be written with --trace-wire")
        })?),
        None => None,
    };
    let wire = stdio::take().map_err(|e| environment("cannot take the standard streams", &e))?;
    let signal = signals::watch(Cancel::new()).map_err(|e| environment("cannot install signal handlers", &e))?;

    let agent = AcpAgent::new(plan_for, takes_images);
    let router = agent.router().map_err(Fault::internal)?;
    let settings =
        Options { cancel_grace: CANCEL_GRACE, trace: trace.as_ref().map(Trace::of_wire), ..Options::default() };
    let mut connection = Connection::new(wire.input, wire.output, router, settings).map_err(Fault::internal)?;

    let end = {
        let signal = pin!(signal);
        tokio::select! {
            biased;
            number = signal => End::Signal(number),
            ended = connection.serve() => End::Connection(ended),
        }
    };
    agent.begin_end(&match &end {
        End::Signal(number) => CancelCause::Signal(*number),
        End::Connection(_) => CancelCause::Disposed,
    });
    let answered = match end {
        End::Connection(Ended::OutputClosed) => false,
        End::Connection(Ended::Eof | Ended::InputFailed(_)) | End::Signal(_) => connection.drain(ANSWER_GRACE).await,
    };
    if !answered {
        agent.mute();
        connection.drain(SILENT_GRACE).await;
    }
    connection.shutdown(Duration::ZERO).await;
    agent.close().await;
    let exit = match end {
        End::Connection(Ended::Eof | Ended::OutputClosed) => 0,
        End::Connection(Ended::InputFailed(fault)) => {
            crate::run::say(&format!("sluice: standard input cannot be read: {}", words(&fault)));
            1
        }
        End::Signal(number) => u8::try_from(number).ok().and_then(|n| n.checked_add(128)).unwrap_or(1),
    };
    if let Some(trace) = trace {
        let _ = tokio::task::spawn_blocking(move || trace.finish()).await;
    }
    Ok(exit)
}
