//! Files by name, newest first.
//!
//! The invariant: a pattern speaks of the path below the root; equal times are ordered by path.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher};
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::search::{GlobHits, GlobQuery, SearchFault};

use super::walk::{self, Next, Root, Scope};

/// Finds the files. Blocks.
pub(super) fn glob(query: &GlobQuery, cancel: &Cancel) -> Result<GlobHits, SearchFault> {
    let matcher = compile(&query.pattern, &query.root)?;
    match walk::root_kind(&query.root)? {
        Root::Folder => {}
        Root::File => {
            let path = query.root.display().to_string();
            return Err(SearchFault::Failed { path, why: "it is a file, not a folder".to_owned() });
        }
    }
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    walk::files(&query.root, Scope::Everything, cancel, |entry| {
        if matcher.is_match(walk::below(&query.root, entry.path())) {
            // A file that vanished meanwhile is no hit.
            if let Ok(meta) = entry.metadata() {
                found.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path().to_owned()));
            }
        }
        Ok(Next::Go)
    })?;
    found.sort_by(|(a_time, a), (b_time, b)| b_time.cmp(a_time).then_with(|| a.cmp(b)));
    let truncated = found.len() > query.limit;
    found.truncate(query.limit);
    Ok(GlobHits { files: found.into_iter().map(|(_, path)| path).collect(), truncated })
}

fn compile(pattern: &str, root: &Path) -> Result<GlobMatcher, SearchFault> {
    let invalid = |why: String| SearchFault::InvalidPattern { pattern: pattern.to_owned(), why };
    // An absolute pattern is understood where it speaks of the root; `./` means nothing.
    let mut relative = pattern;
    if pattern.starts_with('/') {
        let root = root.to_string_lossy();
        relative = pattern
            .strip_prefix(root.trim_end_matches('/'))
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| invalid(format!("it is absolute and does not begin with the searched folder {root}")))?;
    }
    while let Some(rest) = relative.strip_prefix("./") {
        relative = rest;
    }
    if relative.is_empty() {
        return Err(invalid("it is empty".to_owned()));
    }
    GlobBuilder::new(relative)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|e| invalid(e.kind().to_string()))
}
