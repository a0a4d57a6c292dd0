//! The writer thread: sole owner of the output stream.
//!
//! Lives here: the outgoing channel and the thread that empties it. Does not live here: what is sent.
//! Invariant: the order on the wire is the order of the sends on the one channel; the stream is flushed
//! whenever the channel has run empty, never in the middle of a burst.

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::framing::{Framing, SharedFraming};
use crate::{Direction, WireTrace};

/// One order to the writer.
#[derive(Debug)]
enum Order {
    /// Write this message.
    Message(String),
    /// Look at the side list: something could not wait for room.
    LookAside,
    /// Tell when everything before this is flushed.
    Flush(oneshot::Sender<()>),
    /// Flush, let go of the stream, tell, and end.
    Close(oneshot::Sender<()>),
}

/// The sending end; clones share one channel and so one order.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    orders: mpsc::Sender<Order>,
    aside: Arc<Mutex<VecDeque<String>>>,
}

/// The output is gone: the other side closed it, or the connection was shut down.
#[derive(Debug)]
pub(crate) struct OutputGone;

impl Outgoing {
    /// Starts the thread. It ends when told to close, when writing fails, or when every sender is gone.
    pub(crate) fn start(
        output: impl Write + Send + 'static,
        framing: SharedFraming,
        room: usize,
        trace: Option<WireTrace>,
    ) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel(room.max(1));
        let aside = Arc::new(Mutex::new(VecDeque::new()));
        let mut writer =
            Writer { output: BufWriter::with_capacity(64 * 1024, output), framing, trace, aside: Arc::clone(&aside) };
        thread::Builder::new().name("wire-writer".to_owned()).spawn(move || writer.run(inbox))?;
        Ok(Self { orders, aside })
    }

    /// Sends one message, waiting while the channel is full.
    pub(crate) async fn send(&self, text: String) -> Result<(), OutputGone> {
        self.orders.send(Order::Message(text)).await.map_err(|_| OutputGone)
    }

    /// Sends one message if there is room, else gives it back.
    pub(crate) fn try_send(&self, text: String) -> Option<String> {
        match self.orders.try_send(Order::Message(text)) {
            Err(TrySendError::Full(Order::Message(text))) => Some(text),
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Closed(_)) => None,
        }
    }

    /// Sends one message from where nothing can wait, such as a destructor. With a full channel it goes
    /// out a little later than its turn.
    pub(crate) fn send_aside(&self, text: String) {
        if let Some(text) = self.try_send(text) {
            self.aside.lock().unwrap_or_else(PoisonError::into_inner).push_back(text);
            // If the channel is still full the writer looks aside after its next message anyway.
            let _ = self.orders.try_send(Order::LookAside);
        }
    }

    /// Waits until everything sent so far is flushed.
    pub(crate) async fn flush(&self) -> Result<(), OutputGone> {
        let (done, waiting) = oneshot::channel();
        self.orders.send(Order::Flush(done)).await.map_err(|_| OutputGone)?;
        waiting.await.map_err(|_| OutputGone)
    }

    /// Waits until everything sent so far is flushed and the stream is let go.
    pub(crate) async fn close(&self) -> Result<(), OutputGone> {
        let (done, waiting) = oneshot::channel();
        self.orders.send(Order::Close(done)).await.map_err(|_| OutputGone)?;
        waiting.await.map_err(|_| OutputGone)
    }

    /// Resolves once the output is gone.
    pub(crate) async fn gone(&self) {
        self.orders.closed().await;
    }
}

struct Writer<W: Write> {
    output: BufWriter<W>,
    framing: SharedFraming,
    trace: Option<WireTrace>,
    aside: Arc<Mutex<VecDeque<String>>>,
}

impl<W: Write> Writer<W> {
    fn run(&mut self, mut inbox: mpsc::Receiver<Order>) {
        match self.work(&mut inbox) {
            Ok(closed) => {
                if let Some(done) = closed {
                    drop(inbox);
                    let _ = done.send(());
                }
            }
            // A reader that went away is an ordinary end of a connection.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                tracing::debug!("the other side closed our output");
            }
            Err(error) => tracing::warn!(%error, "cannot write to the other side"),
        }
    }

    /// Returns whom to tell when the stream was closed on demand.
    fn work(&mut self, inbox: &mut mpsc::Receiver<Order>) -> io::Result<Option<oneshot::Sender<()>>> {
        while let Some(order) = inbox.blocking_recv() {
            let mut next = Some(order);
            while let Some(order) = next {
                match order {
                    Order::Message(text) => self.write(&text)?,
                    Order::LookAside => {}
                    Order::Flush(done) => {
                        self.write_aside()?;
                        self.output.flush()?;
                        let _ = done.send(());
                    }
                    Order::Close(done) => {
                        self.write_aside()?;
                        self.output.flush()?;
                        return Ok(Some(done));
                    }
                }
                next = inbox.try_recv().ok();
            }
            self.write_aside()?;
            self.output.flush()?;
        }
        Ok(None)
    }

    fn write_aside(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut *self.aside.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.iter().try_for_each(|text| self.write(text))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        if let Some(trace) = &self.trace {
            trace(Direction::Out, text);
        }
        let framing = *self.framing.get().unwrap_or(&Framing::Lines);
        framing.write(&mut self.output, text)
    }
}
