//! Standard output as whole lines: one thread owns it, writing and flushing each as it comes.
//!
//! A closed pipe is no error: the run ends quietly, as `cat` would. Any other failure is kept and reported once.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, watch};

/// How many lines may wait for a slow reader before the run waits too.
const ROOM: usize = 64;

/// How writing went.
#[derive(Debug, Clone)]
pub(crate) enum OutputState {
    /// Fine so far.
    Open,
    /// The reader has gone.
    Closed,
    /// It failed otherwise.
    Failed(Arc<io::Error>),
}

/// The sender's side of standard output.
pub(crate) struct Output {
    lines: mpsc::Sender<Vec<u8>>,
    state: watch::Receiver<OutputState>,
    thread: JoinHandle<()>,
}

impl Output {
    /// Takes standard output.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn stdout() -> io::Result<Self> {
        let (lines, mut queue) = mpsc::channel::<Vec<u8>>(ROOM);
        let (tell, state) = watch::channel(OutputState::Open);
        let thread = std::thread::Builder::new().name("stdout".to_owned()).spawn(move || {
            let mut out = io::stdout().lock();
            while let Some(bytes) = queue.blocking_recv() {
                if let Err(fault) = out.write_all(&bytes).and_then(|()| out.flush()) {
                    let state = match fault.kind() {
                        io::ErrorKind::BrokenPipe => OutputState::Closed,
                        _ => OutputState::Failed(Arc::new(fault)),
                    };
                    let _ = tell.send(state);
                    return;
                }
            }
        })?;
        Ok(Self { lines, state, thread })
    }

    /// Writes one line; a reader that has gone swallows it.
    pub(crate) async fn line(&self, text: impl Into<String>) {
        let mut bytes = text.into().into_bytes();
        bytes.push(b'\n');
        self.bytes(bytes).await;
    }

    /// Writes bytes as they are.
    pub(crate) async fn bytes(&self, bytes: Vec<u8>) {
        let _ = self.lines.send(bytes).await;
    }

    /// How writing goes.
    pub(crate) fn watch(&self) -> watch::Receiver<OutputState> {
        self.state.clone()
    }

    /// Writes what is queued and says how it all went.
    pub(crate) async fn finish(self) -> OutputState {
        drop(self.lines);
        let thread = self.thread;
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        self.state.borrow().clone()
    }
}

/// Whether nothing more can be written.
pub(crate) async fn gone(mut state: watch::Receiver<OutputState>) {
    // An error means that the writer has ended by itself, after all lines were written.
    if state.wait_for(|s| !matches!(s, OutputState::Open)).await.is_err() {
        std::future::pending::<()>().await;
    }
}
