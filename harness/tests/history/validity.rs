//! What a provider demands of the messages of a request; both test binaries hold to it.

use sluice_harness::content::{Block, Message, Role};

/// Fails unless every call is followed by its one result before anybody else speaks, as providers demand.
#[track_caller]
pub(crate) fn assert_provider_valid(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        assert!(!message.content.is_empty(), "an empty message: {messages:#?}");
        match message.role {
            Role::Tool => {
                let [Block::ToolResult { tool_use_id, .. }] = message.content.as_slice() else {
                    panic!("a result of another shape: {message:?}");
                };
                let at = open.iter().position(|id| id == tool_use_id);
                open.remove(at.unwrap_or_else(|| panic!("a result without a call: {messages:#?}")));
            }
            Role::User | Role::System | Role::Developer | Role::Assistant => {
                assert!(open.is_empty(), "calls without results: {open:?} in {messages:#?}");
            }
        }
        for block in &message.content {
            if let Block::ToolUse { id, .. } = block {
                assert!(!open.contains(id), "one id twice: {messages:#?}");
                open.push(id.clone());
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?} in {messages:#?}");
}
