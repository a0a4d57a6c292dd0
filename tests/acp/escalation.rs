//! Out of the sandbox for one call: the person is asked with the reason, and the answer is for that call alone.

use serde_json::json;

use super::client::{Client, said};
use super::workspace::{Workspace, call, text};

#[test]
fn r_416_a_person_is_asked_why_and_answers_for_one_call() {
    let wish = || {
        let why = "the log lies outside";
        call("Bash", json!({"command": "true", "sandbox_permissions": "off", "justification": why}))
    };
    let workspace = Workspace::new(json!([wish(), wish(), text("done")]));
    let (mut client, session) = Client::ready(&workspace, &["--allowed-tools", "Bash"]);
    let prompt = client.prompt(&session, "go");
    for option in ["allow_once", "reject_once"] {
        let seen = client.until(|m| m["method"] == "session/request_permission");
        let question = seen.last().unwrap().clone();
        assert!(question.to_string().contains("escalate sandbox to off: the log lies outside"), "{question}");
        let options = question["params"]["options"].to_string();
        assert!(!options.contains("allow_always"), "nothing lasting is offered: {options}");
        client.pick(&question, option);
    }
    let (messages, answer) = client.answer(prompt);
    assert_eq!((said(&messages).as_str(), &answer["result"]["stopReason"]), ("done", &json!("end_turn")));
}
