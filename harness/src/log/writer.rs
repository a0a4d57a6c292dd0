//! The file of a live session and the one thread that writes it.
//!
//! Appends never wait for the disk: they queue an event, and the thread writes each with one `write` call, in order.
//! Only a barrier (and the end) syncs. The first event publishes the file whole: a temporary file of our own, synced,
//! locked, then linked to its name without overwriting. A failed write is cut off again and latched:
//! nothing is written after it, and everybody who asks is told.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::error::LogError;
use super::line::Logged;
use crate::ids::SessionId;

/// The error of the first failed write, once there is one.
pub(super) type Latch = Arc<OnceLock<LogError>>;

/// What the thread is asked to do.
#[derive(Debug)]
pub(super) enum Job {
    /// Write an event.
    Write(Arc<Logged>),
    /// Make everything before this durable, and say so.
    Sync(oneshot::Sender<Result<(), LogError>>),
    /// Make everything durable, give the lock back, say so and end.
    Close(oneshot::Sender<Result<(), LogError>>),
}

/// Where the events go.
#[derive(Debug)]
pub(super) enum Target {
    /// Nothing is on disk yet.
    Unpublished {
        /// The header's line, without its newline.
        header: String,
    },
    /// The file exists and is locked.
    Published(Published),
}

/// A log on disk.
#[derive(Debug)]
pub(super) struct Published {
    /// Opened for appending.
    pub(super) file: LockedFile,
    /// Its length up to the last whole event.
    pub(super) len: u64,
    /// Whether something was written since the last sync.
    pub(super) dirty: bool,
}

/// Where a session's log is.
///
/// # Errors
/// [`LogError::BadHeader`] for an empty id.
pub fn log_path(dir: &Path, id: &SessionId) -> Result<PathBuf, LogError> {
    if id.as_str().is_empty() {
        return Err(LogError::BadHeader { why: "the session id is empty".to_owned() });
    }
    Ok(dir.join(format!("{}.jsonl", escaped(id.as_str()))))
}

/// An id as a file name: letters, digits, `.`, `_` and `-` stand for themselves, everything else and a name of dots
/// alone is spelled out, so that no id leaves the folder and no two share a file.
fn escaped(id: &str) -> String {
    let dots = matches!(id, "." | "..");
    let mut name = String::with_capacity(id.len());
    for unit in id.encode_utf16() {
        match u8::try_from(unit).map(char::from) {
            Ok(c) if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || (c == '.' && !dots) => name.push(c),
            _ => name.push_str(&format!("~{unit:04X}")),
        }
    }
    name
}

/// A file whose lock makes its holder the session's one writer.
#[derive(Debug)]
pub(super) struct LockedFile(File);

impl LockedFile {
    /// Takes the lock, or says who it is that cannot.
    pub(super) fn take(file: File, id: &SessionId, path: &Path) -> Result<Self, LogError> {
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(LogError::Locked { id: id.clone(), path: path.to_owned() }),
            Err(TryLockError::Error(e)) => {
                Err(LogError::Io { doing: "lock", path: path.to_owned(), cause: Arc::new(e) })
            }
        }
    }
}

impl Deref for LockedFile {
    type Target = File;
    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    /// Closing alone would not do: a process that is being spawned just now holds a copy of the file until its
    /// `exec`, and the lock would live as long.
    fn drop(&mut self) {
        if let Err(e) = self.0.unlock() {
            tracing::warn!(error = %e, "the lock of a session log could not be given back");
        }
    }
}

/// Starts the thread.
pub(super) fn start(
    id: SessionId,
    path: PathBuf,
    target: Target,
    latch: Latch,
) -> Result<(mpsc::Sender<Job>, JoinHandle<()>), LogError> {
    // Unbounded on purpose: an append must not block the runtime, and every queued event is kept in memory anyway.
    let (queue, jobs) = mpsc::channel();
    let failed = |e| LogError::Io { doing: "start the writer of", path: path.clone(), cause: Arc::new(e) };
    let writer = Writer { id, path: path.clone(), target, latch };
    let thread =
        std::thread::Builder::new().name("session-log".to_owned()).spawn(move || writer.run(&jobs)).map_err(failed)?;
    Ok((queue, thread))
}

struct Writer {
    id: SessionId,
    path: PathBuf,
    target: Target,
    latch: Latch,
}

