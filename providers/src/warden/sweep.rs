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

/// How many numbers without a child end a search that has found one: the others are met when that one is gone.
const FAR: i32 = 1 << 15;

/// Asks everybody to end.
pub(super) fn ask_all() {
    let (all, whole) = descendants();
    for descendant in all {
        descendant.signal(Signal::TERM);
        // A stopped process gets TERM only once it is told to continue.
        descendant.signal(Signal::CONT);
    }
    if whole == Whole::No {
        signal_children(&[Signal::TERM, Signal::CONT]);
    }
}

/// Kills everybody who is there now. Whoever was started meanwhile, or could not be reached because those above were
/// not dead yet, is met by the next call.
pub(super) fn kill_all() {
    let (all, whole) = descendants();
    // Stopped first, so that nobody goes on making children while the others die.
    for descendant in &all {
        descendant.signal(Signal::STOP);
    }
    for descendant in all {
        descendant.signal(Signal::KILL);
    }
    if whole == Whole::No {
        signal_children(&[Signal::KILL]);
    }
}

/// Whether everybody could be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
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

fn descendants() -> (Vec<Descendant>, Whole) {
    let ours = own_number();
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![ours];
    let mut whole = Whole::Yes;
    while let Some(parent) = open.pop() {
        let children = match children_of(parent) {
            Ok(children) => children,
            // Whoever is gone has left its children to us, and the next look finds them. We are not gone ourselves.
            Err(fault) if parent != ours && is_gone(&fault) => continue,
            Err(_) => {
                whole = Whole::No;
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
    (found, whole)
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

/// Signals to children of ours without a descriptor and without `/proc`: the kernel is asked about number after number,
/// from our own on, since that is where theirs mostly begin. Whoever is a child stays one until we collect it.
fn signal_children(signals: &[Signal]) {
    let ours = own_number();
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let mut without = None;
    for pid in (ours..NO_NUMBER).chain(1..ours).filter_map(Pid::from_raw) {
        if rustix::process::waitid(WaitId::Pid(pid), how).is_ok() {
            for signal in signals {
                let _ = rustix::process::kill_process(pid, *signal);
            }
            without = Some(0);
        } else if let Some(numbers) = &mut without {
            *numbers += 1;
            if *numbers > FAR {
                return;
            }
        }
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // `pid (name) state ppid …`; the name may hold anything, so count from its last parenthesis.
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}
