//! What the model reads where the file fence keeps a tool from changing a file.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use sluice_harness::seam::files::Files;
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};
use sluice_providers::files::{FencedFiles, LocalFiles};

use crate::world::World;

fn fenced(world: &World, mode: SandboxMode, writable: Vec<PathBuf>) {
    let protected = vec![world.path("sub/keys")];
    let policy = SandboxPolicy { mode, writable, protected, ..SandboxPolicy::off() };
    let files: Arc<dyn Files> = Arc::new(FencedFiles::new(Arc::new(LocalFiles::new()), &policy));
    world.scene.context.provide(files).unwrap();
}

#[tokio::test]
async fn r_411_a_denied_change_names_the_mode_and_what_is_left_to_do() {
    let world = World::without_files();
    fenced(&world, SandboxMode::WorkspaceWrite, ["sub/inner", "sub", "sub"].map(|name| world.path(name)).to_vec());
    world.write("a.txt", "a\n");
    world.call("Read", &json!({"file_path": "a.txt"})).await.assert_fine();
    let edit = world.call("Edit", &json!({"file_path": "a.txt", "old_string": "a", "new_string": "b"})).await;
    assert_eq!(edit.code.as_deref(), Some("FS_SANDBOX_DENIED"));
    let (file, below) = (world.path("a.txt"), world.path("sub"));
    let wanted = format!(
        "The sandbox mode workspace-write does not let {} be changed. Only files below {} can be changed, but for \
         those that hold keys or decide what runs later. Only the person who starts sluice can choose a wider sandbox, \
         with `--sandbox`.",
        file.display(),
        below.display()
    );
    assert!(edit.text.contains(&wanted), "{}", edit.text);
    assert_eq!(world.text("a.txt"), "a\n");
    world.call("Write", &json!({"file_path": "sub/b/c.txt", "content": "x"})).await.assert_fine();

    let guarded = world.call("Write", &json!({"file_path": "sub/keys/a", "content": "x"})).await;
    let wanted = format!("{} is guarded, in whichever folder it lies. Only", world.path("sub/keys").display());
    assert!(guarded.text.contains(&wanted), "{}", guarded.text);

    let world = World::without_files();
    fenced(&world, SandboxMode::ReadOnly, Vec::new());
    let write = world.call("Write", &json!({"file_path": "a.txt", "content": "x"})).await;
    assert_eq!(write.code.as_deref(), Some("FS_SANDBOX_DENIED"));
    assert!(write.text.contains("read-only") && write.text.contains("No file can be changed"), "{}", write.text);
    assert!(write.text.contains("with `--sandbox`"), "{}", write.text);
}
