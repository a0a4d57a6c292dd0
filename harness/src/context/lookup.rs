//! What a scope sees: its own registrations and its ancestors'.

use std::any::TypeId;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Context, ContextFault, Mounted, Node, Rank, Seam, lock};
use crate::point::tools::{Guard, Wrapper};
use crate::point::{Listener, Note, Observer, Point};
use crate::registry::{Definition, Restriction};

/// A provider in use. Disposal of its scope waits until every lease is dropped.
pub struct Lease<S: ?Sized> {
    provider: Arc<S>,
    node: Arc<Node>,
}

impl<S: ?Sized> Deref for Lease<S> {
    type Target = S;
    fn deref(&self) -> &S {
        &self.provider
    }
}

impl<S: ?Sized> Drop for Lease<S> {
    fn drop(&mut self) {
        self.node.in_use.send_modify(|n| *n = n.saturating_sub(1));
    }
}

/// A snapshot of the listeners of one point, outermost first. What is mounted later does not join a running decision.
pub struct Waterfall<P: Point> {
    pub(crate) listeners: Vec<Arc<dyn Listener<P>>>,
}

/// The tools and restrictions of one scope.
pub(crate) struct ToolLayer {
    pub(crate) tools: Vec<Arc<Definition>>,
    pub(crate) restrictions: Vec<Arc<Restriction>>,
}

impl Context {
    /// Leases the nearest provider of a seam.
    ///
    /// # Errors
    /// [`ContextFault::Missing`], or [`ContextFault::Disposed`] when the nearest provider's scope is ending.
    pub fn lease<S: Seam + ?Sized>(&self) -> Result<Lease<S>, ContextFault> {
        let key = TypeId::of::<Arc<S>>();
        for scope in self.chain_inward_out() {
            let state = lock(&scope.0.state);
            for entry in &state.entries {
                if let Mounted::Service { key: k, value } = &entry.what
                    && *k == key
                    && let Some(provider) = value.downcast_ref::<Arc<S>>()
                {
                    if state.closed {
                        return Err(scope.disposed());
                    }
                    scope.0.in_use.send_modify(|n| *n += 1);
                    return Ok(Lease { provider: Arc::clone(provider), node: Arc::clone(&scope.0) });
                }
            }
        }
        Err(ContextFault::Missing { scope: self.0.name.to_owned(), seam: S::NAME })
    }

    /// The listeners of a point as this scope sees them.
    #[must_use]
    pub fn waterfall<P: Point>(&self) -> Waterfall<P> {
        let mut found: Vec<(Rank, Arc<dyn Listener<P>>)> = Vec::new();
        self.each_outward_in(|mounted| {
            if let Mounted::Listener { key, rank, value } = mounted
                && *key == TypeId::of::<P>()
                && let Some(listener) = value.downcast_ref::<Arc<dyn Listener<P>>>()
            {
                found.push((*rank, Arc::clone(listener)));
            }
        });
        found.sort_by_key(|(rank, _)| *rank);
        Waterfall { listeners: found.into_iter().map(|(_, l)| l).collect() }
    }

    /// Tells every observer; a panic in one is logged and changes nothing for the others.
    pub fn notify<N: Note>(&self, snapshot: &N::Snapshot<'_>) {
        let mut observers: Vec<Arc<dyn Observer<N>>> = Vec::new();
        self.each_outward_in(|mounted| {
            if let Mounted::Observer { key, value } = mounted
                && *key == TypeId::of::<N>()
                && let Some(observer) = value.downcast_ref::<Arc<dyn Observer<N>>>()
            {
                observers.push(Arc::clone(observer));
            }
        });
        for observer in observers {
            if catch_unwind(AssertUnwindSafe(|| observer.observe(snapshot))).is_err() {
                tracing::warn!(note = N::NAME, "an observer panicked and was ignored");
            }
        }
    }

    /// The observers of a note around this scope, on it and inside it, in this order.
    pub(crate) fn observers_about<N: Note>(&self) -> Vec<Arc<dyn Observer<N>>> {
        let mut observers: Vec<Arc<dyn Observer<N>>> = Vec::new();
        let mut collect = |mounted: &Mounted| {
            if let Mounted::Observer { key, value } = mounted
                && *key == TypeId::of::<N>()
                && let Some(observer) = value.downcast_ref::<Arc<dyn Observer<N>>>()
            {
                observers.push(Arc::clone(observer));
            }
        };
        self.each_outward_in(&mut collect);
        let mut inside = self.children();
        while let Some(scope) = inside.pop() {
            lock(&scope.0.state).entries.iter().for_each(|entry| collect(&entry.what));
            inside.extend(scope.children());
        }
        observers
    }

    fn children(&self) -> Vec<Context> {
        lock(&self.0.state).children.iter().rev().filter_map(|child| child.upgrade().map(Context)).collect()
    }

    pub(crate) fn wrappers(&self) -> Vec<Arc<dyn Wrapper>> {
        let mut found = Vec::new();
        self.each_outward_in(|mounted| {
            if let Mounted::Wrapper { rank, value } = mounted {
                found.push((*rank, Arc::clone(value)));
            }
        });
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, w)| w).collect()
    }

    /// The guard at a position, farthest ancestor first; asked one by one, so that a guard added meanwhile is seen
    ///
    pub(crate) fn guard_at(&self, index: usize) -> Option<Arc<Guard>> {
        let mut at = 0;
        let mut found = None;
        self.each_outward_in(|mounted| {
            if let Mounted::Guard(guard) = mounted {
                if at == index {
                    found = Some(Arc::clone(guard));
                }
                at += 1;
            }
        });
        found
    }

    /// Tools by layer, farthest ancestor first; the last layer is this scope's own.
    pub(crate) fn tool_layers(&self) -> Vec<ToolLayer> {
        let mut scopes: Vec<_> = self.chain_inward_out().collect();
        scopes.reverse();
        scopes
            .iter()
            .map(|scope| {
                let state = lock(&scope.0.state);
                let mut tools = Vec::new();
                let mut restrictions = Vec::new();
                for entry in &state.entries {
                    match &entry.what {
                        Mounted::Tool(tool) => tools.push(Arc::clone(tool)),
                        Mounted::Restriction(r) => restrictions.push(Arc::clone(r)),
                        _ => {}
                    }
                }
                ToolLayer { tools, restrictions }
            })
            .collect()
    }

    /// Whether this is the root of its tree.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.parent.is_none()
    }

    pub(super) fn chain_inward_out(&self) -> impl Iterator<Item = Context> {
        std::iter::successors(Some(self.clone()), |scope| scope.0.parent.clone())
    }

    fn each_outward_in(&self, mut visit: impl FnMut(&Mounted)) {
        let mut scopes: Vec<_> = self.chain_inward_out().collect();
        scopes.reverse();
        for scope in scopes {
            let state = lock(&scope.0.state);
            for entry in &state.entries {
                visit(&entry.what);
            }
        }
    }
}
