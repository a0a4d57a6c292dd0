//! A JSON value with exact numbers: what schemas look at, for the usual view would round them.
//!
//! It reads only text that [`Json`](crate::json::Json) has accepted already, so depth is bounded and keys are unique.

use std::borrow::Cow;
use std::fmt;

use crate::json::compact::FromCompact;

/// A value. Objects keep the order of their keys, which are plain data whatever they are called.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    Number(Decimal),
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// The member of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Array(_) => None,
        }
    }

    /// What kind of value it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(number) if number.is_integer() => "an integer",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// A decimal number: its digits without leading or trailing zeros, times a power of ten. Equal numbers are equal
/// values however they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn read(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let sign = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(sign);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Self { negative: false, digits, exponent: 0 };
        }
        let trailing = all.len() - all.trim_end_matches('0').len();
        let shift = i64::try_from(trailing).unwrap_or(0) - i64::try_from(fraction.len()).unwrap_or(0);
        Self { negative, digits, exponent: exponent.saturating_add(shift) }
    }

    /// Whether it has no fraction: `1.0` and `1e3` have none.
    pub(super) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }
}

impl fmt::Display for Decimal {
    /// In plain digits while that is short, else with an exponent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        match usize::try_from(self.exponent) {
            Ok(zeros @ 0..=20) => write!(f, "{sign}{digits}{}", "0".repeat(zeros)),
            _ => match usize::try_from(self.exponent.saturating_neg()) {
                Ok(places) if places > 0 && places < digits.len() => {
                    let (whole, fraction) = digits.split_at(digits.len() - places);
                    write!(f, "{sign}{whole}.{fraction}")
                }
                Ok(places @ 1..=20) => write!(f, "{sign}0.{}{digits}", "0".repeat(places - digits.len())),
                _ => write!(f, "{sign}{digits}e{}", self.exponent),
            },
        }
    }
}

impl<'a> FromCompact<'a> for Node<'a> {
    fn word(word: &'a str) -> Option<Self> {
        Some(match word {
            "null" => Self::Null,
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                Self::Number(Decimal::read(number))
            }
            _ => return None,
        })
    }

    fn text(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn object(members: Vec<(Cow<'a, str>, Self)>) -> Self {
        Self::Object(members)
    }
}
