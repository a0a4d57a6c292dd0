//! What a key takes: the one reading of a value, from whatever it was written in.
//!
//! The invariant: a value means the same in a file and in a variable, and one that is wrong is told what was wanted and
//! what came.

use std::time::Duration;

use sluice_providers::web::PrivateHosts;

/// What a key takes, and what is made of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Takes<E: 'static> {
    /// A text that is not empty.
    Text(fn(String) -> E),
    /// True or false.
    Switch(fn(bool) -> E),
    /// One of some words.
    Word {
        /// Those that are shown.
        words: &'static [&'static str],
        /// `None` for a word that is none.
        make: fn(&str) -> Option<E>,
    },
    /// A whole number.
    Count {
        /// The least.
        least: u64,
        /// The greatest.
        most: u64,
        /// `None` for a number that does not fit.
        make: fn(u64) -> Option<E>,
    },
    /// Seconds above 0, with fractions.
    Seconds(fn(Duration) -> E),
    /// Hosts without scheme, port and path, divided by commas.
    Hosts(fn(String) -> E),
}

/// A value as it was written, free of the notation it was written in.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Written {
    /// A text.
    Text(String),
    /// True or false.
    Switch(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Number(f64),
    /// Anything else, named with its article.
    Other(&'static str),
}

impl Written {
    /// How the value is named in an error; a text is quoted, for it may be the word that is wrong.
    fn named(&self) -> String {
        match self {
            Self::Text(text) => format!("`{text}`"),
            Self::Switch(value) => format!("`{value}`"),
            Self::Whole(number) => format!("`{number}`"),
            // Written out, a number may have hundreds of digits.
            Self::Number(number) if number.is_finite() && number.abs() >= 1e15 => format!("`{number:e}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Other(name) => (*name).to_owned(),
        }
    }
}

impl<E> Takes<E> {
    /// Makes the entry, or says what is wanted and what came.
    pub(super) fn make(&self, written: &Written) -> Result<E, String> {
        let made = match (self, written) {
            (Self::Text(make), Written::Text(text)) if !text.trim().is_empty() => Some(make(text.clone())),
            (Self::Switch(make), Written::Switch(value)) => Some(make(*value)),
            (Self::Hosts(make), Written::Text(text)) if PrivateHosts::are_hosts(text) => Some(make(text.clone())),
            (Self::Word { make, .. }, Written::Text(word)) => make(word),
            (Self::Count { least, most, make }, Written::Whole(number)) if (*least..=*most).contains(number) => {
                make(*number)
            }
            #[expect(clippy::cast_precision_loss, reason = "nobody waits long enough to notice")]
            (Self::Seconds(make), Written::Whole(number)) => span(*number as f64).map(make),
            (Self::Seconds(make), Written::Number(number)) => span(*number).map(make),
            (
                Self::Text(_)
                | Self::Switch(_)
                | Self::Word { .. }
                | Self::Count { .. }
                | Self::Seconds(_)
                | Self::Hosts(_),
                Written::Text(_) | Written::Switch(_) | Written::Whole(_) | Written::Number(_) | Written::Other(_),
            ) => None,
        };
        made.ok_or_else(|| format!("must be {}, not {}", self.wanted(), written.named()))
    }

    /// Reads the text of a variable as what the key takes.
    pub(super) fn read_variable(&self, text: &str) -> Result<E, String> {
        let as_text = || Written::Text(text.to_owned());
        let written = match self {
            Self::Text(_) | Self::Word { .. } | Self::Hosts(_) => as_text(),
            Self::Switch(_) => match text {
                "true" | "1" => Written::Switch(true),
                "false" | "0" => Written::Switch(false),
                _ => as_text(),
            },
            Self::Count { .. } => text.parse().map_or_else(|_| as_text(), Written::Whole),
            Self::Seconds(_) => text.parse().map_or_else(|_| as_text(), Written::Number),
        };
        self.make(&written)
    }

    /// What is wanted, in words.
    fn wanted(&self) -> String {
        match self {
            Self::Text(_) => "a text that is not empty".to_owned(),
            Self::Switch(_) => "true or false".to_owned(),
            Self::Word { words, .. } => {
                let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::Count { least, most, .. } if *most == u64::MAX => format!("a whole number from {least} up"),
            Self::Count { least, most, .. } => format!("a whole number from {least} to {most}"),
            Self::Seconds(_) => format!("a number of seconds above 0 and up to {MOST_SECONDS}"),
            Self::Hosts(_) => "hosts divided by commas, each without scheme, port and path, such as `localhost`, \
                               `10.0.0.7`, `[::1]` or `*.corp.example`"
                .to_owned(),
        }
    }
}

/// The longest time that can be set, in seconds: some thirty years.
const MOST_SECONDS: u32 = 1_000_000_000;

fn span(seconds: f64) -> Option<Duration> {
    let fits = seconds <= f64::from(MOST_SECONDS);
    Duration::try_from_secs_f64(seconds).ok().filter(|time| fits && !time.is_zero())
}
