//! Composition with a lifetime: a tree of scopes, each owning what was mounted on it.
//!
//! Mounting returns a [`Registration`]; only the context (or an explicit [`Registration::end`]) ends it. A child sees
//! what its ancestors mounted; siblings do not see each other. Disposal refuses new work, cancels, disposes the
//! children, awaits every tracked task and every lease, then unwinds registrations in reverse order: when
//! [`Context::dispose`] has returned, nothing of the scope is left. Spawning a task exists nowhere
//! else in the engine. The unwinding itself is in [`dispose`], look-ups in [`lookup`].

mod dispose;
mod lookup;

use std::any::{Any, TypeId};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use thiserror::Error;
use tokio::sync::{OnceCell, watch};

use crate::cancel::Cancel;
use crate::point::tools::{Guard, Wrapper};
use crate::point::{Listener, Note, Observer, Point};
use crate::registry::{self, Change, Definition, Restriction};

pub use dispose::DisposeReport;
pub use lookup::{Lease, Waterfall};

/// A capability's definition: a trait that has a name. Exactly one provider per seam and context.
pub trait Seam: Send + Sync + 'static {
    /// The name used in errors.
    const NAME: &'static str;
}

/// The place of a listener in a waterfall: lower ranks are outer, equal ranks keep the order of mounting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(pub i32);

impl Rank {
    /// Outside everything else: sees the final decision of the others.
    pub const OUTER: Self = Self(-1000);
    /// Where plugins and hook bridges stand.
    pub const NORMAL: Self = Self(0);
    /// Innermost: the permission policy.
    pub const POLICY: Self = Self(1000);
}

/// Why something could not be mounted or leased.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContextFault {
    /// The scope is being or has been disposed.
    #[error("the scope `{scope}` has ended and takes no new work")]
    Disposed {
        /// Its name.
        scope: String,
    },
    /// The seam already has a provider on this very scope.
    #[error("the scope `{scope}` already has a provider for `{seam}`; use a child scope to replace it")]
    DuplicateProvider {
        /// The scope's name.
        scope: String,
        /// The seam.
        seam: &'static str,
    },
    /// No provider here or in any enclosing scope.
    #[error("no provider for `{seam}` in the scope `{scope}` or around it")]
    Missing {
        /// The scope's name.
        scope: String,
        /// The seam.
        seam: &'static str,
    },
}

/// A node in the tree of scopes. Clones are the same node.
#[derive(Clone)]
pub struct Context(Arc<Node>);

struct Node {
    name: &'static str,
    parent: Option<Context>,
    cancel: Cancel,
    state: Mutex<State>,
    /// How many leases and tasks are in use.
    in_use: watch::Sender<usize>,
    report: OnceCell<DisposeReport>,
}

#[derive(Default)]
struct State {
    closed: bool,
    next: u64,
    entries: Vec<Entry>,
    children: Vec<Weak<Node>>,
}

struct Entry {
    id: u64,
    what: Mounted,
}

