//! The command line: from words to a typed plan of what to do.
//!
//! [`parse`] is pure: it reads no file, no variable and no terminal. What a flag means beyond its own syntax
//! (which folder, which model) is for those who carry the plan out. What the words may be is in [`args`], the flags
//! of a session in [`session`], lists of permission rules in [`rules`]. The invariant: a plan holds nothing that is
//! wrong in itself, and a flag that this build does not know is refused, never ignored.

mod args;
mod rules;
mod session;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser as _;
use sluice_bridges::Event;

use crate::fault::{DenialPolicy, Fault, nearest};

pub(crate) use args::{InputFormat, OutputFormat};
pub(crate) use session::{Diagnostics, HookUse, SessionPlan, SettingsArgument};

/// What to do.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "the program makes one of them")]
pub(crate) enum Command {
    /// Serve ACP on stdio.
    Acp(AcpPlan),
    /// One headless run.
    Run(Box<RunPlan>),
    /// The tour.
    Demo(DemoPlan),
    /// Names the sessions there are.
    SessionsList(ListFormat),
    /// Shows one session.
    SessionsShow(ShowPlan),
    /// Names the configured providers of models, and which model would be used.
    Models(ModelsPlan),
    /// Names the configured hooks.
    HooksList(HooksListPlan),
}

/// The plan of `acp`: the flags are defaults for its sessions.
#[derive(Debug, Clone)]
pub(crate) struct AcpPlan {
    /// What its sessions are made with.
    pub(crate) session: SessionPlan,
    /// Where all three streams are recorded.
    pub(crate) trace_wire: Option<PathBuf>,
}

/// The plan of `run`.
#[derive(Debug, Clone)]
pub(crate) struct RunPlan {
    /// What the session is made with.
    pub(crate) session: SessionPlan,
    /// Where the prompt comes from.
    pub(crate) prompt: PromptSource,
    /// What goes to stdout.
    pub(crate) output: OutputFormat,
    /// Whether hook lines are among the lines of `stream-json`.
    pub(crate) hook_events: HookEvents,
    /// Which session it goes on with.
    pub(crate) begin: Begin,
    /// The schema that the final answer must fit.
    pub(crate) answer: Option<SettingsArgument>,
    /// Whether a denied call shows in the exit code.
    pub(crate) denials: DenialPolicy,
}

/// Where the prompt comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PromptSource {
    /// The command line; what stdin has is context. Never empty.
    Argument(String),
    /// The command line and, because `-` stands beside it, the whole of stdin as context.
    ArgumentAndStdin(String),
    /// Stdin, to its end, because it was named (`-`).
    Stdin,
    /// Stdin, because there is no prompt; an error on a terminal.
    Unnamed,
    /// Lines on stdin, one turn each.
    StreamJson,
}

/// Whether hook lines are among the lines of `stream-json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HookEvents {
    /// They are not.
    #[default]
    Leave,
    /// They are.
    Include,
}

/// Which session a run goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Begin {
    /// A new one.
    #[default]
    Fresh,
    /// The last one of this folder.
    Continue,
    /// The one with this id, or the one whose id begins so.
    Resume(String),
}

/// The plan of `demo`.
#[derive(Debug, Clone)]
pub(crate) struct DemoPlan {
    /// Where its workspace is made, in place of a temporary folder.
    pub(crate) dir: Option<PathBuf>,
}

/// How a list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFormat {
    /// For a person.
    Human,
    /// One JSON object a line.
    Json,
}

impl ListFormat {
    fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Human }
    }
}

/// The plan of `sessions show`.
#[derive(Debug, Clone)]
pub(crate) struct ShowPlan {
    /// The session's id, or how it begins.
    pub(crate) id: String,
    /// How it is printed.
    pub(crate) format: ListFormat,
}

/// The plan of `hooks list`.
#[derive(Debug, Clone)]
pub(crate) struct HooksListPlan {
    /// Only this event.
    pub(crate) event: Option<Event>,
    /// How they are printed.
    pub(crate) format: ListFormat,
}

/// The plan of `models`.
#[derive(Debug, Clone)]
pub(crate) struct ModelsPlan {
    /// The model that would be named.
    pub(crate) model: Option<String>,
    /// How it is printed.
    pub(crate) format: ListFormat,
}

/// Why there is no plan.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// Help or the version was asked for, or the words are no command line at all: printed as it stands, to the
    /// stream and with the exit code that it names.
    Words(clap::Error),
    /// A value is wrong.
    Fault(Fault),
}

