//! One prompt through each front end: `run` as a process, `acp` with the official client.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, InitializeRequest, NewSessionRequest,
    PermissionOptionKind, PromptRequest, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification, SessionUpdate,
    StopReason, TextContent, ToolCallId, ToolCallStatus, WriteTextFileRequest, WriteTextFileResponse,
};
use agent_client_protocol::{Agent, ByteStreams, Client};
use tokio::process::Command;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use super::workspace::Workspace;

const PROMPT: &str = "Write what you find.";
/// Far beyond what a turn takes.
const WATCHDOG: Duration = Duration::from_secs(120);

fn binary() -> OsString {
    std::env::var_os("SLUICE_BIN").expect("SLUICE_BIN must name the sluice binary to test, as an absolute path")
}

fn command(workspace: &Workspace, front_end: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command
        .arg(front_end)
        .args(["--model", &workspace.model(), "--trust-hooks"])
        .args(flags)
        .current_dir(workspace.project())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", workspace.root().join("home"))
        .env("XDG_STATE_HOME", workspace.root().join("state"))
        .kill_on_drop(true);
    command
}

/// The conversation, headless.
pub(crate) async fn run(workspace: &Workspace, flags: &[&str]) {
    let mut command = command(workspace, "run", flags);
    command.arg("--").arg(PROMPT).stdin(Stdio::null());
    let output = tokio::time::timeout(WATCHDOG, command.output()).await.expect("run ends").unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "All done.\n", "{stderr}");
    assert!(output.status.success(), "{stderr}");
}

/// What the official client saw.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) stop: StopReason,
    /// The last message.
    pub(crate) text: String,
    pub(crate) questions: usize,
    /// The last status of each call, in order of appearance.
    pub(crate) last_statuses: Vec<ToolCallStatus>,
    /// The files that were written through the client, with their texts.
    pub(crate) written: Vec<(PathBuf, String)>,
}

/// Whether the client keeps the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilesOf {
    Agent,
    Client,
}

#[derive(Default)]
struct Screen {
    messages: Vec<(Option<String>, String)>,
    calls: Vec<(ToolCallId, ToolCallStatus)>,
    questions: usize,
    written: Vec<(PathBuf, String)>,
}

impl Screen {
    fn show(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let id = chunk.message_id.map(|id| id.0.to_string());
                let ContentBlock::Text(text) = chunk.content else { panic!("messages are text") };
                match self.messages.last_mut() {
                    Some((of, message)) if *of == id => message.push_str(&text.text),
                    _ => self.messages.push((id, text.text)),
                }
            }
            SessionUpdate::ToolCall(call) => self.calls.push((call.tool_call_id, call.status)),
            SessionUpdate::ToolCallUpdate(update) => {
                let call = self.calls.iter_mut().find(|(id, _)| *id == update.tool_call_id).expect("it was announced");
                call.1 = update.fields.status.unwrap_or(call.1);
            }
            _ => {}
        }
    }
}

/// The conversation over ACP; questions are answered with the option of this kind.
pub(crate) async fn acp(
    workspace: &Workspace,
    flags: &[&str],
    files: FilesOf,
    answer: Option<PermissionOptionKind>,
) -> Seen {
    let mut command = command(workspace, "acp", flags);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let transport = ByteStreams::new(child.stdin.take().unwrap().compat_write(), child.stdout.take().unwrap().compat());
    let screen = Arc::new(Mutex::new(Screen::default()));
    let (shown, asked, kept) = (Arc::clone(&screen), Arc::clone(&screen), Arc::clone(&screen));
    let cwd = workspace.project();

    let conversation = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                shown.lock().unwrap().show(notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                asked.lock().unwrap().questions += 1;
                assert!(request.tool_call.fields.title.is_some_and(|title| !title.is_empty()));
                let option = request.options.iter().find(|option| Some(option.kind) == answer);
                let outcome = option.map_or(RequestPermissionOutcome::Cancelled, |option| {
                    RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
                });
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _connection| {
                let text = std::fs::read_to_string(request.path);
                responder.respond(ReadTextFileResponse::new(text.unwrap_or_default()))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _connection| {
                std::fs::write(&request.path, &request.content).unwrap();
                kept.lock().unwrap().written.push((request.path, request.content));
                responder.respond(WriteTextFileResponse::new())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, |connection: ConnectionTo<Agent>| async move {
            let kept = files == FilesOf::Client;
            let fs = FileSystemCapabilities::new().read_text_file(kept).write_text_file(kept);
            let hello =
                InitializeRequest::new(ProtocolVersion::V1).client_capabilities(ClientCapabilities::new().fs(fs));
            let initialized = connection.send_request(hello).block_task().await?;
            assert_eq!(initialized.protocol_version, ProtocolVersion::V1);
            let session = connection.send_request(NewSessionRequest::new(cwd)).block_task().await?;
            let prompt = vec![ContentBlock::Text(TextContent::new(PROMPT))];
            let answer = connection.send_request(PromptRequest::new(session.session_id, prompt)).block_task().await?;
            Ok(answer.stop_reason)
        });
    let stop = tokio::time::timeout(WATCHDOG, conversation).await.expect("the turn ends").unwrap();
    // The transport is gone and with it the agent's input, so it runs its end hooks and ends.
    let status = tokio::time::timeout(WATCHDOG, child.wait()).await.expect("the agent ends").unwrap();
    assert_eq!(status.code(), Some(0));

    let screen = std::mem::take(&mut *screen.lock().unwrap());
    Seen {
        stop,
        text: screen.messages.last().map(|(_, text)| text.clone()).unwrap_or_default(),
        questions: screen.questions,
        last_statuses: screen.calls.into_iter().map(|(_, status)| status).collect(),
        written: screen.written,
    }
}
