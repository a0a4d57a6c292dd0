//! How connections end.
//!
//! Lives here: end of input, loss of the output, shutdown. Invariant: nothing runs on after shutdown, and
//! every open question is resolved.

use std::io::{BufRead, BufReader, Write, pipe};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use sluice_protocol::{Connection, Direction, Ended, Framing, Options, PeerError, Router};
use tokio::time::timeout;

use crate::fixture::{Editor, WATCHDOG, options, router};

#[test]
fn the_end_of_input_is_told_and_running_requests_are_cancelled() {
    let mut editor = Editor::start(router(), options());
    editor.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"wait/polite"}"#);
    editor.send_line(r#"{"jsonrpc":"2.0","id":2,"method":"wait/stubborn"}"#);
    assert!(editor.receive().contains("waiting"));
    assert!(editor.receive().contains("waiting"));
    let (rest, ended) = editor.finish();
    assert!(matches!(ended, Ended::Eof), "{ended:?}");
    assert_eq!(rest.len(), 2);
    assert!(rest[0].contains(r#""id":1,"result":{"stopReason":"cancelled"}"#), "{}", rest[0]);
    assert!(rest[1].contains(r#""id":2,"error":{"code":-32800"#), "{}", rest[1]);
}

#[test]
fn input_that_ends_at_once_ends_the_connection() {
    let (rest, ended) = Editor::start(router(), options()).finish();
    assert!(rest.is_empty());
    assert!(matches!(ended, Ended::Eof));
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_connection_quietly() {
    let (agent_input, mut input) = pipe().unwrap();
    let (output, agent_output) = pipe().unwrap();
    let mut connection = Connection::new(agent_input, agent_output, router(), options()).unwrap();
    let peer = connection.peer();
    drop(output);
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"ask"}}"#).unwrap();
    let ended = timeout(WATCHDOG, connection.serve()).await.unwrap();
    assert!(matches!(ended, Ended::OutputClosed), "{ended:?}");
    peer.closed().await;
    assert!(matches!(peer.notify("late", ()).await, Err(PeerError::Closed)));
    assert!(matches!(peer.request("late", ()).await, Err(PeerError::Closed)));
    timeout(WATCHDOG, connection.shutdown(Duration::ZERO)).await.unwrap();
}

#[tokio::test]
async fn an_output_that_takes_nothing_does_not_hang_the_end() {
    let (agent_input, input) = pipe().unwrap();
    let (output, agent_output) = pipe().unwrap();
    let options = Options { outgoing_room: 1, flush_limit: Duration::from_millis(50), ..options() };
    let mut connection = Connection::new(agent_input, agent_output, router(), options).unwrap();
    let peer = connection.peer();
    let flood = tokio::spawn(async move {
        let text = "x".repeat(100_000);
        while peer.notify("flood", &text).await.is_ok() {}
    });
    drop(input);
    assert!(matches!(timeout(WATCHDOG, connection.serve()).await.unwrap(), Ended::Eof));
    timeout(WATCHDOG, connection.shutdown(Duration::ZERO)).await.unwrap();
    // Once the reader is gone the writer thread notices, and everybody who waited with it.
    drop(output);
    timeout(WATCHDOG, flood).await.unwrap().unwrap();
}

#[tokio::test]
async fn open_questions_resolve_when_the_connection_ends() {
    let (agent_input, input) = pipe().unwrap();
    let (output, agent_output) = pipe().unwrap();
    let mut connection = Connection::new(agent_input, agent_output, Router::new(), options()).unwrap();
    let peer = connection.peer();
    let question = tokio::spawn(async move { peer.request("question", json!({})).await });
    let serving = tokio::spawn(async move {
        let ended = connection.serve().await;
        (connection, ended)
    });
    let output = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(&output).read_line(&mut line).unwrap();
        assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"question\",\"params\":{}}\n");
        output
    })
    .await
    .unwrap();
    drop(input);
    let answer = timeout(WATCHDOG, question).await.unwrap().unwrap();
    assert!(matches!(answer, Err(PeerError::Closed)), "{answer:?}");
    let (connection, ended) = serving.await.unwrap();
    assert!(matches!(ended, Ended::Eof));
    let peer = connection.peer();
    // What is said last is flushed, then the output is let go.
    peer.notify("bye", ()).await.unwrap();
    connection.shutdown(Duration::ZERO).await;
    assert!(matches!(peer.notify("late", ()).await, Err(PeerError::Closed)));
    let rest = tokio::task::spawn_blocking(move || std::io::read_to_string(&output).unwrap());
    assert_eq!(timeout(WATCHDOG, rest).await.unwrap().unwrap(), "{\"jsonrpc\":\"2.0\",\"method\":\"bye\"}\n");
}

#[tokio::test]
async fn two_peers_talk_in_headers_and_the_trace_sees_both_ways() {
    let (a_input, b_output) = pipe().unwrap();
    let (b_input, a_output) = pipe().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let trace = Arc::clone(&seen);
    let agent = Options {
        trace: Some(Arc::new(move |direction, text: &str| {
            trace.lock().unwrap().push((direction, text.to_owned()));
        })),
        ..options()
    };
    let editor = Options { framing: Some(Framing::Headers), ..options() };
    let mut agent = Connection::new(a_input, a_output, router(), agent).unwrap();
    let mut editor = Connection::new(b_input, b_output, Router::new(), editor).unwrap();
    let peer = editor.peer();
    let agent = tokio::spawn(async move {
        let ended = agent.serve().await;
        agent.shutdown(Duration::ZERO).await;
        ended
    });
    let talk = async {
        let answer = peer.request_as::<Vec<u32>>("echo", [1, 2]).await.unwrap();
        assert_eq!(answer, [1, 2]);
        let wrong = peer.request_as::<String>("echo", [3]).await;
        assert!(matches!(wrong, Err(PeerError::Decode { .. })), "{wrong:?}");
        peer.notify("note", [0]).await.unwrap();
    };
    tokio::select! {
        () = talk => {}
        ended = editor.serve() => panic!("ended too early: {ended:?}"),
    }
    timeout(WATCHDOG, editor.shutdown(Duration::ZERO)).await.unwrap();
    assert!(matches!(timeout(WATCHDOG, agent).await.unwrap().unwrap(), Ended::Eof));
    assert_eq!(
        seen.lock().unwrap()[..2],
        [
            (Direction::In, r#"{"jsonrpc":"2.0","id":0,"method":"echo","params":[1,2]}"#.to_owned()),
            (Direction::Out, r#"{"jsonrpc":"2.0","id":0,"result":[1,2]}"#.to_owned()),
        ]
    );
}
