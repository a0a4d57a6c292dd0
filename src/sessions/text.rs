//! A session's story as text for a person.
//!
//! The invariant: nothing from a log reaches a terminal as a control character, save line breaks and tabs.

use std::io::{self, Write};

use sluice_harness::agent::{Budget, CompletedHow, TurnEnd};
use sluice_harness::content::{Block, plain_text};
use sluice_harness::log::Inspection;
use sluice_harness::seam::approval::ApprovalOutcome;

use super::story::{CallStory, HookStory, Item, Stage, Story};

/// Writes the whole story.
pub(super) fn write(out: &mut dyn Write, log: &Inspection, story: &Story) -> io::Result<()> {
    writeln!(out, "session {}", one_line(log.header.id.as_str()))?;
    writeln!(out, "  folder  {}", one_line(&log.header.cwd.display().to_string()))?;
    writeln!(out, "  began   {}", one_line(&log.header.created_at))?;
    writeln!(out, "  log     {}", one_line(&log.path.display().to_string()))?;
    for item in &story.before {
        write_item(out, item)?;
    }
    for turn in &story.turns {
        writeln!(out, "\nturn {}", turn.number)?;
        for item in &turn.items {
            write_item(out, item)?;
        }
        match &turn.end {
            Some(end) => writeln!(out, "  ended: {}", one_line(&ending(end)))?,
            None => writeln!(out, "  not ended")?,
        }
    }
    Ok(())
}

fn write_item(out: &mut dyn Write, item: &Item) -> io::Result<()> {
    match item {
        Item::Prompt(prompt) => part(out, "prompt", &plain_text(&prompt.content)),
        Item::Blocked(blocked) => part(out, &format!("prompt rejected by {}", blocked.by), &blocked.reason),
        Item::Message(message) => part(out, &format!("message from {}", message.source), &plain_text(&message.content)),
        Item::Context(context) => part(out, &format!("context from {}", context.source), &context.text),
        Item::Assistant(answer) => {
            let text: Vec<Block> =
                answer.content.iter().filter(|block| matches!(block, Block::Text(_))).cloned().collect();
            let cut = if answer.interrupted { " (cut off)" } else { "" };
            if text.is_empty() && !answer.interrupted {
                return Ok(());
            }
            part(out, &format!("assistant{cut}"), &plain_text(&text))
        }
        Item::Retry(retry) => {
            let title = format!("request failed ({}), tried again after {} ms", retry.kind, retry.delay_ms);
            part(out, &title, &retry.message)
        }
        Item::Hook(hook) => write_hook(out, "  ", hook),
        Item::Call(call) => write_call(out, call),
    }
}

fn write_call(out: &mut dyn Write, call: &CallStory) -> io::Result<()> {
    let input = call.call.input.as_ref().map_or(call.call.arguments.as_str(), |input| input.text());
    let (name, id) = (one_line(&call.call.name), one_line(call.call.call_id.as_str()));
    writeln!(out, "  call {name} {} [{id}]", one_line(input))?;
    for stage in &call.stages {
        match stage {
            Stage::Gate(gate) => {
                let reason = gate.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                let line = format!("{} {} by {}{reason} ({} ms)", gate.stage, gate.verdict, gate.owner, gate.ms);
                writeln!(out, "    {}", one_line(&line))?;
            }
            Stage::Hook(hook) => write_hook(out, "    ", hook)?,
            Stage::Rewrite(rewrite) => {
                writeln!(out, "    runs instead: {} {}", one_line(&rewrite.name), one_line(rewrite.input.text()))?;
            }
            Stage::Asked(asked) => {
                let reason = asked.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                writeln!(out, "    asked{}", one_line(&reason))?;
            }
            Stage::Answered(answer) => {
                let by = answer.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
                writeln!(out, "    answered{}: {}", one_line(&by), one_line(&answered(&answer.outcome)))?;
            }
        }
    }
    let Some(result) = &call.result else { return writeln!(out, "    no result") };
    let title = match (result.denied_by.is_some(), result.is_error) {
        (true, _) => "denied",
        (false, true) => "failed",
        (false, false) => "result",
    };
    writeln!(out, "    {title}")?;
    indented(out, "      ", &plain_text(&result.content))
}

