//! Reading one word: quotes, expansions, and the substitutions inside them.
//!
//! A word's text is what remains after quote removal; where the shell would put something else, the word is dynamic.

use super::Word;
use super::decode::ansi_c;
use super::parse::{Close, MAX_NESTING, Reader};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Bare,
    Double,
}

impl Reader {
    pub(super) fn word(&mut self) -> Word {
        let start = self.at;
        let mut word = Word::default();
        let mut braces = false;
        let mut bang = false;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        None => self.unclear(),
                        Some('\n') => {}
                        Some(next) => word.text.push(next),
                    }
                    self.at += 1;
                }
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '$' => self.dollar(&mut word, Quoting::Bare),
                '`' => self.backtick(&mut word, Quoting::Bare),
                _ => {
                    match c {
                        '*' | '?' | '[' => word.glob = true,
                        '{' | '}' => braces = true,
                        '!' => bang = true,
                        '~' | '=' if self.at == start => word.dynamic = true,
                        _ => {}
                    }
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        self.at = self.at.min(self.chars.len());
        word.raw = self.since(start);
        let plain_brace = matches!(word.raw.as_str(), "{" | "}" | "{}");
        word.dynamic |= (braces && !plain_brace) || (bang && word.raw != "!");
        if word.raw == "[" {
            word.glob = false;
        }
        word
    }

    fn single_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        let start = self.at;
        while self.peek().is_some_and(|c| c != '\'') {
            self.at += 1;
        }
        word.text.push_str(&self.since(start));
        if !self.eat('\'') {
            self.unclear();
        }
    }

    fn double_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        loop {
            match self.peek() {
                None => return self.unclear(),
                Some('"') => {
                    self.at += 1;
                    return;
                }
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        None => {}
                        Some('\n') => self.at += 1,
                        Some(next) => {
                            if !matches!(next, '$' | '`' | '"' | '\\') {
                                word.text.push('\\');
                            }
                            word.text.push(next);
                            self.at += 1;
                        }
                    }
                }
                Some('$') => self.dollar(word, Quoting::Double),
                Some('`') => self.backtick(word, Quoting::Double),
                Some(c) => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn dollar(&mut self, word: &mut Word, quoting: Quoting) {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.inner_list();
            }
            Some('{') => {
                self.at += 1;
                self.parameter(word, quoting);
            }
            Some('\'') if quoting == Quoting::Bare => {
                self.ansi_c_quoted(word);
                return;
            }
            Some('"') if quoting == Quoting::Bare => {
                word.dynamic = true;
                self.double_quoted(word);
                return;
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
            }
            None | Some(' ' | '\t' | '\n' | '"' | ';' | '&' | '|' | ')' | '/') => {
                word.text.push('$');
                return;
            }
            Some(_) => self.at += 1,
        }
        word.dynamic = true;
        word.text.push_str(&self.since(start));
    }

    /// The rest of a `${…}`; its own quoting rules are not followed, so quotes make it unclear.
    fn parameter(&mut self, word: &mut Word, quoting: Quoting) {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            self.unclear();
            self.at = self.chars.len();
        }
        self.parameter_body(word, quoting);
        self.depth -= 1;
    }

    fn parameter_body(&mut self, word: &mut Word, quoting: Quoting) {
        loop {
            match self.peek() {
                None => return self.unclear(),
                Some('}') => {
                    self.at += 1;
                    return;
                }
                Some('\\') => self.at += 2,
                Some('$') => self.dollar(&mut Word::default(), quoting),
                Some('`') => self.backtick(&mut Word::default(), quoting),
                Some(c) => {
                    if matches!(c, '\'' | '"' | '{') {
                        self.unclear();
                    }
                    self.at += 1;
                }
            }
            if self.at > self.chars.len() {
                self.at = self.chars.len();
                word.dynamic = true;
                return self.unclear();
            }
        }
    }

    fn ansi_c_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        let start = self.at;
        while let Some(c) = self.peek() {
            if c == '\'' {
                break;
            }
            self.at += if c == '\\' { 2 } else { 1 };
        }
        self.at = self.at.min(self.chars.len());
        word.text.push_str(&ansi_c(self.chars.get(start..self.at).unwrap_or_default()));
        word.dynamic = true;
        if !self.eat('\'') {
            self.unclear();
        }
    }

    fn backtick(&mut self, word: &mut Word, quoting: Quoting) {
        let start = self.at;
        self.at += 1;
        let mut inner = String::new();
        loop {
            match self.peek() {
                None => {
                    self.unclear();
                    break;
                }
                Some('`') => {
                    self.at += 1;
                    break;
                }
                Some('\\') => {
                    let next = self.peek_at(1);
                    let unescapes =
                        matches!(next, Some('`' | '\\' | '$')) || (next == Some('"') && quoting == Quoting::Double);
                    if !unescapes {
                        inner.push('\\');
                    }
                    inner.extend(next);
                    self.at = (self.at + 2).min(self.chars.len());
                }
                Some(c) => {
                    inner.push(c);
                    self.at += 1;
                }
            }
        }
        self.out.flags.substitution = true;
        let mut reader = Reader::new(&inner, self.depth, self.nested + 1);
        reader.list(Close::AtEnd);
        self.out.commands.append(&mut reader.out.commands);
        let (ours, theirs) = (&mut self.out.flags, reader.out.flags);
        ours.substitution |= theirs.substitution;
        ours.control_flow |= theirs.control_flow;
        ours.redirection |= theirs.redirection;
        ours.unclear |= theirs.unclear;
        word.dynamic = true;
        word.text.push_str(&self.since(start));
    }
}
