//! Servers of the Model Context Protocol, over the crate `rmcp`: the one place that names it.
//!
//! A server is either a program whose process is ours ([`stdio`]) or an address ([`http`]); what it may ask of us is in
//! [`handler`], the bounds on what it may print in [`watched`], the way between its types and ours in [`convert`].
//!
//! The invariants: a connection is spoken to only through its [`Connection`], whose end takes process, tasks and
//! sockets with it; and no text that leaves here holds the value of a header or of a variable that looks like a key.

mod convert;
mod handler;
mod http;
mod stdio;
mod watched;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, RunningService, RunningServiceCancellationToken, ServiceError, ServiceExt as _,
};
use rmcp::transport::IntoTransport;
use sluice_harness::Fut;
use sluice_harness::cancel::Cancel;
use sluice_harness::json::Json;
use sluice_harness::seam::mcp::{
    CallOutcome, Endpoint, MOST_TOOLS, McpClient, McpConnection, McpFault, McpServers, ServerSpec, ServerTool,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::process::LocalProcesses;
use crate::secret::Secret;
use handler::Handler;
use stdio::Program;

/// How long a server has to end after its input was closed, before it is told with a signal.
const POLITE: Duration = Duration::from_millis(100);

/// Connects to servers. Their processes are owned by the given provider, and die with it.
pub struct RmcpServers {
    processes: Arc<LocalProcesses>,
}

impl RmcpServers {
    /// A provider whose servers' processes belong to `processes`.
    #[must_use]
    pub fn new(processes: Arc<LocalProcesses>) -> Self {
        Self { processes }
    }
}

impl McpServers for RmcpServers {
    fn connect<'a>(
        &'a self,
        spec: &'a ServerSpec,
        client: Arc<dyn McpClient>,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Arc<dyn McpConnection>, McpFault>> {
        Box::pin(async move {
            let connecting = async {
                match &spec.endpoint {
                    Endpoint::Stdio { command, args, environment, cwd } => {
                        let (program, transport) =
                            stdio::start(&self.processes, &spec.name, command, args, environment, cwd).await?;
                        greet(client, transport, Behind::Program(program), spec.startup).await
                    }
                    Endpoint::Http { url, headers } => {
                        let (transport, secrets) = http::transport(url, headers)?;
                        greet(client, transport, Behind::Address(secrets), spec.startup).await
                    }
                }
            };
            tokio::select! {
                biased;
                _ = cancel.cancelled() => Err(McpFault::Cancelled),
                connected = connecting => {
                    let connection: Arc<dyn McpConnection> = Arc::new(connected?);
                    Ok(connection)
                }
            }
        })
    }
}

/// What a connection has behind it.
enum Behind {
    /// A process of ours.
    Program(Program),
    /// Somebody else's server; the secrets that are sent to it.
    Address(Vec<Secret>),
}

impl Behind {
    /// What to say of a connection that has ended.
    async fn obituary(&self) -> McpFault {
        match self {
            Self::Program(program) => program.obituary().await,
            Self::Address(_) => McpFault::Ended { how: "the connection was closed".to_owned(), words: String::new() },
        }
    }

    fn silent(&self, after: Duration) -> McpFault {
        let words = match self {
            Self::Program(program) => program.words(),
            Self::Address(_) => String::new(),
        };
        McpFault::Silent { after, words }
    }

    fn clean(&self, text: &str) -> String {
        match self {
            Self::Program(program) => program.clean(text),
            Self::Address(secrets) => secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(&text)),
        }
    }

    async fn stop(&self) {
        match self {
            Self::Program(program) => program.stop().await,
            Self::Address(_) => {}
        }
    }
}

/// The handshake, under its deadline.
async fn greet<T, E, A>(
    client: Arc<dyn McpClient>,
    transport: T,
    behind: Behind,
    limit: Duration,
) -> Result<Connection, McpFault>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let fault = match tokio::time::timeout(limit, Handler::new(client).serve(transport)).await {
        Ok(Ok(service)) => return Ok(Connection::new(service, behind)),
        Err(_) => behind.silent(limit),
        Ok(Err(error)) => not_greeted(&behind, error).await,
    };
    behind.stop().await;
    Err(fault)
}

async fn not_greeted(behind: &Behind, error: ClientInitializeError) -> McpFault {
    match (behind, error) {
        (
            Behind::Program(_),
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. },
        ) => behind.obituary().await,
        (Behind::Address(_), ClientInitializeError::TransportError { error, .. }) => {
            McpFault::NotStarted { why: behind.clean(&http::words(&*error.error)) }
        }
        (_, ClientInitializeError::JsonRpcError(data)) => {
            McpFault::Refused { code: i64::from(data.code.0), message: behind.clean(&data.message) }
        }
        (_, other) => McpFault::Protocol { why: behind.clean(&convert::shortened(&other.to_string())) },
    }
}

