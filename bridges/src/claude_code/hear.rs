//! From a finished run to what it said, before any event gives it a meaning: exit code times stdout (reference 6.1).
//!
//! Exit code and JSON are independent: valid JSON decides at any code, exit 2 always blocks. What failed is told apart
//! from what decided; whether a failure blocks is the handler's `onFailure`, else the configuration's. A gate whose hook
//! the machine could not start is closed, whatever they say.

use sluice_harness::seam::live::NoticeLevel;
use sluice_harness::seam::process::End;

use super::output::Output;
use crate::core::config::{Event, Handler, OnFailure, Waiting};
use crate::core::fire::Ran;
use crate::core::output::{OUTPUT_CAP, Printed, UTF16, first_line, is_utf16, objects_in_noise, parse_object, trimmed};

/// What one handler said.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Valid JSON that counts.
    pub(crate) output: Option<Output>,
    /// Plain stdout at exit 0, without its final newlines, on events where it is context.
    pub(crate) plain: Option<String>,
    /// The whole reason of an exit 2, `[command]: …`.
    pub(crate) exit2: Option<String>,
    /// A failure that blocks on this event: the whole text.
    pub(crate) blocking_failure: Option<String>,
    /// How many bytes the hook printed beyond what the text of one of these three has.
    pub(crate) missing: u64,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// What went wrong, for the record.
    pub(crate) problem: Option<String>,
}

/// What a failure does on an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// `onFailure` acts.
    Acts,
    /// It cannot block, but a handler that says `block` loses its JSON when it fails.
    DropsOutput,
    /// `onFailure` is ignored.
    Ignored,
}

fn rule_of(event: Event) -> Rule {
    match event {
        Event::UserPromptSubmit
        | Event::PreToolUse
        | Event::PermissionRequest
        | Event::PostToolUse
        | Event::PostToolUseFailure
        | Event::ConfigChange => Rule::Acts,
        Event::SessionStart => Rule::DropsOutput,
        Event::Stop | Event::SessionEnd | Event::Notification => Rule::Ignored,
    }
}

enum Told {
    Nothing,
    Plain(String),
    Json(Box<Output>),
    Unreadable(String),
}

/// Reads one run. `fallback` is `hooks.on_failure`.
pub(crate) fn hear(event: Event, ran: &Ran, fallback: OnFailure) -> Heard {
    let handler = &*ran.handler;
    let rule = rule_of(event);
    let on_failure = match (rule, handler.waiting) {
        (Rule::Acts, Waiting::Awaited) => handler.on_failure.unwrap_or(fallback),
        (Rule::DropsOutput, Waiting::Awaited) => handler.on_failure.unwrap_or_default(),
        (Rule::Ignored, _) | (_, Waiting::AwaitedLenient | Waiting::Async) => OnFailure::Continue,
    };
    let reader = Reader { event, handler, ran, rule, on_failure };
    reader.read()
}

struct Reader<'a> {
    event: Event,
    handler: &'a Handler,
    ran: &'a Ran,
    rule: Rule,
    on_failure: OnFailure,
}

