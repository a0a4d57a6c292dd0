//! Tools of MCP servers: connects to the servers of a session and registers what they offer as `mcp__server__tool`.
//!
//! One task a server, owned by the session's scope, connects in the background, keeps the registrations in step with
//! the server's list, and closes the connection when the scope ends ([`server`]). What a call gives is mapped in
//! [`result`], names are made in [`name`]. The invariant: a server that does not answer delays the first request by its
//! startup limit at most, costs one sentence to the user, and nothing else.

pub mod name;
mod result;
mod server;
mod tool;

use std::sync::Arc;
use std::time::Duration;

use sluice_harness::context::{Context, ContextFault};
use sluice_harness::point::Observer;
use sluice_harness::point::session::{SessionStart, SessionStartView, StartOutcome};
use sluice_harness::seam::live::LiveSink;
use sluice_harness::seam::mcp::ServerSpec;

use server::Server;

/// How much longer than the slowest server the wait may take before it is broken off.
const MARGIN: Duration = Duration::from_secs(5);

/// A server of a session.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Its part of the tools' names; see [`name::server_key`].
    pub key: String,
    /// Where it is configured, for messages.
    pub origin: String,
    /// How to connect.
    pub spec: ServerSpec,
}

/// The servers of a session.
pub struct McpTools {
    servers: Vec<Arc<Server>>,
    longest: Duration,
}

impl McpTools {
    /// Connects to each server in the background, on this scope: its tools are registered there as they come. `dyn
    /// McpServers` must be provided by then. Calls take `call_timeout` at most; what fails is told to `live`.
    ///
    /// # Errors
    /// When the scope has ended.
    pub fn start(
        scope: &Context,
        servers: Vec<McpServer>,
        call_timeout: Duration,
        live: &Arc<dyn LiveSink>,
    ) -> Result<Self, ContextFault> {
        let longest = servers.iter().map(|server| server.spec.startup).max().unwrap_or_default();
        let mut running = Vec::new();
        for server in servers {
            let (server, owner) = Server::new(server, call_timeout, Arc::clone(live));
            let scope_too = scope.clone();
            scope.run("an MCP server", move |ended| owner.live(scope_too, ended))?;
            running.push(server);
        }
        Ok(Self { servers: running, longest })
    }

    /// Makes a session's first request wait until each server is connected or has failed. Mounted after the hook
    /// bridges, so that hooks and connections get ready side by side.
    ///
    /// # Errors
    /// When the scope has ended.
    pub fn hold_first_request(self, scope: &Context) -> Result<(), ContextFault> {
        if self.servers.is_empty() {
            return Ok(());
        }
        scope.observe::<SessionStart>(self).map(drop)
    }
}

impl Observer<SessionStart> for McpTools {
    fn observe(&self, view: &SessionStartView<'_>) {
        let servers = self.servers.clone();
        let wait = async move {
            for server in servers {
                server.settled().await;
            }
            StartOutcome::default()
        };
        view.promise("MCP servers", self.longest + MARGIN, Box::pin(wait));
    }
}
