//! `agent/configuration-change`: a settings file changed on disk while the session runs.
//!
//! The change is read and not yet in force. Whoever keeps it out leaves what was in force before; a fault does, too.

use super::Point;
use crate::scene::Scene;
use crate::seam::settings::SettingsChange;

/// The point.
pub enum ConfigurationChange {}

/// What a listener sees.
#[derive(Clone, Copy)]
pub struct ConfigurationView<'a> {
    /// The surroundings.
    pub scene: Scene<'a>,
    /// Which file.
    pub change: &'a SettingsChange,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigurationDecision {
    /// The change counts from now on.
    Apply,
    /// What was in force stays.
    Keep {
        /// Who keeps it out, such as `ConfigChange`.
        by: String,
        /// Why, for the user.
        reason: String,
    },
}

impl Point for ConfigurationChange {
    const NAME: &'static str = "agent/configuration-change";
    type View<'a> = ConfigurationView<'a>;
    type Decision = ConfigurationDecision;
}