fn write_hook(out: &mut dyn Write, indent: &str, hook: &HookStory) -> io::Result<()> {
    let run = &hook.invoked;
    let end = match &hook.result {
        Some(result) => {
            let code = result.code.map(|code| format!(" {code}")).unwrap_or_default();
            format!("{}{code}, decision {} ({} ms)", result.ending, result.decision, result.duration_ms)
        }
        None => "not ended".to_owned(),
    };
    let line = format!("hook {} {} `{}`: {end}", run.dialect, run.event, run.command);
    writeln!(out, "{indent}{}", one_line(&line))?;
    let Some(result) = &hook.result else { return Ok(()) };
    for (name, text) in [("stdout", result.stdout.as_str()), ("stderr", result.stderr.as_str())]
        .into_iter()
        .chain(result.problem.as_deref().map(|text| ("problem", text)))
    {
        if !text.trim().is_empty() {
            writeln!(out, "{indent}  {name}")?;
            indented(out, &format!("{indent}    "), text)?;
        }
    }
    Ok(())
}

fn part(out: &mut dyn Write, title: &str, text: &str) -> io::Result<()> {
    writeln!(out, "  {}", one_line(title))?;
    indented(out, "    ", text)
}

fn indented(out: &mut dyn Write, indent: &str, text: &str) -> io::Result<()> {
    for line in text.trim_end().lines() {
        let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        if line.is_empty() { writeln!(out)? } else { writeln!(out, "{indent}{line}")? }
    }
    Ok(())
}

/// A text on one line, without control characters.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c }).filter(|c| !c.is_control()).collect()
}

fn answered(outcome: &ApprovalOutcome) -> String {
    match outcome {
        ApprovalOutcome::AllowedOnce => "allowed, once".to_owned(),
        ApprovalOutcome::Rejected { message: None, .. } => "rejected".to_owned(),
        ApprovalOutcome::Rejected { message: Some(message), .. } => format!("rejected: {message}"),
        ApprovalOutcome::Cancelled => "the question was withdrawn".to_owned(),
        ApprovalOutcome::Unavailable => "nobody could be asked".to_owned(),
    }
}

fn ending(end: &TurnEnd) -> String {
    let noted = |text: &str, note: Option<&str>| match note {
        Some(note) => format!("{text}: {note}"),
        None => text.to_owned(),
    };
    match end {
        TurnEnd::Completed { how, note } => {
            let how = match how {
                CompletedHow::Normal => "by itself",
                CompletedHow::StopHookPrevented => "a stop hook confirmed it",
                CompletedHow::StopHookCapped => "a stop hook wanted to go on, and its cap was reached",
                CompletedHow::Concluded => "a tool's result concluded it",
            };
            noted(how, note.as_deref())
        }
        TurnEnd::Rejected { by, text } => format!("the prompt was rejected by {by}: {text}"),
        TurnEnd::Stopped { cause } => noted(&format!("stopped by {}", cause.by), cause.reason.as_deref()),
        TurnEnd::Budget { which, limit } => match which {
            Budget::MaxTurns => format!("--max-turns {limit} was reached"),
            Budget::MaxSteps => format!("--max-steps {limit} was reached"),
            Budget::Timeout => format!("the time limit of {limit} ms was reached"),
            Budget::Continuations => format!("hooks had forced {limit} continuations, the most there may be"),
        },
        TurnEnd::MaxTokens => "the model ran into its output limit".to_owned(),
        TurnEnd::Refused => "the model refused".to_owned(),
        TurnEnd::Cancelled { cause } => format!("cancelled by {cause}"),
        TurnEnd::Error { kind, message } => format!("failed ({}): {message}", kind.code()),
        TurnEnd::Interrupted => "the program died in it".to_owned(),
    }
}
