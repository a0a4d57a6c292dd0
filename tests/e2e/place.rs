//! A place of its own for a run: home, workspace and state folders, and the program in a small environment.
//!
//! No run sees the machine's own settings or another run's. The invariant: whatever was started here is known by a
//! variable in its environment, so that a process left behind is found, named and ended by its id.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long a run may take before it counts as hung.
const WATCHDOG: Duration = Duration::from_secs(60);

/// The variable by which our processes are known.
const MARK: &str = "SLUICE_E2E";

/// The folders of one run.
pub(crate) struct Place {
    root: TempDir,
    extra: Vec<(String, String)>,
}

/// What a finished run left.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Done {
    /// The one JSON object on stdout, or its last line.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_else(|| panic!("nothing on stdout: {self:?}"));
        serde_json::from_str(last).unwrap_or_else(|error| panic!("no JSON at the end of stdout ({error}): {self:?}"))
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::at(TempDir::with_prefix("sluice-e2e-").unwrap())
    }

    /// A place that lies in no temporary folder, which a sandbox would leave open.
    pub(crate) fn out_of_temp() -> Self {
        Self::at(TempDir::with_prefix_in("sluice-e2e-", env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn at(root: TempDir) -> Self {
        for folder in ["home", "work", "state", "tmp"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, extra: Vec::new() }
    }

    /// A place whose workspace has this name, for paths that are hard to quote.
    pub(crate) fn named(name: &str) -> Self {
        let place = Self::new();
        fs::create_dir_all(place.root().join(name)).unwrap();
        fs::remove_dir(place.root().join("work")).unwrap();
        std::os::unix::fs::symlink(place.root().join(name), place.root().join("work")).unwrap();
        place
    }

    /// One more variable for every run here.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.extra.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root().join("work").canonicalize().unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("state")
    }

    /// Where every request to a script model is recorded.
    pub(crate) fn record(&self) -> PathBuf {
        self.root().join("requests.jsonl")
    }

    /// Writes a file of the workspace; one that begins with `#!` can be run.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        write(&path, text);
        path
    }

    /// Writes a file of the home folder.
    pub(crate) fn write_home(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(name);
        write(&path, text);
        path
    }

    /// Writes the script model's file and returns the name of the model.
    pub(crate) fn script(&self, script: &Value) -> String {
        let path = self.root().join("script.json");
        write(&path, &script.to_string());
        format!("script:{}", path.display())
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// The logs of all sessions, oldest first.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.state().join("sluice/sessions")) else { return Vec::new() };
        let mut logs: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .collect();
        logs.sort();
        logs
    }

    /// Any program in this place's environment, at the head of a process group of its own.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path())
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.state())
            .env("TMPDIR", self.root().join("tmp"))
            .env("LANG", "C.UTF-8")
            .env("SLUICE_SCRIPT_RECORD", self.record())
            .env("SLUICE", env!("CARGO_BIN_EXE_sluice"))
            .env(MARK, self.mark())
            .envs(self.extra.iter().map(|(name, value)| (name, value)))
            .current_dir(self.work())
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// The program.
    pub(crate) fn sluice<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_sluice"));
        command.args(args);
        command
    }

    /// A shell line with the program on `$SLUICE`.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = self.command("bash");
        command.args(["-o", "pipefail", "-c", line]);
        command
    }

    /// Starts it with its output in files, so that nobody who holds a pipe can keep us.
    pub(crate) fn start(&self, mut command: Command) -> Started {
        let (out, err) = (self.root().join("stdout"), self.root().join("stderr"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        Started { child, began: Instant::now(), out, err }
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(&self, command: Command) -> Done {
        self.start(command).wait()
    }

    /// Runs the program with these arguments.
    #[track_caller]
    pub(crate) fn run_sluice<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        self.run(self.sluice(args))
    }

    fn mark(&self) -> String {
        self.root.path().display().to_string()
    }

    /// Processes that were started here and are still there, as `(pid, command line)`.
    pub(crate) fn left_behind(&self) -> Vec<(i32, String)> {
        let needle = format!("{MARK}={}", self.mark());
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == needle.as_bytes())
            })
            .map(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                (pid, String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .collect()
    }

    /// Fails when a process stays; a killed one has a moment to go.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        let gone = until(Duration::from_secs(5), || self.left_behind().is_empty());
        let left = self.left_behind();
        self.end_all();
        assert!(gone, "processes were left behind: {left:?}");
    }

    /// Ends what was left, each by its id.
    pub(crate) fn end_all(&self) {
        for (pid, _) in self.left_behind() {
            signal(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end_all();
        // A folder that a test made read-only must not stay.
        let home = self.home();
        let _ = fs::set_permissions(&home, fs::Permissions::from_mode(0o755));
    }
}

/// A run that goes on.
pub(crate) struct Started {
    child: Child,
    began: Instant,
    out: PathBuf,
    err: PathBuf,
}

impl Started {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, which: rustix::process::Signal) {
        signal(self.pid(), which);
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    /// Waits for its end; one that hangs is killed with its group, and fails the test.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Done {
        let (ended, watch) = mpsc::channel::<()>();
        let group = self.pid();
        let dog = std::thread::spawn(move || {
            let hung = matches!(watch.recv_timeout(WATCHDOG), Err(mpsc::RecvTimeoutError::Timeout));
            if hung && let Some(group) = rustix::process::Pid::from_raw(group) {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            }
            hung
        });
        let status = self.child.wait().unwrap();
        let took = self.began.elapsed();
        drop(ended);
        let hung = dog.join().unwrap();
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let done = Done { code: code(status), stdout: text(&self.out), stderr: text(&self.err), took };
        assert!(!hung, "it did not end within {WATCHDOG:?}: {done:?}");
        done
    }
}

/// The exit code, or 128 and the signal's number.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}

/// Signals one process that we started.
pub(crate) fn signal(pid: i32, which: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, which);
    }
}

/// Looks again and again until it is so, or the time is over.
pub(crate) fn until(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if so() {
            return true;
        }
        if began.elapsed() > limit {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Whether a program is installed.
pub(crate) fn has(program: &str) -> bool {
    std::env::split_paths(&path()).any(|folder| folder.join(program).is_file())
}

/// Writes a file with the folders above it; one that begins with `#!` can be run.
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    if text.starts_with("#!") {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
