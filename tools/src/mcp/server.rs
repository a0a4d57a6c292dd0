//! One server of a session: its connection, its registrations, and the task that owns both.
//!
//! A call that finds the connection ended asks for one new connection and waits for it. When that fails the server is
//! given up, and every later call says why at once; so a dead server can delay a session once more and never again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluice_harness::cancel::Cancel;
use sluice_harness::context::{Context, Registration};
use sluice_harness::json::Json;
use sluice_harness::registry;
use sluice_harness::seam::live::{LiveEvent, LiveSink, Notice, NoticeLevel};
use sluice_harness::seam::mcp::{CallOutcome, MOST_TOOLS, McpClient, McpConnection, McpFault, McpServers, ServerTool};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::McpServer;
use super::name::full_name;
use super::tool::McpTool;

/// Where a server stands.
#[derive(Clone)]
enum State {
    /// It is being connected to.
    Connecting,
    /// It can be called.
    Ready(Arc<dyn McpConnection>),
    /// Its connection ended; a call may ask for a new one.
    Lost,
    /// It will not be connected to any more.
    GivenUp(McpFault),
}

/// What tools hold of their server.
pub(super) struct Server {
    plan: McpServer,
    call_timeout: Duration,
    state: watch::Receiver<State>,
    again: mpsc::Sender<()>,
}

/// What the server tells us.
#[derive(Default)]
struct Ear {
    changed: Notify,
}

impl McpClient for Ear {
    fn tools_changed(&self) {
        self.changed.notify_one();
    }
}

/// The owner of a server's connection and registrations.
pub(super) struct Owner {
    server: Arc<Server>,
    state: watch::Sender<State>,
    again: mpsc::Receiver<()>,
    ear: Arc<Ear>,
    live: Arc<dyn LiveSink>,
    registered: BTreeMap<String, (ServerTool, Registration)>,
}

impl Server {
    pub(super) fn new(plan: McpServer, call_timeout: Duration, live: Arc<dyn LiveSink>) -> (Arc<Self>, Owner) {
        let (tell, state) = watch::channel(State::Connecting);
        let (ask, again) = mpsc::channel(1);
        let server = Arc::new(Self { plan, call_timeout, state, again: ask });
        let owner = Owner {
            server: Arc::clone(&server),
            state: tell,
            again,
            ear: Arc::default(),
            live,
            registered: BTreeMap::new(),
        };
        (server, owner)
    }

    pub(super) fn name(&self) -> &str {
        &self.plan.spec.name
    }

    pub(super) fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Waits until it is connected or has failed. Cancel-safe.
    pub(super) async fn settled(&self) {
        let mut state = self.state.clone();
        // An owner that has gone tells nothing any more.
        let _ = state.wait_for(|state| !matches!(state, State::Connecting)).await;
    }

    /// Calls one of its tools.
    pub(super) async fn call(&self, tool: &str, arguments: &Json, cancel: &Cancel) -> Result<CallOutcome, McpFault> {
        let connection = tokio::select! {
            biased;
            _ = cancel.cancelled() => return Err(McpFault::Cancelled),
            connection = self.connection() => connection?,
        };
        connection.call(tool, arguments, cancel).await
    }

    async fn connection(&self) -> Result<Arc<dyn McpConnection>, McpFault> {
        let mut state = self.state.clone();
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                State::Ready(connection) if !connection.is_closed() => return Ok(connection),
                // Its owner is about to notice.
                State::Ready(_) | State::Connecting => {}
                State::Lost => {
                    // A full channel means that somebody has asked already.
                    let _ = self.again.try_send(());
                }
                State::GivenUp(fault) => return Err(fault),
            }
            if state.changed().await.is_err() {
                return Err(McpFault::Cancelled);
            }
        }
    }
}

impl Owner {
    /// Connects, registers, and follows the server until the scope ends.
    pub(super) async fn live(mut self, scope: Context, ended: Cancel) {
        loop {
            let connection = match self.open(&scope, &ended).await {
                Ok(connection) => connection,
                Err(McpFault::Cancelled) => return,
                Err(fault) => {
                    let remedy = self.remedy(&fault);
                    let text = format!("it is not available: {fault}. {remedy} [mcp-server-unavailable]");
                    self.tell(NoticeLevel::Warning, text).await;
                    self.state.send_replace(State::GivenUp(fault));
                    return;
                }
            };
            let fault = tokio::select! {
                biased;
                _ = ended.cancelled() => {
                    connection.close().await;
                    return;
                }
                fault = self.follow(&scope, &*connection, &ended) => fault,
            };
            tracing::warn!(server = self.server.name(), "the connection has ended: {fault}");
            drop(connection);
            while self.again.try_recv().is_ok() {}
            self.state.send_replace(State::Lost);
            tokio::select! {
                biased;
                _ = ended.cancelled() => return,
                asked = self.again.recv() => if asked.is_none() { return },
            }
            self.state.send_replace(State::Connecting);
        }
    }

