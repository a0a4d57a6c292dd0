//! The permission modes and the three behaviours of a rule, with the words that settings files use for them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What happens to a call that no rule speaks of; the words are Claude Code's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reading inside the workspace goes on, everything else asks.
    #[default]
    #[serde(alias = "manual")]
    Default,
    /// Edits inside the workspace go on too.
    AcceptEdits,
    /// Only reading goes on; a person must answer for anything else.
    Plan,
    /// What would ask is denied.
    DontAsk,
    /// Everything goes on that no deny or ask rule names.
    BypassPermissions,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 5] = [Self::Default, Self::AcceptEdits, Self::Plan, Self::DontAsk, Self::BypassPermissions];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that names no mode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{word}` is no permission mode; use one of default, acceptEdits, plan, dontAsk, bypassPermissions")]
pub struct ModeError {
    /// The word.
    pub word: String,
}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(word: &str) -> Result<Self, ModeError> {
        if word == "manual" {
            return Ok(Self::Default);
        }
        Self::ALL.into_iter().find(|m| m.word() == word).ok_or_else(|| ModeError { word: word.to_owned() })
    }
}

/// What a rule does with the calls it matches; ordered by strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behaviour {
    /// They go on unasked.
    Allow,
    /// They are asked, in every mode.
    Ask,
    /// They never run.
    Deny,
}

impl Behaviour {
    /// The key of its list in a settings file's `permissions`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
