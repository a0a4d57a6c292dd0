//! What root, and whoever else has them, gives up inside a sandbox: the powers over the machine that no build needs.
//!
//! A confinement of files means little to somebody who may look into any process or make a device of any disk. The
//! invariant: no set of the command's capabilities holds one of them, so that no program it starts has it again.

use std::io;

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

/// Gives them up in this process, for what it becomes, whoever the user is: root gets its powers from the bounding set
/// when a program starts, anybody else by the inheritable and the ambient set. Best effort for the first alone, which
/// who is not root mostly may not change, and need not.
///
/// # Errors
/// When the kernel does not let this process have less.
pub(super) fn give_up() -> io::Result<()> {
    for power in GIVEN_UP {
        let _ = rustix::thread::remove_capability_from_bounding_set(*power);
    }
    let dangerous = GIVEN_UP.iter().fold(CapabilitySet::empty(), |all, power| all | *power);
    let mut sets = rustix::thread::capabilities(None)?;
    let before = sets;
    // What is neither permitted nor inheritable is not ambient either.
    for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
        set.remove(dangerous);
    }
    if sets != before {
        rustix::thread::set_capabilities(None, sets)?;
    }
    Ok(())
}
