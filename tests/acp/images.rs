//! Images in prompts: they reach a model that takes them, and are refused in words for one that does not.

use serde_json::{Value, json};

use super::client::{Client, Framing};
use super::workspace::{Workspace, text};

const IMAGE: &str = "iVBORw0K";

fn prompt() -> Value {
    json!([
        { "type": "text", "text": "what is this?" },
        { "type": "image", "data": IMAGE, "mimeType": "image/png" }
    ])
}

#[test]
fn an_image_of_a_prompt_reaches_the_model() {
    let workspace = Workspace::new(json!([text("a picture")]));
    let (mut client, session) = Client::ready(&workspace, &[]);
    let answer = client.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt() }));
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let requests = workspace.requests();
    let content = &requests[0]["messages"].as_array().unwrap().last().unwrap()["content"];
    let expected = json!([
        { "type": "text", "text": "what is this?" },
        { "type": "image", "media_type": "image/png", "data": IMAGE }
    ]);
    assert_eq!(*content, expected);
}

#[test]
fn a_model_that_takes_no_images_says_so_before_and_when_one_comes() {
    let workspace = Workspace::new(json!([]));
    // Built in, on this machine, without a key: nothing is connected to before a prompt is taken.
    let mut client = Client::bare(workspace.root(), &["--model", "ollama/qwen3"], &[], Framing::Lines);
    let capabilities = client.initialize()["result"]["agentCapabilities"]["promptCapabilities"].clone();
    assert_eq!(capabilities["image"], false, "{capabilities}");
    let session = client.session(&workspace);
    let answer = client.ask("session/prompt", json!({ "sessionId": session, "prompt": prompt() }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("ollama/qwen3") && said.contains("images = true"), "{said}");
}
