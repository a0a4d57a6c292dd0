//! A server on loopback that answers like an OpenAI-compatible one, by a list written beforehand.
//!
//! Its own few lines of HTTP, so that nothing of the program's client is tested with itself.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// One answer.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Server-sent events, each piece written by itself.
    Stream(Vec<String>),
    /// The same, and then the connection ends within a chunk.
    Cut(Vec<String>),
    /// The same, and then nothing more until the client goes away.
    Stall(Vec<String>),
    /// A status with a body.
    Status(u16, &'static str),
    /// Status 200 with a JSON body where a stream was asked for.
    Json(Value),
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

/// The server; it plays its answers in order and repeats the last one.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(crate) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        // It ends with the test's process; nothing waits for it.
        std::thread::spawn(move || {
            for (at, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                let answer = answers.get(at).or(answers.last()).unwrap();
                // A client that goes away in the middle is its own business.
                let _ = serve(&stream, answer, &log);
            }
        });
        Self { url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(mut stream: &TcpStream, answer: &Answer, seen: &Mutex<Vec<Seen>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = head.to_lowercase();
    let length =
        headers.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.trim().parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    seen.lock().unwrap().push(Seen { path, headers, body });
    match answer {
        Answer::Stream(pieces) | Answer::Cut(pieces) | Answer::Stall(pieces) => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n")?;
            for piece in pieces {
                write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
                stream.flush()?;
            }
            match answer {
                Answer::Stream(_) => stream.write_all(b"0\r\n\r\n"),
                Answer::Stall(_) => {
                    let mut rest = Vec::new();
                    reader.read_to_end(&mut rest).map(drop)
                }
                _ => stream.write_all(b"40\r\ndata: {\"cho"),
            }
        }
        Answer::Status(status, body) => {
            write!(
                stream,
                "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        }
        Answer::Json(body) => {
            let body = body.to_string();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        }
    }
}

/// One event of a streamed answer.
pub(crate) fn event(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\n")
}

/// Text in pieces, some of them cut within a character, and the end.
pub(crate) fn text(words: &[&str]) -> Vec<String> {
    let mut pieces = vec![event(&json!({"role": "assistant", "content": ""}), None)];
    pieces.extend(words.iter().map(|word| event(&json!({"content": word}), None)));
    pieces.push(event(&json!({}), Some("stop")));
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}

/// One call whose arguments come in fragments.
pub(crate) fn call(id: &str, name: &str, fragments: &[&str]) -> Vec<String> {
    let head = json!({"role": "assistant", "content": "Let me look.", "tool_calls": [{"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]});
    let mut pieces = vec![event(&head, None)];
    pieces.extend(
        fragments
            .iter()
            .map(|part| event(&json!({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}), None)),
    );
    pieces.push(event(&json!({}), Some("tool_calls")));
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}
