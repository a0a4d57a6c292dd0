//! One firing: records, processes, records. The one place where a bridge has effects before its decision.
//!
//! All `hook/invoked` are in the log before the first process starts; all processes start together; handlers that
//! nobody waits for are owned by the bridge's scope and killed at its end. What the outputs mean is told by the
//! dialect's reader, whose word goes into `hook/result`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sluice_harness::context::Context;
use sluice_harness::ids::CallId;
use sluice_harness::point::ListenerFault;
use sluice_harness::scene::Scene;
use sluice_harness::seam::host_files::HostFiles;
use sluice_harness::seam::live::NoticeLevel;
use sluice_harness::seam::process::{
    Capture, End, Environment, Keep, Owner, ProcessSpec, Processes, Program, RunOutput, StartProblem,
};

use super::config::{Handler, Waiting};
use super::output::OUTPUT_CAP;
use super::plan::Plan;
use super::record::{HookInvoked, HookResult, fresh_run_id};
use super::run::{GRACE, deadline, run_all};
use super::script;

/// A handler that has run.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) handler: Arc<Handler>,
    pub(crate) run_id: String,
    pub(crate) output: RunOutput,
    /// The file that was not there, when the hook could not start.
    pub(crate) missing: Option<String>,
}

/// What a dialect prepares for one firing.
pub(crate) struct Firing<'a> {
    pub(crate) scene: Scene<'a>,
    /// The scope that owns what nobody waits for.
    pub(crate) owner: &'a Context,
    pub(crate) call_id: Option<&'a CallId>,
    pub(crate) plan: &'a Plan,
    pub(crate) stdin: Vec<u8>,
    pub(crate) default_limit: Duration,
}

/// How a dialect starts one handler.
pub(crate) struct Start {
    pub(crate) program: Program,
    pub(crate) environment: Environment,
}

/// What a reader said of one run.
pub(crate) struct Said {
    /// The decision's word for the record.
    pub(crate) word: &'static str,
    pub(crate) problem: Option<String>,
    /// For the user, in order.
    pub(crate) notices: Vec<(NoticeLevel, String)>,
}

