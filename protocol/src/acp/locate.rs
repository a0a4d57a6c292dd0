//! Finds the member of a JSON text that a position lies in.
//!
//! Lives here: a scanner over text that is known to be JSON. Does not live here: decoding. Invariant: it
//! only ever describes; on text it does not understand it finds nothing.

use std::fmt::Write as _;

/// The path (`mcpServers[0].command`) of the innermost value that an error of `serde_json` lies in; `None`
/// at the top. Errors that types raise themselves are only placed somewhere behind their value, before
/// the next begins; then the path is that of the value around both.
pub(super) fn member_at(text: &str, error: &serde_json::Error, reason: &str) -> Option<String> {
    let before: usize = text.split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    // Only an object or an array of the wrong type is reported where it begins.
    let at_begin = ["invalid type: map", "invalid type: sequence"].iter().any(|kind| reason.starts_with(kind));
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        target: before + error.column(),
        at_begin,
        path: String::new(),
        found: None,
    };
    scanner.value()?;
    scanner.found.filter(|path| !path.is_empty())
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    target: usize,
    at_begin: bool,
    path: String,
    found: Option<String>,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Steps over one value. Inner values are looked at first, so the first find is the innermost.
    fn value(&mut self) -> Option<()> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'{' => self.members(|scanner| {
                let name = scanner.string()?;
                if !scanner.path.is_empty() {
                    scanner.path.push('.');
                }
                scanner.path.push_str(&name);
                (scanner.peek()? == b':').then(|| scanner.at += 1)
            })?,
            b'[' => {
                let mut index = 0_usize;
                self.members(|scanner| {
                    let _ = write!(scanner.path, "[{index}]");
                    index += 1;
                    Some(())
                })?;
            }
            b'"' => drop(self.string()?),
            _ => {
                while self.bytes.get(self.at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                {
                    self.at += 1;
                }
            }
        }
        let start = if self.at_begin { start } else { start + 1 };
        if self.found.is_none() && (start..=self.at).contains(&self.target) {
            self.found = Some(self.path.clone());
        }
        Some(())
    }

    /// Steps over an object or array; `name` puts the name of the next member on the path.
    fn members(&mut self, mut name: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        let outer = self.path.len();
        if matches!(self.peek()?, b'}' | b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            name(self)?;
            self.value()?;
            self.path.truncate(outer);
            let separator = self.peek()?;
            self.at += 1;
            match separator {
                b',' => {
                    self.peek()?;
                }
                b'}' | b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Steps over a string and gives its value.
    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_slice(self.bytes.get(start..self.at)?).ok()
    }
}
