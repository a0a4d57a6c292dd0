//! Keeps settings that the model may have written out of force while it is held in a sandbox.
//!
//! Hooks run outside the sandbox and rules widen what may be done, so a settings file that a confined command can write
//! would be the way out, and emptying one the way past a gate. The invariant: what such a file says counts only as it
//! was when the session began, or as it was changed while the model was not at work.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sluice_harness::Fut;
use sluice_harness::context::{Context, ContextFault, Rank};
use sluice_harness::point::configuration::{ConfigurationChange, ConfigurationDecision, ConfigurationView};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::sandbox::{SandboxMode, SandboxPolicy};

use crate::live_settings::LiveSettings;

/// The listener.
pub(crate) struct SettingsGate {
    settings: Arc<LiveSettings>,
    /// Where confined commands may write.
    writable: Vec<PathBuf>,
}

impl SettingsGate {
    /// Mounts it where the policy holds commands back at all; elsewhere they may do what a hook may.
    pub(crate) fn mount(
        context: &Context,
        settings: &Arc<LiveSettings>,
        policy: &SandboxPolicy,
    ) -> Result<(), ContextFault> {
        let writable = match policy.mode {
            SandboxMode::Off => return Ok(()),
            SandboxMode::ReadOnly => Vec::new(),
            SandboxMode::WorkspaceWrite => policy.writable.clone(),
        };
        context.listen::<ConfigurationChange>(Rank::OUTER, Self { settings: Arc::clone(settings), writable }).map(drop)
    }

    /// Whether a path, or what it leads to, lies where a command may write.
    async fn is_writable(&self, path: &Path) -> bool {
        let mut places = vec![path.to_owned()];
        places.extend(tokio::fs::canonicalize(path).await);
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            places.extend(tokio::fs::canonicalize(folder).await.map(|folder| folder.join(name)));
        }
        places.iter().any(|place| self.writable.iter().any(|folder| place.starts_with(folder)))
    }
}

impl Listener<ConfigurationChange> for SettingsGate {
    fn name(&self) -> &str {
        "sandbox"
    }

    fn decide<'a>(
        &'a self,
        view: ConfigurationView<'a>,
        next: Next<'a, ConfigurationChange>,
    ) -> Fut<'a, Result<ConfigurationDecision, ListenerFault>> {
        Box::pin(async move {
            // Hooks are told either way; what they keep out stays out for their reason.
            let decision = next.delegate().await?;
            let path = &view.change.path;
            if decision != ConfigurationDecision::Apply
                || !self.settings.may_be_the_models(view.change)
                || !self.is_writable(path).await
            {
                return Ok(decision);
            }
            let reason =
                "it came while the model was at work, whose commands may write there from inside the sandbox; \
                          look at it, and begin a new session for it to count"
                    .to_owned();
            Ok(ConfigurationDecision::Keep { by: self.name().to_owned(), reason })
        })
    }
}
