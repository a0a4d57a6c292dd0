//! Contexts: what a scope owns ends with it, in order, and nothing of it is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_harness::cancel::CancelCause;
use sluice_harness::context::{Context, ContextFault, Rank, Seam};
use sluice_harness::point::tools::{Guard, PreExecute};
use sluice_harness::registry::{self, RegisterFault};
use tokio::sync::Notify;

use crate::kit::{allow, on_in, ready};
use crate::rig::{Counts, Probe, answers};

/// A seam for tests: says who provides it.
trait Word: Send + Sync {
    fn word(&self) -> &'static str;
}

impl Seam for dyn Word {
    const NAME: &'static str = "word";
}

type Ends = Arc<Mutex<Vec<&'static str>>>;

/// Provides a word, and says so when it is dropped.
struct Says(&'static str, Ends);

impl Word for Says {
    fn word(&self) -> &'static str {
        self.0
    }
}

impl Drop for Says {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0);
    }
}

fn says(word: &'static str, ends: &Ends) -> Arc<dyn Word> {
    Arc::new(Says(word, Arc::clone(ends)))
}

const GRACE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn r_012_a_disposed_scope_takes_nothing_and_keeps_nothing() {
    let root = Context::root("root");
    let scope = root.child("scope").unwrap();
    let counts = Arc::new(Counts::default());
    on_in::<PreExecute, _>(&scope, Rank::NORMAL, |_, _| ready(Ok(allow())));
    scope.guard(Guard::new("g", |_| None)).unwrap();
    scope.provide::<dyn Word>(says("w", &Ends::default())).unwrap();
    registry::register(&scope, Arc::new(Probe::new("t", &counts, answers("ok")))).unwrap();
    let heeds = |cancel: sluice_harness::cancel::Cancel| async move {
        cancel.cancelled().await;
    };
    scope.run("task", heeds).unwrap();
    assert_eq!(scope.residue(), 5);
    let report = scope.dispose(GRACE).await;
    assert!(report.aborted.is_empty() && !report.handed_over);
    assert_eq!((scope.residue(), root.residue()), (0, 0));
    assert_eq!(scope.cancel_signal().cause(), Some(CancelCause::Disposed));
    assert!(!root.cancel_signal().is_cancelled());

    let gone = |fault: ContextFault| assert_eq!(fault.to_string(), "the scope `scope` has ended and takes no new work");
    gone(scope.child("inner").unwrap_err());
    gone(scope.guard(Guard::new("g", |_| None)).unwrap_err());
    gone(scope.provide::<dyn Word>(says("w", &Ends::default())).unwrap_err());
    gone(scope.run("task", |_| async {}).unwrap_err());
    gone(scope.wrap(Rank::NORMAL, sluice_harness::pipeline::TimeoutPolicy).unwrap_err());
    let tool = registry::register(&scope, Arc::new(Probe::new("t", &counts, answers("ok")))).unwrap_err();
    assert!(matches!(tool, RegisterFault::Context(ContextFault::Disposed { .. })));
    assert!(registry::visible(&scope).is_empty());
    // Memoised: the second call has the first one's report.
    assert_eq!(scope.dispose(GRACE).await, report);
}

#[tokio::test]
async fn disposal_ends_children_before_parents_and_mountings_in_reverse() {
    let ends = Ends::default();
    let root = Context::root("root");
    let middle = root.child("middle").unwrap();
    let inner = middle.child("inner").unwrap();
    let registered = |scope: &Context, word| drop(scope.provide::<dyn Word>(says(word, &ends)).unwrap());
    registered(&root, "root");
    registered(&inner, "inner");
    registered(&middle, "middle");
    // On one scope, what was mounted last ends first: guards own what they close over.
    for word in ["first", "second", "third"] {
        let owned = says(word, &ends);
        inner
            .guard(Guard::new("g", move |_| {
                let _ = owned.word();
                None
            }))
            .unwrap();
    }
    root.dispose(GRACE).await;
    assert_eq!(*ends.lock().unwrap(), ["third", "second", "first", "inner", "middle", "root"]);
    assert_eq!(root.residue() + middle.residue() + inner.residue(), 0);
}

#[tokio::test]
async fn a_provider_that_panics_at_its_end_does_not_keep_the_others_from_theirs() {
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "it does not want to go");
        }
    }
    let ends = Ends::default();
    let root = Context::root("root");
    root.provide::<dyn Word>(says("quiet", &ends)).unwrap();
    let loud = Loud;
    root.guard(Guard::new("g", move |_| {
        let _ = &loud;
        None
    }))
    .unwrap();
    root.dispose(GRACE).await;
    assert_eq!(*ends.lock().unwrap(), ["quiet"]);
    assert_eq!(root.residue(), 0);
}

