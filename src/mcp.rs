//! Which MCP servers a session has: from which files, flags and clients they come, and which of them count.
//!
//! What an entry may look like is in [`entry`], its variables in [`expand`], files and flags in [`sources`], what the
//! settings accept or switch off in [`choice`]. Connecting is the tools' business. Two invariants: an entry that is wrong
//! is dropped alone and named with its file and field; and what came with a repository starts nothing until the user
//! has accepted it.

mod choice;
mod entry;
mod expand;
mod sources;

use std::path::Path;

use sluice_bridges::{Problem, Severity};
use sluice_harness::seam::mcp::{Endpoint, ServerSpec};
use sluice_harness::seam::process::Environment;
use sluice_protocol::acp::schema::v1::McpServer as ClientServer;
use sluice_tools::mcp::McpServer;
use sluice_tools::mcp::name::server_key;

use std::time::Duration;

pub(crate) use sources::{Sources, read};

/// The servers of a session, in the order of their precedence.
#[derive(Debug, Clone)]
pub(crate) struct McpPlan {
    servers: Vec<Server>,
    /// What does not work as it is written, and what waits for trust.
    pub(crate) problems: Vec<Problem>,
    /// How long connecting to one may take.
    pub(crate) startup: Duration,
    /// How long a call may take.
    pub(crate) call: Duration,
}

/// A server that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Server {
    name: String,
    key: String,
    /// Where it is configured, for messages.
    origin: String,
    target: Target,
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
enum Target {
    Stdio { command: String, args: Vec<String>, env: Vec<(String, String)> },
    Http { url: String, headers: Vec<(String, String)> },
}

impl std::fmt::Debug for Target {
    /// Without arguments and values: they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, .. } => f.debug_tuple("Stdio").field(command).finish(),
            Self::Http { .. } => f.write_str("Http"),
        }
    }
}

impl McpPlan {
    /// No servers.
    pub(crate) fn none() -> Self {
        Self {
            servers: Vec::new(),
            problems: Vec::new(),
            startup: crate::config::MCP_STARTUP,
            call: crate::config::MCP_CALL,
        }
    }

    /// The servers' names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.name.clone()).collect()
    }

    /// Takes the servers that an ACP client names: they are the client's, and come before all others.
    pub(crate) fn add_client(&mut self, offered: Vec<ClientServer>) {
        const CLIENT: &str = "the client's mcpServers";
        let others = std::mem::take(&mut self.servers);
        for server in offered {
            let (name, target) = match server {
                ClientServer::Stdio(server) => {
                    let env = server.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
                    let command = server.command.display().to_string();
                    (server.name, Ok(Target::Stdio { command, args: server.args, env }))
                }
                ClientServer::Http(server) => {
                    let headers = server.headers.into_iter().map(|header| (header.name, header.value)).collect();
                    (server.name, Ok(Target::Http { url: server.url, headers }))
                }
                ClientServer::Sse(server) => (server.name, Err(entry::NO_SSE.to_owned())),
                _ => ("(unnamed)".to_owned(), Err("it is of a kind that is not known".to_owned())),
            };
            match target {
                Ok(target) => self.add(name, CLIENT, target),
                Err(why) => self.problems.push(entry::dropped(CLIENT, &name, &why)),
            }
        }
        for server in others {
            self.keep(server);
        }
    }

    fn add(&mut self, name: String, origin: &str, target: Target) {
        match server_key(&name) {
            Ok(key) => self.keep(Server { name, key, origin: origin.to_owned(), target }),
            Err(why) => self.problems.push(entry::dropped(origin, &name, &format!("its name cannot be used: {why}"))),
        }
    }

    /// The first of a name counts.
    fn keep(&mut self, server: Server) {
        match self.servers.iter().find(|other| other.key == server.key) {
            None => self.servers.push(server),
            Some(first) if first.name != server.name => self.problems.push(Problem::new(
                Severity::Warning,
                "mcp-server-shadowed",
                format!("The MCP server `{}` of {} is left out.", server.name, server.origin),
                format!(
                    "Its tools would be called like those of `{}` of {}, which comes first; give it another name.",
                    first.name, first.origin
                ),
            )),
            Some(first) => {
                if first.target != server.target {
                    self.problems.push(Problem::new(
                        Severity::Info,
                        "mcp-server-shadowed",
                        format!("The MCP server `{}` of {} is not used.", server.name, server.origin),
                        format!("{} names another one with that name, which comes first.", first.origin),
                    ));
                }
            }
        }
    }

    /// What is connected to from a session that starts in `start_dir`; the processes do not get `without`.
    pub(crate) fn connectable(&self, start_dir: &Path, without: &[String]) -> Vec<McpServer> {
        let spec = |server: &Server| {
            let endpoint = match &server.target {
                Target::Stdio { command, args, env } => Endpoint::Stdio {
                    command: command.clone(),
                    args: args.clone(),
                    environment: Environment { without: without.to_vec(), set: env.clone() },
                    cwd: start_dir.to_owned(),
                },
                Target::Http { url, headers } => Endpoint::Http { url: url.clone(), headers: headers.clone() },
            };
            ServerSpec { name: server.name.clone(), endpoint, startup: self.startup }
        };
        let server = |own: &Server| McpServer { key: own.key.clone(), origin: own.origin.clone(), spec: spec(own) };
        self.servers.iter().map(server).collect()
    }
}
