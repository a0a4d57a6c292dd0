//! Starting the command, and taking over the socket that sluice left open for us.
//!
//! Nothing but that lives here, because it needs `unsafe`.

#![expect(
    unsafe_code,
    reason = "a descriptor that was inherited can only be taken by its number, and `pre_exec` is the only way to give the \
              command a session of its own; this process has one thread, so that nothing can be in a half-done state in \
              the forked child"
)]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::FileType;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};

use super::channel::{Orders, Report};
use crate::sandbox::Cage;

/// The socket with this number, if there is one; nobody that we start inherits it.
pub(super) fn inherited_socket(number: RawFd) -> Option<OwnedFd> {
    // 0 to 2 are the command's own streams.
    if number <= 2 {
        return None;
    }
    // SAFETY: the borrow ends before the function does; a number that is not open makes the next calls fail.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    let stat = rustix::fs::fstat(socket).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return None;
    }
    rustix::io::fcntl_setfd(socket, FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is open, a socket, and left to us by number alone: nothing else in this fresh process owns it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

/// What the child answers when it could not be confined: a number that no `exec` gives.
const NOT_CONFINED: rustix::io::Errno = rustix::io::Errno::NOTRECOVERABLE;

/// Starts the command in a session of its own, confined. It dies with us.
pub(super) fn start(orders: &Orders) -> Result<Pid, Report> {
    let mut cage = Cage::of(&orders.confinement).map_err(|why| Report::Unconfined { why })?;
    let mut command = Command::new(&orders.path);
    command.arg0(&orders.name).args(&orders.args);
    let warden = rustix::process::getpid();
    // SAFETY: the closure runs in the forked child of a process with one thread.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The warden may have died before it could be told of.
            if rustix::process::getppid() != Some(warden) {
                return Err(io::Error::from(rustix::io::Errno::SRCH));
            }
            cage.enter().map_err(|_| io::Error::from(NOT_CONFINED))
        });
    }
    match command.spawn() {
        Ok(child) => Ok(Pid::from_child(&child)),
        Err(fault) if fault.raw_os_error() == Some(NOT_CONFINED.raw_os_error()) => {
            let why = "the kernel did not put the sandbox in force, so the command did not run".to_owned();
            Err(Report::Unconfined { why })
        }
        Err(fault) => Err(Report::NotStarted { errno: fault.raw_os_error().unwrap_or_default() }),
    }
}
