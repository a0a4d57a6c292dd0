//! What each session has seen of which file, so that nothing is changed unseen or from an outdated view.
//!
//! In memory only: a reloaded session reads again. One session's sight never serves another; a subagent counts as one
//! of its own. Grep and Bash do not count as reading. Hooks that change a file just edited are part of that
//! edit: [`ObservationPlugin`] looks at the file again once they are through.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sluice_harness::context::{Context, Rank};
use sluice_harness::ids::SessionId;
use sluice_harness::log::EventKind;
use sluice_harness::point::tools::{Origin, PostAnswer, PostExecute, PostResult, PostView};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::scene::{Scene, SessionFacts};
use sluice_harness::seam::files::{FileKey, FileStat, FileVersion, Files};
use sluice_harness::tool::Access;
use sluice_harness::{Fut, Plugin, PluginFault};

use crate::arguments::path_at;

/// A session saw a file, wrote one, or found none. For inspection; nothing is rebuilt from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsObserved {
    /// Absolute path.
    pub path: String,
    /// The file's state; `None` when there was no file.
    pub version: Option<String>,
    /// `read` or `write`.
    pub access: String,
}

impl EventKind for FsObserved {
    const TYPE: &'static str = "fs/observed";
    const IGNORABLE: bool = true;
}

/// Who looks: a session, and the subagent in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Viewer(SessionId, Option<String>);

impl Viewer {
    fn of(session: &SessionFacts) -> Self {
        Self(session.id.clone(), session.agent.as_ref().map(|agent| agent.id.clone()))
    }
}

/// The service that the tools for files share.
#[derive(Debug, Default)]
pub struct Observations {
    seen: Mutex<HashMap<Viewer, HashMap<FileKey, FileVersion>>>,
}

impl Observations {
    /// The state in which the session last saw a file; `None` when it never did.
    #[must_use]
    pub fn seen(&self, session: &SessionFacts, key: &FileKey) -> Option<FileVersion> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&Viewer::of(session))?.get(key).cloned()
    }

    /// Notes the state in which the session sees a file now.
    pub fn note(&self, scene: Scene<'_>, path: &Path, stat: &FileStat, access: Access) {
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.entry(Viewer::of(scene.session)).or_default().insert(stat.key.clone(), stat.version.clone());
        }
        record(scene, path, Some(&stat.version), access);
    }

    /// Notes that a session looked for a file and found none.
    pub fn note_absence(&self, scene: Scene<'_>, path: &Path) {
        record(scene, path, None, Access::Read);
    }

    /// Looks at a file again that the session has just changed: what was done to it since counts as seen (the hooks
    /// of the change have run). A file that the session never saw, or that is gone, stays unseen.
    pub async fn refresh_after(&self, scene: Scene<'_>, path: &Path) {
        let Ok(files) = scene.context.lease::<dyn Files>() else { return };
        let Ok(Some(stat)) = files.stat(path, scene.cancel).await else { return };
        match self.seen(scene.session, &stat.key) {
            Some(version) if version != stat.version => self.note(scene, path, &stat, Access::Write),
            Some(_) | None => {}
        }
    }

    /// Forgets all that a session and its subagents have seen; for when it is closed.
    pub fn forget(&self, session: &SessionId) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).retain(|viewer, _| viewer.0 != *session);
    }
}

fn record(scene: Scene<'_>, path: &Path, version: Option<&FileVersion>, access: Access) {
    let event = FsObserved {
        path: path.display().to_string(),
        version: version.map(|v| v.0.clone()),
        access: match access {
            Access::Read => "read".to_owned(),
            Access::Write => "write".to_owned(),
        },
    };
    // The event is for inspection alone: a log that takes nothing more is the turn's failure to tell, not this tool's.
    let _ = scene.log.append(&event);
}

/// Mounts the second look at edited files. It stands outside the hook bridges, so that their hooks have ended.
pub struct ObservationPlugin {
    observations: Arc<Observations>,
}

impl ObservationPlugin {
    /// The plugin for the service that the tools share.
    #[must_use]
    pub fn new(observations: Arc<Observations>) -> Self {
        Self { observations }
    }
}

const PLUGIN_NAME: &str = "observations";

impl Plugin for ObservationPlugin {
    fn name(&self) -> &str {
        PLUGIN_NAME
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let listener = SecondLook { observations: self.observations };
        context
            .listen::<PostExecute>(Rank::OUTER, listener)
            .map(|_| ())
            .map_err(|fault| PluginFault { plugin: PLUGIN_NAME.to_owned(), why: fault.to_string() })
    }
}

struct SecondLook {
    observations: Arc<Observations>,
}

impl Listener<PostExecute> for SecondLook {
    fn name(&self) -> &str {
        PLUGIN_NAME
    }

    fn decide<'a>(
        &'a self,
        view: PostView<'a>,
        next: Next<'a, PostExecute>,
    ) -> Fut<'a, Result<PostAnswer, ListenerFault>> {
        Box::pin(async move {
            let answer = next.delegate().await;
            let call = view.call();
            let member = match call.name() {
                "Write" | "Edit" | "MultiEdit" => Some("file_path"),
                "NotebookEdit" => Some("notebook_path"),
                _ => None,
            };
            if let Some(member) = member
                && view.origin() == Origin::Body
                && let PostResult::Success(_) = view.result()
                && let Some(path) = path_at(call.input(), member)
            {
                self.observations.refresh_after(view.scene(), &path).await;
            }
            answer
        })
    }
}
