//! What a session's tools may do to the machine: the policy of the sandbox, free of any mechanism.
//!
//! One owner makes the policy of a session (the composition root); the fence around files and the confinement of
//! commands both follow it, so that they agree about every folder.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much a command that the model proposes may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nothing but what a process needs to run, such as `/dev/null`.
    ReadOnly,
    /// The workspace, temporary folders and the usual caches of tools.
    WorkspaceWrite,
    /// Whatever the user may.
    Off,
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::Off => "off",
        })
    }
}

/// A word that names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no sandbox mode; use read-only, workspace-write or off")]
pub struct UnknownMode(pub String);

impl FromStr for SandboxMode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        match word {
            "read-only" => Ok(Self::ReadOnly),
            "workspace-write" => Ok(Self::WorkspaceWrite),
            "off" => Ok(Self::Off),
            _ => Err(UnknownMode(word.to_owned())),
        }
    }
}

/// A session's policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// How much may be changed.
    pub mode: SandboxMode,
    /// Folders and files that [`SandboxMode::WorkspaceWrite`] may write, with all that is below; absolute and free of
    /// symbolic links when the session begins, not necessarily there. One that a link leads to later is not followed.
    pub writable: Vec<PathBuf>,
    /// What stays as it is also below a writable folder; absolute and free of symbolic links.
    pub protected: Vec<PathBuf>,
    /// Whether commands may reach the network.
    pub network: bool,
    /// What was asked for by name: where it cannot be enforced, nothing runs.
    pub required: Required,
}

/// Which parts of a policy must be enforced for anything to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Required {
    /// That of [`SandboxPolicy::mode`].
    pub mode: bool,
    /// That of [`SandboxPolicy::network`].
    pub network: bool,
}

impl Default for SandboxPolicy {
    fn default() -> Self {
        Self::off()
    }
}

impl SandboxPolicy {
    /// The policy that asks for nothing: what a session without a sandbox has.
    #[must_use]
    pub fn off() -> Self {
        Self {
            mode: SandboxMode::Off,
            writable: Vec::new(),
            protected: Vec::new(),
            network: true,
            required: Required::default(),
        }
    }

    /// Whether nothing may run without a confinement.
    #[must_use]
    pub fn must_confine(&self) -> bool {
        (self.required.mode && self.mode != SandboxMode::Off) || (self.required.network && !self.network)
    }

    /// Whether a command is held back from anything at all.
    #[must_use]
    pub fn confines(&self) -> bool {
        self.mode != SandboxMode::Off || !self.network
    }
}
