//! A foreign implementation at the other end: jsonrpsee's own client over our pipes.
//!
//! Lives here: its two transport halves and one conversation. Invariant: what it expects of a JSON-RPC
//! server, it gets.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jsonrpsee::core::client::{ClientBuilder, ClientT, Error, ReceivedMessage, TransportReceiverT, TransportSenderT};
use jsonrpsee::core::params::{ArrayParams, ObjectParams};
use serde_json::{Value, json};
use sluice_protocol::Connection;

use crate::fixture::{options, router};

struct Sending(PipeWriter);

impl TransportSenderT for Sending {
    type Error = std::io::Error;

    async fn send(&mut self, message: String) -> Result<(), Self::Error> {
        self.0.write_all(format!("{message}\n").as_bytes())
    }
}

struct Receiving(Arc<Mutex<BufReader<PipeReader>>>);

impl TransportReceiverT for Receiving {
    type Error = std::io::Error;

    async fn receive(&mut self) -> Result<ReceivedMessage, Self::Error> {
        let reader = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            match reader.lock().unwrap().read_line(&mut line)? {
                0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(ReceivedMessage::Text(line)),
            }
        })
        .await
        .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jsonrpsees_client_is_served() {
    let (agent_input, input) = pipe().unwrap();
    let (output, agent_output) = pipe().unwrap();
    let mut connection = Connection::new(agent_input, agent_output, router(), options()).unwrap();
    let agent = tokio::spawn(async move {
        connection.serve().await;
        connection.shutdown(Duration::ZERO).await;
    });
    let receiving = Receiving(Arc::new(Mutex::new(BufReader::new(output))));
    let client = ClientBuilder::default().build_with_tokio(Sending(input), receiving);

    let mut new_session = ObjectParams::new();
    new_session.insert("cwd", "/p").unwrap();
    let answer: Value = client.request("session/new", new_session).await.unwrap();
    assert_eq!(answer, json!({ "sessionId": "s1", "servers": 0 }));

    let mut one = ArrayParams::new();
    one.insert(1.5).unwrap();
    let echoed: [f64; 1] = client.request("echo", one).await.unwrap();
    assert!((echoed[0] - 1.5).abs() < f64::EPSILON);

    let refused = client.request::<Value, _>("session/fork", ArrayParams::new()).await;
    assert!(matches!(refused, Err(Error::Call(error)) if error.code() == -32601));
    let panicked = client.request::<Value, _>("panic", ArrayParams::new()).await;
    assert!(matches!(panicked, Err(Error::Call(error)) if error.code() == -32603));

    client.notification("note", ArrayParams::new()).await.unwrap();
    let notes: Value = client.request("notes", ArrayParams::new()).await.unwrap();
    assert_eq!(notes.as_array().unwrap().len(), 1);

    drop(client);
    tokio::time::timeout(crate::fixture::WATCHDOG, agent).await.unwrap().unwrap();
}
