//! The system calls that a confined command is refused, as seccomp filters.
//!
//! A refusal is `EPERM`, as if the user might not do it, so that programs take their usual way round; for `clone3`,
//! whose flags a filter cannot see, it is `ENOSYS`, after which libraries use `clone`.
//!
//! The invariant: no call is let through by another number, another instruction set or another queue than the one that
//! is looked at.

use std::collections::BTreeMap;
use std::path::Path;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};

/// `open_tree` of Linux 6.15, which changes the mount on the way; the same number on every architecture.
const OPEN_TREE_ATTR: i64 = 467;

/// Refused whatever their arguments, unless the sandbox is off.
const REFUSED: &[i64] = &[
    // Other processes' memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Other views of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Queues of calls, which no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// `PRIO_USER` of `setpriority(2)`: every process of a user.
const PRIO_USER: libc::c_int = 2;
/// `IOPRIO_WHO_USER` of `ioprio_set(2)`: every process of a user.
const IOPRIO_WHO_USER: libc::c_int = 3;

/// The bit that marks the numbers of another instruction set under the same name of architecture.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Whether the kernel takes filters at all.
pub(super) fn can_be_filtered() -> bool {
    Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() && TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

/// The filters of a policy, to be applied in order.
pub(super) fn filters(policy: &SandboxPolicy) -> Result<Vec<BpfProgram>, Error> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut unknown = BTreeMap::new();
    if policy.mode != SandboxMode::Off {
        refused.extend(REFUSED.iter().map(|call| (*call, Vec::new())));
        for call in [libc::SYS_unshare, libc::SYS_clone] {
            refused.insert(call, vec![has_flag(0, new_user())?]);
        }
        // Words put into a terminal's input are read by whoever sits behind it.
        refused.insert(libc::SYS_ioctl, vec![is(1, libc::TIOCSTI)?, is(1, libc::TIOCLINUX)?]);
        unknown.insert(libc::SYS_clone3, Vec::new());
        refused.extend(on_others()?);
    }
    if !policy.network {
        refused.insert(libc::SYS_socket, vec![is_not(0, local())?]);
        // Where the sandbox is off, this is the way round that is left.
        refused.insert(libc::SYS_io_uring_setup, Vec::new());
    }
    let mut filters = Vec::new();
    for (rules, answer) in [(refused, libc::EPERM), (unknown, libc::ENOSYS)] {
        if !rules.is_empty() {
            filters.push(filter(rules, answer.unsigned_abs())?);
        }
    }
    Ok(filters)
}

/// The calls that cripple or slow down a process named by its number, refused unless that is 0, which is the caller.
///
/// No filter can tell a process's own number from another's, so a program that names itself by number is refused too.
fn on_others() -> Result<Vec<(i64, Vec<SeccompRule>)>, Error> {
    let whole_user = |kind: libc::c_int| is(0, u64::from(kind.unsigned_abs()));
    // Reading limits names a process too, and gives no new ones.
    let limits = SeccompRule::new(vec![
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?,
        SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?,
    ])?;
    Ok(vec![
        (libc::SYS_prlimit64, vec![limits]),
        (libc::SYS_setpriority, vec![is_not(1, 0)?, whole_user(PRIO_USER)?]),
        (libc::SYS_ioprio_set, vec![is_not(1, 0)?, whole_user(IOPRIO_WHO_USER)?]),
        (libc::SYS_sched_setaffinity, vec![is_not(0, 0)?]),
        (libc::SYS_sched_setscheduler, vec![is_not(0, 0)?]),
        (libc::SYS_sched_setparam, vec![is_not(0, 0)?]),
        (libc::SYS_sched_setattr, vec![is_not(0, 0)?]),
    ])
}

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, answer: u32) -> Result<BpfProgram, Error> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(answer), architecture)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(one_numbering(program))
}

/// Puts before a program that no call may come by a number of another instruction set.
fn one_numbering(program: BpfProgram) -> BpfProgram {
    #[cfg(target_arch = "x86_64")]
    {
        let load_number = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
        let below = sock_filter { code: 0x35, jt: 0, jf: 1, k: X32 };
        let refuse = sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::EPERM.unsigned_abs() };
        [load_number, below, refuse].into_iter().chain(program).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        program
    }
}

fn new_user() -> u64 {
    u64::from(libc::CLONE_NEWUSER.unsigned_abs())
}

fn local() -> u64 {
    u64::from(libc::AF_UNIX.unsigned_abs())
}

fn has_flag(argument: u8, flag: u64) -> Result<SeccompRule, Error> {
    rule(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)
}

fn is(argument: u8, value: u64) -> Result<SeccompRule, Error> {
    rule(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompRule, Error> {
    rule(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn rule(argument: u8, length: SeccompCmpArgLen, how: SeccompCmpOp, value: u64) -> Result<SeccompRule, Error> {
    Ok(SeccompRule::new(vec![SeccompCondition::new(argument, length, how, value)?])?)
}
