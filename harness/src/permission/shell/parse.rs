//! The reader behind [`scan`]: one pass over the characters, recursive only into substitutions and groups. Commands and
//! redirections are read here, words in `words`.
//!
//! It errs on the side of *unclear*: a construct that would need more of the shell's grammar to be split correctly sets
//! that flag, and the scan goes on so that a deny rule still sees the commands that can be seen.

use super::{Flags, Flow, Redirect, Scan, SimpleCommand, Word};

/// Groups and substitutions nested deeper than this are unclear.
pub(super) const MAX_NESTING: usize = 40;

/// A longer line is not split: it is unclear as a whole.
const MAX_BYTES: usize = 128 * 1024;

/// Splits a shell line into its simple commands. Total: whatever the text, there is an answer.
#[must_use]
pub fn scan(line: &str) -> Scan {
    if line.len() > MAX_BYTES {
        return Scan { flags: Flags { unclear: true, ..Flags::default() }, ..Scan::default() };
    }
    let mut reader = Reader::new(line, 0, 0);
    if line.chars().any(deceptive) {
        reader.out.flags.unclear = true;
    }
    reader.list(Close::AtEnd);
    reader.out
}

/// Characters that shells, terminals and readers take differently.
fn deceptive(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || (!c.is_ascii() && c.is_whitespace())
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    AtEnd,
    AtParenthesis,
}

/// The command being read.
#[derive(Default)]
struct Pending {
    command: SimpleCommand,
    /// A group has just ended: only a separator or a redirection may follow.
    closed: bool,
    /// The head of a loop or `case`: words that are no command.
    head: bool,
    /// It follows `&&`, `||` or `|`, which want a command after them.
    wanted: bool,
    /// How many words there were at an `&>`, which plain POSIX shells read as `&` and `>`.
    split: Option<usize>,
}

impl Pending {
    fn is_fresh(&self) -> bool {
        self.command == SimpleCommand::default() && !self.closed && !self.head
    }
}

pub(super) struct Reader {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) nested: usize,
    pub(super) out: Scan,
}

