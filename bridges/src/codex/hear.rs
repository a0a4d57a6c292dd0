//! From a finished run of a Codex hook to what it said (reference 3): the exit code first, then stdout.
//!
//! Every failure leaves the action alone, unless `hooks.on_failure` is `block` on an event that can block. A word the
//! dialect does not know is a failure that never blocks. A gate whose hook the machine could not start is closed.

use sluice_harness::seam::live::NoticeLevel;
use sluice_harness::seam::process::End;

use super::output::{Fault, Output, Said, invalid, read};
use crate::core::config::{Event, Handler, OnFailure};
use crate::core::fire::Ran;
use crate::core::output::{OUTPUT_CAP, Printed, UTF16, first_line, is_utf16, objects_in_noise};

/// What one handler said.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) output: Output,
    /// How many bytes the hook printed beyond what its reason or its plain text has.
    pub(crate) missing: u64,
    pub(crate) warnings: Vec<String>,
    pub(crate) problem: Option<String>,
}

/// Reads one run. `on_failure` is `hooks.on_failure`.
pub(crate) fn hear(event: Event, ran: &Ran, on_failure: OnFailure) -> Heard {
    Reader { event, handler: &ran.handler, ran, on_failure }.read()
}

struct Reader<'a> {
    event: Event,
    handler: &'a Handler,
    ran: &'a Ran,
    on_failure: OnFailure,
}

