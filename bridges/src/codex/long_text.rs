//! Long texts of the Codex dialect: beyond about 2,500 tokens a text is saved, and the model reads its ends.

use sluice_harness::scene::Scene;
use sluice_harness::seam::host_files::HostFiles;

use crate::core::output::Printed;
use crate::core::record::fresh_run_id;

/// The limit in bytes: 2,500 tokens of about four bytes.
const LIMIT: usize = 10_000;
/// How many characters of each end stay.
const END: usize = 4_000;

/// The text, or what stands for it when it is long. A text that cannot be saved is passed on whole.
pub(crate) async fn shorten(scene: Scene<'_>, printed: Printed) -> String {
    let whole = printed.whole();
    let Printed { text, missing } = printed;
    if text.len() <= LIMIT {
        return text;
    }
    let path = scene.session.state_dir.join("tool-results").join(format!("{}.txt", fresh_run_id()));
    let Ok(files) = scene.context.lease::<dyn HostFiles>() else { return text };
    if let Err(error) = files.append(&path, text.as_bytes()).await {
        tracing::warn!(path = %path.display(), %error, "a long hook text could not be saved");
        return text;
    }
    let head: String = text.chars().take(END).collect();
    let skipped = text.chars().count().saturating_sub(END);
    let tail: String = text.chars().skip(skipped).collect();
    let saved = match missing {
        0 => "Full hook output saved to".to_owned(),
        _ => format!("Only {} of its {whole} bytes were kept, and saved to", text.len()),
    };
    format!(
        "Warning: truncated output (original token count: {})\n{head}\n…\n{tail}\n{saved}: {}",
        whole / 4,
        path.display()
    )
}

/// All texts, each shortened.
pub(crate) async fn shorten_all(scene: Scene<'_>, texts: Vec<Printed>) -> Vec<String> {
    let mut out = Vec::with_capacity(texts.len());
    for text in texts {
        out.push(shorten(scene, text).await);
    }
    out
}
