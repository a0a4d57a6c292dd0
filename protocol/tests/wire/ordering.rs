//! What comes before what: on the wire, and among the messages of one session.
//!
//! Lives here: order of output, order of starts. Invariant: a session's messages start in the order of
//! arrival, and a long request blocks nothing once it has let go.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sluice_protocol::{Options, Router, acp};
use tokio::sync::Semaphore;

use crate::fixture::{Editor, options, router};

#[test]
fn five_thousand_updates_precede_the_result() {
    let mut editor = Editor::start(router(), Options { outgoing_room: 4, ..Options::default() });
    editor.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"updates","params":[5000]}"#);
    for n in 0..5000 {
        let expected = format!(r#"{{"jsonrpc":"2.0","method":"update","params":{{"n":{n}}}}}"#);
        assert_eq!(editor.receive(), expected);
    }
    assert_eq!(editor.receive(), r#"{"jsonrpc":"2.0","id":1,"result":{"sent":5000}}"#);
    assert_eq!(editor.receive(), r#"{"jsonrpc":"2.0","method":"after"}"#);
}

/// A session whose events are noted in the order in which handlers see them.
struct Scene {
    router: Router,
    events: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
}

/// `load` holds the queue until the gate opens; `prompt` holds it while it registers, then runs until it is
/// cancelled; `mode` and `cancel` are quick.
fn scene() -> Scene {
    let events = Arc::new(Mutex::new(Vec::new()));
    let gate = Arc::new(Semaphore::new(0));
    let turn = Arc::new(Mutex::new(None::<tokio::sync::oneshot::Sender<()>>));
    let mut router = Router::new();
    router.queue_key(acp::session_queue);
    let note = {
        let events = Arc::clone(&events);
        move |event: &str| events.lock().unwrap().push(event.to_owned())
    };
    let (on_load, opened) = (note.clone(), Arc::clone(&gate));
    router
        .request("load", move |_, cx| {
            let (note, gate) = (on_load.clone(), Arc::clone(&opened));
            async move {
                let _hold = cx.hold();
                note("load starts");
                cx.peer().notify("loading", ()).await.unwrap();
                gate.acquire().await.unwrap().forget();
                note("load ends");
                Ok(())
            }
        })
        .unwrap();
    let (on_prompt, register) = (note.clone(), Arc::clone(&turn));
    router
        .request("prompt", move |_, cx| {
            let (note, register) = (on_prompt.clone(), Arc::clone(&register));
            async move {
                let hold = cx.hold();
                tokio::task::yield_now().await;
                let (sender, cancelled) = tokio::sync::oneshot::channel();
                *register.lock().unwrap() = Some(sender);
                note("prompt registered");
                drop(hold);
                let _ = cancelled.await;
                note("prompt ends");
                Ok(json!({ "stopReason": "cancelled" }))
            }
        })
        .unwrap();
    let on_mode = note.clone();
    router
        .request("mode", move |_, _| {
            on_mode("mode");
            async { Ok(()) }
        })
        .unwrap()
        .notification("cancel", move |_, _| {
            note("cancel");
            drop(turn.lock().unwrap().take());
        })
        .unwrap();
    Scene { router, events, gate }
}

fn message(id: Option<u32>, method: &str) -> String {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": { "sessionId": "s" } });
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message.to_string()
}

fn id_of(text: &str) -> Value {
    serde_json::from_str::<Value>(text).unwrap()["id"].clone()
}

#[test]
fn messages_of_a_session_start_in_order_of_arrival() {
    let Scene { router, events, gate } = scene();
    let mut editor = Editor::start(router, options());
    for (id, method) in [(Some(1), "load"), (Some(2), "mode"), (Some(3), "prompt"), (None, "cancel"), (Some(4), "mode")]
    {
        editor.send_line(&message(id, method));
    }
    // Another session, and messages without one, are not held up.
    editor.send_line(r#"{"jsonrpc":"2.0","id":5,"method":"mode","params":{"sessionId":"other"}}"#);
    editor.send_line(r#"{"jsonrpc":"2.0","id":6,"method":"mode"}"#);
    assert!(editor.receive().contains("loading"));
    assert_eq!([id_of(&editor.receive()), id_of(&editor.receive())], [5, 6]);
    assert_eq!(*events.lock().unwrap(), ["load starts", "mode", "mode"]);
    gate.add_permits(1);
    let mut answered: Vec<_> = (0..4).map(|_| id_of(&editor.receive()).as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, [1, 2, 3, 4]);
    let mut events = events.lock().unwrap()[3..].to_vec();
    // When the cancelled prompt notices is its own affair.
    events.retain(|event| event != "prompt ends");
    assert_eq!(events, ["load ends", "mode", "prompt registered", "cancel", "mode"]);
}

#[test]
fn a_running_prompt_does_not_block_its_session() {
    let Scene { router, events, .. } = scene();
    let mut editor = Editor::start(router, options());
    editor.send_line(&message(Some(1), "prompt"));
    editor.send_line(&message(Some(2), "mode"));
    assert_eq!(id_of(&editor.receive()), 2);
    assert_eq!(*events.lock().unwrap(), ["prompt registered", "mode"]);
    editor.send_line(&message(None, "cancel"));
    assert_eq!(id_of(&editor.receive()), 1);
}

#[test]
fn a_waiting_request_can_be_cancelled_and_nothing_overtakes_through_its_place() {
    let Scene { router, events, gate } = scene();
    let mut editor = Editor::start(router, options());
    editor.send_line(&message(Some(1), "load"));
    editor.send_line(&message(Some(2), "prompt"));
    editor.send_line(&message(Some(3), "mode"));
    assert!(editor.receive().contains("loading"));
    editor.send_line(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}"#);
    let answer: Value = serde_json::from_str(&editor.receive()).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(2), &json!(-32800)));
    gate.add_permits(1);
    assert_eq!([id_of(&editor.receive()), id_of(&editor.receive())], [1, 3]);
    assert_eq!(*events.lock().unwrap(), ["load starts", "load ends", "mode"]);
}