impl Reader<'_> {
    fn read(&self) -> Heard {
        let output = &self.ran.output;
        let label = self.handler.label();
        match &output.end {
            End::Cancelled => return Heard { problem: Some("cancelled".to_owned()), ..Heard::default() },
            End::TimedOut => {
                let limit = self.handler.timeout.map_or_else(String::new, |t| format!(" within {} s", t.as_secs_f64()));
                return self.failure(
                    Failing::TimedOut,
                    None,
                    format!("hook `{label}` did not end{limit} and was stopped; it decided nothing"),
                );
            }
            End::NotStarted(problem) if problem.is_of_the_machine() && self.event.is_gate() => {
                // It may have denied: a loss of ours never opens a gate.
                return self.closed(&format!("could not be started: {problem}"));
            }
            End::NotStarted(_) => return self.not_started(),
            End::Exited(2) if self.ran.missing.is_some() => return self.not_started(),
            End::Exited(_) | End::Signalled(_) => {}
        }
        let told = self.told();
        if output.stdout.is_truncated() && self.event.is_gate() && !matches!(told, Told::Json(_)) {
            // What was cut off may have been a denial: a loss of ours never opens a gate.
            return self
                .closed(&format!("printed {} bytes, more than the {OUTPUT_CAP} that are read", output.stdout.total));
        }
        if let Some(heard) = self.denial_in_noise(&told) {
            return heard;
        }
        match &output.end {
            End::Exited(2) => self.exit_2(told),
            End::Exited(0) => self.exit_0(told),
            _ => self.exit_other(told),
        }
    }

    fn told(&self) -> Told {
        let text = self.ran.output.stdout.text();
        let whole = trimmed(&text);
        if whole.is_empty() {
            return Told::Nothing;
        }
        if !(whole.starts_with('{') && whole.ends_with('}')) {
            if first_line_goes_to_background(whole) {
                return Told::Nothing;
            }
            return Told::Plain(text.trim_end_matches(['\n', '\r']).to_owned());
        }
        match parse_object(whole) {
            Ok(json) => match Output::read(self.event, &json) {
                Ok(output) => Told::Json(Box::new(output)),
                Err(why) => Told::Unreadable(why),
            },
            Err(_) if first_line_goes_to_background(whole) => Told::Nothing,
            Err(_) if lines_of_strange_objects(whole) => Told::Plain(text.trim_end_matches(['\n', '\r']).to_owned()),
            Err(why) => Told::Unreadable(format!(
                "Hook output looks like a JSON object but is not valid JSON — {why}. Print it with a JSON encoder \
                 instead of joining strings."
            )),
        }
    }

    fn exit_0(&self, told: Told) -> Heard {
        match told {
            Told::Nothing => Heard::default(),
            Told::Plain(_) if is_utf16(&self.ran.output.stdout.head) => self.unreadable(UTF16),
            Told::Plain(plain) if self.event.is_gate() && plain.trim_start().starts_with('{') => {
                let warning = format!(
                    "hook `{}` printed text that begins like JSON and is not one whole object, beginning with \"{}\"; \
                     it decided nothing: make it print one JSON object and nothing more",
                    self.handler.label(),
                    first_line(&plain)
                );
                let problem = Some(warning.clone());
                Heard { warnings: vec![warning], problem, ..self.plain(plain) }
            }
            Told::Plain(plain) => self.plain(plain),
            Told::Json(output) => Heard { output: Some(*output), ..Heard::default() },
            Told::Unreadable(why) => self.unreadable(&why),
        }
    }

    /// Plain text: context where the event takes it for that.
    fn plain(&self, text: String) -> Heard {
        match self.event {
            Event::SessionStart | Event::UserPromptSubmit => {
                Heard { plain: Some(text), missing: self.ran.output.stdout.missing(), ..Heard::default() }
            }
            Event::PreToolUse
            | Event::PermissionRequest
            | Event::PostToolUse
            | Event::PostToolUseFailure
            | Event::Stop
            | Event::SessionEnd
            | Event::Notification
            | Event::ConfigChange => Heard::default(),
        }
    }

    fn exit_2(&self, told: Told) -> Heard {
        let label = self.handler.label();
        let stderr = self.ran.output.stderr.text();
        let stdout = self.ran.output.stdout.text();
        let mut reason = format!("[{label}]: ");
        let mut missing = 0;
        let output = match told {
            Told::Json(output) => Some(*output),
            Told::Nothing | Told::Plain(_) | Told::Unreadable(_) => None,
        };
        if trimmed(&stderr).is_empty() {
            reason.push_str("No stderr output");
            let said = trimmed(&stdout);
            if output.is_none() && !said.is_empty() {
                reason.push('\n');
                reason.push_str(said);
                missing = self.ran.output.stdout.missing();
            }
        } else {
            reason.push_str(&stderr);
            missing = self.ran.output.stderr.missing();
        }
        if let Some(own) = output.as_ref().and_then(Output::blocking_reason) {
            reason = own;
            missing = 0;
        }
        Heard { output, exit2: Some(reason), missing, ..Heard::default() }
    }

    fn exit_other(&self, told: Told) -> Heard {
        let label = self.handler.label();
        let stderr = self.ran.output.stderr.text();
        let second = if trimmed(&stderr).is_empty() { "No stderr output".to_owned() } else { stderr.clone() };
        match told {
            Told::Json(output) if self.on_failure == OnFailure::Continue || output.blocks() => {
                Heard { output: Some(*output), ..Heard::default() }
            }
            Told::Unreadable(why) => self.unreadable(&format!("{why}\n{stderr}")),
            Told::Json(_) | Told::Nothing | Told::Plain(_) => {
                if let Some(missing) = &self.ran.missing {
                    return self.failure(
                        Failing::Failed,
                        Some(second),
                        format!("hook `{label}` could not be started: {missing}; it decided nothing"),
                    );
                }
                let how = match &self.ran.output.end {
                    End::Signalled(signal) => format!("was ended by signal {signal}"),
                    End::Exited(code) => format!("ended with code {code}"),
                    End::TimedOut | End::Cancelled | End::NotStarted(_) => "failed".to_owned(),
                };
                let said = trimmed(&stderr);
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                let heard = self.failure(
                    Failing::Failed,
                    Some(second),
                    format!("hook `{label}` {how} and decided nothing{said} (only exit code 2 blocks)"),
                );
                Heard { missing: self.ran.output.stderr.missing(), ..heard }
            }
        }
    }

    fn unreadable(&self, why: &str) -> Heard {
        let shown = why.lines().next().unwrap_or(why);
        self.failure(
            Failing::Failed,
            Some(why.trim_end().to_owned()),
            format!("hook `{}` gave no usable answer: {shown}", self.handler.label()),
        )
    }

    fn not_started(&self) -> Heard {
        let label = self.handler.label();
        let missing = self.ran.missing.clone().unwrap_or_else(|| "it could not be started".to_owned());
        self.failure(
            Failing::Failed,
            Some(format!("Error occurred while executing hook command: {missing}")),
            format!("hook `{label}` could not be started: {missing}; it decided nothing"),
        )
    }

    fn failure(&self, how: Failing, second: Option<String>, warning: String) -> Heard {
        let label = self.handler.label();
        let problem = Some(warning.clone());
        let blocks = self.rule == Rule::Acts && self.on_failure == OnFailure::Block;
        if !blocks {
            return Heard { warnings: vec![warning], problem, ..Heard::default() };
        }
        let key = if self.handler.on_failure.is_some() { "onFailure" } else { "hooks.on_failure" };
        let how = match how {
            Failing::Failed => "failed",
            Failing::TimedOut => "timed out",
        };
        let first = format!("[{label}]: {how}; blocking because {key} is \"block\"");
        let text = match second {
            Some(second) => format!("{first}\n{}", second.trim_end()),
            None => first,
        };
        Heard { blocking_failure: Some(text), problem, ..Heard::default() }
    }

    /// The gate closed, for whatever the hook decided cannot be read.
    fn closed(&self, why: &str) -> Heard {
        let label = self.handler.label();
        let text = format!("[{label}]: {why}, so its decision is unknown");
        Heard { problem: Some(text.clone()), blocking_failure: Some(text), ..Heard::default() }
    }

    /// On a gate, a denial that is legible in output that is not one JSON object: it closes the gate, and is said.
    fn denial_in_noise(&self, told: &Told) -> Option<Heard> {
        let noisy = match told {
            Told::Plain(_) | Told::Unreadable(_) => true,
            Told::Nothing | Told::Json(_) => false,
        };
        if !noisy || !self.event.is_gate() || self.ran.output.end == End::Exited(2) {
            return None;
        }
        let stdout = self.ran.output.stdout.text();
        let Ok(objects) = objects_in_noise(&stdout) else {
            return Some(self.closed("printed a text in which no JSON object can be told from the rest"));
        };
        let denial = objects
            .iter()
            .filter_map(|text| parse_object(text).ok())
            .filter_map(|json| Output::read(self.event, &json).ok())
            .find(Output::denies)?;
        let warning = format!(
            "hook `{}` printed other text beside its decision, beginning with \"{}\"; its deny was honoured and \
             nothing else in that output: make it print one JSON object and nothing more",
            self.handler.label(),
            first_line(&stdout)
        );
        Some(Heard {
            output: Some(denial.only_denial()),
            problem: Some(warning.clone()),
            warnings: vec![warning],
            ..Heard::default()
        })
    }
}

