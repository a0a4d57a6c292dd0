//! Settings that changed on disk: judged at their point, then put in force or not, and either way logged.

use serde::{Deserialize, Serialize};

use crate::Fut;
use crate::log::LogError;
use crate::log::event::EventKind;
use crate::point::configuration::{ConfigurationChange, ConfigurationDecision, ConfigurationView};
use crate::point::{Point, within_grace};
use crate::scene::SessionScene;
use crate::seam::live::NoticeLevel;
use crate::seam::settings::Settings;

/// A settings file changed while the session ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChanged {
    /// Who reads the file, such as `claude-code`.
    pub owner: String,
    /// The file.
    pub path: String,
    /// Who kept the change out of force; absent when it counts.
    pub kept_out_by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

impl EventKind for SettingsChanged {
    const TYPE: &'static str = "settings/changed";
    const IGNORABLE: bool = true;
}

/// Takes up what changed. Without a provider of settings there is nothing to look at.
pub(super) async fn refresh(owned: &SessionScene) -> Result<(), LogError> {
    let scene = owned.scene();
    let Ok(settings) = scene.context.lease::<dyn Settings>() else { return Ok(()) };
    for change in settings.changed(scene).await {
        let decision = {
            let waterfall = scene.context.waterfall::<ConfigurationChange>();
            let view = ConfigurationView { scene, change: &change };
            let apply = || -> Fut<'_, _> { Box::pin(std::future::ready(Ok(ConfigurationDecision::Apply))) };
            within_grace(scene.cancel, ConfigurationChange::NAME, waterfall.run(view, apply)).await
        };
        // Hooks that a cancellation cut short have not judged it; it is offered again.
        if scene.cancel.is_cancelled() {
            return Ok(());
        }
        let decision =
            decision.unwrap_or_else(|fault| ConfigurationDecision::Keep { by: fault.listener, reason: fault.what });
        let path = change.path.display().to_string();
        let (kept_out_by, reason) = match decision {
            ConfigurationDecision::Apply => {
                settings.apply(scene, &change).await;
                (None, None)
            }
            ConfigurationDecision::Keep { by, reason } => {
                settings.decline(&change);
                let text = format!("{path} changed and the change is kept out: {reason}");
                scene.tell(NoticeLevel::Info, &by, text).await;
                (Some(by), Some(reason))
            }
        };
        scene.log.append(&SettingsChanged { owner: change.owner.clone(), path, kept_out_by, reason })?;
    }
    Ok(())
}
