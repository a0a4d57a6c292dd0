//! Seen, unseen, changed since: what a session may change, and whose changes count as seen.

use std::path::PathBuf;

use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::context::Rank;
use sluice_harness::point::tools::{PostAnswer, PostExecute, PostView};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_tools::observation::FsObserved;

use crate::world::World;

/// Stands for a formatter: strips blanks at line ends of one file after each change.
struct Formatter(PathBuf);

impl Listener<PostExecute> for Formatter {
    fn name(&self) -> &str {
        "formatter"
    }

    fn decide<'a>(
        &'a self,
        _view: PostView<'a>,
        next: Next<'a, PostExecute>,
    ) -> Fut<'a, Result<PostAnswer, ListenerFault>> {
        let text = std::fs::read_to_string(&self.0).unwrap();
        let formatted: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        std::fs::write(&self.0, formatted).unwrap();
        next.delegate()
    }
}

#[tokio::test]
async fn changes_by_post_execute_hooks_count_as_seen() {
    let world = World::new();
    world.scene.context.listen::<PostExecute>(Rank::NORMAL, Formatter(world.path("a.txt"))).unwrap();
    world.call("Write", &json!({"file_path": "a.txt", "content": "x  \ny  \n"})).await.assert_fine();
    world.call("Edit", &json!({"file_path": "a.txt", "old_string": "x", "new_string": "z"})).await.assert_fine();
    world.call("Edit", &json!({"file_path": "a.txt", "old_string": "y", "new_string": "w"})).await.assert_fine();
    assert_eq!(world.text("a.txt"), "z\nw\n");

    world.write("a.txt", "somebody else\n");
    let edit = world.call("Edit", &json!({"file_path": "a.txt", "old_string": "s", "new_string": "S"})).await;
    assert_eq!(edit.code.as_deref(), Some("FS_STALE_VERSION"));
}

#[tokio::test]
async fn r_404_one_sessions_sight_never_serves_another() {
    let (one, other) = (World::new(), World::new());
    one.write("a.txt", "a\n");
    one.call("Read", &json!({"file_path": "a.txt"})).await.assert_fine();
    let edit = json!({"file_path": one.path("a.txt"), "old_string": "a", "new_string": "b"});
    assert_eq!(other.call("Edit", &edit).await.code.as_deref(), Some("FS_NOT_OBSERVED"));
    one.call("Edit", &edit).await.assert_fine();
}

#[tokio::test]
async fn r_395_an_alias_is_the_same_file() {
    let world = World::new();
    world.write("a.txt", "a\n");
    std::os::unix::fs::symlink(world.path("a.txt"), world.path("link")).unwrap();
    world.call("Read", &json!({"file_path": "link"})).await.assert_fine();
    world.call("Edit", &json!({"file_path": "a.txt", "old_string": "a", "new_string": "b"})).await.assert_fine();
}

#[tokio::test]
async fn r_406_grep_and_bash_do_not_count_as_reading() {
    let world = World::new();
    world.write("a.txt", "a\n");
    world.call("Grep", &json!({"pattern": "a", "output_mode": "content"})).await.assert_fine();
    world.bash("cat a.txt").await.assert_fine();
    let edit = world.call("Edit", &json!({"file_path": "a.txt", "old_string": "a", "new_string": "b"})).await;
    assert_eq!(edit.code.as_deref(), Some("FS_NOT_OBSERVED"));
}

#[tokio::test]
async fn r_403_reads_writes_and_absences_are_logged() {
    let world = World::new();
    let last = || world.scene.log.last::<FsObserved>().unwrap();
    world.call("Read", &json!({"file_path": "a.txt"})).await;
    assert_eq!((last().version, last().access.as_str()), (None, "read"));
    world.call("Write", &json!({"file_path": "a.txt", "content": "a"})).await.assert_fine();
    assert_eq!(last().access, "write");
    assert_eq!(last().path, world.path("a.txt").display().to_string());
    assert!(last().version.is_some());
}

