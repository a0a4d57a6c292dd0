//! Long texts: what is over the limit is saved in the session's own folder, and the model reads where.

use sluice_harness::scene::Scene;
use sluice_harness::seam::host_files::HostFiles;

use super::text;
use crate::core::output::Printed;
use crate::core::record::fresh_run_id;

/// The text, or what stands for it when it is long. A text that cannot be saved is passed on whole.
pub(crate) async fn shorten(scene: Scene<'_>, what: &str, printed: Printed) -> String {
    if printed.text.chars().nth(text::LONG_TEXT).is_none() {
        return printed.text;
    }
    let name = format!("hook-{}-{what}.txt", fresh_run_id());
    let path = scene.session.state_dir.join("tool-results").join(name);
    let Ok(files) = scene.context.lease::<dyn HostFiles>() else { return printed.text };
    match files.append(&path, printed.text.as_bytes()).await {
        Ok(()) => text::persisted(&printed, &path.display().to_string()),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a long hook text could not be saved");
            printed.text
        }
    }
}

/// All texts, each shortened.
pub(crate) async fn shorten_all(scene: Scene<'_>, what: &str, texts: Vec<impl Into<Printed>>) -> Vec<String> {
    let mut out = Vec::with_capacity(texts.len());
    for text in texts {
        out.push(shorten(scene, what, text.into()).await);
    }
    out
}
