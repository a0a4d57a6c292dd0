//! The MCP seam: connections to servers of the Model Context Protocol, free of any library that speaks it.
//!
//! Contract for every provider: connecting, listing and calling come to an end by themselves or by their signal, and
//! connecting within the deadline of its [`ServerSpec`]; a server that prints rubbish, falls silent or dies costs one
//! [`McpFault`], never a hang; memory is bounded whatever a server sends; dropping a connection ends what it owns.
//! Arguments arrive at the server with their exact values, or the call is refused ([`McpFault::Inexact`]). Values of
//! variables and headers may be secrets: they are in no message and no `Debug`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::Fut;
use crate::cancel::Cancel;
use crate::json::Json;
use crate::seam::process::Environment;

/// How many tools of a server count; no model could be told of more.
pub const MOST_TOOLS: usize = 1000;

/// A server to connect to.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name, for diagnostics.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// How long connecting may take, the list of tools not counted.
    pub startup: Duration,
}

/// Where a server is, and how it is spoken to.
#[derive(Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A program that is started, and speaks on its standard streams.
    Stdio {
        /// Path or name, looked up in the child's `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment; what is set may be secret.
        environment: Environment,
        /// Its working folder; absolute.
        cwd: PathBuf,
    },
    /// An address that speaks streamable HTTP.
    Http {
        /// Such as `https://mcp.example.com/mcp`.
        url: String,
        /// Sent with every request; values may be secret.
        headers: Vec<(String, String)>,
    },
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Arguments are left out too: keys are given in them more often than they should be.
            Self::Stdio { command, cwd, .. } => {
                f.debug_struct("Stdio").field("command", command).field("cwd", cwd).finish_non_exhaustive()
            }
            Self::Http { headers, .. } => {
                let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                f.debug_struct("Http").field("headers", &names).finish_non_exhaustive()
            }
        }
    }
}

/// A tool as its server describes it. Everything here is the server's word and nobody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTool {
    /// Its name at the server.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Json,
    /// `readOnlyHint`: a hint for how a call is shown, never a reason to let it run.
    pub read_only_hint: bool,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOutcome {
    /// The content blocks in the protocol's own shape.
    pub content: Vec<Json>,
    /// `structuredContent`, where the server sent it.
    pub structured: Option<Json>,
    /// `isError`: the tool ran and failed.
    pub is_error: bool,
}

/// A server's question to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    /// What the server says.
    pub message: String,
    /// What it wants.
    pub wants: ElicitationKind,
}

/// What a question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationKind {
    /// Fields to fill in, as a JSON Schema.
    Form(Json),
    /// A visit to an address.
    Url(String),
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationAnswer {
    /// With what was filled in; `null` where nothing was to be.
    Accept(Json),
    /// No.
    Decline,
    /// No answer; what a client without anybody to ask says.
    Cancel,
}

/// What a connection tells its client, and asks it.
pub trait McpClient: Send + Sync {
    /// The server's tools have changed.
    fn tools_changed(&self);

    /// The server asks the user something. Nobody can be asked unless this is overridden.
    fn elicit<'a>(&'a self, question: Elicitation) -> Fut<'a, ElicitationAnswer> {
        let _ = question;
        Box::pin(std::future::ready(ElicitationAnswer::Cancel))
    }
}

/// An open connection.
pub trait McpConnection: Send + Sync {
    /// Asks for all tools; gives at most one more than [`MOST_TOOLS`], which shows that there are too many.
    fn tools<'a>(&'a self, cancel: &'a Cancel) -> Fut<'a, Result<Vec<ServerTool>, McpFault>>;

    /// Calls a tool. When the signal fires or the future is dropped, the server is told that nobody waits any more.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Json,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<CallOutcome, McpFault>>;

    /// Whether it has ended.
    fn is_closed(&self) -> bool;

    /// Waits until the connection has ended, and says how. Cancel-safe.
    fn ended(&self) -> Fut<'_, McpFault>;

    /// Ends it, politely first, and waits until what it owned is gone.
    fn close(&self) -> Fut<'_, ()>;
}

/// Connects to servers.
pub trait McpServers: Send + Sync {
    /// Connects and makes acquaintance; nothing is left behind when that fails.
    fn connect<'a>(
        &'a self,
        spec: &'a ServerSpec,
        client: Arc<dyn McpClient>,
        cancel: &'a Cancel,
    ) -> Fut<'a, Result<Arc<dyn McpConnection>, McpFault>>;
}

/// Why a server did not do what it was asked. No text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum McpFault {
    /// Its program did not start, or its address cannot be used.
    #[error("it could not be started: {why}")]
    NotStarted {
        /// Why.
        why: String,
    },
    /// It did not answer in time.
    #[error("it did not answer within {} s{}", after.as_secs_f64(), said(words))]
    Silent {
        /// The limit.
        after: Duration,
        /// What it said elsewhere, such as the end of its stderr.
        words: String,
    },
    /// The connection ended.
    #[error("{how}{}", said(words))]
    Ended {
        /// How, such as `its process ended with code 1`.
        how: String,
        /// What it said elsewhere, such as the end of its stderr.
        words: String,
    },
    /// What it sent is not what the protocol says.
    #[error("it broke the protocol: {why}")]
    Protocol {
        /// What it sent.
        why: String,
    },
    /// It answered with an error of the protocol.
    #[error("it answered with error {code}: {message}")]
    Refused {
        /// The protocol's code.
        code: i64,
        /// The server's words.
        message: String,
    },
    /// A number of the arguments would not arrive as it is.
    #[error("the number {number} cannot be sent without rounding it")]
    Inexact {
        /// The number as the model wrote it.
        number: String,
    },
    /// The signal fired.
    #[error("it was cancelled")]
    Cancelled,
}

fn said(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; it said: {words}") }
}

impl McpFault {
    /// A stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotStarted { .. } => "MCP_NOT_STARTED",
            Self::Silent { .. } => "MCP_SILENT",
            Self::Ended { .. } => "MCP_ENDED",
            Self::Protocol { .. } => "MCP_PROTOCOL",
            Self::Refused { .. } => "MCP_REFUSED",
            Self::Inexact { .. } => "MCP_INEXACT",
            Self::Cancelled => "MCP_CANCELLED",
        }
    }
}