/// A notebook, which every tool that changes files can change.
const FILE: &str = "{\"nbformat\":4,\"nbformat_minor\":5,\"cells\":[{\"cell_type\":\"raw\",\"id\":\"a\",\"metadata\":{},\"source\":\"x\"}]}";

/// What happened to the file before the change, in order.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Made,
    ReadByUs,
    PartReadByUs,
    WrittenByUs,
    EditedByUs,
    ReadByAnother,
    Changed,
    Removed,
}

#[tokio::test]
async fn r_404_r_405_what_was_seen_decides_what_may_be_changed() {
    use Deed::*;
    const FINE: &str = "fine";
    const UNSEEN: &str = "FS_NOT_OBSERVED";
    const STALE: &str = "FS_STALE_VERSION";
    const NONE: &str = "FS_NOT_FOUND";
    // What happened; then the outcome of Write, and that of each kind of edit.
    let table: [(&[Deed], &str, &str); 13] = [
        (&[], FINE, NONE),
        (&[ReadByUs], FINE, NONE),
        (&[Made], UNSEEN, UNSEEN),
        (&[ReadByUs, Made], UNSEEN, UNSEEN),
        (&[Made, ReadByAnother], UNSEEN, UNSEEN),
        (&[Made, ReadByUs], FINE, FINE),
        (&[Made, PartReadByUs], FINE, FINE),
        (&[WrittenByUs], FINE, FINE),
        (&[Made, ReadByUs, EditedByUs], FINE, FINE),
        (&[Made, ReadByUs, Changed], STALE, STALE),
        (&[WrittenByUs, Changed], STALE, STALE),
        (&[Made, ReadByUs, Changed, ReadByUs], FINE, FINE),
        (&[Made, ReadByUs, Removed], FINE, NONE),
    ];
    let name = "n.ipynb";
    let changes = [
        ("Write", json!({"file_path": name, "content": "new"})),
        ("Edit", json!({"file_path": name, "old_string": "nbformat_minor", "new_string": "minor"})),
        ("MultiEdit", json!({"file_path": name, "edits": [{"old_string": "nbformat_minor", "new_string": "minor"}]})),
        ("NotebookEdit", json!({"notebook_path": name, "cell_id": "a", "new_source": "y"})),
    ];
    for (deeds, write, edit) in table {
        for (tool, input) in &changes {
            let (world, other) = (World::new(), World::new());
            for deed in deeds {
                match deed {
                    Made => world.write(name, FILE),
                    ReadByUs => drop(world.call("Read", &json!({"file_path": name})).await),
                    PartReadByUs => {
                        world.call("Read", &json!({"file_path": name, "offset": 1, "limit": 1})).await.assert_fine();
                    }
                    WrittenByUs => {
                        world.call("Write", &json!({"file_path": name, "content": FILE})).await.assert_fine();
                    }
                    EditedByUs => {
                        let input = json!({"file_path": name, "old_string": "\"x\"", "new_string": "\"z\""});
                        world.call("Edit", &input).await.assert_fine();
                    }
                    ReadByAnother => {
                        other.call("Read", &json!({"file_path": world.path(name)})).await.assert_fine();
                    }
                    Changed => world.write(name, &format!("{FILE}\n")),
                    Removed => std::fs::remove_file(world.path(name)).unwrap(),
                }
            }
            let before = std::fs::read_to_string(world.path(name)).ok();
            let done = world.call(tool, input).await;
            let after = std::fs::read_to_string(world.path(name)).ok();
            let outcome = done.code.as_deref().unwrap_or(FINE);
            assert_eq!(outcome, if *tool == "Write" { write } else { edit }, "{deeds:?} {tool}: {done:?}");
            assert_eq!(outcome == FINE, before != after, "{deeds:?} {tool}: nothing changes on a failure");
            let remedy = match outcome {
                UNSEEN => "Read it first, then repeat the change.",
                STALE => "Read it again before changing it.",
                _ => "",
            };
            assert!(done.text.ends_with(remedy), "{deeds:?} {tool}: {}", done.text);
        }
    }
}
