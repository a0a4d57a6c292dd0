//! A scripted HTTP server on a loopback socket: one list of acts for each connection.
//!
//! It shares no code with the client under test: requests are read and answers written as plain bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One thing the server does once it has read the request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends these bytes at once.
    Send(Vec<u8>),
    /// Says nothing more until the client closes the connection.
    HoldOpen,
    /// Closes the connection.
    Close,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// A running server; its thread ends with it.
pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    closed_by_client: usize,
    over: bool,
}

impl Server {
    /// Serves so many connections, one list of acts each.
    pub(crate) fn start(connections: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        if !connections.is_empty() {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || {
                for acts in connections {
                    let (stream, _) = listener.accept().unwrap();
                    if seen.lock().unwrap().over {
                        return;
                    }
                    serve(stream, acts, &seen);
                }
            });
        }
        Self { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// Waits until a request was read.
    pub(crate) async fn wait_request(&self) {
        self.wait("a request", |seen| !seen.requests.is_empty()).await;
    }

    /// Waits until the client has closed a connection that was held open.
    pub(crate) async fn wait_closed(&self) {
        self.wait("the close", |seen| seen.closed_by_client > 0).await;
    }

    async fn wait(&self, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let started = Instant::now();
        while !is_so(&self.seen.lock().unwrap()) {
            assert!(started.elapsed() < Duration::from_secs(30), "not seen in time: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(mut seen) = self.seen.lock() {
            seen.over = true;
        }
        // Wakes an accept that nobody will answer any more.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, acts: Vec<Act>, seen: &Mutex<Seen>) {
    stream.set_nodelay(true).unwrap();
    let Some(request) = read_request(&stream) else { return };
    seen.lock().unwrap().requests.push(request);
    for act in acts {
        match act {
            // A client that went away is a finding of the test, not of the server.
            Act::Send(bytes) => {
                if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() {
                    return;
                }
            }
            Act::HoldOpen => {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest);
                seen.lock().unwrap().closed_by_client += 1;
            }
            Act::Close => return,
        }
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        match header.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(n, _)| n == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { line: line.trim_end().to_owned(), headers, body: String::from_utf8(body).unwrap() })
}

/// One event of a stream.
pub(crate) fn event(data: &str) -> String {
    format!(": a comment\ndata: {data}\n\n")
}

/// A stream of these events that ends with the connection.
pub(crate) fn stream(data: &[&str]) -> Vec<Act> {
    let events: Vec<String> = data.iter().map(|data| event(data)).collect();
    let pieces: Vec<&[u8]> = events.iter().map(|event| event.as_bytes()).collect();
    stream_of(&pieces)
}

/// A stream of these bytes, sent piece by piece, that ends with the connection.
pub(crate) fn stream_of(pieces: &[&[u8]]) -> Vec<Act> {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
    let mut acts = vec![Act::Send(head.to_vec())];
    acts.extend(pieces.iter().map(|piece| Act::Send(piece.to_vec())));
    acts.push(Act::Close);
    acts
}

/// A whole answer.
pub(crate) fn json_answer(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<Act> {
    let mut head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    vec![Act::Send(format!("{head}\r\n{body}").into_bytes()), Act::Close]
}
