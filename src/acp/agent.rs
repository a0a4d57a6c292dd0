//! The agent as a client sees it: the methods, the sessions of one connection, and their end.
//!
//! Handlers answer to one client; each session is independent of the others. The invariant that cancellation rests on:
//! a prompt's cancel signal is in its session's slot before the handler first waits, and is gone with the prompt, so a
//! cancel finds the running prompt or nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use sluice_harness::cancel::{Cancel, CancelCause};
use sluice_harness::context::{Context, Rank};
use sluice_harness::point::approval::Approval;
use sluice_harness::seam::live::LiveSink;
use sluice_harness::seam::questions::Questions;
use sluice_protocol::acp::schema::v1::{
    AgentCapabilities, AuthenticateRequest, AuthenticateResponse, CancelNotification, Implementation,
    InitializeRequest, InitializeResponse, McpCapabilities, NewSessionRequest, NewSessionResponse, PromptCapabilities,
    PromptRequest, PromptResponse, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
};
use sluice_protocol::acp::{self, PROTOCOL_VERSION, session_queue};
use sluice_protocol::{DuplicateMethod, Params, Peer, RequestContext, Router, RpcError, rpc_error};
use tokio::task::JoinSet;

use super::answer::{Wanted, answer};
use super::approval::Client;
use super::feed::{Feed, FeedTask};
use super::files::{Abilities, Editor, EditorFiles};
use super::questions::{Asker, Forms};
use super::{PlanFor, TakesImages, prompt};
use crate::compose::{self, FilesOver, Session, SessionPlan};
use crate::fault::Fault;
use crate::images;
use crate::plan::Planned;
use crate::run::say;

/// The member of `session/new`'s `_meta` that says what the first prompt will show.
const NOTICES: &str = "sluice/notices";
/// How long the client may take to read or write one file.
const EDITOR_PATIENCE: Duration = Duration::from_secs(30);
/// JSON-RPC's "invalid request".
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC's "internal error".
const INTERNAL_ERROR: i32 = -32603;

/// One connection's agent.
pub(super) struct AcpAgent {
    plan_for: PlanFor,
    takes_images: TakesImages,
    /// What the client said that it can do with files.
    can: Mutex<Abilities>,
    /// Whether it shows forms; said at the same time.
    forms: Mutex<Forms>,
    sessions: Mutex<HashMap<String, Arc<Open>>>,
    /// Why everything ends, once it does.
    ending: Mutex<Option<CancelCause>>,
    /// Fires when the client no longer reads.
    mute: Cancel,
}

/// An open session.
struct Open {
    session: Session,
    feed: Feed,
    /// Lines for the first prompt.
    opening: Mutex<Vec<String>>,
    /// The signal of the prompt that runs.
    running: Mutex<Option<Cancel>>,
}

/// A prompt's place in its session; leaving gives it up.
struct Running<'a> {
    slot: &'a Mutex<Option<Cancel>>,
    cancel: Cancel,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *lock(self.slot) = None;
    }
}

