//! What the program was started with: variables and folders, read once.
//!
//! Everything that would ask the process asks this instead, so that a test can say what there is. The invariant: no
//! other file of the program's own reads a variable.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::fault::{Fault, words};

/// A snapshot of the process's surroundings.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    home: Option<PathBuf>,
    cwd: PathBuf,
    temp: PathBuf,
}

impl Environment {
    /// The process's own. Variables that are no UTF-8 are left out: nothing here could use them.
    ///
    /// # Errors
    /// When the current folder has gone.
    pub(crate) fn of_process() -> Result<Self, Fault> {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let cwd = std::env::current_dir().map_err(|error: io::Error| {
            Fault::environment(
                "no-folder",
                format!("the current folder cannot be used: {}", words(&error)),
                "change to a folder that exists",
            )
        })?;
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        Ok(Self { variables, home, cwd, temp: std::env::temp_dir() })
    }

    /// A made-up one.
    #[cfg(test)]
    pub(crate) fn made_up(folder: &Path, variables: &[(&str, &str)]) -> Self {
        Self {
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            home: Some(folder.join("home")),
            cwd: folder.join("repo"),
            temp: folder.join("tmp"),
        }
    }

    /// The same without a home folder.
    #[cfg(test)]
    pub(crate) fn homeless(self) -> Self {
        Self { home: None, ..self }
    }

    /// A variable; an empty one counts as not set.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All variables, for what expands them.
    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The user's home folder, if there is one; absolute.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The folder that the program was started in; absolute.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The folder for temporary files.
    pub(crate) fn temp(&self) -> &Path {
        &self.temp
    }

    /// One of the folders of the XDG base directory specification; a relative value counts as not set, as it says.
    pub(crate) fn xdg(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let named = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| self.home().map(|home| home.join(below_home)))
    }
}