/// An open connection.
struct Connection {
    peer: Peer<RoleClient>,
    behind: Behind,
    quit: Mutex<Option<RunningServiceCancellationToken>>,
    ended: watch::Receiver<bool>,
    /// Waits for the service's own end; goes with the connection, and takes the service along.
    _service: Mutex<JoinSet<()>>,
}

impl Connection {
    fn new(service: RunningService<RoleClient, Handler>, behind: Behind) -> Self {
        let peer = service.peer().clone();
        let quit = Mutex::new(Some(service.cancellation_token()));
        let (tell, ended) = watch::channel(false);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = service.waiting().await;
            let _ = tell.send(true);
        });
        Self { peer, behind, quit, ended, _service: Mutex::new(tasks) }
    }

    async fn over(&self) {
        let mut ended = self.ended.clone();
        // A sender that is gone has ended too.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    async fn fault(&self, error: ServiceError) -> McpFault {
        match error {
            ServiceError::McpError(data) => {
                McpFault::Refused { code: i64::from(data.code.0), message: self.behind.clean(&data.message) }
            }
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => self.behind.obituary().await,
            ServiceError::TransportSend(error) => match &self.behind {
                Behind::Program(program) => program.obituary().await,
                Behind::Address(_) => {
                    McpFault::Ended { how: self.behind.clean(&http::words(&*error.error)), words: String::new() }
                }
            },
            ServiceError::UnexpectedResponse => {
                McpFault::Protocol { why: "the answer is none of those that the request has".to_owned() }
            }
            other => McpFault::Protocol { why: self.behind.clean(&convert::shortened(&other.to_string())) },
        }
    }

    async fn list(&self) -> Result<Vec<ServerTool>, McpFault> {
        let mut tools = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page = cursor.clone().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let listed = match self.peer.list_tools(page.clone()).await {
                Err(ServiceError::UnexpectedResponse) => self.list_one_by_one(page).await,
                Ok(page) => Ok((page.tools.iter().map(convert::tool).collect(), page.next_cursor)),
                Err(error) => Err(error),
            };
            let (listed, next) = match listed {
                Ok(listed) => listed,
                Err(error) => return Err(self.fault(error).await),
            };
            tools.extend(listed);
            // The same page for ever is a server's mistake, not a list.
            if next.is_none() || next == cursor || tools.len() > MOST_TOOLS {
                tools.truncate(MOST_TOOLS + 1);
                return Ok(tools);
            }
            cursor = next;
        }
    }
}

impl Connection {
    /// Asks again for a page of which the library reads nothing because one tool is wrong.
    async fn list_one_by_one(
        &self,
        page: Option<PaginatedRequestParams>,
    ) -> Result<(Vec<ServerTool>, Option<String>), ServiceError> {
        let request = ListToolsRequest { method: Default::default(), params: page, extensions: Default::default() };
        match self.peer.send_request(ClientRequest::ListToolsRequest(request)).await? {
            ServerResult::ListToolsResult(page) => {
                Ok((page.tools.iter().map(convert::tool).collect(), page.next_cursor))
            }
            ServerResult::CustomResult(page) => {
                convert::tools_one_by_one(&page.0).ok_or(ServiceError::UnexpectedResponse)
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }
}

impl McpConnection for Connection {
    fn tools<'a>(&'a self, cancel: &'a Cancel) -> Fut<'a, Result<Vec<ServerTool>, McpFault>> {
        Box::pin(async move {
            // A server without tools is a server all the same.
            if self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
                return Ok(Vec::new());
            }
            tokio::select! {
                biased;
                _ = cancel.cancelled() => Err(McpFault::Cancelled),
                listed = self.list() => listed,
            }
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Json,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<CallOutcome, McpFault>> {
        Box::pin(async move {
            let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(convert::arguments(arguments)?);
            let answer = tokio::select! {
                biased;
                // Dropping the request tells the server that nobody waits any more.
                _ = cancel.cancelled() => return Err(McpFault::Cancelled),
                answer = self.peer.call_tool_once(request) => answer,
            };
            match answer {
                Ok(CallToolResponse::Complete(result)) => convert::outcome(&result),
                Ok(_) => {
                    Err(McpFault::Protocol { why: "it wants more input in a way that is not spoken here".to_owned() })
                }
                Err(error) => Err(self.fault(error).await),
            }
        })
    }

    fn is_closed(&self) -> bool {
        *self.ended.borrow() || self.peer.is_transport_closed()
    }

    fn ended(&self) -> Fut<'_, McpFault> {
        Box::pin(async move {
            self.over().await;
            self.behind.obituary().await
        })
    }

    fn close(&self) -> Fut<'_, ()> {
        Box::pin(async move {
            let quit = self.quit.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(quit) = quit {
                quit.cancel();
            }
            let _ = tokio::time::timeout(POLITE, self.over()).await;
            self.behind.stop().await;
        })
    }
}
