//! Two file-system providers, one set of tools: what stands behind the seam changes no consumer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::seam::files::{
    Expectation, FileBytes, FileFault, FileKey, FileKind, FileStat, FileText, FileVersion, Files, Written,
};

use crate::world::World;

/// Files that exist in memory alone; a version counts the writes.
#[derive(Default)]
struct MemoryFiles(Mutex<BTreeMap<PathBuf, (String, u64)>>);

fn stat_of(path: &Path, text: &str, version: u64) -> FileStat {
    FileStat {
        key: FileKey(path.to_owned()),
        kind: FileKind::File,
        size: text.len() as u64,
        version: FileVersion(version.to_string()),
    }
}

fn named(path: &Path) -> String {
    path.display().to_string()
}

impl Files for MemoryFiles {
    fn stat<'a>(&'a self, path: &'a Path, _: &'a Cancel) -> Fut<'a, Result<Option<FileStat>, FileFault>> {
        let files = self.0.lock().unwrap();
        let found = files.get(path).map(|(text, version)| stat_of(path, text, *version));
        Box::pin(std::future::ready(Ok(found)))
    }

    fn read_text<'a>(&'a self, path: &'a Path, _: u64, _: &'a Cancel) -> Fut<'a, Result<FileText, FileFault>> {
        let files = self.0.lock().unwrap();
        let read = match files.get(path) {
            Some((text, version)) => Ok(FileText { text: text.clone(), stat: stat_of(path, text, *version) }),
            None => Err(FileFault::NotFound { path: named(path) }),
        };
        Box::pin(std::future::ready(read))
    }

    fn read_bytes<'a>(&'a self, path: &'a Path, _: u64, _: &'a Cancel) -> Fut<'a, Result<FileBytes, FileFault>> {
        let files = self.0.lock().unwrap();
        let read = match files.get(path) {
            Some((text, version)) => {
                Ok(FileBytes { bytes: text.clone().into_bytes(), stat: stat_of(path, text, *version) })
            }
            None => Err(FileFault::NotFound { path: named(path) }),
        };
        Box::pin(std::future::ready(read))
    }

    fn prepare_write<'a>(&'a self, _: &'a Path, _: &'a Cancel) -> Fut<'a, Result<(), FileFault>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn write_text<'a>(
        &'a self,
        path: &'a Path,
        text: &'a str,
        expected: Expectation,
        _: &'a Cancel,
    ) -> Fut<'a, Result<Written, FileFault>> {
        let mut files = self.0.lock().unwrap();
        let before = files.get(path).cloned();
        let fits = match (&expected, &before) {
            (Expectation::Any, _) | (Expectation::Absent, None) => Ok(()),
            (Expectation::Absent, Some(_)) => Err(FileFault::NotObserved { path: named(path) }),
            (Expectation::Version(FileVersion(seen)), Some((_, version))) if *seen == version.to_string() => Ok(()),
            (Expectation::Version(_), _) => Err(FileFault::Stale { path: named(path) }),
        };
        let written = fits.map(|()| {
            let version = before.as_ref().map_or(1, |(_, version)| version + 1);
            files.insert(path.to_owned(), (text.to_owned(), version));
            Written { before: before.map(|(text, _)| text), stat: stat_of(path, text, version) }
        });
        Box::pin(std::future::ready(written))
    }
}

/// The same calls in a world, with its folder's name taken out of what they say.
async fn story(world: &World) -> Vec<(Option<Value>, String)> {
    let calls = [
        ("Write", json!({"file_path": "a.txt", "content": "one\ntwo\n"})),
        ("Read", json!({"file_path": "a.txt"})),
        ("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "TWO"})),
        ("Edit", json!({"file_path": "a.txt", "old_string": "absent", "new_string": "x"})),
        ("MultiEdit", json!({"file_path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"}]})),
        ("Write", json!({"file_path": "a.txt", "content": "new\n"})),
        ("Read", json!({"file_path": "gone.txt"})),
        ("Edit", json!({"file_path": "gone.txt", "old_string": "a", "new_string": "b"})),
    ];
    let root = world.root.display().to_string();
    let mut told = Vec::new();
    for (tool, input) in calls {
        let done = world.call(tool, &input).await;
        let value = done.value.map(|v| serde_json::from_str(&v.to_string().replace(&root, "ROOT")).unwrap());
        told.push((value, done.text.replace(&root, "ROOT")));
    }
    told
}

#[tokio::test]
async fn r_390_another_provider_of_files_changes_nothing_for_the_tools() {
    let local = World::new();
    let mut memory = World::new();
    let editor = memory.scene.context.child("editor").unwrap();
    let files: Arc<dyn Files> = Arc::new(MemoryFiles::default());
    editor.provide(files).unwrap();
    memory.scene.context = editor;
    assert_eq!(story(&memory).await, story(&local).await);
    assert!(local.path("a.txt").exists());
    assert!(!memory.path("a.txt").exists(), "nothing of it went to the disk");
}
