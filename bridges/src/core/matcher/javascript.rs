//! Translates a JavaScript pattern (without flags) into one that the `fancy-regex` crate reads the same way.
//!
//! What JavaScript refuses is refused here: inline flags such as `(?i)`, a quantifier with nothing before it, open
//! brackets. What only JavaScript takes (`[^]`, a lone `{` or `]`, identity escapes) is rewritten. Classes are ASCII.

/// The translated pattern.
///
/// # Errors
/// Why JavaScript refuses it.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut reader = Reader { rest: pattern.chars().collect(), at: 0, out: String::new() };
    let mut depth = 0_usize;
    // Whether the last piece can carry a quantifier.
    let mut atom = false;
    while let Some(c) = reader.next() {
        match c {
            '(' => {
                reader.open_group()?;
                depth += 1;
                atom = false;
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or("a `)` without its `(`")?;
                reader.out.push(')');
                atom = true;
            }
            '|' => {
                reader.out.push('|');
                atom = false;
            }
            '[' => {
                reader.class()?;
                atom = true;
            }
            '\\' => {
                reader.escape(Place::Outside)?;
                atom = true;
            }
            '^' | '$' => {
                reader.out.push(c);
                atom = false;
            }
            '*' | '+' | '?' => {
                if !atom {
                    return Err(format!("nothing before `{c}` to repeat"));
                }
                reader.out.push(c);
                reader.lazy();
                atom = false;
            }
            '{' => match reader.counted() {
                Some(count) => {
                    if !atom {
                        return Err("nothing before `{` to repeat".to_owned());
                    }
                    reader.out.push_str(&count);
                    reader.lazy();
                    atom = false;
                }
                None => {
                    reader.out.push_str("\\{");
                    atom = true;
                }
            },
            '}' | ']' => {
                reader.out.push('\\');
                reader.out.push(c);
                atom = true;
            }
            other => {
                reader.out.push(other);
                atom = true;
            }
        }
    }
    if depth > 0 {
        return Err("a `(` without its `)`".to_owned());
    }
    Ok(reader.out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InClass,
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    out: String,
}

impl Reader {
    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn open_group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if self.peek(0) != Some('?') {
            return Ok(());
        }
        let kept: usize = match (self.peek(1), self.peek(2)) {
            (Some(':' | '=' | '!'), _) => 2,
            (Some('<'), Some('=' | '!')) => 3,
            (Some('<'), Some(c)) if c.is_alphabetic() || c == '_' || c == '$' => 2,
            (Some('i' | 'm' | 's' | '-'), _) => {
                let mut n = 1;
                while matches!(self.peek(n), Some('i' | 'm' | 's' | '-')) {
                    n += 1;
                }
                if self.peek(n) != Some(':') {
                    return Err("an inline flag such as `(?i)`".to_owned());
                }
                n + 1
            }
            _ => return Err("an unknown kind of group".to_owned()),
        };
        for _ in 0..kept {
            if let Some(c) = self.next() {
                self.out.push(c);
            }
        }
        Ok(())
    }

    fn lazy(&mut self) {
        if self.peek(0) == Some('?') {
            self.at += 1;
            self.out.push('?');
        }
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; anything else is a plain brace.
    fn counted(&mut self) -> Option<String> {
        let mut text = String::from("{");
        let mut n = 0;
        let mut commas = 0;
        loop {
            match self.peek(n)? {
                c @ '0'..='9' => text.push(c),
                ',' if commas == 0 && text.len() > 1 => {
                    commas = 1;
                    text.push(',');
                }
                '}' if text.len() > 1 => {
                    text.push('}');
                    self.at += n + 1;
                    return Some(text);
                }
                _ => return None,
            }
            n += 1;
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let negated = self.peek(0) == Some('^');
        if negated {
            self.at += 1;
        }
        if self.peek(0) == Some(']') {
            self.at += 1;
            self.out.push_str(if negated { "[\\s\\S]" } else { "[^\\s\\S]" });
            return Ok(());
        }
        self.out.push_str(if negated { "[^" } else { "[" });
        loop {
            match self.next().ok_or("a `[` without its `]`")? {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => self.escape(Place::InClass)?,
                c @ ('[' | '&' | '~') => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                c => self.out.push(c),
            }
        }
    }

    fn escape(&mut self, place: Place) -> Result<(), String> {
        let c = self.next().ok_or("a `\\` at the end")?;
        let in_class = place == Place::InClass;
        match c {
            'd' => self.out.push_str(if in_class { "0-9" } else { "[0-9]" }),
            'w' => self.out.push_str(if in_class { "A-Za-z0-9_" } else { "[A-Za-z0-9_]" }),
            'D' => self.out.push_str("[^0-9]"),
            'W' => self.out.push_str("[^A-Za-z0-9_]"),
            's' | 'S' | 't' | 'n' | 'r' | 'f' | 'v' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'b' if in_class => self.out.push_str("\\x08"),
            'b' | 'B' => {
                self.out.push('\\');
                self.out.push(c);
            }
            '0' => self.out.push_str("\\x00"),
            '1'..='9' if !in_class => {
                self.out.push('\\');
                self.out.push(c);
            }
            'k' if !in_class && self.peek(0) == Some('<') => self.out.push_str("\\k"),
            'c' => match self.peek(0) {
                Some(letter) if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    self.out.push_str(&format!("\\x{:02X}", (letter as u32) % 32));
                }
                _ => self.out.push_str("\\\\c"),
            },
            'x' => self.hex(2, 'x'),
            'u' => self.hex(4, 'u'),
            other if other.is_ascii_alphanumeric() => self.out.push(other),
            other if other.is_ascii() => {
                self.out.push('\\');
                self.out.push(other);
            }
            other => self.out.push(other),
        }
        Ok(())
    }

    fn hex(&mut self, digits: usize, letter: char) {
        let text: Option<String> = (0..digits).map(|n| self.peek(n).filter(char::is_ascii_hexdigit)).collect();
        match text {
            Some(text) => {
                self.at += digits;
                self.out.push_str(&format!("\\x{{{text}}}"));
            }
            None => self.out.push(letter),
        }
    }
}
