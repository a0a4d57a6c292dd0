//! The permission policy as a plugin: the innermost pre-execute listener, and the deny rules as a guard.
//!
//! The guard looks at the deny rules once more after every listener and every answer, so that nothing an outer
//! listener or a person said can let a denied call through.

use std::path::PathBuf;

use super::judge::{Judgement, Place};
use crate::context::{Context, ContextFault, Rank};
use crate::point::tools::{Allow, DeniedBy, Guard, PolicyView, PreAnswer, PreExecute, PreTool, Reason};
use crate::point::{Listener, ListenerFault, Next};
use crate::scene::SessionFacts;
use crate::{Fut, Plugin, PluginFault};

const NAME: &str = "permission";

/// Mounts the permission policy; it judges by the store of the session that a call belongs to.
#[derive(Debug, Clone, Default)]
pub struct PolicyPlugin {
    home: Option<PathBuf>,
}

impl PolicyPlugin {
    /// The policy; `home` is what `~/` in a rule means.
    #[must_use]
    pub fn new(home: Option<PathBuf>) -> Self {
        Self { home }
    }
}

impl Plugin for PolicyPlugin {
    fn name(&self) -> &str {
        NAME
    }

    fn mount(self, context: &Context) -> Result<(), PluginFault> {
        let fault = |e: ContextFault| PluginFault { plugin: NAME.to_owned(), why: e.to_string() };
        let home = self.home.clone();
        context.listen::<PreExecute>(Rank::POLICY, Policy { home: self.home }).map_err(fault)?;
        let guard = Guard::new(NAME, move |view| {
            let (call, session) = (view.call, view.scene.session);
            let folders = Folders::of(session);
            let text = session.permissions.denied_by_rule(
                call.name(),
                view.facts,
                call.input(),
                &folders.place(session, home.as_deref()),
            )?;
            Some(Reason::new(DeniedBy::Rule, text))
        });
        context.guard(guard).map_err(fault)?;
        Ok(())
    }
}

struct Policy {
    home: Option<PathBuf>,
}

impl Listener<PreExecute> for Policy {
    fn name(&self) -> &str {
        NAME
    }

    /// Answers by itself: it stands innermost, and the point's own answer would be looser.
    fn decide<'a>(
        &'a self,
        view: PolicyView<'a>,
        _next: Next<'a, PreExecute>,
    ) -> Fut<'a, Result<PreAnswer, ListenerFault>> {
        Box::pin(async move {
            let session = view.scene().session;
            let call = view.call();
            if !call.is_known() {
                // Nothing can run under a name that no tool has: dispatch says so, and nobody is asked in vain.
                return Ok(PreAnswer::new(PreTool::Allow(Allow::plain())));
            }
            let folders = Folders::of(session);
            let place = folders.place(session, self.home.as_deref());
            let decision = match session.permissions.judge(call.name(), view.facts(), call.input(), &place) {
                Judgement::Allow { .. } => PreTool::Allow(Allow::plain()),
                Judgement::Ask { reason, origin } => PreTool::Ask { reason, origin },
                Judgement::Deny { reason, by } => PreTool::Deny(Reason::new(by, reason)),
            };
            Ok(PreAnswer::new(decision))
        })
    }
}

/// A session's folders at one moment.
struct Folders {
    workspace: Vec<PathBuf>,
    cwd: PathBuf,
}

impl Folders {
    fn of(session: &SessionFacts) -> Self {
        let mut workspace = vec![session.workspace_root.clone()];
        workspace.extend(session.additional_dirs.iter().cloned());
        Self { workspace, cwd: session.cwd() }
    }

    fn place<'a>(&'a self, session: &'a SessionFacts, home: Option<&'a std::path::Path>) -> Place<'a> {
        Place::new(home, &self.workspace, &self.cwd, &session.state_dir)
    }
}
