//! `agent/configuration-change`: ConfigChange hooks, which may keep a changed settings file out of force.

use sluice_harness::Fut;
use sluice_harness::point::configuration::{ConfigurationChange, ConfigurationDecision, ConfigurationView};
use sluice_harness::point::{Listener, ListenerFault, Next};
use sluice_harness::seam::settings::SettingsSource;

use super::firing::{Occurrence, plain_word};
use super::{Bridge, Mounted, NAME};
use crate::claude_code::payload::Own;
use crate::core::config::Event;

impl Listener<ConfigurationChange> for Mounted {
    fn name(&self) -> &str {
        NAME
    }

    fn decide<'a>(
        &'a self,
        view: ConfigurationView<'a>,
        next: Next<'a, ConfigurationChange>,
    ) -> Fut<'a, Result<ConfigurationDecision, ListenerFault>> {
        Box::pin(self.0.configuration(view, next))
    }
}

impl Bridge {
    async fn configuration<'a>(
        &'a self,
        view: ConfigurationView<'a>,
        next: Next<'a, ConfigurationChange>,
    ) -> Result<ConfigurationDecision, ListenerFault> {
        // The event is about this dialect's own files.
        if view.change.owner != NAME || !self.has(Event::ConfigChange) {
            return next.delegate().await;
        }
        let source = word(view.change.source);
        let fired = self
            .fire(Occurrence {
                scene: view.scene,
                hook: "ConfigChange",
                subjects: &[source],
                call_id: None,
                call: None,
                own: Own::ConfigChange { source, path: &view.change.path },
                word: plain_word,
            })
            .await?;
        // A handler that cannot be run here might have kept it out.
        let unrunnable = fired.unrunnable.first().map(|h| format!("the hook `{}` cannot be run here", h.label()));
        let kept = fired.answers().iter().find_map(|answer| {
            let stopped = || answer.heard.stop().map(|reason| reason.unwrap_or_else(|| "stopped by a hook".to_owned()));
            answer.heard.block().or_else(stopped)
        });
        match kept.or(unrunnable) {
            Some(reason) => Ok(ConfigurationDecision::Keep { by: "ConfigChange".to_owned(), reason }),
            None => next.delegate().await,
        }
    }
}

fn word(source: SettingsSource) -> &'static str {
    match source {
        SettingsSource::User => "user_settings",
        SettingsSource::Project => "project_settings",
        SettingsSource::Local => "local_settings",
    }
}
