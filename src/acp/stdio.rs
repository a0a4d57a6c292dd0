//! The process's standard streams while ACP is spoken, and the record of them that `--trace-wire` asks for.
//!
//! The invariant: after [`take`] nobody but the protocol's writer can write to what was standard output, and no child
//! can read what was standard input. Descriptor 1 is then standard error, descriptor 0 is empty.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde::Serialize;
use sluice_protocol::{Direction, WireTrace};

/// How long the end of the record is waited for.
const LAST_LINES: Duration = Duration::from_millis(200);

/// What was standard input and output.
pub(super) struct Wire {
    pub(super) input: File,
    pub(super) output: File,
}

/// Takes both streams for the protocol.
///
/// # Errors
/// When a descriptor cannot be duplicated.
pub(super) fn take() -> io::Result<Wire> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdout(io::stderr())?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(Wire { input, output })
}

/// The record: one JSON object a line.
#[derive(Clone)]
struct Record {
    file: Arc<Mutex<File>>,
    began: Instant,
}

#[derive(Serialize)]
struct Line<'a> {
    ms: u64,
    stream: &'a str,
    text: &'a str,
}

impl Record {
    fn write(&self, stream: &str, text: &str) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Ok(mut line) = serde_json::to_string(&Line { ms, stream, text }) else { return };
        line.push('\n');
        // A record that cannot be written must not end the conversation.
        let _ = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

/// A record under way.
pub(super) struct Trace {
    record: Record,
    stderr: OwnedFd,
    ended: mpsc::Receiver<()>,
}

impl Trace {
    /// Begins a record of all three streams. Standard error goes on to where it went.
    ///
    /// # Errors
    /// When the file or a pipe cannot be made.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let record = Record { file: Arc::new(Mutex::new(File::create(path)?)), began: Instant::now() };
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        let mut onward = File::from(stderr.try_clone()?);
        let (reader, writer) = io::pipe()?;
        rustix::stdio::dup2_stderr(&writer)?;
        drop(writer);
        let (tell, ended) = mpsc::channel();
        let lines = record.clone();
        std::thread::Builder::new().name("stderr".to_owned()).spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line), Ok(read) if read > 0) {
                let _ = onward.write_all(&line);
                lines.write("stderr", String::from_utf8_lossy(&line).trim_end_matches('\n'));
                line.clear();
            }
            let _ = tell.send(());
        })?;
        Ok(Self { record, stderr, ended })
    }

    /// What the connection shows its messages to.
    pub(super) fn of_wire(&self) -> WireTrace {
        let record = self.record.clone();
        Arc::new(move |direction, text| {
            let stream = match direction {
                Direction::In => "stdin",
                Direction::Out => "stdout",
            };
            record.write(stream, text);
        })
    }

    /// Gives standard error back and takes in its last lines. Blocks briefly.
    pub(super) fn finish(self) {
        // Both descriptors may hold the pipe; what a child still holds is not waited for.
        let restored = rustix::stdio::dup2_stderr(&self.stderr).and_then(|()| rustix::stdio::dup2_stdout(&self.stderr));
        if restored.is_ok() {
            let _ = self.ended.recv_timeout(LAST_LINES);
        }
    }
}
