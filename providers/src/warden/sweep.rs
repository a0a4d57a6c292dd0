//! Everybody who descends from this process, and signals to them.
//!
//! The invariant: a signal reaches only a process that descends from us at that moment. A child of ours keeps its
//! number until we collect it; anybody further down is held by a descriptor and looked at once more before the signal.
//! Whatever cannot be looked at (no descriptor left, no `/proc`) is not taken for gone: then our children are found
//! by asking the kernel number by number, and their children become ours as they die.

use std::collections::HashSet;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

/// The kernel's own bound for `pid_max` on 64 bits; no process has a number as high.
const NO_NUMBER: i32 = 1 << 22;

/// Asks everybody to end.
pub(super) fn ask_all() {
    for descendant in descendants() {
        descendant.signal(Signal::TERM);
        // A stopped process gets TERM only once it is told to continue.
        descendant.signal(Signal::CONT);
    }
}

/// Kills everybody who is there now. Whoever was started meanwhile, or could not be reached because nobody of those
/// above was dead yet, is met by the next call.
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
        let ours = own_number();
        if self.parent == ours {
            // It stays our child, and its number its own, until we collect it, which nobody does meanwhile.
            let _ = rustix::process::kill_process(pid, signal);
            return;
        }
        let held = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(held) => Some(held),
            Err(Errno::SRCH) => return,
            Err(_) => None,
        };
        // Orphans come to us between two looks.
        if !parent_of(self.pid).is_some_and(|parent| parent == self.parent || parent == ours) {
            return;
        }
        let _ = match held {
            Some(held) => rustix::process::pidfd_send_signal(held, signal),
            None => rustix::process::kill_process(pid, signal),
        };
    }
}

fn own_number() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn descendants() -> Vec<Descendant> {
    let ours = own_number();
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![ours];
    let mut whole = true;
    while let Some(parent) = open.pop() {
        let children = match children_of(parent) {
            Ok(children) => children,
            // Whoever is gone has left its children to us, and the next look finds them. We are not gone ourselves.
            Err(fault) if parent != ours && is_gone(&fault) => continue,
            Err(_) => {
                whole = false;
                continue;
            }
        };
        for pid in children {
            if seen.insert(pid) {
                found.push(Descendant { pid, parent });
                open.push(pid);
            }
        }
    }
    if !whole {
        let unseen = own_children().filter(|pid| seen.insert(*pid));
        found.extend(unseen.map(|pid| Descendant { pid, parent: ours }));
    }
    found
}

fn children_of(parent: i32) -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{parent}/task"))? {
        let list = match fs::read_to_string(thread?.path().join("children")) {
            Ok(list) => list,
            // A thread that has ended; ours has not.
            Err(fault) if parent != own_number() && is_gone(&fault) => continue,
            Err(fault) => return Err(fault),
        };
        children.extend(list.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    Ok(children)
}

fn is_gone(fault: &io::Error) -> bool {
    fault.kind() == io::ErrorKind::NotFound || fault.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Our children, dead or alive, without a descriptor and without `/proc`: every number is asked about. Takes about a
/// second.
fn own_children() -> impl Iterator<Item = i32> {
    (1..NO_NUMBER).filter(|number| {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Pid::from_raw(*number).is_some_and(|pid| rustix::process::waitid(WaitId::Pid(pid), how).is_ok())
    })
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state ppid …`; the name may hold anything, so count from its last parenthesis.
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}
