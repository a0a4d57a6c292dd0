//! Everybody who descends from this process, and signals to them.
//!
//! The invariant: a signal reaches only a process that descends from us at that moment. A child of ours keeps its
//! number until we collect it; anybody further down is held by a descriptor and looked at once more before the signal.

use std::collections::HashSet;
use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal};

/// Asks everybody to end.
pub(super) fn ask_all() {
    for descendant in descendants() {
        descendant.signal(Signal::TERM);
        // A stopped process gets TERM only once it is told to continue.
        descendant.signal(Signal::CONT);
    }
}

/// Kills everybody who is there now. Whoever was started meanwhile is met by the next call.
pub(super) fn kill_all() {
    let all = descendants();
    // Stopped first, so that nobody goes on making children while the others die.
    for descendant in &all {
        descendant.signal(Signal::STOP);
    }
    for descendant in all {
        descendant.signal(Signal::KILL);
    }
}

struct Descendant {
    pid: i32,
    parent: i32,
}

impl Descendant {
    fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(held) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        // Orphans come to us between two looks.
        let ours = rustix::process::getpid().as_raw_nonzero().get();
        if parent_of(self.pid).is_some_and(|parent| parent == self.parent || parent == ours) {
            let _ = rustix::process::pidfd_send_signal(held, signal);
        }
    }
}

fn descendants() -> Vec<Descendant> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        for pid in children_of(parent) {
            if seen.insert(pid) {
                found.push(Descendant { pid, parent });
                open.push(pid);
            }
        }
    }
    found
}

fn children_of(parent: i32) -> Vec<i32> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return children };
    for thread in threads.flatten() {
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else { continue };
        children.extend(list.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    children
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state ppid …`; the name may hold anything, so count from its last parenthesis.
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}