    /// Connects and registers what there is, all under the startup limit.
    async fn open(&mut self, scope: &Context, ended: &Cancel) -> Result<Arc<dyn McpConnection>, McpFault> {
        let spec = &self.server.plan.spec;
        let limit = Instant::now() + spec.startup;
        let connection = {
            let servers =
                scope.lease::<dyn McpServers>().map_err(|fault| McpFault::NotStarted { why: fault.to_string() })?;
            let ear: Arc<dyn McpClient> = Arc::<Ear>::clone(&self.ear);
            servers.connect(spec, ear, ended).await?
        };
        let listed = tokio::time::timeout_at(limit, connection.tools(ended)).await;
        let listed = listed.unwrap_or_else(|_| Err(McpFault::Silent { after: spec.startup, words: String::new() }));
        match listed {
            Ok(tools) => {
                self.register(scope, tools).await;
                self.state.send_replace(State::Ready(Arc::clone(&connection)));
                Ok(connection)
            }
            Err(fault) => {
                connection.close().await;
                Err(fault)
            }
        }
    }

    /// Follows changes of the list until the connection ends, and says how.
    async fn follow(&mut self, scope: &Context, connection: &dyn McpConnection, ended: &Cancel) -> McpFault {
        let ear = Arc::clone(&self.ear);
        loop {
            tokio::select! {
                biased;
                fault = connection.ended() => return fault,
                () = ear.changed.notified() => {}
            }
            let limit = self.server.plan.spec.startup;
            match tokio::time::timeout(limit, connection.tools(ended)).await {
                Ok(Ok(tools)) => self.register(scope, tools).await,
                // What was registered stays; a connection that has ended is noticed above.
                Ok(Err(fault)) => tracing::warn!(server = self.server.name(), "its tools cannot be listed: {fault}"),
                Err(_) => tracing::warn!(server = self.server.name(), "its tools cannot be listed: no answer"),
            }
        }
    }

    /// Brings the registrations in step with the list. What cannot be used is named once.
    async fn register(&mut self, scope: &Context, tools: Vec<ServerTool>) {
        let mut wanted = BTreeMap::new();
        let mut unusable = Vec::new();
        if tools.len() > MOST_TOOLS {
            unusable.push(format!("all after the first {MOST_TOOLS} (a server may have no more)"));
        }
        for tool in tools.into_iter().take(MOST_TOOLS) {
            let shown = shown(&tool.name);
            match full_name(&self.server.plan.key, &tool.name) {
                Ok(name) if wanted.contains_key(&name) => {
                    unusable.push(format!("`{shown}` (another tool of this server is called {name} too)"));
                }
                Ok(name) => {
                    wanted.insert(name, tool);
                }
                Err(why) => unusable.push(format!("`{shown}` ({why})")),
            }
        }
        self.registered.retain(|name, (tool, registration)| {
            let stays = wanted.get(name) == Some(tool);
            if !stays {
                registration.end();
            }
            stays
        });
        for (name, tool) in wanted {
            if self.registered.contains_key(&name) {
                continue;
            }
            let body = McpTool::new(Arc::clone(&self.server), name.clone(), tool.clone());
            match registry::register(scope, Arc::new(body)) {
                Ok(registration) => {
                    self.registered.insert(name, (tool, registration));
                }
                Err(fault) => unusable.push(format!("`{}` ({fault})", shown(&tool.name))),
            }
        }
        if !unusable.is_empty() {
            let text = format!(
                "these of its tools cannot be used: {}. Its other tools are there. [mcp-tools-unusable]",
                unusable.join(", ")
            );
            self.tell(NoticeLevel::Warning, text).await;
        }
    }

    /// What to do about a server that is not there.
    fn remedy(&self, fault: &McpFault) -> String {
        let origin = &self.server.plan.origin;
        match fault {
            McpFault::Silent { .. } => {
                "Give it longer with startup_timeout in the table [mcp] of the configuration, or see why it is slow."
                    .to_owned()
            }
            McpFault::NotStarted { .. } | McpFault::Ended { .. } => {
                format!("Correct its entry in {origin}, or what it needs to start.")
            }
            McpFault::Refused { .. } | McpFault::Protocol { .. } => {
                format!("See that its entry in {origin} names an MCP server that works.")
            }
            McpFault::Inexact { .. } | McpFault::Cancelled => "Begin a new session.".to_owned(),
        }
    }

    async fn tell(&self, level: NoticeLevel, text: String) {
        let source = format!("MCP server {}", self.server.name());
        self.live.send(LiveEvent::Notice(Notice { level, source, text })).await;
    }
}

/// A server's own name for a tool, fit for a message.
fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}
