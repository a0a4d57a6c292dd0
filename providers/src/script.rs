//! The script model: a model that plays a written sequence of steps.
//!
//! What a script file may say lives in [`format`], which step a request takes in [`sequence`], the call ids in
//! [`ids`], the text that `expect` looks at in [`seen`], the record of requests in [`record`], and the playing of one
//! step in [`play`].
//!
//! The invariant: nothing about a session is kept here. The step is a pure function of the request's purpose, agent
//! and index, so that two sessions on one script do not disturb each other and a resumed one goes on where its log
//! ends.

mod format;
mod ids;
mod play;
mod record;
mod seen;
mod sequence;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::model::{FaultKind, Model, ModelFault, ModelInfo, ModelRequest, ModelStream, Purpose, Retry};
use thiserror::Error;

use format::{Script, Step};
use ids::CallIds;
use record::Record;
use sequence::{Place, place};

use crate::off_thread;
use crate::process::words;

/// Why a script cannot be used.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {}: {}", path.display(), words(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text is no script.
    #[error("the script {name} is not valid at line {line}, column {column}: {why}")]
    Invalid {
        /// The file, or the name of an embedded script.
        name: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
}

/// A model that plays a script.
pub struct ScriptModel {
    info: ModelInfo,
    name: String,
    script: Script,
    ids: CallIds,
    record: Option<Arc<Record>>,
}

impl ScriptModel {
    /// Reads a script file. `record` is where requests are recorded whatever the script says about it (the value of
    /// `SLUICE_SCRIPT_RECORD`, relative to the working directory).
    ///
    /// # Errors
    /// When the file cannot be read or is no script; the error names the file, line and column.
    pub fn load(path: &Path, record: Option<PathBuf>) -> Result<Self, ScriptError> {
        let bytes = std::fs::read(path).map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        let name = path.display().to_string();
        let model = path.file_stem().map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned());
        Self::build(name, model, &bytes, path.parent().unwrap_or(Path::new("")), record)
    }

    /// A script from a text, such as the embedded demonstration. `name` is what errors and the model's information
    /// call it; `base_dir` is what a relative `record` in the script starts from.
    ///
    /// # Errors
    /// When the text is no script.
    pub fn from_text(name: &str, text: &str, base_dir: &Path, record: Option<PathBuf>) -> Result<Self, ScriptError> {
        Self::build(name.to_owned(), name.to_owned(), text.as_bytes(), base_dir, record)
    }

    fn build(
        name: String,
        model: String,
        bytes: &[u8],
        base_dir: &Path,
        record: Option<PathBuf>,
    ) -> Result<Self, ScriptError> {
        let script: Script = serde_json::from_slice(bytes).map_err(|e| {
            let position = format!(" at line {} column {}", e.line(), e.column());
            let text = e.to_string();
            let why = text.strip_suffix(&position).unwrap_or(&text).to_owned();
            ScriptError::Invalid { name: name.clone(), line: e.line().max(1), column: e.column().max(1), why }
        })?;
        let record = record.or_else(|| script.record.as_ref().map(|path| base_dir.join(path)));
        let info = ModelInfo {
            provider: "script".to_owned(),
            model,
            effort: Some("medium".to_owned()),
            context_window: script.context_window,
        };
        Ok(Self { info, name, script, ids: CallIds::default(), record: record.map(|path| Arc::new(Record::new(path))) })
    }

    /// Where a request finds its steps; `Err` is the answer when the script has none for it.
    fn steps_for(&self, request: &ModelRequest) -> Result<&[Arc<Step>], &'static str> {
        match (request.purpose, &request.agent) {
            (Purpose::Turn, None) => Ok(&self.script.steps),
            (Purpose::Turn, Some(agent)) => self.script.agents.get(agent).map(|a| a.steps.as_slice()).ok_or("done"),
            (Purpose::Hook, _) => self.script.hook_steps.as_deref().ok_or(r#"{"ok": true}"#),
            (Purpose::Compaction, _) => self.script.compaction_steps.as_deref().ok_or("summary"),
        }
    }

    /// The step a request takes, with the ids of its calls.
    fn take(&self, request: &ModelRequest) -> Result<(Arc<Step>, Vec<String>), ModelFault> {
        let steps = match self.steps_for(request) {
            Ok(steps) => steps,
            Err(answer) => return Ok((Arc::new(Step::saying(answer)), Vec::new())),
        };
        let when = self.script.when_exhausted;
        match place(steps.len(), request.index, when) {
            Place::At(at) => match steps.get(at) {
                Some(step) => Ok((Arc::clone(step), self.ids.of(request, steps, when))),
                None => Err(self.exhausted(steps.len(), request)),
            },
            Place::Silence => Ok((Arc::new(Step::default()), Vec::new())),
            Place::Exhausted => Err(self.exhausted(steps.len(), request)),
        }
    }

    fn exhausted(&self, len: usize, request: &ModelRequest) -> ModelFault {
        let list = match (request.purpose, &request.agent) {
            (Purpose::Turn, None) => "`steps`".to_owned(),
            (Purpose::Turn, Some(agent)) => format!("`steps` of the agent \"{agent}\""),
            (Purpose::Hook, _) => "`hook_steps`".to_owned(),
            (Purpose::Compaction, _) => "`compaction_steps`".to_owned(),
        };
        let plural = if len == 1 { "step" } else { "steps" };
        refusal(format!(
            "the script {} is exhausted: {list} has {len} {plural} and this is request {}. Add a step, or set \
             `when_exhausted` to \"stop\", \"last\" or \"loop\".",
            self.name,
            request.index.saturating_add(1),
        ))
    }

    async fn record(&self, request: &ModelRequest) -> Result<(), ModelFault> {
        let Some(record) = &self.record else { return Ok(()) };
        let failed = |why: String| ModelFault {
            kind: FaultKind::Internal,
            message: format!(
                "cannot record the request in {}: {why}. Check that its folder exists and may be written.",
                record.path().display()
            ),
            retry: Retry::No,
        };
        let line = record::line(request).map_err(|e| failed(e.to_string()))?;
        let writer = Arc::clone(record);
        // Not tied to the turn's signal: what was asked is recorded also when the turn ends just now.
        match off_thread::run(&Cancel::new(), move |_| writer.append(&line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(failed(words(&e))),
            Err(off_thread::Lost) => Err(failed("it was interrupted inside sluice".to_owned())),
        }
    }

    fn check(&self, step: &Step, request: &ModelRequest) -> Result<(), ModelFault> {
        if step.expect.is_empty() {
            return Ok(());
        }
        let Some(miss) = seen::Seen::of(request).miss(&step.expect) else { return Ok(()) };
        let place = match &self.record {
            Some(record) => format!("The request was recorded in {}.", record.path().display()),
            None => "Set `record` in the script, or SLUICE_SCRIPT_RECORD, to see the request.".to_owned(),
        };
        Err(refusal(format!(
            "the script {}, step {}, expects a request that {miss}. {place}",
            self.name, request.index
        )))
    }
}

fn refusal(message: String) -> ModelFault {
    ModelFault { kind: FaultKind::BadRequest, message, retry: Retry::No }
}

impl Model for ScriptModel {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    /// A script reads no prompt, so it takes whatever comes; its record shows it.
    fn takes_images(&self) -> bool {
        true
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Box<dyn ModelStream>, ModelFault>> {
        Box::pin(async move {
            self.record(&request).await?;
            let (step, ids) = self.take(&request)?;
            self.check(&step, &request)?;
            let place = format!("the script {}, step {}", self.name, request.index);
            play::start(step, ids, &request, place, cancel.clone()).await
        })
    }
}
