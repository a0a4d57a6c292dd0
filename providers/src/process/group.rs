//! Process groups: signals to them, whether they still live, and the register of those that are ours.
//!
//! The invariant: a signal goes only to a group that is registered, which is one whose leader we have not seen end by
//! itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use sluice_harness::cancel::{Cancel, CancelCause};
use tokio::sync::watch;

/// Who leads a group, which is to say how it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The program itself.
    Plain,
    /// A warden, alone in its group: it kills everybody that it keeps, and must live to do so.
    Warded,
}

impl Kind {
    /// The signal that ends everybody at once.
    pub(super) fn kill(self) -> Signal {
        match self {
            Self::Plain => Signal::KILL,
            Self::Warded => Signal::QUIT,
        }
    }
}

/// Sends a signal to a whole group; false when nobody is left in it.
pub(super) fn signal(group: Pid, signal: Signal) -> bool {
    !matches!(rustix::process::kill_process_group(group, signal), Err(rustix::io::Errno::SRCH))
}

/// Whether anybody in the group still runs. Members that are dead and merely not yet collected by their parent do
/// not count where the system lets us see that.
pub(super) fn is_alive(group: Pid) -> bool {
    if matches!(rustix::process::test_kill_process_group(group), Err(rustix::io::Errno::SRCH)) {
        return false;
    }
    runs_by_proc(group).unwrap_or(true)
}

/// Looks through `/proc` for a member that is no zombie; `None` where there is no `/proc`.
fn runs_by_proc(group: Pid) -> Option<bool> {
    let wanted = group.as_raw_nonzero().get().to_string();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        if !entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else { continue };
        let stat = String::from_utf8_lossy(&stat);
        // `pid (name) state ppid pgrp …`; the name may hold anything, so count from its last parenthesis.
        let Some((_, rest)) = stat.rsplit_once(')') else { continue };
        let mut fields = rest.split_ascii_whitespace();
        let (state, pgrp) = (fields.next(), fields.nth(1));
        if pgrp == Some(wanted.as_str()) && !matches!(state, Some("Z" | "X")) {
            return Some(true);
        }
    }
    // An unreadable table shows nothing at all; then the answer is not known.
    std::path::Path::new("/proc/self/stat").exists().then_some(false)
}

/// The groups that are ours, and the runs that look after them.
pub(super) struct Registry {
    groups: Mutex<Groups>,
    /// Fires once no program may start any more; every run hangs on it.
    closed: Cancel,
    running: watch::Sender<usize>,
}

#[derive(Default)]
struct Groups {
    live: HashMap<u64, (Pid, Kind)>,
    next: u64,
    grace_cap: Option<Duration>,
}

impl Registry {
    pub(super) fn new() -> Self {
        Self { groups: Mutex::default(), closed: Cancel::new(), running: watch::Sender::new(0) }
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one run until the returned job is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> Job {
        self.running.send_modify(|n| *n += 1);
        Job { registry: Arc::clone(self) }
    }

    pub(super) fn close(&self) {
        self.closed.cancel(CancelCause::Disposed);
    }

    pub(super) fn shorten_grace(&self, grace: Duration) {
        self.groups().grace_cap = Some(grace);
    }

    pub(super) fn kill_all(&self) {
        for (group, kind) in self.groups().live.values() {
            signal(*group, kind.kill());
        }
    }

    pub(super) fn has_warded(&self) -> bool {
        self.groups().live.values().any(|(_, kind)| *kind == Kind::Warded)
    }

    pub(super) fn running(&self) -> usize {
        *self.running.borrow()
    }

    pub(super) async fn idle(&self) {
        // The sender lives in `self`, so waiting cannot fail before the count is zero.
        let _ = self.running.subscribe().wait_for(|n| *n == 0).await;
    }
}

/// One run, counted.
pub(super) struct Job {
    registry: Arc<Registry>,
}

impl Job {
    /// The signal that ends every run.
    pub(super) fn closed(&self) -> &Cancel {
        &self.registry.closed
    }

    /// How long a group has after TERM, when it may have `wanted`.
    pub(super) fn grace(&self, wanted: Duration) -> Duration {
        self.registry.groups().grace_cap.map_or(wanted, |cap| cap.min(wanted))
    }

    /// Registers a group; it is killed when the returned leash is dropped without [`Leash::release`].
    pub(super) fn hold(&self, group: Pid, kind: Kind) -> Leash {
        let mut groups = self.registry.groups();
        let id = groups.next;
        groups.next += 1;
        groups.live.insert(id, (group, kind));
        Leash { registry: Arc::clone(&self.registry), id, group: Some((group, kind)) }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.registry.running.send_modify(|n| *n -= 1);
    }
}

/// A registered group.
pub(super) struct Leash {
    registry: Arc<Registry>,
    id: u64,
    group: Option<(Pid, Kind)>,
}

impl Leash {
    /// Lets go of the group without a signal: its leader ended by itself, or nobody is left.
    pub(super) fn release(mut self) {
        self.group = None;
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let mut groups = self.registry.groups();
        groups.live.remove(&self.id);
        // `kill_on_drop` alone would spare everything but the leader.
        if let Some((group, kind)) = self.group {
            signal(group, kind.kill());
        }
    }
}
