//! The program: it reads the command line, builds the runtime and hands over to one of the front ends.
//!
//! Nothing is decided here. What goes wrong before a front end runs is one sentence of cause and one of remedy on
//! stderr, with the exit code of its kind.

mod acp;
mod cli;
mod compose;
mod config;
mod demo;
mod fault;
mod hooks_list;
mod images;
mod live_settings;
mod mcp;
mod models;
mod output;
mod plan;
mod run;
mod sandbox;
mod sessions;
mod settings_gate;
mod settings_rules;
mod signals;
mod state;
mod stdin;
mod trace;
mod web;

use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::sync::Arc;

use sluice_bridges::Attendance;
use sluice_harness::seam::live::Silent;

use crate::cli::{Command, HookEvents, NoPlan, OutputFormat, RunPlan};
use crate::config::Environment;
use crate::fault::Fault;
use crate::run::{Format, Headless, HookLines, say};
use crate::state::State;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Before anything else: it stands between every command of the model and its start.
    if arguments.next().is_some_and(|word| word == sluice_providers::warden::WORD) {
        return sluice_providers::warden::main(arguments);
    }
    let command = match cli::parse(std::env::args_os()) {
        Ok(command) => command,
        Err(NoPlan::Words(words)) => {
            let code = words.exit_code();
            // Help for a reader that has gone needs no word.
            let _ = words.print();
            return ExitCode::from(u8::try_from(code).unwrap_or(2));
        }
        Err(NoPlan::Fault(fault)) => return failed(&fault),
    };
    match carry_out(command) {
        Ok(code) => ExitCode::from(code),
        Err(fault) => failed(&fault),
    }
}

fn failed(fault: &Fault) -> ExitCode {
    if !fault.is_quiet() {
        say(&fault.to_string());
    }
    ExitCode::from(fault.exit_code())
}

fn carry_out(command: Command) -> Result<u8, Fault> {
    let environment = Environment::of_process()?;
    match command {
        Command::Run(run) => {
            trace::start(&environment, &run.session.diagnostics)?;
            let (headless, plan) = headless(&environment, *run)?;
            on_runtime(run::run(headless, plan))
        }
        Command::Acp(plan) => {
            trace::start(&environment, &plan.session.diagnostics)?;
            on_runtime(acp::serve(acp::AcpOptions::new(environment, plan)))
        }
        Command::Demo(plan) => on_runtime(demo::run(plan.dir)),
        Command::SessionsList(format) => {
            printed(|out, err| sessions::list(&State::look(&environment), format, out, err))
        }
        Command::SessionsShow(plan) => printed(|out, err| sessions::show(&State::look(&environment), &plan, out, err)),
        Command::Models(plan) => printed(|out, _| models::list::run(&environment, &plan, out)),
        Command::HooksList(plan) => on_runtime(hooks_list::run(environment, plan)).map(|()| 0),
    }
}

/// Runs a command that prints and is done.
fn printed(command: impl FnOnce(&mut dyn Write, &mut dyn Write) -> Result<(), Fault>) -> Result<u8, Fault> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    command(&mut out, &mut std::io::stderr())?;
    out.flush().map_err(|e| Fault::output(&e))?;
    Ok(0)
}

fn headless(environment: &Environment, run: RunPlan) -> Result<(Headless, compose::SessionPlan), Fault> {
    let RunPlan { session: flags, prompt, output, hook_events, begin, answer, denials } = run;
    let folder = plan::folder(environment, &flags);
    let mut planned = plan::session(environment, &flags, &begin, &folder, Attendance::Headless, Arc::new(Silent))?;
    let answer = answer.map(|argument| plan::answer_schema(environment, &argument)).transpose()?;
    if let Some(schema) = &answer {
        planned.plan.system.add(&schema.instruction());
    }
    for note in &planned.notes {
        say(&format!("sluice: {note}"));
    }
    let format = match output {
        OutputFormat::Text => Format::Text,
        OutputFormat::Json => Format::Json,
        OutputFormat::StreamJson => Format::StreamJson,
        OutputFormat::Events => Format::Events,
    };
    let hook_lines = match hook_events {
        HookEvents::Include => HookLines::Shown,
        HookEvents::Leave => HookLines::Left,
    };
    Ok((Headless { prompts: prompt, format, hook_lines, answer, denials }, planned.plan))
}

/// Runs a front end on a runtime of its own; what blocks for ever (a read of a silent stdin) is left behind.
fn on_runtime<T>(front_end: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Fault::environment("runtime", format!("the runtime cannot be started: {e}"), ""))?;
    let done = runtime.block_on(front_end);
    runtime.shutdown_background();
    done
}
