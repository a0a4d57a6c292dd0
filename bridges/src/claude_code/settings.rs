//! Reading one settings file: each entry by itself, what is wrong dropped alone and said with its place.
//!
//! Pure: text in, entries and problems out. Nothing wrong in one entry takes another one down; only a text that is no
//! JSON object loses everything in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use sluice_harness::permission::Mode;

use crate::core::config::{Action, Dialect, Event, Handler, Layer, OnFailure, Trust, Waiting};
use crate::core::matcher::{Matcher, PatternFault, hint};
use crate::core::problem::{Problem, Severity};

/// All event names the protocol has; other names are mistakes.
const KNOWN_EVENTS: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "PermissionRequest",
    "PermissionDenied",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
    "PreSkillShellCommand",
];

/// Where a file stands.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) source: PathBuf,
    pub(crate) layer: Layer,
    pub(crate) trust: Trust,
}

/// What one file holds.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) handlers: Vec<Handler>,
    pub(crate) disable_all: Option<bool>,
    pub(crate) allow: Vec<String>,
    pub(crate) ask: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) default_mode: Option<String>,
    pub(crate) no_bypass: bool,
    pub(crate) env: Vec<(String, String)>,
}

/// Reads a file's text.
pub(crate) fn read(origin: &Origin, text: &str, problems: &mut Vec<Problem>) -> File {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { origin, problems, file: File::default() };
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(settings)) => reader.settings(&settings),
        Ok(_) => reader.unreadable("it is no JSON object"),
        Err(why) => reader.unreadable(&why.to_string()),
    }
    reader.file
}

/// Whether a value is more than an empty place for one.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

struct Reader<'a> {
    origin: &'a Origin,
    problems: &'a mut Vec<Problem>,
    file: File,
}