impl Reader {
    pub(super) fn new(text: &str, depth: usize, nested: usize) -> Self {
        Self { chars: text.chars().collect(), at: 0, depth, nested, out: Scan::default() }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    pub(super) fn since(&self, start: usize) -> String {
        self.chars.get(start..self.at).unwrap_or_default().iter().collect()
    }

    pub(super) fn unclear(&mut self) {
        self.out.flags.unclear = true;
    }

    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.peek_at(1) == Some('\n') => self.at += 2,
                _ => return,
            }
        }
    }

    /// Reads commands up to the end or the closing parenthesis, which it consumes.
    pub(super) fn list(&mut self, close: Close) {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            self.unclear();
            self.at = self.chars.len();
        }
        let mut pending = Pending::default();
        loop {
            self.blanks();
            let Some(c) = self.peek() else {
                if close == Close::AtParenthesis {
                    self.unclear();
                }
                break;
            };
            match c {
                '\n' => {
                    self.at += 1;
                    if !pending.wanted || !pending.is_fresh() {
                        self.flush(&mut pending);
                    }
                }
                ';' => {
                    self.at += 1;
                    self.end_by_operator(&mut pending);
                }
                '&' if self.peek_at(1) == Some('>') => {
                    pending.split = Some(pending.command.words.len());
                    self.redirection(&mut pending);
                }
                '&' => {
                    self.at += 1;
                    let joins = self.eat('&');
                    self.end_by_operator(&mut pending);
                    pending.wanted = joins;
                }
                '|' => {
                    self.at += 1;
                    let _ = self.eat('|') || self.eat('&');
                    self.end_by_operator(&mut pending);
                    pending.wanted = true;
                }
                '(' => {
                    if !pending.is_fresh() {
                        // A function, an array, an extended pattern.
                        self.unclear();
                        self.flush(&mut pending);
                    }
                    self.at += 1;
                    self.list(Close::AtParenthesis);
                    pending.closed = true;
                }
                ')' => {
                    self.at += 1;
                    self.flush(&mut pending);
                    if close == Close::AtParenthesis {
                        self.depth -= 1;
                        return;
                    }
                    self.unclear();
                }
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '<' | '>' if self.peek_at(1) == Some('(') => {
                    let word = self.process_substitution();
                    self.push(&mut pending, word);
                }
                '<' | '>' => self.redirection(&mut pending),
                _ => {
                    let word = self.word();
                    if is_descriptor(&word.raw) && matches!(self.peek(), Some('<' | '>')) {
                        continue; // The descriptor of the redirection that follows.
                    }
                    self.push(&mut pending, word);
                }
            }
        }
        self.flush(&mut pending);
        self.depth -= 1;
    }

    /// Ends a command at an operator, before which there must be one.
    fn end_by_operator(&mut self, pending: &mut Pending) {
        if pending.is_fresh() {
            self.unclear();
        }
        self.flush(pending);
    }

    fn flush(&mut self, pending: &mut Pending) {
        let mut done = std::mem::take(pending);
        if done.wanted && done.is_fresh() {
            self.unclear();
        }
        let nothing = done.command == SimpleCommand::default();
        if !nothing && !done.head {
            done.command.nested = self.nested > 0;
            let other = done.split.and_then(|at| done.command.words.get(at..)).unwrap_or_default();
            let words: Vec<Word> = other.iter().skip_while(|word| is_assignment(&word.raw)).cloned().collect();
            if !words.is_empty() {
                self.out.commands.push(SimpleCommand {
                    words,
                    nested: done.command.nested,
                    ..SimpleCommand::default()
                });
            }
            self.out.commands.push(done.command);
        }
    }

    fn push(&mut self, pending: &mut Pending, word: Word) {
        if pending.closed {
            self.unclear();
            self.flush(pending);
        }
        let command = &mut pending.command;
        if command.words.is_empty() && !pending.head {
            if command.assignments.is_empty() && self.reserved(&word, pending) {
                return;
            }
            if is_assignment(&word.raw) {
                pending.command.assignments.push(word);
                return;
            }
        }
        pending.command.words.push(word);
    }

    /// Whether the word belongs to the grammar and not to a command.
    fn reserved(&mut self, word: &Word, pending: &mut Pending) -> bool {
        match word.raw.as_str() {
            "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "coproc" => {
                self.out.flags.control_flow = true;
            }
            "{" => {}
            "}" => pending.closed = true,
            "fi" | "done" | "esac" => {
                self.out.flags.control_flow = true;
                pending.closed = true;
            }
            "for" | "select" => {
                self.out.flags.control_flow = true;
                pending.head = true;
            }
            "case" | "function" => {
                self.out.flags.control_flow = true;
                self.unclear();
                pending.head = true;
            }
            _ => return false,
        }
        true
    }

    fn redirection(&mut self, pending: &mut Pending) {
        let start = self.at;
        self.eat('&');
        let into = self.peek() == Some('>');
        self.at += 1;
        let both = self.since(start).starts_with('&');
        if into {
            let _ = self.eat('>') || self.eat('|') || (!both && self.eat('&'));
        } else if self.eat('<') {
            if !self.eat('<') {
                self.eat('-');
                self.unclear(); // A heredoc: its body would need the lines that follow.
            }
            self.out.flags.redirection = true;
        } else {
            let _ = self.eat('>') || self.eat('&');
        }
        let operator = self.since(start);
        self.blanks();
        let target = match self.peek() {
            None | Some('\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>') => {
                self.unclear();
                return;
            }
            Some(_) => self.word(),
        };
        let duplicates = operator.ends_with('&')
            && (target.raw == "-" || (!target.raw.is_empty() && target.raw.chars().all(|c| c.is_ascii_digit())));
        if duplicates || target.raw == "/dev/null" {
            return;
        }
        self.out.flags.redirection = true;
        let flow = match (operator.contains('<'), operator.contains('>')) {
            (true, true) => Flow::Both,
            (false, true) => Flow::Out,
            (_, false) => Flow::In,
        };
        pending.command.redirects.push(Redirect { flow, target });
    }

    fn process_substitution(&mut self) -> Word {
        let start = self.at;
        self.at += 2;
        self.inner_list();
        let raw = self.since(start);
        Word { text: raw.clone(), raw, dynamic: true, glob: false }
    }

    pub(super) fn inner_list(&mut self) {
        self.out.flags.substitution = true;
        self.nested += 1;
        self.list(Close::AtParenthesis);
        self.nested -= 1;
    }
}

/// Whether a word as written is `1` or `{name}`, and so belongs to a redirection right behind it.
fn is_descriptor(raw: &str) -> bool {
    let named = raw.strip_prefix('{').and_then(|r| r.strip_suffix('}'));
    match named {
        Some(name) => !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        None => !raw.is_empty() && raw.chars().all(|c| c.is_ascii_digit()),
    }
}

/// Whether a word as written is `NAME=…`, `NAME+=…` or `NAME[…]=…`.
pub(super) fn is_assignment(raw: &str) -> bool {
    let name_end = raw.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(raw.len());
    let (name, rest) = raw.split_at(name_end);
    let named = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    let rest = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        Some((_, after)) => after,
        None => rest,
    };
    named && (rest.starts_with('=') || rest.starts_with("+="))
}
