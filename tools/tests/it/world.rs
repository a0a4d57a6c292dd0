//! A session with every built-in tool, in a folder of its own. Tests call tools by name and look at the frozen result.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use sluice_harness::Plugin;
use sluice_harness::cancel::Cancel;
use sluice_harness::content::plain_text;
use sluice_harness::context::Context;
use sluice_harness::ids::{CallId, SessionId};
use sluice_harness::log::event::FORMAT_VERSION;
use sluice_harness::log::{Header, SessionLog, now_rfc3339};
use sluice_harness::permission::{Mode, PermissionStore};
use sluice_harness::pipeline::{CallRequest, Frozen, Gated, Outcome, dispatch, gate, seal, settle};
use sluice_harness::registry;
use sluice_harness::scene::{SessionFacts, SessionScene, StopLatch};
use sluice_harness::seam::files::Files;
use sluice_harness::seam::live::Silent;
use sluice_harness::seam::model::ModelInfo;
use sluice_harness::seam::process::Processes;
use sluice_harness::seam::search::Search;
use sluice_harness::tool::Verdict;
use sluice_providers::files::LocalFiles;
use sluice_providers::process::LocalProcesses;
use sluice_providers::search::LocalSearch;
use sluice_tools::{BashConfig, ObservationPlugin, builtin};
use tempfile::TempDir;

/// A session, its folder and everything that its calls need.
pub(crate) struct World {
    pub(crate) scene: SessionScene,
    pub(crate) root: PathBuf,
    _log: SessionLog,
    _folder: TempDir,
}

/// What became of a call, as a test looks at it.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) input: Value,
    pub(crate) value: Option<Value>,
    pub(crate) text: String,
    pub(crate) failure: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) frozen: Frozen,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(BashConfig::default())
    }

    pub(crate) fn with(config: BashConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        Self::in_folder(folder, root, config)
    }

    /// A session that starts in `root`, which may be a link.
    pub(crate) fn in_folder(folder: TempDir, root: PathBuf, config: BashConfig) -> Self {
        let world = Self::bare(folder, root, config);
        let files: Arc<dyn Files> = Arc::new(LocalFiles::new());
        world.scene.context.provide(files).unwrap();
        ObservationPlugin::default().mount(&world.scene.context).unwrap();
        world
    }

    /// A session whose files the test provides.
    pub(crate) fn without_files() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        let world = Self::bare(folder, root, BashConfig::default());
        ObservationPlugin::default().mount(&world.scene.context).unwrap();
        world
    }

    /// A session in which nobody keeps what was seen.
    pub(crate) fn without_observations() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        let world = Self::bare(folder, root, BashConfig::default());
        let files: Arc<dyn Files> = Arc::new(LocalFiles::new());
        world.scene.context.provide(files).unwrap();
        world
    }

    fn bare(folder: TempDir, root: PathBuf, config: BashConfig) -> Self {
        let context = Context::root("test");
        let processes: Arc<dyn Processes> = Arc::new(LocalProcesses::new());
        let search: Arc<dyn Search> = Arc::new(LocalSearch::new());
        context.provide(processes).unwrap();
        context.provide(search).unwrap();
        for tool in builtin(config) {
            registry::register(&context, tool).unwrap();
        }
        let id = SessionId::fresh();
        let header = Header {
            r#type: "session".to_owned(),
            version: FORMAT_VERSION,
            id: id.clone(),
            created_at: now_rfc3339(),
            cwd: root.clone(),
            parent: None,
        };
        let log = SessionLog::create(&folder.path().join("log"), header).unwrap();
        let model =
            ModelInfo { provider: "script".to_owned(), model: "script".to_owned(), effort: None, context_window: None };
        let session = SessionFacts::new(
            id,
            root.clone(),
            root.clone(),
            folder.path().join("it's state"),
            Arc::new(PermissionStore::new(Mode::BypassPermissions)),
            model,
        );
        let scene = SessionScene {
            context,
            session: Arc::new(session),
            turn: None,
            log: log.handle(),
            live: Arc::new(Silent),
            cancel: Cancel::new(),
            latch: Arc::new(StopLatch::new()),
        };
        Self { scene, root, _log: log, _folder: folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> Done {
        self.call_under(&Cancel::new(), tool, arguments).await
    }

    /// Runs one call under a signal of its own.
    pub(crate) async fn call_under(&self, cancel: &Cancel, tool: &str, arguments: &Value) -> Done {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let scene = self.scene.scene().with_cancel(cancel);
        let request = CallRequest {
            call_id: CallId::new(format!("call_{number}")),
            name: tool.to_owned(),
            arguments: arguments.to_string(),
        };
        let sealed = seal(scene.context, scene.session, request);
        let input = sealed.identity().input().view().clone();
        let candidate = match gate(sealed, scene).await {
            Gated::Pass(permit) => dispatch(permit, scene).await,
            Gated::Refused(candidate) => candidate,
        };
        let frozen = settle(candidate, scene).await;
        let (value, failure, code) = match frozen.outcome() {
            Outcome::Success { value, verdict, .. } => {
                let failure = match verdict {
                    Verdict::Succeeded => None,
                    Verdict::Failed(text) => Some(text.clone()),
                };
                (Some(value.view().clone()), failure, None)
            }
            Outcome::Failure { message, info, .. } => {
                (None, Some(message.clone()), info.as_ref().map(|info| info.code.clone()))
            }
        };
        Done { input, value, text: plain_text(frozen.outcome().content()), failure, code, frozen }
    }

    pub(crate) async fn bash(&self, command: &str) -> Done {
        self.call("Bash", &serde_json::json!({ "command": command })).await
    }
}

impl Done {
    /// Without its final line end, which the value keeps.
    pub(crate) fn stdout(&self) -> &str {
        let text = self.value.as_ref().and_then(|value| value["stdout"].as_str());
        text.unwrap_or_else(|| panic!("no value: {self:?}")).trim_end_matches('\n')
    }

    pub(crate) fn stderr(&self) -> &str {
        self.value.as_ref().and_then(|value| value["stderr"].as_str()).unwrap_or_else(|| panic!("no value: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn assert_fine(&self) {
        assert!(self.failure.is_none(), "{self:?}");
    }
}

/// Keys in the order they were written.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
