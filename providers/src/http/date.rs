//! Dates as HTTP has them, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
//!
//! Only the form that is to be written today is read; any other text is no date.

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The moment in seconds since 1970; `None` for what is no date, or lies before 1970.
pub(super) fn unix_seconds(text: &str) -> Option<u64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    if zone != "GMT" || words.next().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let (day, year) = (number(day, 2)?, number(year, 4)?);
    let mut clock = time.split(':');
    let (hour, minute, second) = (clock.next()?, clock.next()?, clock.next()?);
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    if year < 1970 || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 || clock.next().is_some() {
        return None;
    }
    // Years begin in March here, so that the odd day of a leap year is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1;
    // Days from March of the year 0 until 1970.
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

fn number(text: &str, digits: usize) -> Option<u64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_its_moment_and_anything_else_is_none() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Sat, 01 Mar 2025 00:00:00 GMT", 1_740_787_200),
        ] {
            assert_eq!(unix_seconds(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "soon",
            "7",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "x, 6 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(unix_seconds(text), None, "{text}");
        }
    }
}
