//! The end of a scope: refuse, cancel, await, unwind.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Context, Mounted, Node, lock};
use crate::Fut;
use crate::cancel::CancelCause;

tokio::task_local! {
    /// The scopes whose end awaits this task, so that a task disposing one of them does not wait for itself.
    static OWNER: Vec<usize>;
}

/// What disposal found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisposeReport {
    /// Tasks that did not end within the grace and were aborted, by name.
    pub aborted: Vec<String>,
    /// Set when the scope's own task asked: the end is then awaited by the parent's disposal, not here.
    pub handed_over: bool,
}

fn address(node: &Arc<Node>) -> usize {
    Arc::as_ptr(node).addr()
}

pub(super) fn spawn_owned<F: Future<Output = ()> + Send + 'static>(
    scope: &Context,
    future: F,
) -> tokio::task::JoinHandle<()> {
    let mut owners = OWNER.try_with(Clone::clone).unwrap_or_default();
    // A scope's end awaits the tasks of the scopes inside it, so those are its own tasks too.
    owners.extend(scope.chain_inward_out().map(|s| address(&s.0)));
    // The task keeps its scope: a scope that nobody holds any more must still be found, and ended, by its parent.
    let kept = scope.clone();
    let future = async move {
        future.await;
        drop(kept);
    };
    #[expect(clippy::disallowed_methods, reason = "the one place that spawns: the scope owns the handle")]
    tokio::spawn(OWNER.scope(owners, future))
}

impl Context {
    /// Ends the scope and all inside it. Memoised: later calls get the first one's report.
    ///
    /// Tasks get `grace` after their signal fired, then they are aborted, and named in the report.
    pub async fn dispose(&self, grace: Duration) -> DisposeReport {
        let mine = OWNER.try_with(|owners| owners.contains(&address(&self.0))).unwrap_or(false);
        if mine {
            self.close();
            let scope = self.clone();
            let finish = async move {
                scope.unwind(Instant::now() + grace).await;
            };
            match &self.0.parent {
                // The parent owns the remaining work, so that its own disposal awaits it.
                Some(parent) => {
                    let _ = parent.run("disposal of a child scope", |_| finish);
                }
                None => {
                    #[expect(clippy::disallowed_methods, reason = "a root has nobody above it to own its last task")]
                    drop(tokio::spawn(finish));
                }
            }
            return DisposeReport { handed_over: true, ..DisposeReport::default() };
        }
        self.unwind(Instant::now() + grace).await
    }

    fn close(&self) {
        lock(&self.0.state).closed = true;
        self.0.cancel.cancel(CancelCause::Disposed);
    }

    fn unwind(&self, deadline: Instant) -> Fut<'_, DisposeReport> {
        Box::pin(async move {
            self.0
                .report
                .get_or_init(|| async {
                    self.close();
                    let mut report = DisposeReport::default();
                    let children: Vec<_> = std::mem::take(&mut lock(&self.0.state).children);
                    for child in children.into_iter().rev() {
                        if let Some(node) = child.upgrade() {
                            let inner = Context(node).unwind(deadline).await;
                            report.aborted.extend(inner.aborted);
                        }
                    }
                    let tasks: Vec<_> = {
                        let mut state = lock(&self.0.state);
                        let (tasks, rest) = std::mem::take(&mut state.entries)
                            .into_iter()
                            .partition(|e| matches!(e.what, Mounted::Task { .. }));
                        state.entries = rest;
                        tasks
                    };
                    for task in tasks.into_iter().rev() {
                        let Mounted::Task { name, mut handle } = task.what else { continue };
                        if tokio::time::timeout_at(deadline, &mut handle).await.is_err() {
                            handle.abort();
                            let _ = handle.await;
                            report.aborted.push(name.to_owned());
                        }
                    }
                    // Leases are short: a body holds one while it runs, and bodies were cancelled with the scope.
                    let mut in_use = self.0.in_use.subscribe();
                    if tokio::time::timeout_at(deadline, in_use.wait_for(|n| *n == 0)).await.is_err() {
                        report.aborted.push("a provider still in use".to_owned());
                    }
                    loop {
                        let last = lock(&self.0.state).entries.pop();
                        match last {
                            // A provider that fails at its own end must not keep the others from theirs.
                            Some(entry) => {
                                self.tell_gone(&entry.what);
                                if catch_unwind(AssertUnwindSafe(|| drop(entry))).is_err() {
                                    tracing::warn!(
                                        scope = self.0.name,
                                        "something mounted panicked when it was dropped"
                                    );
                                }
                            }
                            None => break,
                        }
                    }
                    report
                })
                .await
                .clone()
        })
    }

    /// How many things are mounted on this very scope; for leak tests.
    #[must_use]
    pub fn residue(&self) -> usize {
        lock(&self.0.state).entries.len()
    }
}