#[tokio::test]
async fn disposal_awaits_a_task_that_heeds_its_signal() {
    let scope = Context::root("root").child("scope").unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    scope
        .run("tidy", move |cancel| async move {
            cancel.cancelled().await;
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            flag.store(true, Ordering::SeqCst);
        })
        .unwrap();
    scope.dispose(GRACE).await;
    assert!(ended.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn r_103_a_task_that_ignores_its_signal_is_aborted_and_named_within_one_grace() {
    let scope = Context::root("root").child("scope").unwrap();
    let inner = scope.child("inner").unwrap();
    for at in [&scope, &inner, &scope] {
        at.run("deaf", |_| std::future::pending()).unwrap();
    }
    let began = tokio::time::Instant::now();
    let report = scope.dispose(Duration::from_secs(3)).await;
    assert_eq!(report.aborted, ["deaf", "deaf", "deaf"]);
    // All were told at once, so all have the same three seconds, not three each.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn disposal_waits_for_leases_in_use() {
    let ends = Ends::default();
    let root = Context::root("root");
    root.provide::<dyn Word>(says("w", &ends)).unwrap();
    let lease = root.lease::<dyn Word>().unwrap();
    let disposing = root.dispose(GRACE);
    tokio::pin!(disposing);
    for _ in 0..50 {
        tokio::select! {
            biased;
            _ = &mut disposing => panic!("it did not wait"),
            () = tokio::task::yield_now() => {}
        }
    }
    // The scope is ending: nobody gets a new lease.
    assert!(matches!(root.lease::<dyn Word>().map(drop), Err(ContextFault::Disposed { .. })));
    assert!(ends.lock().unwrap().is_empty());
    assert_eq!(lease.word(), "w");
    drop(lease);
    assert!(disposing.await.aborted.is_empty());
    assert_eq!(*ends.lock().unwrap(), ["w"]);
}

#[tokio::test]
async fn r_390_a_child_may_replace_a_provider_and_its_end_brings_the_outer_one_back() {
    let ends = Ends::default();
    let root = Context::root("root");
    root.provide::<dyn Word>(says("outer", &ends)).unwrap();
    let twice = root.provide::<dyn Word>(says("twice", &ends)).unwrap_err();
    assert_eq!(
        twice.to_string(),
        "the scope `root` already has a provider for `word`; use a child scope to replace it"
    );
    let (left, right) = (root.child("left").unwrap(), root.child("right").unwrap());
    let swapped = left.provide::<dyn Word>(says("inner", &ends)).unwrap();
    assert_eq!(left.lease::<dyn Word>().unwrap().word(), "inner");
    assert_eq!(left.child("deeper").unwrap().lease::<dyn Word>().unwrap().word(), "inner");
    // A sibling does not see it.
    assert_eq!(right.lease::<dyn Word>().unwrap().word(), "outer");
    swapped.end();
    swapped.end();
    assert_eq!(left.lease::<dyn Word>().unwrap().word(), "outer");
    left.provide::<dyn Word>(says("again", &ends)).unwrap();
    assert_eq!(left.lease::<dyn Word>().unwrap().word(), "again");
    let missing = Context::root("bare").lease::<dyn Word>().map(drop).unwrap_err();
    assert_eq!(missing.to_string(), "no provider for `word` in the scope `bare` or around it");
}

/// Runs a task on `owner` that disposes `victim`; returns when the task has ended.
async fn disposed_by_own_task(owner: &Context, victim: &Context) -> bool {
    let (handed, done) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
    let (flag, told, scope) = (Arc::clone(&handed), Arc::clone(&done), victim.clone());
    owner
        .run("its own end", move |_| async move {
            flag.store(scope.dispose(GRACE).await.handed_over, Ordering::SeqCst);
            told.notify_one();
        })
        .unwrap();
    tokio::time::timeout(GRACE * 5, done.notified()).await.expect("it waits for itself");
    handed.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_task_that_disposes_its_own_scope_hands_the_work_over_and_does_not_wait_for_itself() {
    let root = Context::root("root");
    let scope = root.child("scope").unwrap();
    assert!(disposed_by_own_task(&scope, &scope).await);
    // The parent awaits what was handed over.
    assert!(root.dispose(GRACE).await.aborted.is_empty());
    assert_eq!((scope.residue(), root.residue()), (0, 0));
}

#[tokio::test]
async fn a_task_of_an_inner_scope_that_disposes_an_outer_one_does_not_wait_for_itself() {
    let root = Context::root("root");
    let outer = root.child("outer").unwrap();
    let inner = outer.child("inner").unwrap();
    assert!(disposed_by_own_task(&inner, &outer).await);
    assert!(root.dispose(GRACE).await.aborted.is_empty());
    assert_eq!(outer.residue() + inner.residue(), 0);
}

#[tokio::test]
async fn a_task_of_a_scope_that_nobody_holds_any_more_is_still_ended_by_its_parent() {
    let root = Context::root("root");
    let ended = Arc::new(AtomicBool::new(false));
    {
        let forgotten = root.child("forgotten").unwrap();
        let flag = Arc::clone(&ended);
        let task = forgotten
            .run("lost", move |cancel| async move {
                cancel.cancelled().await;
                flag.store(true, Ordering::SeqCst);
            })
            .unwrap();
        // Ending its registration does not set a running task free either.
        task.end();
        assert_eq!(forgotten.residue(), 1);
    }
    root.dispose(GRACE).await;
    assert!(ended.load(Ordering::SeqCst));
}

#[tokio::test]
async fn siblings_do_not_see_each_other_and_ancestors_are_seen() {
    let root = Context::root("root");
    let (left, right) = (root.child("left").unwrap(), root.child("right").unwrap());
    let counts = Arc::new(Counts::default());
    registry::register(&root, Arc::new(Probe::new("all", &counts, answers("ok")))).unwrap();
    registry::register(&left, Arc::new(Probe::new("mine", &counts, answers("ok")))).unwrap();
    let names = |scope: &Context| registry::visible(scope).into_keys().collect::<Vec<_>>();
    assert_eq!(names(&left), ["all", "mine"]);
    assert_eq!(names(&right), ["all"]);
    assert_eq!(names(&root), ["all"]);
    left.dispose(GRACE).await;
    assert_eq!(names(&right), ["all"]);
}
