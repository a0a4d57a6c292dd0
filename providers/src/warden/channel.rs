//! What sluice and a warden say to each other: one line of orders, and one line about how it went.
//!
//! Both ends are the same build, so the format is nobody else's business.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_harness::seam::process::Confinement;

/// What a warden is to start. Folder, environment and the three streams are its own, which the command inherits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// The file.
    pub(crate) path: PathBuf,
    /// What the program is told it was called as.
    pub(crate) name: OsString,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// What it is confined by.
    pub(crate) confinement: Confinement,
    /// How long after TERM everything is killed, in milliseconds.
    pub(crate) grace_ms: u64,
}

impl Orders {
    pub(super) fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The command ended by itself.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It did not start.
    NotStarted {
        /// The system's error number.
        errno: i32,
    },
    /// It was not started, because it could not be confined as required.
    Unconfined {
        /// What is missing, and the remedy.
        why: String,
    },
}