impl Writer {
    fn run(mut self, jobs: &mpsc::Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            match job {
                Job::Write(event) => self.write(&event),
                // Whoever asked may have gone; the work is done all the same.
                Job::Sync(answer) => drop(answer.send(self.sync())),
                Job::Close(answer) => {
                    let done = self.sync();
                    drop(self);
                    drop(answer.send(done));
                    return;
                }
            }
        }
        if let Err(e) = self.sync() {
            tracing::error!(error = %e, "the session log could not be completed");
        }
    }

    fn write(&mut self, event: &Logged) {
        if self.latch.get().is_some() {
            return;
        }
        let mut line = event.line();
        line.push('\n');
        let done = match &mut self.target {
            Target::Published(log) => log.append(line.as_bytes()).map_err(|failed| failed.of(&self.path)),
            Target::Unpublished { header } => {
                let text = format!("{header}\n{line}");
                publish(&self.id, &self.path, text.as_bytes()).map(|log| self.target = Target::Published(log))
            }
        };
        if let Err(e) = done {
            self.fail(e);
        }
    }

    fn sync(&mut self) -> Result<(), LogError> {
        if let Some(e) = self.latch.get() {
            return Err(e.clone());
        }
        let Target::Published(log) = &mut self.target else { return Ok(()) };
        if !log.dirty {
            return Ok(());
        }
        // After a failed sync nobody knows what is on disk, so it is final, like a failed write.
        match log.file.sync_data() {
            Ok(()) => log.dirty = false,
            Err(e) => {
                let e = LogError::Write { path: self.path.clone(), cause: Arc::new(e), cut: None };
                self.fail(e.clone());
                return Err(e);
            }
        }
        Ok(())
    }

    fn fail(&self, error: LogError) {
        tracing::error!(%error, "the session log failed");
        // Only this thread sets it, and only once: after it nothing is tried any more.
        let _ = self.latch.set(error);
    }
}

impl Published {
    /// Writes a whole line, or leaves the file as it was.
    fn append(&mut self, line: &[u8]) -> Result<(), Unwritten> {
        if let Err(cause) = (&*self.file).write_all(line) {
            let cut = self.file.set_len(self.len).and_then(|()| self.file.sync_all()).err();
            return Err(Unwritten { cause, cut });
        }
        self.len += line.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Writes a whole line at once and for all; for repair, which has no thread yet.
    pub(super) fn append_now(&mut self, line: &str, path: &Path) -> Result<(), LogError> {
        self.append(format!("{line}\n").as_bytes()).map_err(|failed| failed.of(path))
    }
}

struct Unwritten {
    cause: io::Error,
    cut: Option<io::Error>,
}

impl Unwritten {
    fn of(self, path: &Path) -> LogError {
        LogError::Write { path: path.to_owned(), cause: Arc::new(self.cause), cut: self.cut.map(Arc::new) }
    }
}

/// Brings the file into being, whole and locked, unless its name is taken.
fn publish(id: &SessionId, path: &Path, text: &[u8]) -> Result<Published, LogError> {
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::AlreadyExists => LogError::Exists { id: id.clone(), path: path.to_owned() },
        _ => LogError::Write { path: path.to_owned(), cause: Arc::new(e), cut: None },
    };
    let dir = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    // The name is this attempt's alone, so a leftover of a killed process is never in the way.
    let draft = dir.join(format!(".{}.draft", uuid::Uuid::now_v7()));
    let published = (|| {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&draft).map_err(failed)?;
        let file = LockedFile::take(file, id, path)?;
        (&*file).write_all(text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::hard_link(&draft, path).map_err(failed)?;
        Ok(file)
    })();
    // Both names are one file now, or there is no log at all; either way the draft has served.
    if let Err(e) = fs::remove_file(&draft)
        && e.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %draft.display(), error = %e, "the draft of a session log could not be removed");
    }
    let file = published?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed)?;
    Ok(Published { file, len: text.len() as u64, dirty: false })
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn r_256_ids_become_file_names_without_collision_or_traversal() {
        for (id, name) in [
            ("0195f0d2-7c1a-7000-8000-000000000001", "0195f0d2-7c1a-7000-8000-000000000001"),
            ("../../etc/passwd", "..~002F..~002Fetc~002Fpasswd"),
            ("..", "~002E~002E"),
            (".", "~002E"),
            ("a~b", "a~007Eb"),
            ("a b", "a~0020b"),
            ("é", "~00E9"),
            ("😀", "~D83D~DE00"),
        ] {
            assert_eq!(escaped(id), name);
        }
    }
}
