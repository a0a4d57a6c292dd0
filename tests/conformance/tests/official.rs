//! The official Rust SDK's client against the built binary (`SLUICE_BIN`), and `acp` against `run` by way of it.
//!
//! One scripted conversation is held through each front end; what hooks saw and what the log keeps of them must be equal
//! apart from ids, times and paths. The workspace and the two front ends are in `official/`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed test may panic"
)]

#[path = "official/front_ends.rs"]
mod front_ends;
#[path = "official/workspace.rs"]
mod workspace;

use agent_client_protocol::v1::schema::{PermissionOptionKind, StopReason, ToolCallStatus};
use front_ends::{FilesOf, acp, run};
use workspace::Workspace;

/// The same conversation through both front ends, with these flags.
async fn both_run_the_same_hooks(flags: &[&str], files: FilesOf) {
    let (headless, editor) = (Workspace::new(), Workspace::new());
    run(&headless, flags).await;
    let seen = acp(&editor, flags, files, None).await;
    assert_eq!(seen.stop, StopReason::EndTurn);
    assert_eq!(seen.text, "All done.");
    assert_eq!(seen.questions, 0);
    assert_eq!(seen.last_statuses, [ToolCallStatus::Completed, ToolCallStatus::Completed]);

    let through_the_client = match files {
        FilesOf::Agent => vec![],
        FilesOf::Client => vec![(editor.project().join("w.txt"), "written\n".to_owned())],
    };
    assert_eq!(seen.written, through_the_client);
    for workspace in [&headless, &editor] {
        assert_eq!(std::fs::read_to_string(workspace.project().join("w.txt")).unwrap(), "written\n");
    }
    let (records, payloads) = (headless.records(), headless.payloads());
    // Each event of each dialect was there, twice where there were two calls.
    for dialect in ["claude", "codex"] {
        let of_dialect = |name: &str| payloads.iter().filter(|p| p.0 == format!("{dialect}-{name}")).count();
        let counts = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"].map(of_dialect);
        assert_eq!(counts, [1, 1, 2, 2, 1], "{dialect}: {payloads:#?}");
    }
    assert!(records.len() >= 28, "an invocation and a result each: {}", records.len());
    assert_same(&payloads, &editor.payloads());
    assert_same(&records, &editor.records());
}

/// Equal, or the first that is not.
fn assert_same<T: std::fmt::Debug + PartialEq>(headless: &[T], editor: &[T]) {
    for (one, other) in headless.iter().zip(editor) {
        assert_eq!(one, other, "headless on the left, the editor on the right");
    }
    assert_eq!(headless.len(), editor.len());
}

#[tokio::test]
async fn the_hooks_of_a_conversation_are_the_same_headless_and_over_acp_where_nothing_is_asked() {
    both_run_the_same_hooks(&["--permission-mode", "bypassPermissions"], FilesOf::Agent).await;
}

#[tokio::test]
async fn the_hooks_of_a_conversation_are_the_same_headless_and_over_acp_with_allow_rules() {
    both_run_the_same_hooks(&["--allowed-tools", "Bash(touch *),Write"], FilesOf::Agent).await;
}

#[tokio::test]
async fn the_official_client_keeps_the_files_where_it_offers_that_and_hooks_see_the_same() {
    both_run_the_same_hooks(&["--permission-mode", "bypassPermissions"], FilesOf::Client).await;
}

#[tokio::test]
async fn the_official_client_is_asked_and_its_answers_count() {
    let workspace = Workspace::new();
    let seen = acp(&workspace, &[], FilesOf::Agent, Some(PermissionOptionKind::AllowOnce)).await;
    assert_eq!((seen.stop, seen.questions), (StopReason::EndTurn, 2));
    assert_eq!(seen.last_statuses, [ToolCallStatus::Completed, ToolCallStatus::Completed]);

    let workspace = Workspace::new();
    let seen = acp(&workspace, &[], FilesOf::Agent, Some(PermissionOptionKind::RejectOnce)).await;
    assert_eq!((seen.stop, seen.questions), (StopReason::EndTurn, 2));
    assert_eq!(seen.last_statuses, [ToolCallStatus::Failed, ToolCallStatus::Failed]);
    assert!(!workspace.project().join("w.txt").exists());
}