impl Reader<'_> {
    fn source(&self) -> &Path {
        &self.origin.source
    }

    fn unreadable(&mut self, why: &str) {
        let cause = format!("{} cannot be read ({why}), so its hooks and rules are off.", self.source().display());
        self.problems.push(Problem::new(
            Severity::Error,
            "settings-unreadable",
            cause,
            "Make it one JSON object without comments.",
        ));
    }

    fn dropped(&mut self, path: &str, why: &str, remedy: &str) {
        let cause = format!("{}: {path}: {why}, so this entry is dropped.", self.source().display());
        self.problems.push(Problem::new(Severity::Warning, "settings-entry-invalid", cause, remedy));
    }

    fn not_followed(&mut self, path: &str, remedy: &str) {
        self.note(Severity::Warning, "settings-not-followed", path, "it is not followed here", remedy);
    }

    fn note(&mut self, severity: Severity, code: &'static str, path: &str, what: &str, remedy: &str) {
        let cause = format!("{}: {path}: {what}.", self.source().display());
        self.problems.push(Problem::new(severity, code, cause, remedy));
    }

    fn settings(&mut self, settings: &Map<String, Value>) {
        match settings.get("disableAllHooks") {
            None => {}
            Some(Value::Bool(flag)) => self.file.disable_all = Some(*flag),
            Some(_) => self.dropped("disableAllHooks", "it is neither true nor false", "Write true or false."),
        }
        match settings.get("permissions") {
            None => {}
            Some(Value::Object(permissions)) => self.permissions(permissions),
            Some(_) => self.dropped("permissions", "it is no object", "Write an object with allow, ask and deny."),
        }
        match settings.get("env") {
            None => {}
            Some(Value::Object(env)) => self.env(env),
            Some(_) => self.dropped("env", "it is no object", "Write an object of names and texts."),
        }
        match settings.get("hooks") {
            None => {}
            Some(Value::Object(hooks)) => self.hooks(hooks),
            Some(_) => self.dropped("hooks", "it is no object", "Write an object of events."),
        }
        if settings.get("sandbox").is_some_and(says_something) {
            self.not_followed("sandbox", "Use --sandbox and --network, or [sandbox] in sluice's own configuration.");
        }
        // Other programs keep keys of theirs here; these can only be hooks in the wrong place, so a gate that is off.
        for key in settings.keys().filter(|key| *key == "hook" || KNOWN_EVENTS.contains(&key.as_str())) {
            let remedy = if key == "hook" { "Rename it to `hooks`." } else { "Put it inside `\"hooks\": { … }`." };
            self.dropped(key, "hooks are read from `hooks` alone", remedy);
        }
    }

    fn permissions(&mut self, permissions: &Map<String, Value>) {
        for key in ["allow", "ask", "deny"] {
            let texts = self.texts(permissions.get(key), &format!("permissions.{key}"));
            match key {
                "allow" => self.file.allow = texts,
                "ask" => self.file.ask = texts,
                _ => self.file.deny = texts,
            }
        }
        match permissions.get("defaultMode") {
            None => {}
            Some(Value::String(mode)) => match mode.parse::<Mode>() {
                Ok(_) => self.file.default_mode = Some(mode.clone()),
                Err(why) => self.dropped("permissions.defaultMode", &why.to_string(), "Write a mode's name."),
            },
            Some(_) => self.dropped("permissions.defaultMode", "it is no text", "Write a mode's name."),
        }
        match permissions.get("disableBypassPermissionsMode") {
            None => {}
            Some(Value::String(word)) if word == "disable" => self.file.no_bypass = true,
            Some(_) => {
                self.dropped("permissions.disableBypassPermissionsMode", "it is not \"disable\"", "Write \"disable\".");
            }
        }
        if permissions.get("additionalDirectories").is_some_and(says_something) {
            let remedy = "Give each folder with --add-dir.";
            self.not_followed("permissions.additionalDirectories", remedy);
        }
    }

    fn texts(&mut self, value: Option<&Value>, path: &str) -> Vec<String> {
        let Some(value) = value else { return Vec::new() };
        let Value::Array(items) = value else {
            self.dropped(path, "it is no list", "Write a list of texts.");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                _ => self.dropped(&format!("{path}[{at}]"), "it is no text", "Write it in quotes."),
            }
        }
        texts
    }

    fn env(&mut self, env: &Map<String, Value>) {
        for (name, value) in env {
            match value {
                Value::String(text) => self.file.env.push((name.clone(), text.clone())),
                Value::Number(_) | Value::Bool(_) => self.file.env.push((name.clone(), value.to_string())),
                _ => self.dropped(&format!("env.{name}"), "it is no text", "Write it in quotes."),
            }
        }
    }

    fn hooks(&mut self, hooks: &Map<String, Value>) {
        for (name, groups) in hooks {
            let path = format!("hooks.{name}");
            let event = Event::of(name);
            if event.is_none() && !KNOWN_EVENTS.contains(&name.as_str()) {
                self.dropped(&path, "there is no such event", "Check the spelling; names are case-sensitive.");
                continue;
            }
            match groups {
                Value::Null => {}
                Value::Array(groups) => {
                    for (at, group) in groups.iter().enumerate() {
                        self.group(event, &format!("{path}[{at}]"), group);
                    }
                    if event.is_none() && !groups.is_empty() {
                        self.note(
                            Severity::Info,
                            "hook-event-not-fired",
                            &path,
                            "this event is not fired here yet, so its hooks do not run",
                            "Nothing to do; they load and stay off.",
                        );
                    }
                }
                _ => self.dropped(&path, "it is no list", "Write a list of groups."),
            }
        }
    }

    fn group(&mut self, event: Option<Event>, path: &str, group: &Value) {
        let Value::Object(group) = group else {
            self.dropped(path, "it is no object", "Write a group with `hooks`.");
            return;
        };
        let text = match group.get("matcher") {
            None => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(_) => {
                self.dropped(&format!("{path}.matcher"), "it is no text", "Write a tool's name or a pattern.");
                return;
            }
        };
        let Some(Value::Array(handlers)) = group.get("hooks") else {
            let why = "it has no list `hooks`";
            self.dropped(path, why, "Put the handler inside `\"hooks\": [ … ]`.");
            return;
        };
        let (matcher, fault) = Matcher::claude(text);
        let well_formed = fault.is_none();
        let subject = event.is_some_and(Event::has_subject);
        if let Some(fault) = fault.filter(|_| subject) {
            let code = match fault {
                PatternFault::Refused(_) => "hook-matcher-invalid",
                PatternFault::Beyond(_) => "hook-matcher-beyond",
            };
            let remedy = "Write a list of names such as `Edit|Write`, or a regular expression.";
            let matcher_path = format!("{path}.matcher");
            self.note(Severity::Warning, code, &matcher_path, &fault.to_string(), remedy);
        }
        if let Some((what, remedy)) = event.filter(|e| e.is_about_a_call() && well_formed).and_then(|_| hint(&matcher))
        {
            self.note(Severity::Info, "hook-matcher-hint", &format!("{path}.matcher"), &what, &remedy);
        }
        for name in matcher.exact_names().iter().filter(|_| subject) {
            if name.strip_prefix("mcp__").is_some_and(|rest| !rest.contains("__")) {
                self.note(
                    Severity::Info,
                    "hook-matcher-hint",
                    &format!("{path}.matcher"),
                    &format!("`{name}` is an exact name and no tool is called so"),
                    &format!("Write `{name}__.*` for all tools of that server."),
                );
            }
        }
        for (at, handler) in handlers.iter().enumerate() {
            let path = format!("{path}.hooks[{at}]");
            match self.handler(event, &path, handler) {
                Ok(Some(mut handler)) => {
                    handler.matcher = matcher.clone();
                    self.file.handlers.push(handler);
                }
                Ok(None) => {}
                Err((field, why)) => self.dropped(&format!("{path}{field}"), &why, "Correct it."),
            }
        }
    }

    /// A handler, or the field that is wrong and why.
    fn handler(
        &mut self,
        event: Option<Event>,
        path: &str,
        value: &Value,
    ) -> Result<Option<Handler>, (&'static str, String)> {
        let Value::Object(fields) = value else { return Err(("", "it is no object".to_owned())) };
        let text = |key: &'static str, field: &'static str| match fields.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err((field, "it is no text".to_owned())),
        };
        let flag = |key: &'static str, field: &'static str| match fields.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err((field, "it is neither true nor false".to_owned())),
        };
        let kind = text("type", ".type")?.ok_or((".type", "there is none".to_owned()))?;
        let condition = text("if", ".if")?;
        let timeout = match fields.get("timeout") {
            None => None,
            Some(value) => {
                let seconds = value.as_f64().filter(|s| *s > 0.0);
                let limit = seconds.and_then(|s| Duration::try_from_secs_f64(s.min(1e12)).ok());
                Some(limit.ok_or((".timeout", "it is no number of seconds above zero".to_owned()))?)
            }
        };
        text("statusMessage", ".statusMessage")?;
        let on_failure = match (kind.as_str(), fields.get("onFailure")) {
            (_, None) | ("prompt" | "agent", Some(_)) => None,
            (_, Some(Value::String(word))) if word == "block" => Some(OnFailure::Block),
            (_, Some(Value::String(word))) if word == "continue" => Some(OnFailure::Continue),
            ("mcp_tool", Some(_)) => Some(OnFailure::Block),
            (_, Some(_)) => return Err((".onFailure", "it is neither \"continue\" nor \"block\"".to_owned())),
        };
        let mut waiting = Waiting::Awaited;
        let action = match kind.as_str() {
            "command" => {
                let command = text("command", ".command")?.ok_or((".command", "there is none".to_owned()))?;
                match text("shell", ".shell")?.as_deref() {
                    None | Some("bash" | "powershell") => {}
                    Some(_) => return Err((".shell", "it is neither bash nor powershell".to_owned())),
                }
                for (key, field) in [("rewakeMessage", ".rewakeMessage"), ("rewakeSummary", ".rewakeSummary")] {
                    if text(key, field)?.is_some_and(|t| t.is_empty()) {
                        return Err((field, "it is empty".to_owned()));
                    }
                }
                if flag("asyncRewake", ".asyncRewake")? {
                    waiting = Waiting::AwaitedLenient;
                }
                if flag("async", ".async")? {
                    waiting = Waiting::Async;
                }
                match fields.get("args") {
                    None => Action::Shell { command },
                    Some(Value::Array(items)) => {
                        let args: Option<Vec<_>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
                        let args = args.ok_or((".args", "it is no list of texts".to_owned()))?;
                        Action::Exec { command, args }
                    }
                    Some(_) => return Err((".args", "it is no list of texts".to_owned())),
                }
            }
            "http" => {
                let url = text("url", ".url")?.ok_or((".url", "there is none".to_owned()))?;
                Action::Unsupported { kind: kind.clone(), label: url }
            }
            "mcp_tool" => {
                let server = text("server", ".server")?.ok_or((".server", "there is none".to_owned()))?;
                let tool = text("tool", ".tool")?.ok_or((".tool", "there is none".to_owned()))?;
                Action::Unsupported { kind: kind.clone(), label: format!("{server}/{tool}") }
            }
            "prompt" | "agent" => {
                let prompt = text("prompt", ".prompt")?.ok_or((".prompt", "there is none".to_owned()))?;
                Action::Unsupported { kind: kind.clone(), label: prompt }
            }
            other => return Err((".type", format!("`{other}` is no type of handler"))),
        };
        let Some(event) = event else { return Ok(None) };
        self.hints(event, path, &action, condition.as_deref(), waiting);
        Ok(Some(Handler {
            dialect: Dialect::ClaudeCode,
            event,
            source: self.origin.source.clone(),
            json_path: path.to_owned(),
            layer: self.origin.layer,
            matcher: Matcher::all(),
            condition,
            action,
            timeout,
            on_failure,
            waiting,
            trust: self.origin.trust,
            off: None,
        }))
    }

    fn hints(&mut self, event: Event, path: &str, action: &Action, condition: Option<&str>, waiting: Waiting) {
        if let Action::Unsupported { kind, .. } = action {
            let what = format!("hooks of type `{kind}` cannot be run here yet");
            let consequence = match event {
                Event::PreToolUse => "Each call it would see is asked instead; use a command hook, or remove it.",
                Event::SessionStart
                | Event::UserPromptSubmit
                | Event::PermissionRequest
                | Event::PostToolUse
                | Event::PostToolUseFailure
                | Event::Stop
                | Event::SessionEnd
                | Event::Notification
                | Event::ConfigChange => "It is said each time it would run; use a command hook, or remove it.",
            };
            self.note(Severity::Warning, "hook-type-unsupported", path, &what, consequence);
        }
        if let Some(rule) = condition.filter(|r| !r.is_empty()) {
            let if_path = format!("{path}.if");
            if !event.is_about_a_call() {
                let what = "an `if` never holds on an event that is not about a tool call, so the hook never runs";
                self.note(Severity::Warning, "hook-if-never", &if_path, what, "Remove the `if`.");
            } else if let Err(why) = sluice_harness::permission::Rule::parse(rule) {
                let what = format!("{why}, so the hook never runs");
                self.note(Severity::Warning, "hook-if-invalid", &if_path, &what, "Write one permission rule.");
            }
        }
        if waiting == Waiting::Async && matches!(event, Event::Stop | Event::SessionEnd) {
            let what = "an async hook at the end of a session may be stopped before it is done";
            self.note(Severity::Info, "hook-async-late", path, what, "Remove `async` where it has to finish.");
        }
    }
}
