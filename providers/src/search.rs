//! Local search: files by name and lines by pattern, with the engine of ripgrep.
//!
//! The walk lives in [`walk`], finding names in [`names`], finding lines in [`lines`]. Nothing here changes a file or
//! follows a link inside the searched folder. The invariant: equal trees give equal answers in equal order, and
//! version-control folders are never entered.

mod lines;
mod names;
mod walk;

use std::path::Path;

use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::search::{GlobHits, GlobQuery, GrepHits, GrepQuery, Search, SearchFault};

use crate::off_thread;

/// Searches on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalSearch;

impl LocalSearch {
    /// A provider; it has no state.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Search for LocalSearch {
    fn glob<'a>(&'a self, query: GlobQuery, cancel: &'a Cancel) -> Fut<'a, Result<GlobHits, SearchFault>> {
        Box::pin(async move {
            let root = query.root.clone();
            off_thread::run(cancel, move |cancel| names::glob(&query, cancel)).await.map_err(|_| lost(&root))?
        })
    }

    fn grep<'a>(&'a self, query: GrepQuery, cancel: &'a Cancel) -> Fut<'a, Result<GrepHits, SearchFault>> {
        Box::pin(async move {
            let root = query.root.clone();
            off_thread::run(cancel, move |cancel| lines::grep(&query, cancel)).await.map_err(|_| lost(&root))?
        })
    }
}

fn lost(root: &Path) -> SearchFault {
    SearchFault::Failed { path: root.display().to_string(), why: "it was interrupted inside sluice".to_owned() }
}
