//! The transcript file that a payload names: where it lies, and that it exists before a hook starts.
//!
//! Its content is a projection of the session log and is written elsewhere; here only its name is fixed.

use std::path::{Path, PathBuf};

use sluice_harness::ids::SessionId;
use sluice_harness::seam::host_files::HostFiles;

/// The Claude dialect's transcript: named by the session alone.
pub(crate) fn claude_path(state_dir: &Path, session: &SessionId) -> PathBuf {
    state_dir.join("claude-code").join(format!("{session}.jsonl"))
}

/// The Codex dialect's transcript: the time in its name is the one in the session's id, so that a resumed session
/// goes on in the same file.
pub(crate) fn codex_path(state_dir: &Path, session: &SessionId) -> PathBuf {
    let stamp = stamp_of(session.as_str());
    state_dir.join("codex").join(format!("rollout-{stamp}-{session}.jsonl"))
}

/// Makes the file where it is missing.
pub(crate) async fn ensure(files: &dyn HostFiles, path: &Path) {
    if files.kind(path).await.is_none()
        && let Err(error) = files.append(path, b"").await
    {
        tracing::warn!(path = %path.display(), %error, "the transcript file could not be made");
    }
}

/// `YYYY-MM-DDThh-mm-ss` (UTC) of a version 7 UUID; the epoch for any other text.
fn stamp_of(id: &str) -> String {
    let digits: String = id.chars().filter(|c| *c != '-').take(12).collect();
    let millis = u64::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 12).unwrap_or(0);
    let seconds = millis / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}-{:02}-{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date of a day counted from 1970-01-01 in the Gregorian calendar, by eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rollout_file_carries_the_time_of_the_session_id() {
        // 2026-01-02T03:04:05Z is 1767323045000 ms, 0x019b7ca98c88.
        let id = SessionId::new("019b7ca9-8c88-7000-8000-000000000001");
        assert_eq!(
            codex_path(Path::new("/s"), &id),
            Path::new("/s/codex/rollout-2026-01-02T03-04-05-019b7ca9-8c88-7000-8000-000000000001.jsonl")
        );
        assert_eq!(stamp_of("x"), "1970-01-01T00-00-00");
    }
}
