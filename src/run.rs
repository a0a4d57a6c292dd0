//! `sluice run`: headless turns in a shell pipeline.
//!
//! Data goes to stdout in the chosen format, everything else to stderr. Nothing that stdout shows decides anything; a
//! reader that goes away ends the run quietly.

mod prompts;
pub(crate) mod result;
mod stream_json;
mod structured;

use std::io::Write;
use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::agent::{CompletedHow, TurnEnd, TurnReport};
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::content::{Block, plain_text};
use sluice_harness::ids::SessionId;
use sluice_harness::json::Json;
use sluice_harness::log::Logged;
use sluice_harness::point::tools::DeniedBy;
use sluice_harness::registry;
use sluice_harness::seam::live::{LiveEvent, LiveSink, Notice, NoticeLevel};
use sluice_harness::seam::model::FaultKind;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cli::PromptSource;
use crate::compose::{self, Findings, Session, SessionPlan};
use crate::fault::{DenialPolicy, Fault, Outcome, outcome};
use crate::images;
use crate::output::{self, Output, OutputState};
use crate::signals::Signals;

use prompts::Prompts;
use result::RunResult;
pub(crate) use stream_json::HookLines;
use stream_json::Lines;
pub(crate) use structured::AnswerSchema;

/// What stdout gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The final text.
    Text,
    /// One result object.
    Json,
    /// One object a line, as it happens.
    StreamJson,
    /// The session log's own lines, as they are written.
    Events,
}

/// How a run is run.
pub(crate) struct Headless {
    pub(crate) prompts: PromptSource,
    pub(crate) format: Format,
    pub(crate) hook_lines: HookLines,
    /// What the final answer must fit.
    pub(crate) answer: Option<AnswerSchema>,
    pub(crate) denials: DenialPolicy,
}

/// The exit code of a run that failed.
const FAILED: u8 = 1;

/// The exit code after a reader of stdout has gone: 128 and SIGPIPE, as a shell says of `cat`.
const READER_GONE: u8 = 141;

/// Runs and returns the exit code.
///
/// # Errors
/// When nothing could be run.
pub(crate) async fn run(headless: Headless, plan: SessionPlan) -> Result<u8, Fault> {
    let Headless { prompts, format, hook_lines, answer, denials } = headless;
    let mut prompts = Prompts::open(prompts).await?;
    let (notices, heard) = unbounded_channel();
    let live = Arc::new(Ear { notices });
    let plan = SessionPlan { live, ..plan };
    let cancel = Cancel::new();
    let mut signals = Signals::take(cancel.clone())
        .map_err(|e| Fault::environment("signals", format!("signal handlers cannot be installed: {e}"), ""))?;
    let out = Output::stdout().map_err(|e| Fault::output(&e))?;
    let session = tokio::select! {
        session = compose::open(plan, |agent| answer.clone().map_or(Ok(()), |schema| schema.mount(agent))) => session?,
        // From here on the system no longer ends the program.
        number = signals.next() => return Ok(outcome_of_signal(number)),
    };
    say_findings(&session.findings);
    let id = session.agent.session().id.clone();

    let shown = Shown::new(&session, format, hook_lines, &id);
    let mut runner = Runner { shown, heard, out, format, answer, denials };
    if format == Format::StreamJson {
        runner.out.line(init_line(&session)).await;
    }
    let ran = runner.turns(&session, &mut prompts, &cancel, &mut signals).await;
    // Closed in every case, so that end hooks run, children end and the log is whole.
    let (closed, late) = close(session, &mut signals, &cancel).await;
    runner.catch_up().await;
    match runner.out.finish().await {
        OutputState::Open => {}
        OutputState::Closed => return Ok(READER_GONE),
        OutputState::Failed(fault) => return Err(Fault::output(&fault)),
    }
    let exit = ran?;
    if let Err(fault) = closed {
        // The run was made, so this is a failed run and not a refused one. What the turn said already is not repeated.
        if exit != FAILED {
            say(&fault.to_string());
        }
        return Ok(FAILED);
    }
    Ok(late.map_or(exit, outcome_of_signal))
}

/// Closes the session, with a signal that came meanwhile. The first signal of a run lets the end hooks finish, the next
/// one does not.
async fn close(session: Session, signals: &mut Signals, cancel: &Cancel) -> (Result<(), Fault>, Option<i32>) {
    let mut late = None;
    let first = !cancel.is_cancelled();
    let cut = async {
        let number = signals.next().await;
        late = Some(number);
        if first {
            say("sluice: the session is ending, and its end hooks still run; once more stops them");
            signals.next().await;
        }
    };
    let closed = session.close_unless("other", cut).await;
    (closed, late)
}

struct Runner {
    shown: Shown,
    heard: UnboundedReceiver<Notice>,
    out: Output,
    format: Format,
    answer: Option<AnswerSchema>,
    denials: DenialPolicy,
}

