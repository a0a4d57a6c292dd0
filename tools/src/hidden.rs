//! Keeps files that a deny rule hides out of what searches find.
//!
//! A call is judged by the paths it names; what a search comes upon while it runs is judged here. A file whose reading
//! is denied does not show up at all.

use std::path::{Path, PathBuf};

use sluice_harness::permission::Place;
use sluice_harness::scene::SessionFacts;

/// The session's rules and folders at one moment.
pub(crate) struct Hidden<'a> {
    session: &'a SessionFacts,
    home: Option<PathBuf>,
    workspace: Vec<PathBuf>,
    cwd: PathBuf,
}

impl<'a> Hidden<'a> {
    /// What is hidden from a session now.
    pub(crate) fn from(session: &'a SessionFacts) -> Self {
        let mut workspace = vec![session.workspace_root.clone()];
        workspace.extend(session.additional_dirs.iter().cloned());
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self { session, home, workspace, cwd: session.cwd() }
    }

    /// Whether a file is.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        let place = Place::new(self.home.as_deref(), &self.workspace, &self.cwd, &self.session.state_dir);
        self.session.permissions.hides(path, &place)
    }
}