/// Runs a plan. `start` tells how the handler at a place in the plan is started.
pub(crate) async fn fire(
    firing: Firing<'_>,
    start: impl Fn(usize, &Handler) -> Start,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<Ran>, ListenerFault> {
    let Firing { scene, owner, call_id, plan, stdin, default_limit } = firing;
    let who = plan.runs.first().map_or("hooks", |h| h.dialect.word());
    let fault = |what: String| ListenerFault::new(who, what);
    let mut named = Vec::with_capacity(plan.runs.len());
    for handler in &plan.runs {
        let run_id = fresh_run_id();
        let invoked = HookInvoked {
            run_id: run_id.clone(),
            dialect: handler.dialect.word().to_owned(),
            event: handler.event.word().to_owned(),
            handler: handler.id(),
            source: handler.source.display().to_string(),
            matcher: handler.matcher.text().map(str::to_owned),
            command: handler.label().to_owned(),
            turn: scene.turn.map(|t| t.number),
            call_id: call_id.cloned(),
        };
        scene.log.append(&invoked).map_err(|e| fault(e.to_string()))?;
        named.push((Arc::clone(handler), run_id));
    }
    let mut awaited = Vec::new();
    let mut specs = Vec::new();
    for (at, (handler, run_id)) in named.into_iter().enumerate() {
        let Start { program, environment } = start(at, &handler);
        let spec = ProcessSpec {
            program,
            owner: Owner::User,
            cwd: scene.session.start_dir.clone(),
            environment,
            stdin: stdin.clone(),
            deadline: Some(deadline(handler.timeout.unwrap_or(default_limit))),
            grace: GRACE,
            keep: Keep::Head(OUTPUT_CAP),
        };
        match handler.waiting {
            Waiting::Async => {
                let_go(owner, spec);
                scene.log.append(&HookResult::background(&run_id)).map_err(|e| fault(e.to_string()))?;
            }
            Waiting::Awaited | Waiting::AwaitedLenient => {
                specs.push(spec);
                awaited.push((handler, run_id));
            }
        }
    }
    let outputs = match scene.context.lease::<dyn Processes>() {
        Ok(processes) => run_all(&*processes, specs, scene.cancel).await,
        Err(gone) => specs.iter().map(|_| not_started(&gone.to_string())).collect(),
    };
    let mut ran = Vec::with_capacity(awaited.len());
    for ((handler, run_id), output) in awaited.into_iter().zip(outputs) {
        let missing = missing_file(scene, &handler, &output, variables).await;
        ran.push(Ran { handler, run_id, output, missing });
    }
    Ok(ran)
}

/// Writes the results and tells the user what there is to tell.
pub(crate) async fn conclude(scene: Scene<'_>, source: &str, said: &[(&Ran, Said)]) -> Result<(), ListenerFault> {
    for (ran, said) in said {
        let result = HookResult::of(&ran.run_id, &ran.output, said.word, said.problem.as_deref());
        scene.log.append(&result).map_err(|e| ListenerFault::new(ran.handler.dialect.word(), e.to_string()))?;
    }
    for (_, said) in said {
        for (level, text) in &said.notices {
            scene.tell(*level, source, text.clone()).await;
        }
    }
    Ok(())
}

fn not_started(why: &str) -> RunOutput {
    RunOutput {
        end: End::NotStarted(StartProblem::System { program: "hook".to_owned(), why: why.to_owned() }),
        stdout: Capture::default(),
        stderr: Capture::default(),
        took: Duration::ZERO,
        pipe_still_held: false,
    }
}

fn let_go(owner: &Context, spec: ProcessSpec) {
    let Ok(processes) = owner.lease::<dyn Processes>() else { return };
    let started = owner.run("async hook", |cancel| async move {
        let _ = processes.run(spec, &cancel).await;
    });
    if let Err(gone) = started {
        tracing::debug!(%gone, "an async hook was not started: its scope has ended");
    }
}

/// The file that made a start impossible: the script of an interpreter that ended with 2, or the program itself.
async fn missing_file(
    scene: Scene<'_>,
    handler: &Handler,
    output: &RunOutput,
    variables: &BTreeMap<String, String>,
) -> Option<String> {
    let cwd: &Path = &scene.session.start_dir;
    match &output.end {
        End::NotStarted(problem) => Some(problem.to_string()),
        End::Exited(126) => Some(format!("{} may not be executed", program_name(handler, variables))),
        End::Exited(127) => {
            if let Some(script) = absent_script(scene, handler, cwd, variables).await {
                return Some(format!("{} does not exist", script.path.display()));
            }
            Some(format!("{} was not found", program_name(handler, variables)))
        }
        End::Exited(2) => {
            let script = absent_script(scene, handler, cwd, variables).await?;
            // Only the interpreter's own complaint makes it no decision: a hook that ran and denied keeps its word.
            let complained = script.path.file_name().is_some_and(|name| {
                output.stdout.text().trim().is_empty() && output.stderr.text().contains(&*name.to_string_lossy())
            });
            (script.may_end_with_2 && complained).then(|| format!("{} does not exist", script.path.display()))
        }
        End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => None,
    }
}

async fn absent_script(
    scene: Scene<'_>,
    handler: &Handler,
    cwd: &Path,
    variables: &BTreeMap<String, String>,
) -> Option<script::Named> {
    let script = script::script_of(&handler.action, cwd, variables)?;
    let files = scene.context.lease::<dyn HostFiles>().ok()?;
    files.kind(&script.path).await.is_none().then_some(script)
}

fn program_name(handler: &Handler, variables: &BTreeMap<String, String>) -> String {
    script::program_of(&handler.action, variables).unwrap_or_else(|| handler.label().to_owned())
}
