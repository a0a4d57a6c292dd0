//! What each session has seen of which file, so that nothing is changed unseen or from an outdated view.
//!
//! In memory only: a reloaded session reads again. One session's sight never serves another; a subagent counts as one
//! of its own. It is a policy like any other: the tools ask the points of files, and [`ObservationPlugin`] answers. Grep and Bash do not count as reading. Hooks that change a file just edited are part of that
//! edit: [`ObservationPlugin`] looks at the file again once they are through.

use std::collections::HashMap;
use std::future::ready;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sluice_harness::context::{Context, Rank};
use sluice_harness::ids::SessionId;
use sluice_harness::log::EventKind;
use sluice_harness::point::files::{
    EditAnswer, EditIntent, EditView, Observed, ObservedView, WriteAnswer, WriteIntent, WriteView,
};
use sluice_harness::point::tools::{Origin, PostAnswer, PostExecute, PostResult, PostView};
use sluice_harness::point::{Listener, ListenerFault, Next, Observer};
use sluice_harness::scene::{Scene, SessionFacts};
use sluice_harness::seam::files::{Expectation, FileFault, FileKey, FileStat, FileVersion, Files};
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

/// What each session has seen.
#[derive(Debug, Default)]
struct Observations {
    seen: Mutex<HashMap<Viewer, HashMap<FileKey, FileVersion>>>,
}

impl Observations {
    /// The state in which the session last saw a file; `None` when it never did.
    fn seen(&self, session: &SessionFacts, key: &FileKey) -> Option<FileVersion> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&Viewer::of(session))?.get(key).cloned()
    }

    /// Notes the state in which the session sees a file now.
    fn note(&self, session: &SessionFacts, stat: &FileStat) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(Viewer::of(session)).or_default().insert(stat.key.clone(), stat.version.clone());
    }

    /// Looks at a file again that the session has just changed: what was done to it since counts as seen (the hooks
    /// of the change have run). A file that the session never saw, or that is gone, stays unseen.
    async fn refresh_after(&self, scene: Scene<'_>, path: &Path) {
        let Ok(files) = scene.context.lease::<dyn Files>() else { return };
        let Ok(Some(stat)) = files.stat(path, scene.cancel).await else { return };
        match self.seen(scene.session, &stat.key) {
            Some(version) if version != stat.version => {
                let access = Access::Write;
                scene.context.notify::<Observed>(&ObservedView { scene, path, stat: Some(&stat), access });
            }
            Some(_) | None => {}
        }
    }
}

/// Mounts the policy of what was seen: it answers the two intents, keeps what is observed, and looks at edited files
/// again. The second look stands outside the hook bridges, so that their hooks have ended.
#[derive(Debug, Default)]
pub struct ObservationPlugin {
    observations: Arc<Observations>,
}

const PLUGIN_NAME: &str = "observations";

impl Plugin for ObservationPlugin {
    fn name(&self) -> &str {
        PLUGIN_NAME
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let own = || Arc::clone(&self.observations);
        context
            .listen::<WriteIntent>(Rank::POLICY, Seen(own()))
            .and_then(|_| context.listen::<EditIntent>(Rank::POLICY, Seen(own())))
            .and_then(|_| context.observe::<Observed>(Seen(own())))
            .and_then(|_| context.listen::<PostExecute>(Rank::OUTER, SecondLook { observations: own() }))
            .map(|_| ())
            .map_err(|fault| PluginFault { plugin: PLUGIN_NAME.to_owned(), why: fault.to_string() })
    }
}

/// The policy at the points of files.
struct Seen(Arc<Observations>);

impl Listener<WriteIntent> for Seen {
    fn name(&self) -> &str {
        PLUGIN_NAME
    }

    fn decide<'a>(
        &'a self,
        view: WriteView<'a>,
        _next: Next<'a, WriteIntent>,
    ) -> Fut<'a, Result<WriteAnswer, ListenerFault>> {
        let seen = view.there.and_then(|stat| self.0.seen(view.scene.session, &stat.key));
        Box::pin(ready(Ok(Ok(seen.map_or(Expectation::Absent, Expectation::Version)))))
    }
}

impl Listener<EditIntent> for Seen {
    fn name(&self) -> &str {
        PLUGIN_NAME
    }

    fn decide<'a>(
        &'a self,
        view: EditView<'a>,
        _next: Next<'a, EditIntent>,
    ) -> Fut<'a, Result<EditAnswer, ListenerFault>> {
        let seen = self.0.seen(view.scene.session, &view.there.key);
        let unseen = || FileFault::NotObserved { path: view.path.display().to_string() };
        Box::pin(ready(Ok(seen.map(Some).ok_or_else(unseen))))
    }
}

impl Observer<Observed> for Seen {
    fn observe(&self, observed: &ObservedView<'_>) {
        if let Some(stat) = observed.stat {
            self.0.note(observed.scene.session, stat);
        }
        let event = FsObserved {
            path: observed.path.display().to_string(),
            version: observed.stat.map(|stat| stat.version.0.clone()),
            access: match observed.access {
                Access::Read => "read".to_owned(),
                Access::Write => "write".to_owned(),
            },
        };
        // The event is for inspection alone: a log that takes nothing more is the turn's failure to tell, not this
        // tool's.
        let _ = observed.scene.log.append(&event);
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
