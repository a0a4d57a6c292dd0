//! Starting the child in a session of its own.
//!
//! Nothing but the start lives here, because this is the one file of the crate where `unsafe` is allowed. The
//! invariant: between fork and exec the child calls `setsid`, and for a warden's socket `fcntl`, and allocates nothing.

#![expect(
    unsafe_code,
    reason = "`pre_exec` is the only way to give a child its own session without a helper program; the closure makes \
              async-signal-safe system calls alone, touches no memory of ours and takes no lock"
)]

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use super::lookup::Launch;

/// How often a program that is still being written is tried again.
const BUSY_TRIES: u32 = 20;
/// How long between two tries.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Whether the child reads something from us.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// It sees the end of its input at once.
    Closed,
    /// It gets a pipe.
    Fed,
}

/// What the child is to us.
#[derive(Clone, Copy)]
pub(super) enum Role<'a> {
    /// The program itself; it dies when its handle is dropped.
    Program,
    /// A warden, which inherits this socket and ends by itself once our end of it is closed.
    Warden(&'a OwnedFd),
}

/// Starts the child: own session and process group, no terminal, outputs piped, every other descriptor closed on exec.
pub(super) async fn spawn(
    launch: &Launch,
    cwd: &Path,
    env: &[(OsString, OsString)],
    input: Input,
    role: Role<'_>,
) -> io::Result<Child> {
    let mut tries = 0;
    loop {
        match command(launch, cwd, env, input, role).spawn() {
            // Another thread that forked while the script was open for writing holds it for an instant.
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            result => return result,
        }
    }
}

fn command(launch: &Launch, cwd: &Path, env: &[(OsString, OsString)], input: Input, role: Role<'_>) -> Command {
    let mut command = Command::new(&launch.path);
    command
        .arg0(&launch.name)
        .args(&launch.args)
        .current_dir(cwd)
        .env_clear()
        .envs(env.iter().map(|(k, v)| (k, v)))
        .stdin(match input {
            Input::Closed => Stdio::null(),
            Input::Fed => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(matches!(role, Role::Program));
    let inherited = match role {
        Role::Program => None,
        Role::Warden(socket) => Some(socket.as_raw_fd()),
    };
    // SAFETY: the closure runs in the forked child before exec. `setsid` and `fcntl` are async-signal-safe; on failure
    // only the error number travels back. No allocation, no lock, no access to shared state. The socket is borrowed
    // beyond the start, and the descriptor in the child is its own copy.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            if let Some(socket) = inherited {
                rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(socket), rustix::io::FdFlags::empty())?;
            }
            Ok(())
        });
    }
    command
}
