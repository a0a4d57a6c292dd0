//! What a server may ask of us, and tell us: questions to the user, and that its tools have changed. Everything else
//! it is refused, for it was not offered.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use sluice_harness::json::Json;
use sluice_harness::seam::mcp::{Elicitation, ElicitationAnswer, ElicitationKind, McpClient};

/// Our side of a connection.
pub(super) struct Handler {
    client: Arc<dyn McpClient>,
}

impl Handler {
    pub(super) fn new(client: Arc<dyn McpClient>) -> Self {
        Self { client }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        ClientConfig::new(capabilities, Implementation::new("sluice", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = Json::of(&requested_schema).unwrap_or_else(|_| Json::null());
                Elicitation { message, wants: ElicitationKind::Form(schema) }
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                Elicitation { message, wants: ElicitationKind::Url(url) }
            }
            _ => return Ok(ElicitResult::new(ElicitationAction::Cancel)),
        };
        Ok(match self.client.elicit(question).await {
            ElicitationAnswer::Accept(content) => {
                let result = ElicitResult::new(ElicitationAction::Accept);
                if content.view().is_null() { result } else { result.with_content(content.view().clone()) }
            }
            ElicitationAnswer::Decline => ElicitResult::new(ElicitationAction::Decline),
            ElicitationAnswer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.client.tools_changed();
    }
}
