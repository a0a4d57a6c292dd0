//! The settings seam: files that gates and rules came from, which may change while a session runs.
//!
//! The provider knows which files count, reads them and puts them in force; the loop asks it before each turn and each
//! further request, so that what changed is judged at
//! [`ConfigurationChange`](crate::point::configuration::ConfigurationChange) before it counts. The invariant: a file
//! that cannot be read or parsed any more never takes its last good version out of force.

use std::path::PathBuf;

use crate::Fut;
use crate::scene::Scene;

/// Whose a settings file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingsSource {
    /// The user's own.
    User,
    /// It came with the repository.
    Project,
    /// The repository's local one.
    Local,
}

/// A settings file that holds something else than what is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsChange {
    /// Who reads the file, such as `claude-code`.
    pub owner: String,
    /// Whose it is.
    pub source: SettingsSource,
    /// The file; absolute.
    pub path: PathBuf,
}

/// Watches the settings of a session.
pub trait Settings: Send + Sync {
    /// What differs from what is in force; offered again until it is applied or declined. What cannot be used is said,
    /// once, and not offered.
    fn changed<'a>(&'a self, scene: Scene<'a>) -> Fut<'a, Vec<SettingsChange>>;
    /// Puts an offered change in force.
    fn apply<'a>(&'a self, scene: Scene<'a>, change: &'a SettingsChange) -> Fut<'a, ()>;
    /// Leaves an offered change out of force, until the file changes again.
    fn decline(&self, change: &SettingsChange);
}
