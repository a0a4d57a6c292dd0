//! A small agent to talk to, and the other end of its pipes.
//!
//! Lives here: the methods that transcripts use and [`Editor`], which speaks raw bytes. Does not live
//! here: any expectation. Invariant: the agent runs in a thread of its own, as a program would.

use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_protocol::acp::schema::v1::{LoadSessionRequest, NewSessionRequest};
use sluice_protocol::{Connection, Ended, Options, PeerError, Router, RpcError, acp};

/// Far beyond anything that is expected to happen.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(30);

/// The methods of the agent.
pub(crate) fn router() -> Router {
    let notes = Arc::new(Mutex::new(Vec::<Value>::new()));
    let mut router = Router::new();
    router.queue_key(acp::session_queue);
    router
        .request("initialize", |_, _| async { Ok(json!({ "protocolVersion": acp::PROTOCOL_VERSION })) })
        .unwrap()
        .request("session/new", |params, _| async move {
            let request: NewSessionRequest = acp::parse_setup("session/new", &params)?;
            Ok(json!({ "sessionId": "s1", "servers": request.mcp_servers.len() }))
        })
        .unwrap()
        .request("session/load", |params, _| async move {
            let request: LoadSessionRequest = acp::parse_setup("session/load", &params)?;
            Err::<Value, _>(acp::session_not_found(&request.session_id.0))
        })
        .unwrap()
        .request("login", |_, _| async { Err::<Value, _>(acp::auth_required("run `agent login` first")) })
        .unwrap()
        .request("echo", |params, _| async move {
            Ok(serde_json::value::RawValue::from_string(params.as_str().unwrap_or("null").to_owned()).unwrap())
        })
        .unwrap()
        .request("nothing", |_, _| async { Ok(()) })
        .unwrap()
        .request("panic", |_, _| async {
            let empty: [u8; 0] = [];
            Ok(empty.to_vec()[0])
        })
        .unwrap()
        .request("ask", |params, cx| async move {
            let question: Value = params.parse()?;
            match cx.peer().request("question", question).await {
                Ok(answer) => Ok(answer),
                Err(PeerError::Rpc(error)) => Err(error),
                Err(error) => Err(RpcError::owned(1, error.to_string(), None::<()>)),
            }
        })
        .unwrap()
        .request("ask/and-drop", |_, cx| async move {
            tokio::select! {
                biased;
                answer = cx.peer().request("question", json!({})) => Ok(format!("{answer:?}")),
                _ = cx.peer().request("quick", json!({})) => Ok("dropped".to_owned()),
            }
        })
        .unwrap()
        .request("updates", |params, cx| async move {
            let [count]: [u32; 1] = params.parse()?;
            let peer = cx.peer().clone();
            cx.after_answer(async move {
                let _ = peer.notify("after", ()).await;
            });
            for n in 0..count {
                cx.peer().notify("update", json!({ "n": n })).await.unwrap();
            }
            Ok(json!({ "sent": count }))
        })
        .unwrap()
        .request("wait/polite", |_, cx| async move {
            cx.peer().notify("waiting", ()).await.unwrap();
            cx.cancelled().await;
            Ok(json!({ "stopReason": "cancelled" }))
        })
        .unwrap()
        .request("wait/stubborn", |_, cx| async move {
            cx.peer().notify("waiting", ()).await.unwrap();
            std::future::pending::<()>().await;
            Ok(())
        })
        .unwrap();
    let seen = Arc::clone(&notes);
    router
        .notification("note", move |params, _| {
            seen.lock().unwrap().push(params.parse().unwrap());
        })
        .unwrap()
        .notification("note/panic", |_, _| panic!("a bad handler"))
        .unwrap()
        .request("notes", move |_, _| {
            let notes = notes.lock().unwrap().clone();
            async move { Ok(notes) }
        })
        .unwrap();
    router
}

/// The options of most tests: a grace short enough to wait for.
pub(crate) fn options() -> Options {
    Options { cancel_grace: Duration::from_millis(200), ..Options::default() }
}

/// The other side, in bytes.
pub(crate) struct Editor {
    input: Option<PipeWriter>,
    output: Receiver<String>,
    agent: JoinHandle<Ended>,
}

impl Editor {
    /// Starts the agent with `router`.
    pub(crate) fn start(router: Router, options: Options) -> Self {
        let (agent_input, input) = std::io::pipe().unwrap();
        let (output, agent_output) = std::io::pipe().unwrap();
        let agent = thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let mut connection = Connection::new(agent_input, agent_output, router, options).unwrap();
                let ended = connection.serve().await;
                connection.drain(Duration::from_millis(500)).await;
                connection.shutdown(Duration::from_secs(2)).await;
                ended
            })
        });
        let (sender, received) = channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = next_message(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { input: Some(input), output: received, agent }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // The agent may have gone, which is for the expectations to notice.
        let _ = self.input.as_mut().unwrap().write_all(bytes.as_ref());
    }

    pub(crate) fn send_line(&mut self, text: &str) {
        self.send(format!("{text}\n"));
    }

    pub(crate) fn send_framed(&mut self, text: &str) {
        self.send(format!("Content-Length: {}\r\n\r\n{text}", text.len()));
    }

    /// The next message, within the watchdog.
    pub(crate) fn receive(&self) -> String {
        self.receive_within(WATCHDOG).expect("the agent said nothing for the whole watchdog")
    }

    pub(crate) fn receive_within(&self, limit: Duration) -> Option<String> {
        self.output.recv_timeout(limit).ok()
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the input; returns what still came and how the agent ended.
    pub(crate) fn finish(mut self) -> (Vec<String>, Ended) {
        self.close_input();
        let mut rest = Vec::new();
        while let Some(message) = self.receive_within(WATCHDOG) {
            rest.push(message);
        }
        assert!(self.agent.is_finished() || self.output.recv_timeout(WATCHDOG).is_err(), "the output stayed open");
        (rest, self.agent.join().unwrap())
    }
}

/// The next message, in whichever framing it is.
fn next_message(output: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    if output.read_line(&mut line).unwrap() == 0 {
        return None;
    }
    let line = line.strip_suffix('\n').expect("a message without its end");
    let Some(length) = line.strip_prefix("Content-Length: ") else {
        return Some(line.to_owned());
    };
    let length: usize = length.trim_end().parse().unwrap();
    let mut body = vec![0; 2 + length];
    output.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap().strip_prefix("\r\n").map(ToOwned::to_owned)
}
