//! Patterns over one line of text: `*` stands for any text, a final ` *` or `:*` also for nothing at all.

/// A pattern of literal text and wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    source: String,
    /// `None` is a wildcard.
    pieces: Vec<Option<char>>,
    /// The end may be missing: `git *` and `git:*` match `git` too.
    open_end: bool,
}

impl CommandPattern {
    /// Reads a specifier: `\*`, `\(`, `\)` and `\\` are literal characters, `:*` may stand at the end alone.
    ///
    /// # Errors
    /// A sentence when `:*` stands elsewhere.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (body, prefix) = match text.strip_suffix(":*") {
            Some(body) => (body, true),
            None => (text, false),
        };
        if body.contains(":*") {
            return Err("`:*` may stand at the end only; use ` *` for a wildcard elsewhere");
        }
        if prefix && body.trim().is_empty() {
            return Err("`:*` needs a command before it");
        }
        let mut pieces = Vec::new();
        let mut chars = body.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' => pieces.push(None),
                '\\' if matches!(chars.peek(), Some('*' | '(' | ')' | '\\')) => pieces.push(chars.next()),
                c => pieces.push(Some(c)),
            }
        }
        if prefix {
            pieces.extend([Some(' '), None]);
        }
        let open_end = pieces.len() > 2 && pieces.ends_with(&[Some(' '), None]);
        Ok(Self { source: text.to_owned(), pieces, open_end })
    }

    /// A pattern in which only `*` is special.
    pub(super) fn plain(text: &str) -> Self {
        let pieces = text.chars().map(|c| (c != '*').then_some(c)).collect();
        Self { source: text.to_owned(), pieces, open_end: false }
    }

    /// Text with everything escaped that a specifier would read otherwise.
    pub(super) fn escape(text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            if matches!(c, '*' | '\\' | '(' | ')') {
                out.push('\\');
            }
            out.push(c);
        }
        out
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the whole text fits.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let end = self.pieces.len().saturating_sub(2);
        fits(&self.pieces, &text) || (self.open_end && fits(self.pieces.get(..end).unwrap_or_default(), &text))
    }

    /// The literal first word, where there is one.
    fn program(&self) -> Option<String> {
        let end = self.pieces.iter().position(|p| p.is_none_or(char::is_whitespace)).unwrap_or(self.pieces.len());
        let ended = self.pieces.get(end).is_none_or(Option::is_some);
        let word: String = self.pieces.get(..end)?.iter().flatten().collect();
        (ended && !word.is_empty()).then_some(word)
    }

    /// Whether a command fits whose program's name is only known as a pattern in which `*` may be anything.
    #[must_use]
    pub fn may_match(&self, name: &str, arguments: &str) -> bool {
        self.program().is_some_and(|program| {
            let line = if arguments.is_empty() { program.clone() } else { format!("{program} {arguments}") };
            Self::plain(name).matches(&program) && self.matches(&line)
        })
    }

    /// Whether the pattern names a command and says nothing of its arguments: `rm *`, `rm:*`, `rm*`.
    #[must_use]
    pub fn names_only_a_command(&self) -> bool {
        let Some((None, head)) = self.pieces.split_last() else { return false };
        let head = head.strip_suffix(&[Some(' ')]).unwrap_or(head);
        !head.is_empty() && head.iter().all(|p| p.is_some_and(|c| !c.is_whitespace()))
    }

    /// Whether the first literal text of the pattern occurs in a line as whole words: what is left to look for when a
    /// line cannot be split into commands. A pattern without literal text always does.
    #[must_use]
    pub fn occurs_in(&self, line: &str) -> bool {
        let literal: String = self
            .pieces
            .split(Option::is_none)
            .map(|run| run.iter().flatten().collect::<String>())
            .find(|s| !s.trim().is_empty())
            .unwrap_or_default();
        let needle = squeeze(&literal);
        let needle = needle.trim();
        let whole_word = literal.ends_with(char::is_whitespace) || !self.pieces.contains(&None);
        let unquoted: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        [line, &unquoted].iter().any(|line| {
            let line = squeeze(line);
            line.match_indices(needle).any(|(at, found)| {
                let before = line.get(..at).and_then(|s| s.chars().next_back());
                let after = line.get(at + found.len()..).and_then(|s| s.chars().next());
                let part_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
                !(part_of_word(before) || whole_word && part_of_word(after))
            })
        })
    }
}

fn squeeze(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

/// Wildcard matching in linear space: on a mismatch the last wildcard takes one character more.
fn fits(pieces: &[Option<char>], text: &[char]) -> bool {
    let (mut piece, mut at) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        match pieces.get(piece) {
            Some(None) => {
                retry = Some((piece + 1, at));
                piece += 1;
            }
            Some(Some(c)) if text.get(at) == Some(c) => {
                piece += 1;
                at += 1;
            }
            _ => match &mut retry {
                Some((after, from)) => {
                    *from += 1;
                    (piece, at) = (*after, *from);
                }
                None => return false,
            },
        }
    }
    pieces.get(piece..).unwrap_or_default().iter().all(Option::is_none)
}
