//! The editor's files over a real connection, with an editor that has buffers of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "../../../providers/tests/suite/files.rs"]
mod suite;

use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::seam::files::{Expectation, FileFault, Files};
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};
use sluice_protocol::acp::schema::v1::{
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use sluice_protocol::acp::{self, resource_not_found};
use sluice_protocol::{Connection, Options, Router, RpcError};
use sluice_providers::files::{FencedFiles, LocalFiles};
use tokio::task::JoinSet;

use super::{Abilities, Editor, EditorFiles};

const WATCHDOG: Duration = Duration::from_secs(120);
const BOTH: Abilities = Abilities { read: true, write: true };

/// An editor: files on disk, and unsaved buffers over some of them.
#[derive(Default)]
struct State {
    buffers: Mutex<HashMap<PathBuf, String>>,
    asked: Mutex<Vec<String>>,
    manner: Mutex<Manner>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Manner {
    #[default]
    Helpful,
    /// Gives texts with plain line ends and no mark, as editors keep them.
    Normalising,
    /// Has the texts of before.
    Mute,
    Refusing,
    Nonsense,
}

impl State {
    fn dirty(&self, path: &Path, text: &str) {
        self.buffers.lock().unwrap().insert(path.to_owned(), text.to_owned());
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    async fn manner(&self) -> Result<Manner, RpcError> {
        let manner = *self.manner.lock().unwrap();
        match manner {
            Manner::Mute => std::future::pending().await,
            Manner::Refusing => Err(RpcError::owned(-32000, "not\nfor you", None::<()>)),
            Manner::Helpful | Manner::Normalising | Manner::Nonsense => Ok(manner),
        }
    }

    async fn read(&self, request: ReadTextFileRequest) -> Result<serde_json::Value, RpcError> {
        self.asked.lock().unwrap().push(format!("read {}", request.path.display()));
        let manner = self.manner().await?;
        let buffer = self.buffers.lock().unwrap().get(&request.path).cloned();
        let text = match buffer {
            Some(text) => text,
            None => std::fs::read_to_string(&request.path).map_err(|e| resource_not_found(e.to_string(), ()))?,
        };
        Ok(match manner {
            Manner::Nonsense => serde_json::json!({ "content": 7 }),
            Manner::Normalising => {
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
                serde_json::to_value(ReadTextFileResponse::new(text)).unwrap()
            }
            Manner::Helpful | Manner::Mute | Manner::Refusing => {
                serde_json::to_value(ReadTextFileResponse::new(text)).unwrap()
            }
        })
    }

    async fn write(&self, request: WriteTextFileRequest) -> Result<WriteTextFileResponse, RpcError> {
        self.asked.lock().unwrap().push(format!("write {}", request.path.display()));
        self.manner().await?;
        self.buffers.lock().unwrap().remove(&request.path);
        std::fs::write(&request.path, request.content)
            .map_err(|e| RpcError::owned(-32603, e.to_string(), None::<()>))?;
        Ok(WriteTextFileResponse::new())
    }
}

/// Both ends of a connection, served until this is dropped.
struct Pair {
    state: Arc<State>,
    files: Arc<EditorFiles>,
    folder: tempfile::TempDir,
    _served: JoinSet<()>,
}

impl Pair {
    fn new(can: Abilities) -> Self {
        Self::over(can, |_| Arc::new(LocalFiles::new()), WATCHDOG)
    }

    fn over(can: Abilities, disk: impl FnOnce(&Path) -> Arc<dyn Files>, patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = Arc::new(State::default());
        let mut router = Router::new();
        let editor = Arc::clone(&state);
        let read = move |params: sluice_protocol::Params<'static>, _| {
            let editor = Arc::clone(&editor);
            async move { editor.read(acp::parse("fs/read_text_file", &params)?).await }
        };
        router.request("fs/read_text_file", read).unwrap();
        let editor = Arc::clone(&state);
        let write = move |params: sluice_protocol::Params<'static>, _| {
            let editor = Arc::clone(&editor);
            async move { editor.write(acp::parse("fs/write_text_file", &params)?).await }
        };
        router.request("fs/write_text_file", write).unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let connect = |end: UnixStream, router: Router| {
            Connection::new(end.try_clone().unwrap(), end, router, Options::default()).unwrap()
        };
        let (mut agent, mut editor) = (connect(ours, Router::new()), connect(theirs, router));
        let peer = agent.peer();
        let mut served = JoinSet::new();
        served.spawn(async move { drop(agent.serve().await) });
        served.spawn(async move { drop(editor.serve().await) });
        let editor = Editor::new(peer, "a session".to_owned(), patience);
        let disk = disk(folder.path());
        let files = Arc::new(EditorFiles::new(editor, can, &[folder.path().to_owned()], disk));
        Self { state, files, folder, _served: served }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn on_disk(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn manner(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
    }

    async fn read(&self, path: &Path) -> Result<(String, Expectation), FileFault> {
        let file = self.files.read_text(path, 1 << 20, &Cancel::new()).await?;
        let stat = self.files.stat(path, &Cancel::new()).await.unwrap().unwrap();
        assert_eq!(stat, file.stat, "one state, however it is looked at");
        Ok((file.text, Expectation::Version(file.stat.version)))
    }

    async fn write(&self, path: &Path, text: &str, expected: Expectation) -> Result<Option<String>, FileFault> {
        self.files.write_text(path, text, expected, &Cancel::new()).await.map(|written| written.before)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editors_files_pass_the_suite() {
    for can in [BOTH, Abilities { read: true, write: false }, Abilities { read: false, write: true }] {
        let pair = Pair::new(can);
        let files: Arc<dyn Files> = Arc::<EditorFiles>::clone(&pair.files);
        let run = suite::run_all(files, pair.folder.path());
        tokio::time::timeout(WATCHDOG, run).await.expect("the suite did not end");
        let asked = pair.state.asked();
        let count = |verb: &str| asked.iter().filter(|line| line.starts_with(verb)).count();
        assert_eq!((count("read ") > 100, count("write ") > 10), (can.read, can.write), "the editor did the work");
    }
}

#[tokio::test]
async fn the_fenced_files_behind_an_editor_pass_the_suite_and_keep_it_in() {
    let policy = |folder: &Path| SandboxPolicy {
        mode: SandboxMode::WorkspaceWrite,
        writable: vec![folder.join("in")],
        ..SandboxPolicy::off()
    };
    let fenced =
        |folder: &Path| -> Arc<dyn Files> { Arc::new(FencedFiles::new(Arc::new(LocalFiles::new()), &policy(folder))) };
    let pair = Pair::over(BOTH, fenced, WATCHDOG);
    std::fs::create_dir(pair.path("in")).unwrap();
    std::os::unix::fs::symlink(pair.folder.path(), pair.path("in/out")).unwrap();
    for path in ["f", "in/out/f", "in/../f", "new/f"] {
        let fault = pair.write(&pair.path(path), "x", Expectation::Any).await.unwrap_err();
        assert_eq!(fault.code(), "FS_SANDBOX_DENIED", "{path}");
    }
    assert!(!pair.path("f").exists() && !pair.path("new").exists());
    assert!(!pair.state.asked().iter().any(|line| line.starts_with("write ")));
    pair.write(&pair.path("in/f"), "x", Expectation::Any).await.unwrap();
    std::fs::remove_file(pair.path("in/out")).unwrap();
    suite::run_all(Arc::<EditorFiles>::clone(&pair.files), &pair.path("in")).await;
}

#[tokio::test]
async fn an_unsaved_buffer_is_what_is_read_and_part_of_the_version() {
    let pair = Pair::new(BOTH);
    let path = pair.on_disk("f", "saved\n");
    let (text, saved) = pair.read(&path).await.unwrap();
    assert_eq!(text, "saved\n");
    pair.state.dirty(&path, "unsaved\n");
    assert_eq!(pair.write(&path, "x", saved.clone()).await.unwrap_err().code(), "FS_STALE_VERSION");
    let (text, unsaved) = pair.read(&path).await.unwrap();
    assert_eq!(text, "unsaved\n");
    assert_ne!(saved, unsaved);
    pair.state.dirty(&path, "unsaved again\n");
    assert_eq!(pair.write(&path, "x", unsaved).await.unwrap_err().code(), "FS_STALE_VERSION");
    let (_, now) = pair.read(&path).await.unwrap();
    assert_eq!(pair.write(&path, "edited\n", now).await.unwrap().as_deref(), Some("unsaved again\n"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "edited\n");
    // The write left a state that the next one can build on.
    let (text, now) = pair.read(&path).await.unwrap();
    assert_eq!(text, "edited\n");
    pair.write(&path, "edited twice\n", now).await.unwrap();
}

#[tokio::test]
async fn a_buffer_that_was_never_saved_is_a_file() {
    let pair = Pair::new(BOTH);
    let path = pair.path("untitled");
    assert_eq!(pair.read(&path).await.unwrap_err().code(), "FS_NOT_FOUND");
    pair.state.dirty(&path, "");
    assert_eq!(pair.read(&path).await.unwrap_err().code(), "FS_NOT_FOUND", "an empty one is none");
    pair.state.dirty(&path, "draft");
    assert_eq!(pair.write(&path, "x", Expectation::Absent).await.unwrap_err().code(), "FS_NOT_OBSERVED");
    let (text, seen) = pair.read(&path).await.unwrap();
    assert_eq!(text, "draft");
    assert_eq!(pair.write(&path, "done", seen).await.unwrap().as_deref(), Some("draft"));
}

#[tokio::test]
async fn an_editor_that_has_not_noticed_a_change_on_disk_has_nothing_unsaved() {
    let pair = Pair::new(BOTH);
    let path = pair.on_disk("f", "old");
    pair.read(&path).await.unwrap();
    pair.state.dirty(&path, "old");
    pair.on_disk("f", "new, by a command");
    let (text, seen) = pair.read(&path).await.unwrap();
    assert_eq!(text, "new, by a command");
    pair.state.buffers.lock().unwrap().clear();
    pair.write(&path, "x", seen).await.expect("the editor's reloading changes nothing");
}

#[tokio::test]
async fn line_ends_and_marks_that_an_editor_keeps_apart_are_kept() {
    let pair = Pair::new(BOTH);
    pair.manner(Manner::Normalising);
    let path = pair.on_disk("f", "\u{feff}a\r\nb\r\n");
    assert_eq!(pair.read(&path).await.unwrap().0, "\u{feff}a\r\nb\r\n");
    pair.state.dirty(&path, "a\nb\nc\n");
    let (text, seen) = pair.read(&path).await.unwrap();
    assert_eq!(text, "\u{feff}a\r\nb\r\nc\r\n");
    pair.write(&path, &text, seen).await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_buffer_with_changes_is_not_written_beneath() {
    let pair = Pair::new(Abilities { read: true, write: false });
    let path = pair.on_disk("f", "saved");
    pair.state.dirty(&path, "unsaved");
    let (text, seen) = pair.read(&path).await.unwrap();
    assert_eq!(text, "unsaved");
    let fault = pair.write(&path, "x", seen).await.unwrap_err();
    assert!(fault.to_string().contains("unsaved changes") && fault.to_string().contains("save"), "{fault}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "saved");
}

#[tokio::test]
async fn what_is_not_the_editors_is_not_asked_of_it() {
    let pair = Pair::new(BOTH);
    let other = tempfile::tempdir().unwrap();
    let outside = other.path().join("f");
    pair.write(&outside, "x", Expectation::Absent).await.unwrap();
    assert_eq!(pair.read(&outside).await.unwrap().0, "x");
    assert_eq!(pair.read(Path::new("relative")).await.unwrap_err().code(), "FS_IO_ERROR");
    std::fs::write(pair.path("binary"), b"\x89PNG\0").unwrap();
    assert_eq!(pair.read(&pair.path("binary")).await.unwrap_err().code(), "FS_NOT_TEXT");
    assert_eq!(pair.files.read_bytes(&pair.path("binary"), 9, &Cancel::new()).await.unwrap().bytes.len(), 5);
    assert_eq!(pair.state.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn an_editors_refusal_is_one_clear_failure() {
    let pair = Pair::new(BOTH);
    let path = pair.on_disk("f", "kept");
    for (manner, words) in [
        (Manner::Refusing, "the editor answered `fs/read_text_file` with error -32000: not for you"),
        (Manner::Nonsense, "cannot understand the answer to `fs/read_text_file`"),
    ] {
        pair.manner(manner);
        for fault in [
            pair.files.read_text(&path, 10, &Cancel::new()).await.unwrap_err(),
            pair.files.stat(&path, &Cancel::new()).await.unwrap_err(),
            pair.write(&path, "x", Expectation::Any).await.unwrap_err(),
        ] {
            assert_eq!(fault.code(), "FS_IO_ERROR");
            assert!(fault.to_string().contains(words), "{fault}");
            assert!(fault.to_string().contains("/f: "), "{fault}");
        }
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}

#[tokio::test]
async fn r_103_a_mute_editor_holds_nobody() {
    let pair = Pair::over(BOTH, |_| Arc::new(LocalFiles::new()), Duration::from_millis(50));
    let path = pair.on_disk("f", "kept");
    pair.manner(Manner::Mute);
    let fault = pair.read(&path).await.unwrap_err();
    assert!(fault.to_string().contains("did not answer `fs/read_text_file` within 0.05 s"), "{fault}");

    let pair = Pair::new(BOTH);
    let path = pair.on_disk("f", "kept");
    pair.manner(Manner::Mute);
    let cancel = Cancel::new();
    let read = pair.files.read_text(&path, 10, &cancel);
    let write = pair.files.write_text(&path, "x", Expectation::Any, &cancel);
    let stop = async {
        while pair.state.asked.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel.cancel(CancelCause::User);
    };
    let all = async { tokio::join!(read, write, stop) };
    let (read, write, ()) = tokio::time::timeout(WATCHDOG, all).await.expect("the editor held us");
    assert_eq!((read.unwrap_err().code(), write.unwrap_err().code()), ("FS_ABORTED", "FS_ABORTED"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
}