impl Reader<'_> {
    fn read(&self) -> Heard {
        let output = &self.ran.output;
        match &output.end {
            End::Cancelled => Heard { problem: Some("cancelled".to_owned()), ..Heard::default() },
            End::TimedOut => {
                let limit = self.handler.timeout.map_or(600, |t| t.as_secs());
                self.failure(&format!("hook timed out after {limit}s"), "")
            }
            End::NotStarted(problem) if problem.is_of_the_machine() && self.event.is_gate() => {
                // It may have denied: a loss of ours never opens a gate.
                self.blocked(format!(
                    "the hook `{}` could not be started: {problem}, so its decision is unknown",
                    self.handler.label()
                ))
            }
            End::NotStarted(_) => self.not_started(),
            End::Signalled(_) => self.failure("hook exited without a status code", ""),
            End::Exited(2) if self.ran.missing.is_some() => self.not_started(),
            End::Exited(0) => self.exit_0(),
            End::Exited(2) => self.exit_2(),
            End::Exited(code) => {
                let said = self.ran.output.stderr.text().trim().to_owned();
                let missing = self.ran.missing.clone().unwrap_or_default();
                let detail = [missing, said].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(": ");
                let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
                self.failure(&format!("hook exited with code {code}"), &format!("{detail} (only exit code 2 blocks)"))
            }
        }
    }

    fn exit_2(&self) -> Heard {
        let lacking = match self.event {
            Event::SessionStart
            | Event::SessionEnd
            | Event::PermissionRequest
            | Event::PostToolUseFailure
            | Event::Notification
            | Event::ConfigChange => {
                return self.failure("hook exited with code 2", "");
            }
            Event::UserPromptSubmit | Event::PreToolUse => "a blocking reason",
            Event::PostToolUse => "feedback",
            Event::Stop => "a continuation prompt",
        };
        let stderr = self.ran.output.stderr.text();
        let reason = stderr.trim();
        if reason.is_empty() {
            let text = format!("{} hook exited with code 2 but did not write {lacking} to stderr", self.event.word());
            return self.failure(&text, "");
        }
        let output = Output { said: Said::Block(reason.to_owned()), ..Output::default() };
        Heard { output, missing: self.ran.output.stderr.missing(), ..Heard::default() }
    }

    fn exit_0(&self) -> Heard {
        let stdout = self.ran.output.stdout.text();
        let text = stdout.trim();
        if text.is_empty() {
            return Heard::default();
        }
        if is_utf16(&self.ran.output.stdout.head) {
            return self.failure(&format!("the hook gave no usable answer: {UTF16}"), "");
        }
        let fault = if text.starts_with('{') {
            match read(self.event, text) {
                Ok(output) => return Heard { output, ..Heard::default() },
                Err(fault) => Some(fault),
            }
        } else if text.starts_with('[') {
            Some(Fault::Unreadable(invalid(self.event)))
        } else {
            None
        };
        if let Some(heard) = self.denial_in_noise(&stdout) {
            return heard;
        }
        if self.ran.output.stdout.is_truncated() && self.event.is_gate() {
            // What was cut off may have been a denial: a loss of ours never opens a gate.
            let text = format!(
                "the hook `{}` printed {} bytes, more than the {OUTPUT_CAP} that are read, so its decision is unknown",
                self.handler.label(),
                self.ran.output.stdout.total
            );
            return self.blocked(text);
        }
        match (fault, self.event) {
            (Some(Fault::Unreadable(text)), _) => self.failure(&text, ""),
            (Some(Fault::Unsupported(text)), _) => self.warned(&text, ""),
            (None, Event::SessionStart | Event::UserPromptSubmit) => {
                let output = Output { context: Some(text.to_owned()), ..Output::default() };
                Heard { output, missing: self.ran.output.stdout.missing(), ..Heard::default() }
            }
            (None, Event::Stop) => self.failure(&invalid(self.event), ""),
            (
                None,
                Event::PermissionRequest
                | Event::PreToolUse
                | Event::PostToolUse
                | Event::PostToolUseFailure
                | Event::SessionEnd
                | Event::Notification
                | Event::ConfigChange,
            ) => Heard::default(),
        }
    }

    fn denial_in_noise(&self, stdout: &str) -> Option<Heard> {
        if !self.event.is_gate() {
            return None;
        }
        let Ok(objects) = objects_in_noise(stdout) else {
            return Some(self.blocked(format!(
                "the hook `{}` printed a text in which no JSON object can be told from the rest, so its decision is unknown",
                self.handler.label()
            )));
        };
        let reason = objects.iter().find_map(|text| match read(self.event, text) {
            Ok(Output { said: Said::Block(reason), .. }) => Some(reason),
            Ok(_) | Err(_) => None,
        })?;
        let warning = format!(
            "hook `{}` printed other text beside its decision, beginning with \"{}\"; its deny was honoured and \
             nothing else in that output: make it print one JSON object and nothing more",
            self.handler.label(),
            first_line(stdout)
        );
        Some(Heard {
            output: Output { said: Said::Block(reason), ..Output::default() },
            problem: Some(warning.clone()),
            warnings: vec![warning],
            ..Heard::default()
        })
    }

    fn not_started(&self) -> Heard {
        let missing = self.ran.missing.clone().unwrap_or_default();
        self.failure(&format!("hook could not be started: {missing}"), "")
    }

    fn failure(&self, text: &str, detail: &str) -> Heard {
        let can_block = match self.event {
            Event::UserPromptSubmit | Event::PreToolUse | Event::PostToolUse => true,
            Event::SessionStart
            | Event::Stop
            | Event::SessionEnd
            | Event::PermissionRequest
            | Event::PostToolUseFailure
            | Event::Notification
            | Event::ConfigChange => false,
        };
        if can_block && self.on_failure == OnFailure::Block {
            let label = self.handler.label();
            return self.blocked(format!("[{label}]: failed; blocking because hooks.on_failure is \"block\"\n{text}"));
        }
        self.warned(text, detail)
    }

    fn warned(&self, text: &str, detail: &str) -> Heard {
        let warning = format!("hook `{}`: {text}{detail}", self.handler.label());
        Heard { problem: Some(text.to_owned()), warnings: vec![warning], ..Heard::default() }
    }

    fn blocked(&self, text: String) -> Heard {
        Heard {
            problem: Some(text.clone()),
            output: Output { said: Said::Block(text), ..Output::default() },
            ..Heard::default()
        }
    }
}

impl Heard {
    /// What the user is told.
    pub(crate) fn notices(&self) -> Vec<(NoticeLevel, String)> {
        let mut notices: Vec<_> = self.warnings.iter().map(|w| (NoticeLevel::Warning, w.clone())).collect();
        if let Some(message) = &self.output.system_message {
            notices.push((NoticeLevel::Info, message.clone()));
        }
        notices
    }

    /// The word for the record.
    pub(crate) fn word(&self) -> &'static str {
        match &self.output.said {
            Said::Block(_) => "block",
            Said::Stop(_) => "stop",
            Said::Rewrite(_) => "rewrite",
            Said::Nothing if self.output.context.is_some() => "context",
            Said::Nothing if self.problem.is_some() => "failed",
            Said::Nothing => "none",
        }
    }
}

/// The contexts of all answers, in configuration order, each a message of its own.
pub(crate) fn contexts(heard: &[&Heard]) -> Vec<Printed> {
    let context = |heard: &Heard| Some(Printed { text: heard.output.context.clone()?, missing: heard.missing });
    heard.iter().filter_map(|h| context(h)).collect()
}
