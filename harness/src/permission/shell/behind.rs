//! What a command runs besides itself: the program behind `sudo`, `xargs`, `sh -c`, `find -exec` and their like.
//!
//! Used by deny and ask rules alone, which are to be stricter than a reader who takes each command at its word. It
//! over-approximates: where the options of a wrapper cannot be told from its command, each possibility counts.

use super::{Redirect, Scan, SimpleCommand, Word, join, parse, scan};

/// Wrappers, and how many words of their own stand before the command.
const WRAPPERS: &[(&str, usize)] = &[
    ("sudo", 0),
    ("doas", 0),
    ("env", 0),
    ("nohup", 0),
    ("nice", 0),
    ("ionice", 0),
    ("time", 0),
    ("command", 0),
    ("builtin", 0),
    ("exec", 0),
    ("setsid", 0),
    ("stdbuf", 0),
    ("xargs", 0),
    ("busybox", 0),
    ("toybox", 0),
    ("unshare", 0),
    ("strace", 0),
    ("ltrace", 0),
    ("parallel", 0),
    ("watch", 0),
    ("caffeinate", 0),
    ("setpriv", 0),
    ("prlimit", 0),
    ("choom", 0),
    ("runuser", 0),
    ("pkexec", 0),
    ("run0", 0),
    ("systemd-run", 0),
    ("nsenter", 0),
    ("bwrap", 0),
    ("firejail", 0),
    ("unbuffer", 0),
    ("ssh-agent", 0),
    ("dbus-run-session", 0),
    ("xvfb-run", 0),
    ("linux32", 0),
    ("linux64", 0),
    ("i386", 0),
    ("x86_64", 0),
    ("faketime", 1),
    ("timeout", 1),
    ("gtimeout", 1),
    ("chroot", 1),
    ("taskset", 1),
    ("chrt", 1),
    ("flock", 1),
    ("setarch", 1),
];

/// Programs that read a script as text.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "su", "script", "rbash"];

/// Commands of a shell whose arguments are code.
const EVALUATORS: &[&str] = &["eval", "trap", "watch", "parallel", "env"];

/// Beyond these bounds the line counts as opaque.
const MAX_DEPTH: usize = 8;
const MAX_COMMANDS: usize = 512;

/// Everything a line may run.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// The words of each command, once with and once without a wrapper or folder.
    pub(crate) commands: Vec<Vec<Word>>,
    /// The files that its commands are redirected from and into.
    pub(crate) redirects: Vec<Redirect>,
    /// Something runs that cannot be seen here: an unclear line, a name that is only known at run time, a shell that
    /// reads its script from elsewhere.
    pub(crate) opaque: bool,
}

/// Follows every command of a scan through its wrappers.
pub(crate) fn reach(scanned: &Scan) -> Reach {
    let mut reach = Reach::default();
    reach.scan(scanned, 0);
    reach
}

/// The possible commands behind a wrapper with so many words of its own.
pub(super) fn suffixes(words: &[Word], own: usize) -> Vec<&[Word]> {
    let mut found = Vec::new();
    let mut own = own;
    let mut after_option = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        let is_option = word.text.starts_with('-') && word.text.len() > 1;
        if is_option {
            after_option = word.text != "--";
            continue;
        }
        // `env -` has an option that is one dash.
        if word.text == "-" || parse::is_assignment(&word.raw) {
            continue;
        }
        found.extend(words.get(at..));
        // Right after an option it may be that option's value.
        if after_option {
            after_option = false;
            continue;
        }
        if own == 0 {
            break;
        }
        own -= 1;
    }
    found
}

/// What a program's name may become where a part of it is computed or a pattern: its last part with `*` for what is not
/// known. `None` when nothing of it is known.
pub(crate) fn possible_name(word: &Word) -> Option<String> {
    if !word.dynamic && !word.glob {
        return None;
    }
    let mut name = String::new();
    let mut chars = word.text.chars().peekable();
    while let Some(c) = chars.next() {
        let closing = match c {
            '*' | '?' => None,
            '[' => Some(']'),
            '`' => Some('`'),
            '$' => match chars.next() {
                Some('{') => Some('}'),
                Some('(') => Some(')'),
                Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                    while chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                    None
                }
                _ => None,
            },
            _ => {
                name.push(c);
                continue;
            }
        };
        if let Some(closing) = closing {
            let _ = chars.by_ref().find(|c| *c == closing);
        }
        name.push('*');
    }
    let name = base_name(&name);
    name.contains(|c| c != '*').then(|| name.to_owned())
}

fn base_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

impl Reach {
    fn scan(&mut self, scanned: &Scan, depth: usize) {
        self.opaque |= scanned.flags.unclear || depth > MAX_DEPTH;
        if depth > MAX_DEPTH {
            return;
        }
        for SimpleCommand { words, redirects, .. } in &scanned.commands {
            self.redirects.extend(redirects.iter().cloned());
            self.words(words, depth);
        }
    }

    fn words(&mut self, words: &[Word], depth: usize) {
        let Some((name, arguments)) = words.split_first() else { return };
        if depth > MAX_DEPTH || self.commands.len() > MAX_COMMANDS {
            self.opaque = true;
            return;
        }
        self.commands.push(words.to_vec());
        if name.dynamic || name.glob || name.text == "." || name.text == "source" {
            self.opaque = true;
            // It may become nothing, or one of several names.
            self.words(arguments, depth + 1);
        }
        let base = base_name(&name.text);
        if base != name.text {
            let mut plain = words.to_vec();
            if let Some(first) = plain.first_mut() {
                *first = Word { text: base.to_owned(), raw: base.to_owned(), ..Word::default() };
            }
            self.commands.push(plain);
        }
        if let Some((_, own)) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == base) {
            for inner in suffixes(words, *own) {
                self.words(inner, depth + 1);
            }
        }
        if SHELLS.contains(&base) {
            self.shell(arguments, depth);
        }
        if EVALUATORS.contains(&base) {
            self.code(&join(arguments.iter().map(|w| w.text.as_str())), depth);
            for word in arguments.iter().filter(|w| w.text.contains(char::is_whitespace)) {
                let text = word.text.strip_prefix("-S").or_else(|| word.text.strip_prefix("--split-string="));
                self.code(text.unwrap_or(&word.text), depth);
            }
        }
        if base == "find" || base == "fd" {
            for (at, word) in arguments.iter().enumerate() {
                if matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X") {
                    self.words(arguments.get(at + 1..).unwrap_or_default(), depth + 1);
                }
            }
        }
    }

    fn shell(&mut self, arguments: &[Word], depth: usize) {
        let option = arguments.iter().position(|w| {
            w.text == "--command" || (w.text.starts_with('-') && !w.text.starts_with("--") && w.text.contains('c'))
        });
        match option {
            // Every later word may be the script, for options with values can stand between.
            Some(at) => {
                for word in arguments.iter().skip(at + 1) {
                    self.code(&word.text, depth);
                }
            }
            // The script comes from a pipe or a file.
            None => self.opaque = true,
        }
    }

    fn code(&mut self, text: &str, depth: usize) {
        if self.commands.len() > MAX_COMMANDS {
            self.opaque = true;
            return;
        }
        let inner = scan(text);
        self.scan(&inner, depth + 1);
    }
}