impl Open {
    /// Takes the session's one place for a prompt.
    fn start(&self) -> Result<Running<'_>, RpcError> {
        let mut slot = lock(&self.running);
        if slot.is_some() {
            let message = "`session/prompt`: a prompt is running in this session; wait for its answer or cancel it";
            return Err(RpcError::owned(INVALID_REQUEST, message, None::<()>));
        }
        let cancel = Cancel::new();
        *slot = Some(cancel.clone());
        Ok(Running { slot: &self.running, cancel })
    }

    fn cancel(&self, cause: CancelCause) {
        if let Some(running) = &*lock(&self.running) {
            running.cancel(cause);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AcpAgent {
    pub(super) fn new(plan_for: PlanFor, takes_images: TakesImages) -> Arc<Self> {
        Arc::new(Self {
            plan_for,
            takes_images,
            can: Mutex::default(),
            forms: Mutex::new(Forms::Unknown),
            sessions: Mutex::default(),
            ending: Mutex::default(),
            mute: Cancel::new(),
        })
    }

    /// The methods.
    ///
    /// # Errors
    /// When one is there twice.
    pub(super) fn router(self: &Arc<Self>) -> Result<Router, DuplicateMethod> {
        let mut router = Router::new();
        router.queue_key(session_queue);
        let agent = Arc::clone(self);
        router.request("initialize", move |params, _| {
            let agent = Arc::clone(&agent);
            async move { agent.initialize(&params).await }
        })?;
        router.request("authenticate", |params, _| async move { authenticate(&params) })?;
        let agent = Arc::clone(self);
        router.request("session/new", move |params, context| {
            let agent = Arc::clone(&agent);
            async move { agent.new_session(&params, &context).await }
        })?;
        let agent = Arc::clone(self);
        router.request("session/prompt", move |params, context| {
            let agent = Arc::clone(&agent);
            async move { agent.prompt(&params, &context).await }
        })?;
        let agent = Arc::clone(self);
        router.notification("session/cancel", move |params, _| agent.cancel(&params))?;
        Ok(router)
    }

    async fn new_session(&self, params: &Params<'_>, context: &RequestContext) -> Result<NewSessionResponse, RpcError> {
        const METHOD: &str = "session/new";
        let request: NewSessionRequest = acp::parse_setup(METHOD, params)?;
        if request.system_prompt.is_some() {
            return Err(rpc_error::invalid_params("`session/new`: systemPrompt is not supported by this agent"));
        }
        check_folder(&request.cwd).await?;
        let (feed, inbox) = Feed::new();
        let folder = request.cwd.clone();
        let Planned { plan, config, notes } =
            self.plan(request.cwd, Arc::new(feed.clone())).await.map_err(|fault| refused(&fault))?;
        let mut additional_dirs = plan.additional_dirs;
        additional_dirs.extend(request.additional_directories);
        let files_over = self.files_over(context.peer().clone(), folder, &additional_dirs);
        let mut plan = SessionPlan { additional_dirs, files_over, ..plan };
        plan.mcp.add_client(request.mcp_servers);

        let answer_timeout = config.answer_timeout.map(|setting| setting.value);
        let patience = config.permission_notice.value;
        let client = Client::new(context.peer().clone(), feed.clone(), answer_timeout, patience);
        let forms = *lock(&self.forms);
        let asker: Arc<dyn Questions> =
            Arc::new(Asker::new(context.peer().clone(), feed.clone(), forms, answer_timeout));
        let mount = |scope: &Context| {
            scope.listen::<Approval>(Rank::POLICY, client)?;
            scope.provide(asker).map(drop)
        };
        let session = compose::open(plan, mount).await.map_err(|fault| refused(&fault))?;
        let id = session.agent.session().id.as_str().to_owned();
        let task = FeedTask::new(context.peer().clone(), id.clone(), inbox, self.mute.clone());
        let started = session.agent.context().run("the client's feed", |ended| task.run(ended));
        if let Err(fault) = started {
            let _ = session.close("other").await;
            return Err(rpc_error::internal(fault));
        }

        let mut opening = Vec::new();
        if !notes.is_empty() {
            opening.push(format!("[sluice] {}", notes.join("\n")));
        }
        opening.extend(session.findings.problems.iter().map(|problem| format!("[sluice] {problem}")));
        for line in &opening {
            say(line);
        }
        let mut response = NewSessionResponse::new(id.clone());
        if !opening.is_empty() {
            let meta = [(NOTICES.to_owned(), json!(opening))].into_iter().collect::<serde_json::Map<_, _>>();
            response = response.meta(meta);
        }
        let open = Open { session, feed, opening: Mutex::new(opening), running: Mutex::default() };
        lock(&self.sessions).insert(id, Arc::new(open));
        Ok(response)
    }

    async fn initialize(&self, params: &Params<'_>) -> Result<InitializeResponse, RpcError> {
        // Whatever version the client wants, this is the one there is; the client decides whether to go on.
        let request: InitializeRequest = acp::parse("initialize", params)?;
        let forms = request.client_capabilities.elicitation.is_some_and(|elicitation| elicitation.form.is_some());
        *lock(&self.forms) = if forms { Forms::Shown } else { Forms::Unknown };
        let fs = request.client_capabilities.fs;
        *lock(&self.can) = Abilities { read: fs.read_text_file, write: fs.write_text_file };
        let takes_images = Arc::clone(&self.takes_images);
        let images = tokio::task::spawn_blocking(move || takes_images()).await.unwrap_or(false);
        let session =
            SessionCapabilities::new().additional_directories(SessionAdditionalDirectoriesCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(false)
            .mcp_capabilities(McpCapabilities::new().http(true).sse(false))
            .prompt_capabilities(PromptCapabilities::new().image(images).audio(false).embedded_context(true))
            .session_capabilities(session);
        let info = Implementation::new("sluice", env!("CARGO_PKG_VERSION")).title("sluice".to_owned());
        Ok(InitializeResponse::new(PROTOCOL_VERSION).agent_capabilities(capabilities).agent_info(info))
    }

    /// The session's files go through the editor as far as it can; `None` when it cannot.
    fn files_over(&self, peer: Peer, folder: PathBuf, additional: &[PathBuf]) -> Option<FilesOver> {
        let can = *lock(&self.can);
        if can == Abilities::default() {
            return None;
        }
        let mut folders = vec![folder];
        folders.extend_from_slice(additional);
        Some(Arc::new(move |disk, session| {
            let editor = Editor::new(peer.clone(), session.as_str().to_owned(), EDITOR_PATIENCE);
            Arc::new(EditorFiles::new(editor, can, &folders, disk))
        }))
    }

    /// The plan reads files, so it is made where blocking is allowed.
    async fn plan(&self, cwd: PathBuf, live: Arc<dyn LiveSink>) -> Result<Planned, Fault> {
        let plan_for = Arc::clone(&self.plan_for);
        tokio::task::spawn_blocking(move || plan_for(cwd, live))
            .await
            .unwrap_or_else(|fault| Err(Fault::internal(fault)))
    }

    async fn prompt(&self, params: &Params<'_>, context: &RequestContext) -> Result<PromptResponse, RpcError> {
        let request: PromptRequest = acp::parse("session/prompt", params)?;
        let session_id = &*request.session_id.0;
        let open = lock(&self.sessions).get(session_id).cloned();
        let open = open.ok_or_else(|| acp::session_not_found(session_id))?;
        let content = prompt::content(request.prompt)?;
        if let Some(why) = images::not_taken(&content, open.session.agent.context()) {
            return Err(rpc_error::invalid_params(format_args!("`session/prompt`: the prompt holds an image, {why}")));
        }
        let running = open.start()?;
        // Looked at after taking the place: whoever ends everything either sees the prompt or is seen here.
        if let Some(cause) = &*lock(&self.ending) {
            running.cancel.cancel(cause.clone());
        }

        let opening = std::mem::take(&mut *lock(&open.opening));
        open.feed.begin(opening).await;
        let report = {
            let mut turn = std::pin::pin!(open.session.agent.prompt(content, &running.cancel));
            tokio::select! {
                report = &mut turn => report,
                () = context.cancelled() => {
                    running.cancel.cancel(CancelCause::User);
                    turn.await
                }
            }
        };
        let wanted = if running.cancel.is_cancelled() { Wanted::Cancelled } else { Wanted::Yes };
        let answer = answer(&report.end, wanted);
        open.feed.end(answer.say).await;
        answer.result
    }

    fn cancel(&self, params: &Params<'_>) {
        match acp::parse::<CancelNotification>("session/cancel", params) {
            Ok(cancel) => match lock(&self.sessions).get(&*cancel.session_id.0) {
                Some(open) => open.cancel(CancelCause::User),
                None => tracing::debug!("ignored a cancel for an unknown session"),
            },
            Err(error) => tracing::warn!(reason = error.message(), "ignored a cancel"),
        }
    }

    /// Cancels every prompt that runs or is about to.
    pub(super) fn begin_end(&self, cause: &CancelCause) {
        lock(&self.ending).get_or_insert_with(|| cause.clone());
        for open in lock(&self.sessions).values() {
            open.cancel(cause.clone());
        }
    }

    /// From now on nothing is shown to the client any more.
    pub(super) fn mute(&self) {
        self.mute.cancel(CancelCause::Disposed);
    }

    /// Closes every session, all at once. Their requests must be over.
    pub(super) async fn close(&self) {
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        let mut closing = JoinSet::new();
        for (id, open) in sessions {
            let Some(open) = Arc::into_inner(open) else {
                tracing::error!(session = id, "a session is still in use and cannot be closed");
                continue;
            };
            closing.spawn(async move {
                if let Err(fault) = open.session.close("other").await {
                    say(&fault.to_string());
                }
            });
        }
        closing.join_all().await;
    }
}

fn authenticate(params: &Params<'_>) -> Result<AuthenticateResponse, RpcError> {
    let request: AuthenticateRequest = acp::parse("authenticate", params)?;
    Err(rpc_error::invalid_params(format_args!(
        "`authenticate`: there is no login method `{}`; keys come from the environment or the configuration",
        request.method_id
    )))
}

async fn check_folder(cwd: &std::path::Path) -> Result<(), RpcError> {
    let why = match tokio::fs::metadata(cwd).await {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => "is not a folder".to_owned(),
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        Err(fault) => format!("cannot be used: {fault}"),
    };
    Err(rpc_error::invalid_params(format_args!("`session/new`: the cwd {} {why}", cwd.display())))
}

/// A fault as an error: the login code for a missing key, and for that alone.
fn refused(fault: &Fault) -> RpcError {
    let mut message = fault.cause.clone();
    for line in fault.remedy.lines() {
        message.push_str("; ");
        message.push_str(line);
    }
    if fault.code == super::KEY_MISSING {
        return acp::auth_required(message);
    }
    RpcError::owned(INTERNAL_ERROR, message, Some(json!({ "code": fault.code })))
}
