//! Servers that are programs: started by us, in a group of their own, spoken to on their standard streams.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use sluice_harness::seam::mcp::McpFault;
use sluice_harness::seam::process::{End, Environment};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::watched::{self, LONGEST_LINE, Seen, Watched};
use crate::process::LocalProcesses;
use crate::process::companion::{Companion, CompanionSpec, Life};
use crate::secret::Secret;

/// How long after TERM a server is killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long the end of a process is waited for when its output has ended.
const LAST: Duration = Duration::from_secs(1);

/// How much of a server's output is on its way at once.
const BUFFER: usize = 64 * 1024;

/// What speaks with such a server.
pub(super) type Pipe = AsyncRwTransport<RoleClient, DuplexStream, ChildStdin>;

/// A server's process.
pub(super) struct Program {
    life: Life,
    seen: Arc<Mutex<Seen>>,
    /// Texts that are in no message.
    secrets: Vec<Secret>,
    /// Whether its output has been read to the end.
    read: watch::Receiver<bool>,
    /// Reads its output; goes with the program.
    _reader: Mutex<JoinSet<()>>,
}

/// Starts a server.
pub(super) async fn start(
    processes: &LocalProcesses,
    name: &str,
    command: &str,
    args: &[String],
    environment: &Environment,
    cwd: &Path,
) -> Result<(Program, Pipe), McpFault> {
    let spec = CompanionSpec {
        name: name.to_owned(),
        program: command.to_owned(),
        args: args.to_vec(),
        cwd: cwd.to_owned(),
        environment: environment.clone(),
        grace: GRACE,
        secrets: secrets(environment),
    };
    let secrets = spec.secrets.clone();
    let Companion { stdin, stdout, life } =
        processes.open(spec).await.map_err(|problem| McpFault::NotStarted { why: problem.to_string() })?;
    let (stdout, seen) = Watched::new(stdout);
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let (tell, read) = watch::channel(false);
    let mut reader = JoinSet::new();
    reader.spawn(async move {
        forward(stdout, ours).await;
        let _ = tell.send(true);
    });
    let pipe = AsyncRwTransport::new_client(theirs, stdin).with_max_line_length(LONGEST_LINE * 2);
    Ok((Program { life, seen, secrets, read, _reader: Mutex::new(reader) }, pipe))
}

/// Passes a server's output on, and reads it also when nobody wants it any more: what a server prints that ends at once
/// is the best reason there is, and a pipe that is full keeps nobody from ending.
async fn forward(mut from: Watched<ChildStdout>, to: DuplexStream) {
    let mut to = Some(to);
    let mut buffer = vec![0; BUFFER];
    loop {
        let bytes = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(n) => buffer.get(..n).unwrap_or_default(),
        };
        if let Some(open) = &mut to
            && open.write_all(bytes).await.is_err()
        {
            to = None;
        }
    }
}

/// The values of variables whose names say that they are secret.
fn secrets(environment: &Environment) -> Vec<Secret> {
    const WORDS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "AUTH"];
    let is_secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        WORDS.iter().any(|word| name.contains(word))
    };
    let named = environment.set.iter().filter(|(name, value)| is_secret(name) && value.len() >= 4);
    named.map(|(_, value)| Secret::new(value)).collect()
}

impl Program {
    /// How it ended, or will have.
    pub(super) async fn obituary(&self) -> McpFault {
        let end = tokio::time::timeout(LAST, self.life.ended()).await;
        if end.is_ok() {
            let mut read = self.read.clone();
            let _ = tokio::time::timeout(LAST, read.wait_for(|read| *read)).await;
        }
        let cut = watched::lock(&self.seen).fault();
        let how = match (cut, end) {
            (Some(why), _) => why.to_owned(),
            (None, Ok(End::NotStarted(problem))) => return McpFault::NotStarted { why: problem.to_string() },
            (None, Ok(End::Exited(code))) => format!("its process ended with code {code}"),
            (None, Ok(End::Signalled(number))) => format!("its process was ended by signal {number}"),
            (None, Ok(End::Cancelled | End::TimedOut)) => "it was stopped".to_owned(),
            (None, Err(_)) => "it closed its output".to_owned(),
        };
        McpFault::Ended { how, words: self.words() }
    }

    /// What it said that was no message: the end of its stderr, else the first such line of its stdout.
    pub(super) fn words(&self) -> String {
        let words = self.life.last_words();
        let printed = watched::lock(&self.seen).sample();
        match printed {
            Some(line) if words.is_empty() => {
                format!("(on stdout, where only messages belong) {}", self.clean(&line))
            }
            Some(_) | None => words,
        }
    }

    /// A text without its secrets.
    pub(super) fn clean(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    pub(super) async fn stop(&self) {
        self.life.stop().await;
    }
}
