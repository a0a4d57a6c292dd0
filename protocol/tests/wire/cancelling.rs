//! Cancellation that needs more than a transcript: what is dropped, and when.
//!
//! Lives here: graces and destructors. Invariant: a cancelled handler is gone before its answer is sent.

use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader, Write, pipe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sluice_protocol::{Connection, Options, Router};
use tokio::time::timeout;

use crate::fixture::{Editor, WATCHDOG, options};

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_stubborn_handler_is_dropped_before_the_answer() {
    let gone = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&gone);
    let mut router = Router::new();
    router
        .request("wait", move |_, cx| {
            let guard = Dropped(Arc::clone(&flag));
            async move {
                let _guard = guard;
                cx.peer().notify("waiting", ()).await.unwrap();
                std::future::pending::<()>().await;
                Ok(())
            }
        })
        .unwrap();
    let mut editor = Editor::start(router, options());
    editor.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"wait"}"#);
    assert!(editor.receive().contains("waiting"));
    assert!(!gone.load(Ordering::SeqCst));
    editor.send_line(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#);
    let answer: Value = serde_json::from_str(&editor.receive()).unwrap();
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(answer["error"]["code"], -32800);
    assert_eq!(editor.finish().0, Vec::<String>::new());
}

#[test]
fn a_request_dropped_while_the_output_is_full_is_still_taken_back() {
    let (stalled, when_stalled) = channel();
    let mut router = Router::new();
    router
        .request("go", move |_, cx| {
            let stalled = stalled.clone();
            async move {
                let peer = cx.peer();
                let mut question = Box::pin(peer.request("question", json!({})));
                let asked = poll_fn(|cx| Poll::Ready(question.as_mut().poll(cx).is_pending()));
                assert!(asked.await);
                // Nobody reads yet: these fill the pipe, the writer's buffer and the channel.
                let flood = "x".repeat(100_000);
                while timeout(Duration::from_millis(200), peer.notify("flood", &flood)).await.is_ok() {}
                drop(question);
                stalled.send(()).unwrap();
                Ok(())
            }
        })
        .unwrap();
    let (agent_input, mut input) = pipe().unwrap();
    let (output, agent_output) = pipe().unwrap();
    let options = Options { outgoing_room: 2, ..options() };
    let agent = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut connection = Connection::new(agent_input, agent_output, router, options).unwrap();
            connection.serve().await;
            connection.shutdown(WATCHDOG).await;
        });
    });
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"go"}}"#).unwrap();
    when_stalled.recv_timeout(WATCHDOG).unwrap();
    let (mut taken_back, mut answered) = (false, false);
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        taken_back |= message["method"] == "$/cancel_request" && message["params"]["requestId"] == 0;
        answered |= message["result"].is_null() && message["id"] == 1;
        if taken_back && answered {
            break;
        }
    }
    assert!(taken_back && answered);
    drop(input);
    agent.join().unwrap();
}
