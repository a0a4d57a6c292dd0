//! Standard input as a prompt, or as context beside one.
//!
//! Without a prompt it is read to its end, however long that takes. Beside a prompt nothing that comes late blocks the
//! run: a file is read to its end, a pipe has [`FIRST_BYTE`] to say something.

use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::sync::mpsc;

/// How long a pipe beside a prompt may be silent.
pub(crate) const FIRST_BYTE: Duration = Duration::from_secs(3);

/// What standard input turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// Nobody can be waiting to be read: a terminal, or nothing there.
    Nothing,
    /// Its whole text.
    Text(String),
    /// A pipe that said nothing in time.
    Silent,
}

/// Whether a person sits at it.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Chunks of standard input from a thread of its own: a read cannot be cancelled, so the thread is left behind when
/// the run ends first.
fn chunks() -> io::Result<mpsc::Receiver<io::Result<Vec<u8>>>> {
    let (send, receive) = mpsc::channel(4);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut chunk = vec![0; 64 * 1024];
            let read = stdin.read(&mut chunk);
            let end = !matches!(read, Ok(n) if n > 0);
            let item = read.map(|n| {
                chunk.truncate(n);
                chunk
            });
            if matches!(&item, Ok(bytes) if bytes.is_empty()) || send.blocking_send(item).is_err() || end {
                return;
            }
        }
    })?;
    Ok(receive)
}

async fn rest(mut bytes: Vec<u8>, mut from: mpsc::Receiver<io::Result<Vec<u8>>>) -> io::Result<String> {
    while let Some(chunk) = from.recv().await {
        bytes.extend(chunk?);
    }
    // Half a character must not lose a whole prompt.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads it to its end.
///
/// # Errors
/// The system's, when it cannot be read.
pub(crate) async fn whole() -> io::Result<String> {
    if !is_open() {
        return Ok(String::new());
    }
    rest(Vec::new(), chunks()?).await
}

/// Reads it beside a prompt.
///
/// # Errors
/// The system's, when it cannot be read.
pub(crate) async fn beside_a_prompt() -> io::Result<Stdin> {
    if !is_open() || is_terminal() {
        return Ok(Stdin::Nothing);
    }
    let mut chunks = chunks()?;
    if is_file() {
        return rest(Vec::new(), chunks).await.map(Stdin::Text);
    }
    match tokio::time::timeout(FIRST_BYTE, chunks.recv()).await {
        Err(_) => Ok(Stdin::Silent),
        Ok(None) => Ok(Stdin::Nothing),
        Ok(Some(first)) => rest(first?, chunks).await.map(Stdin::Text),
    }
}

/// Lines as they come, for `--input-format stream-json`.
///
/// # Errors
/// The system's, when no thread can be started.
pub(crate) fn lines() -> io::Result<mpsc::Receiver<io::Result<String>>> {
    let (send, receive) = mpsc::channel(4);
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        for line in io::BufRead::lines(io::stdin().lock()) {
            let end = line.is_err();
            if send.blocking_send(line).is_err() || end {
                return;
            }
        }
    })?;
    Ok(receive)
}

fn is_open() -> bool {
    rustix::fs::fstat(io::stdin().as_fd()).is_ok()
}

fn is_file() -> bool {
    rustix::fs::fstat(io::stdin().as_fd())
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile)
}
