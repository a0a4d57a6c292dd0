//! The points that the file tools ask before a change and tell after a sight, with policies of other kinds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use sluice_harness::Fut;
use sluice_harness::context::Rank;
use sluice_harness::point::files::{
    EditAnswer, EditIntent, EditView, Observed, ObservedView, WriteAnswer, WriteIntent, WriteView,
};
use sluice_harness::point::{Listener, ListenerFault, Next, Observer};
use sluice_harness::seam::files::{Expectation, FileFault};
use sluice_harness::tool::Access;

use crate::world::World;

/// What a listener does with both intents.
#[derive(Clone, Copy)]
enum Manner {
    Allow,
    Refuse,
    PassOn,
    Panic,
}

#[derive(Clone)]
struct Policy(Manner, Arc<AtomicUsize>);

impl Policy {
    fn of(manner: Manner) -> Self {
        Self(manner, Arc::default())
    }

    fn asked(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }

    fn on(&self, world: &World, rank: Rank) {
        world.scene.context.listen::<WriteIntent>(rank, self.clone()).unwrap();
        world.scene.context.listen::<EditIntent>(rank, self.clone()).unwrap();
    }
}

impl Listener<WriteIntent> for Policy {
    fn name(&self) -> &str {
        "a policy"
    }

    fn decide<'a>(
        &'a self,
        view: WriteView<'a>,
        next: Next<'a, WriteIntent>,
    ) -> Fut<'a, Result<WriteAnswer, ListenerFault>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match self.0 {
                Manner::Allow => Ok(Ok(Expectation::Any)),
                Manner::Refuse => Ok(Err(FileFault::PermissionDenied { path: view.path.display().to_string() })),
                Manner::PassOn => next.delegate().await,
                Manner::Panic => panic!("out of its mind"),
            }
        })
    }
}

impl Listener<EditIntent> for Policy {
    fn name(&self) -> &str {
        "a policy"
    }

    fn decide<'a>(
        &'a self,
        view: EditView<'a>,
        next: Next<'a, EditIntent>,
    ) -> Fut<'a, Result<EditAnswer, ListenerFault>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            match self.0 {
                Manner::Allow => Ok(Ok(None)),
                Manner::Refuse => Ok(Err(FileFault::PermissionDenied { path: view.path.display().to_string() })),
                Manner::PassOn => next.delegate().await,
                Manner::Panic => panic!("out of its mind"),
            }
        })
    }
}

/// The outcomes of a write and of an edit of a file that nobody has read.
async fn outcomes(world: &World) -> [String; 2] {
    world.write("a.txt", "a\n");
    let edit = world.call("Edit", &json!({"file_path": "a.txt", "old_string": "a", "new_string": "b"})).await;
    world.write("b.txt", "a\n");
    let write = world.call("Write", &json!({"file_path": "b.txt", "content": "b\n"})).await;
    let changed = [world.text("b.txt") == "b\n", world.text("a.txt") == "b\n"];
    assert_eq!(changed, [write.code.is_none(), edit.code.is_none()], "{write:?} {edit:?}");
    [write, edit].map(|done| done.code.unwrap_or_else(|| "fine".to_owned()))
}

#[tokio::test]
async fn r_403_the_first_answer_counts_and_nobody_further_in_is_asked() {
    let world = World::new();
    let (first, second) = (Policy::of(Manner::Allow), Policy::of(Manner::Refuse));
    second.on(&world, Rank::NORMAL);
    first.on(&world, Rank::OUTER);
    assert_eq!(outcomes(&world).await, ["fine", "fine"], "the policy of sight is not reached either");
    assert_eq!((first.asked(), second.asked()), (2, 0));

    let world = World::new();
    let (first, second) = (Policy::of(Manner::PassOn), Policy::of(Manner::Refuse));
    second.on(&world, Rank::NORMAL);
    first.on(&world, Rank::OUTER);
    assert_eq!(outcomes(&world).await, ["FS_PERMISSION_DENIED", "FS_PERMISSION_DENIED"]);
    assert_eq!((first.asked(), second.asked()), (2, 2));
}

#[tokio::test]
async fn r_403_without_a_policy_changes_are_unconditional() {
    assert_eq!(outcomes(&World::new()).await, ["FS_NOT_OBSERVED", "FS_NOT_OBSERVED"]);
    assert_eq!(outcomes(&World::without_observations()).await, ["fine", "fine"]);
}

#[tokio::test]
async fn a_policy_that_fails_lets_nothing_be_changed() {
    let world = World::new();
    Policy::of(Manner::Panic).on(&world, Rank::OUTER);
    world.write("a.txt", "a\n");
    for (tool, input) in [
        ("Edit", json!({"file_path": "a.txt", "old_string": "a", "new_string": "b"})),
        ("Write", json!({"file_path": "a.txt", "content": "b"})),
    ] {
        let done = world.call(tool, &input).await;
        assert!(done.text.contains("could not be decided (a policy: panicked: out of its mind)"), "{}", done.text);
        assert_eq!(world.text("a.txt"), "a\n");
    }
}

struct Recorder(Arc<Mutex<Vec<(String, bool, Access)>>>);

impl Observer<Observed> for Recorder {
    fn observe(&self, seen: &ObservedView<'_>) {
        let name = seen.path.file_name().unwrap().to_str().unwrap().to_owned();
        self.0.lock().unwrap().push((name, seen.stat.is_some(), seen.access));
    }
}

#[tokio::test]
async fn r_403_sights_writes_and_absences_are_told_after_the_fact() {
    let world = World::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    world.scene.context.observe::<Observed>(Recorder(Arc::clone(&told))).unwrap();
    world.call("Read", &json!({"file_path": "a"})).await;
    world.call("Write", &json!({"file_path": "a", "content": "x"})).await.assert_fine();
    world.call("Read", &json!({"file_path": "a"})).await.assert_fine();
    world.call("Edit", &json!({"file_path": "a", "old_string": "nope", "new_string": "y"})).await;
    world.call("Edit", &json!({"file_path": "a", "old_string": "x", "new_string": "y"})).await.assert_fine();
    world.call("Edit", &json!({"file_path": "none", "old_string": "x", "new_string": "y"})).await;
    std::fs::write(world.path("bin"), b"\xff").unwrap();
    world.call("Read", &json!({"file_path": "bin"})).await;
    let wanted = [
        ("a", false, Access::Read),
        ("a", true, Access::Write),
        ("a", true, Access::Read),
        ("a", true, Access::Write),
        ("none", false, Access::Read),
    ];
    assert_eq!(*told.lock().unwrap(), wanted.map(|(name, there, access)| (name.to_owned(), there, access)));
}