impl From<Fault> for NoPlan {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Reads the command line; the first word is the program's own name.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Command, NoPlan> {
    let words = with_print_alias(words.into_iter().collect());
    let first = words.get(1).and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let cli = args::Cli::try_parse_from(words).map_err(|error| no_command(&first, error))?;
    Ok(match cli.command {
        args::Command::Acp(acp) => {
            Command::Acp(AcpPlan { session: session::plan(acp.session)?, trace_wire: acp.trace_wire })
        }
        args::Command::Run(run) => Command::Run(Box::new(run_plan(*run)?)),
        args::Command::Demo(demo) => Command::Demo(DemoPlan { dir: demo.dir }),
        args::Command::Sessions(args::Sessions::List { json }) => Command::SessionsList(ListFormat::of(json)),
        args::Command::Sessions(args::Sessions::Show { id, json }) => {
            Command::SessionsShow(ShowPlan { id, format: ListFormat::of(json) })
        }
        args::Command::Models(args::Models { model, json }) => {
            Command::Models(ModelsPlan { model, format: ListFormat::of(json) })
        }
        args::Command::Hooks(args::Hooks::List { event, json }) => {
            let event = event.as_deref().map(event_named).transpose()?;
            Command::HooksList(HooksListPlan { event, format: ListFormat::of(json) })
        }
    })
}

/// A first word that is no command is most likely a prompt.
fn no_command(first: &str, error: clap::Error) -> NoPlan {
    let is_command = args::COMMANDS.contains(&first) || first.starts_with('-');
    if error.kind() != clap::error::ErrorKind::InvalidSubcommand || is_command {
        return NoPlan::Words(error);
    }
    let guess = nearest(first, args::COMMANDS.iter().copied());
    let guess = guess.map(|guess| format!("; did you mean `{guess}`?")).unwrap_or_default();
    NoPlan::Fault(Fault::usage(
        "command-unknown",
        format!("`{first}` is no command{guess}"),
        format!("to run it as a prompt: sluice run \"{first}\"\nto see the commands: sluice --help"),
    ))
}

/// `sluice -p …` is `sluice run …`: the flag may stand anywhere before `--`, where no command is named.
fn with_print_alias(mut words: Vec<OsString>) -> Vec<OsString> {
    let names_command = words.get(1).and_then(|w| w.to_str()).is_some_and(|w| args::COMMANDS.contains(&w));
    let prints = words.iter().skip(1).take_while(|w| *w != "--").any(|w| w.to_str().is_some_and(is_print_flag));
    if prints && !names_command {
        words.insert(1, "run".into());
    }
    words
}

/// Whether a word is `-p`, alone or together with other short flags that take no value.
fn is_print_flag(word: &str) -> bool {
    match word.strip_prefix('-') {
        Some(letters) => letters.contains('p') && letters.chars().all(|c| matches!(c, 'p' | 'v')),
        None => false,
    }
}

fn run_plan(run: args::Run) -> Result<RunPlan, Fault> {
    let prompt = prompt_source(run.prompt, run.input_format)?;
    let begin = match run.resume {
        Some(id) => Begin::Resume(id),
        None if run.go_on => Begin::Continue,
        None => Begin::Fresh,
    };
    Ok(RunPlan {
        session: session::plan(run.session)?,
        prompt,
        output: run.output_format,
        hook_events: if run.include_hook_events { HookEvents::Include } else { HookEvents::Leave },
        begin,
        answer: run.json_schema.map(session::text_or_file),
        denials: if run.fail_on_denial { DenialPolicy::Fail } else { DenialPolicy::Tolerate },
    })
}

fn prompt_source(words: Vec<String>, input: InputFormat) -> Result<PromptSource, Fault> {
    let stdin_named = words.iter().any(|word| word == "-");
    let mut texts = words.into_iter().filter(|word| word != "-");
    let text = texts.next();
    if texts.next().is_some() {
        return Err(Fault::usage(
            "prompt-twice",
            "there is more than one prompt on the command line",
            "put the whole prompt into one pair of quotes: sluice run \"what is here?\"",
        ));
    }
    match (text, input) {
        (Some(_), InputFormat::StreamJson) => Err(Fault::usage(
            "prompt-twice",
            "a prompt on the command line and --input-format stream-json exclude each other",
            "send the prompt as the first line on stdin, or leave out --input-format",
        )),
        (None, InputFormat::StreamJson) => Ok(PromptSource::StreamJson),
        (None, InputFormat::Text) if stdin_named => Ok(PromptSource::Stdin),
        (None, InputFormat::Text) => Ok(PromptSource::Unnamed),
        (Some(text), InputFormat::Text) if text.trim().is_empty() => Err(Fault::usage(
            "prompt-empty",
            "the prompt is empty",
            "give some text, as in: sluice run \"what does this project do?\"",
        )),
        (Some(text), InputFormat::Text) if stdin_named => Ok(PromptSource::ArgumentAndStdin(text)),
        (Some(text), InputFormat::Text) => Ok(PromptSource::Argument(text)),
    }
}

fn event_named(word: &str) -> Result<Event, Fault> {
    Event::of(word).ok_or_else(|| {
        let known: Vec<&str> = Event::ALL.iter().map(|e| e.word()).collect();
        let guess = nearest(word, known.iter().copied());
        let guess = guess.map(|guess| format!("; did you mean {guess}?")).unwrap_or_default();
        Fault::usage(
            "event-unknown",
            format!("`{word}` is no hook event that this build fires{guess}"),
            format!("use one of {}", known.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests;
