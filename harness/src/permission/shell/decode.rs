//! The escapes of `$'…'`, decoded so that a rule still sees the program behind them.

/// Decodes the body of a `$'…'` string; what is no escape stays as it is.
pub(super) fn ansi_c(body: &[char]) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((&c, tail)) = rest.split_first() {
        rest = tail;
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some((&escape, tail)) = rest.split_first() else {
            out.push('\\');
            break;
        };
        rest = tail;
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'v' => out.push('\u{b}'),
            'e' | 'E' => out.push('\u{1b}'),
            '\\' | '\'' | '"' | '?' => out.push(escape),
            'x' => rest = digits(rest, 16, 2, &mut out),
            'u' => rest = digits(rest, 16, 4, &mut out),
            'U' => rest = digits(rest, 16, 8, &mut out),
            '0'..='7' => {
                let mut whole = vec![escape];
                whole.extend(rest.iter().take(2).take_while(|c| c.is_digit(8)));
                rest = rest.get(whole.len() - 1..).unwrap_or_default();
                digits(&whole, 8, 3, &mut out);
            }
            other => out.extend(['\\', other]),
        }
    }
    out
}

fn digits<'a>(from: &'a [char], radix: u32, most: usize, out: &mut String) -> &'a [char] {
    let count = from.iter().take(most).take_while(|c| c.is_digit(radix)).count();
    let (number, rest) = from.split_at(count);
    let value = number.iter().fold(0_u32, |n, c| n.wrapping_mul(radix).wrapping_add(c.to_digit(radix).unwrap_or(0)));
    out.push(char::from_u32(value).unwrap_or('\u{fffd}'));
    rest
}
