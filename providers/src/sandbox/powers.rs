//! What root gives up inside a sandbox: the powers over the machine that no build needs.
//!
//! A confinement of files means little to somebody who may look into any process or make a device of any disk. For
//! anybody but root there is nothing to give up.

use rustix::thread::CapabilitySet;

/// Given up for good: they cannot be had again by starting a program.
const GIVEN_UP: &[CapabilitySet] = &[
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_BOOT,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYSLOG,
    CapabilitySet::MKNOD,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::NET_ADMIN,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::MAC_OVERRIDE,
    CapabilitySet::CHECKPOINT_RESTORE,
];

/// Gives them up in this process, for what it becomes. Best effort: who may not give up has mostly nothing to give.
pub(super) fn give_up() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for power in GIVEN_UP {
        let _ = rustix::thread::remove_capability_from_bounding_set(*power);
    }
}