impl Runner {
    /// One turn a prompt, until there are no more, a signal comes or the reader has gone.
    async fn turns(
        &mut self,
        session: &Session,
        prompts: &mut Prompts,
        cancel: &Cancel,
        signals: &mut Signals,
    ) -> Result<u8, Fault> {
        let mut exit = 0;
        loop {
            let prompt = tokio::select! {
                biased;
                number = signals.next() => return Ok(outcome_of_signal(number)),
                prompt = prompts.next() => prompt?,
            };
            let Some(prompt) = prompt else { return Ok(exit) };
            if let Some(why) = images::not_taken(&prompt, session.agent.context()) {
                return Err(Fault::usage(
                    "images-not-taken",
                    format!("the prompt holds an image, {why}"),
                    "send it without the image, or choose another model with --model",
                ));
            }
            let turn_cancel = cancel.child();
            let asked = plain_text(&prompt);
            let mut report = {
                let turn = session.agent.prompt(prompt, &turn_cancel);
                tokio::pin!(turn);
                loop {
                    tokio::select! {
                        report = &mut turn => break report,
                        Some(notice) = self.heard.recv() => self.shown.notice(&self.out, &notice).await,
                        event = self.shown.next_event() => self.shown.event(&self.out, &event).await,
                        () = output::gone(self.out.watch()), if !turn_cancel.is_cancelled() => {
                            turn_cancel.cancel(CancelCause::User);
                        }
                        _ = signals.next() => {}
                    }
                }
            };
            self.catch_up().await;
            let structured = self.judge(&mut report);
            let outcome = outcome(&report.end, report.denials.len(), self.denials);
            exit = outcome.exit;
            if !matches!(*self.out.watch().borrow(), OutputState::Open) {
                // Whoever reads has gone, and that it ended so is no news.
                return Ok(exit);
            }
            say_end(&report, &asked, &self.shown);
            if self.format == Format::Text {
                say_denied_by_hooks(&report);
                say_unasked(&report);
            }
            self.result(session, &report, &outcome, structured).await?;
            if turn_cancel.is_cancelled() && matches!(report.end, TurnEnd::Cancelled { .. }) {
                return Ok(exit);
            }
        }
    }

    /// The answer as the value that was asked for; a completed turn whose answer does not fit has failed.
    fn judge(&self, report: &mut TurnReport) -> Option<Json> {
        let schema = self.answer.as_ref()?;
        if !matches!(report.end, TurnEnd::Completed { .. }) {
            return None;
        }
        match schema.judge(&report.text) {
            Ok(value) => Some(value),
            Err(why) => {
                let message = format!("the answer does not fit the schema (--json-schema): {why}");
                report.end = TurnEnd::Error { kind: FaultKind::BadResponse, message };
                None
            }
        }
    }

    async fn result(
        &self,
        session: &Session,
        report: &TurnReport,
        outcome: &Outcome,
        structured: Option<Json>,
    ) -> Result<(), Fault> {
        match self.format {
            Format::Text => {
                let text = result::text(report);
                if !text.is_empty() && !matches!(report.end, TurnEnd::Rejected { .. }) {
                    self.out.line(text).await;
                }
            }
            Format::Json | Format::StreamJson => {
                let object = RunResult::of(&session.agent.session().id, report, outcome, structured);
                self.out.line(serde_json::to_string(&object).map_err(Fault::internal)?).await;
            }
            Format::Events => {}
        }
        Ok(())
    }

    /// Shows what has happened and was not shown yet.
    async fn catch_up(&mut self) {
        while let Ok(notice) = self.heard.try_recv() {
            self.shown.notice(&self.out, &notice).await;
        }
        self.shown.drain(&self.out).await;
    }
}

/// A signal between turns: nothing was cut off, but the exit code says why the run ended.
fn outcome_of_signal(number: i32) -> u8 {
    let end = TurnEnd::Cancelled { cause: CancelCause::Signal(number) };
    outcome(&end, 0, DenialPolicy::Tolerate).exit
}

/// The front end's ear: notices go to stderr or into the stream, the rest is read from the log.
struct Ear {
    notices: UnboundedSender<Notice>,
}

impl LiveSink for Ear {
    fn send(&self, event: LiveEvent) -> Fut<'_, ()> {
        if let LiveEvent::Notice(notice) = event {
            // The run is over when nobody listens any more.
            let _ = self.notices.send(notice);
        }
        Box::pin(std::future::ready(()))
    }
}

/// What of the log is shown as it happens.
struct Shown {
    format: Format,
    events: UnboundedReceiver<Arc<Logged>>,
    lines: Lines,
    session: SessionId,
    header: Option<String>,
    /// The texts of warnings, so that none is said again at the end.
    warned: Vec<String>,
}

impl Shown {
    fn new(session: &Session, format: Format, hooks: HookLines, id: &SessionId) -> Self {
        let log = session.agent.log();
        let header = (format == Format::Events).then(|| serde_json::to_string(&log.header()).unwrap_or_default());
        Self {
            format,
            events: log.subscribe(),
            lines: Lines::new(id.clone(), hooks),
            session: id.clone(),
            header,
            warned: Vec::new(),
        }
    }