enum Failing {
    Failed,
    TimedOut,
}

impl Heard {
    /// What the user is told: the warnings, then the hook's own message.
    pub(crate) fn notices(&self) -> Vec<(NoticeLevel, String)> {
        let mut notices: Vec<_> = self.warnings.iter().map(|w| (NoticeLevel::Warning, w.clone())).collect();
        if let Some(message) = self.output.as_ref().and_then(|o| o.system_message.clone()) {
            notices.push((NoticeLevel::Info, message));
        }
        notices
    }

    /// [`block`](Self::block) as a text for the model, made by `words` from the reason.
    pub(crate) fn printed_block(&self, words: impl FnOnce(&str) -> String) -> Option<Printed> {
        Some(Printed { text: words(&self.block()?), missing: self.missing })
    }

    /// Whether it blocks in the sense of `decision: block`, with the whole reason.
    pub(crate) fn block(&self) -> Option<String> {
        if let Some(text) = self.blocking_failure.clone().or_else(|| self.exit2.clone()) {
            return Some(text);
        }
        let output = self.output.as_ref().filter(|o| o.denies())?;
        Some(output.blocking_reason().unwrap_or_else(|| "Blocked by hook".to_owned()))
    }

    /// The added context, where there is one.
    pub(crate) fn context(&self) -> Option<String> {
        self.output.as_ref()?.specific_text("additionalContext")
    }

    /// The stop of the turn, where it asks for one.
    pub(crate) fn stop(&self) -> Option<Option<String>> {
        self.output.as_ref()?.stop.clone()
    }

    /// The word for the record.
    pub(crate) fn word(&self) -> &'static str {
        if self.blocking_failure.is_some() || self.block().is_some() {
            "block"
        } else if self.stop().is_some() {
            "stop"
        } else if self.context().is_some() || self.plain.is_some() {
            "context"
        } else if self.problem.is_some() {
            "failed"
        } else {
            "none"
        }
    }
}

/// Whether the first line is the object that sends a hook to the background: what follows decides nothing.
fn first_line_goes_to_background(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    text.lines().nth(1).is_some()
        && parse_object(first).is_ok_and(|json| json.view().get("async") == Some(&serde_json::Value::Bool(true)))
}

/// Whether the text is several lines, each an object, none with a key that an output has: plain text then.
fn lines_of_strange_objects(text: &str) -> bool {
    const KEYS: &[&str] = &[
        "continue",
        "stopReason",
        "suppressOutput",
        "systemMessage",
        "decision",
        "reason",
        "hookSpecificOutput",
        "async",
        "asyncTimeout",
        "terminalSequence",
    ];
    let mut lines = text.lines().filter(|l| !l.trim().is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| parse_object(line).is_ok_and(|json| KEYS.iter().all(|key| json.view().get(key).is_none())))
}