enum Mounted {
    Service { key: TypeId, value: Box<dyn Any + Send + Sync> },
    Listener { key: TypeId, rank: Rank, value: Box<dyn Any + Send + Sync> },
    Observer { key: TypeId, value: Box<dyn Any + Send + Sync> },
    Wrapper { rank: Rank, value: Arc<dyn Wrapper> },
    Guard(Arc<Guard>),
    Tool(Arc<Definition>),
    Restriction(Arc<Restriction>),
    Task { name: &'static str, handle: tokio::task::JoinHandle<()> },
}

/// The handle of one mounted thing. Dropping it keeps the thing mounted.
#[derive(Debug, Clone)]
pub struct Registration {
    node: Weak<Node>,
    id: u64,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Registration {
    /// Ends the registration; a running task stays its scope's own, whose disposal ends it. Idempotent.
    pub fn end(&self) {
        let removed = self.remove();
        if let (Some(entry), Some(node)) = (&removed, self.node.upgrade()) {
            Context(node).tell_gone(&entry.what);
        }
        // Dropped outside the lock, for what was mounted may own contexts itself.
        drop(removed);
    }

    /// Ends it and tells nobody, for nobody is to know that it was there.
    pub(crate) fn withdraw(&self) {
        drop(self.remove());
    }

    fn remove(&self) -> Option<Entry> {
        let node = self.node.upgrade()?;
        let mut state = lock(&node.state);
        let ends = |e: &Entry| e.id == self.id && !matches!(e.what, Mounted::Task { .. });
        let at = state.entries.iter().position(ends)?;
        Some(state.entries.remove(at))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// The root of a new tree.
    #[must_use]
    pub fn root(name: &'static str) -> Self {
        Self::node(name, None, Cancel::new())
    }

    fn node(name: &'static str, parent: Option<Self>, cancel: Cancel) -> Self {
        Self(Arc::new(Node {
            name,
            parent,
            cancel,
            state: Mutex::new(State::default()),
            in_use: watch::Sender::new(0),
            report: OnceCell::new(),
        }))
    }

    /// A scope inside this one.
    ///
    /// # Errors
    /// [`ContextFault::Disposed`].
    pub fn child(&self, name: &'static str) -> Result<Self, ContextFault> {
        let child = Self::node(name, Some(self.clone()), self.0.cancel.child());
        let mut state = lock(&self.0.state);
        if state.closed {
            return Err(self.disposed());
        }
        state.children.retain(|c| c.strong_count() > 0);
        state.children.push(Arc::downgrade(&child.0));
        Ok(child)
    }

    /// The scope's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The signal that fires when the scope is disposed.
    #[must_use]
    pub fn cancel_signal(&self) -> &Cancel {
        &self.0.cancel
    }

    fn disposed(&self) -> ContextFault {
        ContextFault::Disposed { scope: self.0.name.to_owned() }
    }

    fn mount(&self, what: Mounted) -> Result<Registration, ContextFault> {
        let mut state = lock(&self.0.state);
        self.mount_locked(&mut state, what)
    }

    fn mount_locked(&self, state: &mut State, what: Mounted) -> Result<Registration, ContextFault> {
        if state.closed {
            return Err(self.disposed());
        }
        let id = state.next;
        state.next += 1;
        state.entries.push(Entry { id, what });
        Ok(Registration { node: Arc::downgrade(&self.0), id })
    }

    /// Provides a seam on this scope.
    ///
    /// # Errors
    /// [`ContextFault::Disposed`], or [`ContextFault::DuplicateProvider`] when this very scope has one.
    pub fn provide<S: Seam + ?Sized>(&self, provider: Arc<S>) -> Result<Registration, ContextFault> {
        let key = TypeId::of::<Arc<S>>();
        let mut state = lock(&self.0.state);
        let taken = state.entries.iter().any(|e| matches!(&e.what, Mounted::Service { key: k, .. } if *k == key));
        if taken {
            return Err(ContextFault::DuplicateProvider { scope: self.0.name.to_owned(), seam: S::NAME });
        }
        self.mount_locked(&mut state, Mounted::Service { key, value: Box::new(provider) })
    }

    /// Mounts a listener of a waterfall.
    ///
    /// # Errors
    /// [`ContextFault::Disposed`].
    pub fn listen<P: Point>(&self, rank: Rank, listener: impl Listener<P>) -> Result<Registration, ContextFault> {
        let value: Arc<dyn Listener<P>> = Arc::new(listener);
        self.mount(Mounted::Listener { key: TypeId::of::<P>(), rank, value: Box::new(value) })
    }

    /// Mounts an observer of a notification.
    ///
    /// # Errors
    /// [`ContextFault::Disposed`].
    pub fn observe<N: Note>(&self, observer: impl Observer<N>) -> Result<Registration, ContextFault> {
        let value: Arc<dyn Observer<N>> = Arc::new(observer);
        self.mount(Mounted::Observer { key: TypeId::of::<N>(), value: Box::new(value) })
    }

    /// Mounts a wrapper around dispatch.
    ///
    /// # Errors
    /// [`ContextFault::Disposed`].
    pub fn wrap(&self, rank: Rank, wrapper: impl Wrapper) -> Result<Registration, ContextFault> {
        self.mount(Mounted::Wrapper { rank, value: Arc::new(wrapper) })
    }

    /// Mounts a guard: it may deny or abstain, never allow, and a panic in it denies.
    ///
    /// # Errors
    /// [`ContextFault::Disposed`].
    pub fn guard(&self, guard: Guard) -> Result<Registration, ContextFault> {
        self.mount(Mounted::Guard(Arc::new(guard)))
    }

    pub(crate) fn mount_tool(
        &self,
        tool: Arc<Definition>,
        taken: impl FnOnce(&[Arc<Definition>]) -> bool,
    ) -> Result<Option<Registration>, ContextFault> {
        let mut state = lock(&self.0.state);
        let own: Vec<_> = state
            .entries
            .iter()
            .filter_map(|e| if let Mounted::Tool(tool) = &e.what { Some(Arc::clone(tool)) } else { None })
            .collect();
        if taken(&own) {
            return Ok(None);
        }
        self.mount_locked(&mut state, Mounted::Tool(tool)).map(Some)
    }

    /// Tells of a tool or a restriction that is not mounted any more; nobody asks about the rest.
    fn tell_gone(&self, what: &Mounted) {
        match what {
            Mounted::Tool(tool) => registry::ended(self, Change::Unregistered, tool.names()),
            Mounted::Restriction(r) => registry::ended(self, Change::Lifted, &r.names()),
            Mounted::Service { .. }
            | Mounted::Listener { .. }
            | Mounted::Observer { .. }
            | Mounted::Wrapper { .. }
            | Mounted::Guard(_)
            | Mounted::Task { .. } => {}
        }
    }

    pub(crate) fn mount_restriction(&self, restriction: Restriction) -> Result<Registration, ContextFault> {
        self.mount(Mounted::Restriction(Arc::new(restriction)))
    }

    /// Runs a task that the scope owns: disposal fires its signal and awaits it. Spawning exists nowhere else.
    ///
    /// # Errors
    /// [`ContextFault::Disposed`].
    pub fn run<F: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        task: impl FnOnce(Cancel) -> F,
    ) -> Result<Registration, ContextFault> {
        let future = task(self.0.cancel.child());
        let mut state = lock(&self.0.state);
        if state.closed {
            return Err(self.disposed());
        }
        state.entries.retain(|e| !matches!(&e.what, Mounted::Task { handle, .. } if handle.is_finished()));
        let handle = dispose::spawn_owned(self, future);
        self.mount_locked(&mut state, Mounted::Task { name, handle })
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
