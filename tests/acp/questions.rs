//! Questions with choices: by forms where the client shows them, else one dialog after the other.

use serde_json::{Value, json};

use super::client::{Client, course};
use super::workspace::{Workspace, call, text};

fn question(name: &str, many: bool) -> Value {
    let options = json!([
        {"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}, {"label": "Grey"}
    ]);
    json!({"question": name, "header": "Colour", "options": options, "multiSelect": many})
}

fn workspace(questions: &[Value]) -> Workspace {
    Workspace::new(json!([call("AskUserQuestion", json!({ "questions": questions })), text("ok")]))
}

/// What the model got as the call's result.
fn result(workspace: &Workspace) -> String {
    workspace.requests()[1].to_string()
}

/// A client that shows forms, and its session.
fn with_forms(workspace: &Workspace) -> (Client, String) {
    let mut client = Client::start(workspace, &[]);
    let capabilities = json!({ "elicitation": { "form": {} } });
    client.ask("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    let session = client.session(workspace);
    (client, session)
}

#[test]
fn a_client_without_forms_is_asked_by_dialogs_and_picks_by_label() {
    let workspace = workspace(&[question("Which one?", false), question("Which ones?", true)]);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let id = client.prompt(&session, "go");
    let asked = |client: &mut Client| client.until(|m| m["method"] == "session/request_permission").pop().unwrap();
    let names = |request: &Value| -> Vec<String> {
        let options = request["params"]["options"].as_array().unwrap();
        options.iter().map(|option| option["name"].as_str().unwrap().to_owned()).collect()
    };
    let one = asked(&mut client);
    let shown = &one["params"]["toolCall"];
    assert_eq!((&shown["title"], &shown["status"]), (&json!("Which one?"), &json!("in_progress")));
    assert!(shown["content"][0]["content"]["text"].as_str().unwrap().contains("- Red: warm"), "{shown}");
    assert_eq!(names(&one), ["Red", "Blue", "Grey", "Do not answer"]);
    client.pick(&one, "choice_1");
    let many = asked(&mut client);
    assert_eq!(names(&many), ["Red", "Blue", "Grey", "None of these", "Do not answer"]);
    client.pick(&many, "choice_2");
    let again = asked(&mut client);
    assert_eq!(names(&again), ["Red", "Blue", "Done: Grey", "Do not answer"]);
    client.pick(&again, "choice_0");
    let last = asked(&mut client);
    client.pick(&last, "done");
    let (_, answer) = client.answer(id);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let result = result(&workspace);
    assert!(result.contains("- Which one?\\n  Blue\\n- Which ones?\\n  Red, Grey"), "{result}");
}

#[test]
fn no_answer_and_strange_answers_abort_the_question_and_the_turn_goes_on() {
    let outcome = |outcome: Value| json!({ "result": { "outcome": outcome } });
    let table = [
        (outcome(json!({ "outcome": "selected", "optionId": "decline" })), "the person chose not to answer"),
        (outcome(json!({ "outcome": "cancelled" })), "the person did not answer"),
        (outcome(json!({ "outcome": "selected", "optionId": "choice_9" })), "none of those that were offered"),
        (outcome(json!({ "outcome": "selected", "optionId": "done" })), "none of those that were offered"),
        (json!({ "error": { "code": -32601, "message": "no such method" } }), "the client could not ask"),
    ];
    for (reply, words) in table {
        let workspace = workspace(&[question("Which one?", false)]);
        let (mut client, session) = Client::ready(&workspace, &[]);
        let id = client.prompt(&session, "go");
        let mut messages = client.until(|m| m["method"] == "session/request_permission");
        let mut whole = reply.clone();
        whole["jsonrpc"] = json!("2.0");
        whole["id"] = messages.last().unwrap()["id"].clone();
        client.send(&whole);
        let (rest, answer) = client.answer(id);
        messages.extend(rest);
        assert_eq!(course(&messages), ["pending", "in_progress", "asked", "failed"], "{reply}");
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{reply}");
        let result = result(&workspace);
        assert!(result.contains(words), "{reply}: {result}");
    }
}

#[test]
fn a_client_with_forms_gets_all_questions_in_one_and_may_answer_in_its_own_words() {
    let questions = [question("Which one?", false), question("Which ones?", true), question("And here?", false)];
    let workspace = workspace(&questions);
    let (mut client, session) = with_forms(&workspace);
    let id = client.prompt(&session, "go");
    let request = client.until(|m| m["method"] == "elicitation/create").pop().unwrap();
    let params = &request["params"];
    assert_eq!((&params["mode"], &params["sessionId"]), (&json!("form"), &json!(session)));
    assert_eq!(params["toolCallId"], "call_1");
    let fields = &params["requestedSchema"]["properties"];
    assert_eq!(fields["question_001"]["oneOf"][0]["const"], "Red");
    assert_eq!(fields["question_002"]["items"]["anyOf"][1]["const"], "Blue");
    let content = json!({ "question_001": "Red", "question_002": ["Grey", "Blue"], "question_003_other": " Green " });
    client.reply(&request, json!({ "action": "accept", "content": content }));
    assert_eq!(client.answer(id).1["result"]["stopReason"], "end_turn");
    let result = result(&workspace);
    assert!(result.contains("- Which one?\\n  Red\\n- Which ones?\\n  Blue, Grey\\n- And here?\\n  Green"), "{result}");
}

#[test]
fn a_form_that_is_declined_cancelled_or_filled_with_something_else_is_no_answer() {
    for (reply, words) in [
        (json!({ "action": "decline" }), "the person chose not to answer"),
        (json!({ "action": "cancel" }), "the person did not answer"),
        (json!({ "action": "accept", "content": { "question_001": "Pink" } }), "none of those that were offered"),
        (json!({ "action": "accept", "content": {} }), "unanswered"),
        (json!({ "action": "shrug" }), "none of those that were offered"),
    ] {
        let workspace = workspace(&[question("Which one?", false)]);
        let (mut client, session) = with_forms(&workspace);
        let id = client.prompt(&session, "go");
        let request = client.until(|m| m["method"] == "elicitation/create").pop().unwrap();
        client.reply(&request, reply.clone());
        assert_eq!(client.answer(id).1["result"]["stopReason"], "end_turn", "{reply}");
        let result = result(&workspace);
        assert!(result.contains(words), "{reply}: {result}");
    }
}

#[test]
fn cancelling_the_turn_withdraws_the_question() {
    let workspace = workspace(&[question("Which one?", false)]);
    let (mut client, session) = Client::ready(&workspace, &[]);
    let id = client.prompt(&session, "go");
    let request = client.until(|m| m["method"] == "session/request_permission").pop().unwrap();
    client.cancel(&session);
    let withdrawn = client.until(|m| m["method"] == "$/cancel_request").pop().unwrap();
    assert_eq!(withdrawn["params"]["requestId"], request["id"]);
    assert_eq!(client.answer(id).1["result"]["stopReason"], "cancelled");
}
