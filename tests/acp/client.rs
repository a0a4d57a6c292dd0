//! A small client: it starts the binary, speaks JSON-RPC over its pipes, and fails loudly instead of waiting for ever.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::workspace::Workspace;

/// Far beyond any limit that a test means.
const WATCHDOG: Duration = Duration::from_secs(60);

/// How messages are cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Lines,
    Headers,
}

pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    stderr: Option<JoinHandle<String>>,
    framing: Framing,
    last_id: i64,
}

impl Client {
    /// Starts the agent with the workspace's model and these flags.
    pub(crate) fn start(workspace: &Workspace, flags: &[&str]) -> Self {
        Self::framed(workspace, flags, Framing::Lines)
    }

    pub(crate) fn framed(workspace: &Workspace, flags: &[&str], framing: Framing) -> Self {
        let model = workspace.model();
        let mut all = vec!["--model", model.as_str(), "--trust-hooks"];
        all.extend_from_slice(flags);
        Self::bare(workspace.root(), &all, &[], framing)
    }

    /// Starts the agent with these flags and variables alone.
    pub(crate) fn bare(root: &Path, flags: &[&str], variables: &[(&str, &str)], framing: Framing) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .arg("acp")
            .args(flags)
            .current_dir(root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", root.join("home"))
            .env("XDG_STATE_HOME", root.join("state"))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut stdout = stdout;
            while let Some(text) = next_text(&mut stdout, framing) {
                // Whatever is on stdout must be a message, so a test that reads it all proves that.
                let message = serde_json::from_str(&text).unwrap_or_else(|_| json!({ "not a message": text }));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let stdin = child.stdin.take();
        Self { child, stdin, messages, stderr: Some(stderr), framing, last_id: 0 }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let text = message.to_string();
        match self.framing {
            Framing::Lines => self.raw(format!("{text}\n").as_bytes()),
            Framing::Headers => self.raw(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes()),
        }
    }

    /// Sends a request and gives its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The next message.
    pub(crate) fn next(&mut self) -> Value {
        match self.messages.recv_timeout(WATCHDOG) {
            Ok(message) => {
                assert_eq!(message["jsonrpc"], "2.0", "stdout carries messages alone: {message}");
                message
            }
            Err(RecvTimeoutError::Timeout) => panic!("the agent said nothing for {WATCHDOG:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the agent closed its output"),
        }
    }

    /// Everything up to and including the first message that fits.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let message = self.next();
            let found = fits(&message);
            seen.push(message);
            if found {
                return seen;
            }
        }
    }

    /// What came before the answer, and the answer.
    pub(crate) fn answer(&mut self, id: i64) -> (Vec<Value>, Value) {
        let mut seen = self.until(|m| m["id"] == id && m.get("method").is_none());
        let answer = seen.pop().unwrap();
        (seen, answer)
    }

    /// Sends a request and waits for its answer alone.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id).1
    }

    pub(crate) fn initialize(&mut self) -> Value {
        self.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }))
    }

    /// A new session's id.
    pub(crate) fn session(&mut self, workspace: &Workspace) -> String {
        let answer = self.ask("session/new", json!({ "cwd": workspace.project(), "mcpServers": [] }));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}")).to_owned()
    }

    /// Starts the agent and a session in it.
    pub(crate) fn ready(workspace: &Workspace, flags: &[&str]) -> (Self, String) {
        let mut client = Self::start(workspace, flags);
        client.initialize();
        let session = client.session(workspace);
        (client, session)
    }

    /// Sends a prompt and gives its id.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> i64 {
        self.request("session/prompt", json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }))
    }

    /// A whole turn: its updates, and its answer.
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> (Vec<Value>, Value) {
        let id = self.prompt(session, text);
        self.answer(id)
    }

    pub(crate) fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({ "sessionId": session }));
    }

    /// Answers one of the agent's requests.
    pub(crate) fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Picks an option of a permission request.
    pub(crate) fn pick(&mut self, request: &Value, option: &str) {
        self.reply(request, json!({ "outcome": { "outcome": "selected", "optionId": option } }));
    }

    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, number: i32) {
        let status = Command::new("kill").arg(format!("-{number}")).arg(self.pid().to_string()).status().unwrap();
        assert!(status.success());
    }

    /// Waits for the end; gives the status, how long it took, the messages that came meanwhile, and stderr.
    pub(crate) fn end(mut self) -> Ended {
        let began = Instant::now();
        let mut messages = Vec::new();
        loop {
            match self.messages.recv_timeout(WATCHDOG) {
                Ok(message) => messages.push(message),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the agent does not end"),
            }
        }
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        Ended { status, took: began.elapsed(), messages, stderr }
    }
}

/// How the agent ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) took: Duration,
    pub(crate) messages: Vec<Value>,
    pub(crate) stderr: String,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next_text(stdout: &mut BufReader<ChildStdout>, framing: Framing) -> Option<String> {
    let mut line = String::new();
    match framing {
        Framing::Lines => (stdout.read_line(&mut line).ok()? > 0).then_some(line),
        Framing::Headers => {
            let mut length = None;
            loop {
                line.clear();
                if stdout.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                match line.trim().split_once(": ") {
                    Some(("Content-Length", value)) => length = value.parse().ok(),
                    Some(_) => {}
                    None => break,
                }
            }
            let mut body = vec![0; length?];
            stdout.read_exact(&mut body).ok()?;
            String::from_utf8(body).ok()
        }
    }
}

/// The updates of one kind among messages.
pub(crate) fn updates(messages: &[Value], kind: &str) -> Vec<Value> {
    let updates = messages.iter().filter(|m| m["method"] == "session/update").map(|m| &m["params"]["update"]);
    updates.filter(|u| u["sessionUpdate"] == kind).cloned().collect()
}

/// The agent's message chunks as one text.
pub(crate) fn said(messages: &[Value]) -> String {
    updates(messages, "agent_message_chunk").iter().map(|u| u["content"]["text"].as_str().unwrap_or_default()).collect()
}

/// The statuses that a call went through, with permission requests among them, and nothing else.
pub(crate) fn course(messages: &[Value]) -> Vec<String> {
    let word = |message: &Value| {
        if message["method"] == "session/request_permission" {
            return Some("asked".to_owned());
        }
        let update = &message["params"]["update"];
        let of_call = matches!(update["sessionUpdate"].as_str(), Some("tool_call" | "tool_call_update"));
        of_call.then(|| update["status"].as_str().unwrap_or("-").to_owned())
    };
    messages.iter().filter_map(word).collect()
}

/// Whether a process with this text in its command line runs.
pub(crate) fn runs(marker: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).replace('\0', " ").contains(marker)
    })
}

/// Waits for a condition that another process brings about.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + WATCHDOG;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come about");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