    async fn next_event(&mut self) -> Arc<Logged> {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    async fn event(&mut self, out: &Output, event: &Logged) {
        match self.format {
            Format::Events => {
                if let Some(header) = self.header.take() {
                    out.line(header).await;
                }
                out.line(event.line()).await;
            }
            Format::StreamJson => {
                if let Some(line) = self.lines.of(event) {
                    out.line(line).await;
                }
            }
            Format::Text | Format::Json => {}
        }
    }

    async fn drain(&mut self, out: &Output) {
        while let Ok(event) = self.events.try_recv() {
            self.event(out, &event).await;
        }
    }

    fn has_said(&self, text: &str) -> bool {
        self.warned.iter().any(|said| said == text)
    }

    async fn notice(&mut self, out: &Output, notice: &Notice) {
        if notice.level == NoticeLevel::Warning {
            self.warned.push(notice.text.clone());
        }
        if self.format == Format::StreamJson {
            out.line(stream_json::informational(&self.session, notice)).await;
        }
        if self.format != Format::StreamJson || notice.level != NoticeLevel::Info {
            say(&notice_text(notice));
        }
    }
}

fn init_line(session: &Session) -> String {
    let facts = session.agent.session();
    stream_json::init(&stream_json::Init {
        session: &facts.id,
        cwd: facts.start_dir.display().to_string(),
        tools: registry::visible(session.agent.context()).into_keys().collect(),
        model: facts.model().model,
        mode: facts.mode().to_string(),
        mcp_servers: &session.mcp_servers,
    })
}

/// A notice as one text: who says it, and what.
pub(crate) fn notice_text(notice: &Notice) -> String {
    match notice.level {
        NoticeLevel::Info => format!("{} says: {}", notice.source, notice.text),
        NoticeLevel::Warning => format!("{}: warning: {}", notice.source, notice.text),
        NoticeLevel::Error => format!("{}: error: {}", notice.source, notice.text),
    }
}

/// Writes lines to stderr, without empty ones; control codes that a hook may have printed stay out of the terminal.
pub(crate) fn say(text: &str) {
    let clean: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let lines: Vec<&str> = clean.lines().filter(|line| !line.trim().is_empty()).collect();
    // Stderr may be gone; there is nowhere left to say so.
    let _ = writeln!(std::io::stderr().lock(), "{}", lines.join("\n"));
}

/// Says what the settings have that is not as written.
pub(crate) fn say_findings(findings: &Findings) {
    for problem in &findings.problems {
        say(&format!("sluice: {problem}"));
    }
    if let Some(repair) = &findings.repair {
        say(&format!("sluice: {repair}"));
    }
}

/// Says on stderr how a turn ended when it did not end as one would wish. `asked` is the prompt.
fn say_end(report: &TurnReport, asked: &str, shown: &Shown) {
    match &report.end {
        TurnEnd::Rejected { text, .. } => say(without_prompt(text, asked)),
        TurnEnd::Stopped { cause } => {
            let why = cause.reason.as_deref().unwrap_or("no reason was given");
            say(&format!("sluice: {} stopped the turn: {why}", cause.by));
        }
        TurnEnd::Completed { how: CompletedHow::StopHookCapped, note: Some(note) } if !shown.has_said(note) => {
            say(&format!("sluice: {note}"));
        }
        TurnEnd::Completed { how: CompletedHow::StopHookPrevented, note: Some(note) } => {
            say(&format!("sluice: a Stop hook confirmed the end: {note}"));
        }
        end => {
            if let Some((code, message)) = result::error(end) {
                say(&format!("sluice: {message} [{code}]"));
            }
        }
    }
}

/// The reason of a rejection without the prompt at its end: who wrote it knows it, and it may hold what a log must not.
fn without_prompt<'a>(text: &'a str, asked: &str) -> &'a str {
    let before = text.strip_suffix(asked).and_then(|before| before.strip_suffix("Original prompt: "));
    before.unwrap_or(text).trim_end()
}

/// Says which calls hooks denied, and why in one line: in the text alone a reader would not see it.
fn say_denied_by_hooks(report: &TurnReport) {
    let mut said: Vec<String> = Vec::new();
    for denial in report.denials.iter().filter(|denial| denial.by == DeniedBy::Hook) {
        let reason = denial.reason.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason was given");
        let line = format!("sluice: a hook denied a call of {}: {}", denial.tool_name, reason.trim());
        if !said.contains(&line) {
            say(&line);
            said.push(line);
        }
    }
}

/// Says which tools were denied for want of somebody to ask: in the text alone a reader would not see it.
fn say_unasked(report: &TurnReport) {
    let mut tools: Vec<&str> =
        report.denials.iter().filter(|d| d.by == DeniedBy::NobodyToAsk).map(|d| d.tool_name.as_str()).collect();
    tools.sort_unstable();
    tools.dedup();
    if !tools.is_empty() {
        let tools = tools.join(", ");
        say(&format!(
            "sluice: calls of {tools} were denied, for nobody could be asked; grant what may run with --allowed-tools"
        ));
    }
}

/// A prompt's text as content.
pub(crate) fn text_prompt(text: String) -> Vec<Block> {
    vec![Block::text(text)]
}
