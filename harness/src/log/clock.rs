//! Wall-clock time as logs write it: milliseconds since the epoch, and RFC 3339 in UTC.
//!
//! It knows no time zone and no leap second; the calendar is the proleptic Gregorian one.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch; 0 on a clock set before it.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The present time in UTC, with milliseconds and a `Z`, such as `2026-11-29T21:36:05.123Z`.
#[must_use]
pub fn now_rfc3339() -> String {
    rfc3339(now_ms())
}

/// Milliseconds since the epoch, in words.
pub(super) fn rfc3339(ms: u64) -> String {
    let (seconds, milli) = (ms / 1000, ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second % 3600 / 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Year, month and day of a day counted from 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day is a year's last and month lengths follow one line
    // (153 days every five months). 719 468 days lie between 0000-03-01 and the epoch.
    let shifted = days + 719_468;
    let (era, in_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn known_moments_read_as_the_calendar_says() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}
