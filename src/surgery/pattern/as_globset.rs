//! A pattern in globset's dialect, to check the matcher in tests. It avoids globset's special cases: no `**`, every
//! literal character escaped, classes in a canonical order.

use std::fmt::Write;

use globset::{Error, Glob, GlobBuilder};

use super::part::Part;

pub(super) fn compile(parts: &[Part]) -> Result<Glob, Error> {
    let mut text = String::new();
    write_parts(parts, &mut text);
    GlobBuilder::new(&text).literal_separator(false).backslash_escape(true).build()
}

fn write_parts(parts: &[Part], out: &mut String) {
    let mut after_star = false;
    for part in parts {
        match part {
            // Two are equivalent to one here, and `**` is special in globset.
            Part::Star if after_star => {}
            Part::Star => out.push('*'),
            Part::One => out.push('?'),
            Part::Text(text) => text.chars().for_each(|sign| write_literal(sign, out)),
            Part::Class { negated, ranges } => write_class(*negated, ranges, out),
            Part::Numbers(numbers) => {
                for (at, number) in numbers.clone().enumerate() {
                    out.push(if at == 0 { '{' } else { ',' });
                    out.push_str(&number.to_string());
                }
                out.push('}');
            }
            Part::Either(alternatives) => {
                for (at, alternative) in alternatives.iter().enumerate() {
                    out.push(if at == 0 { '{' } else { ',' });
                    write_parts(alternative, out);
                }
                out.push('}');
            }
        }
        after_star = matches!(part, Part::Star);
    }
}

fn write_literal(sign: char, out: &mut String) {
    if !sign.is_alphanumeric() && !matches!(sign, '.' | '_' | '-') {
        out.push('\\');
    }
    out.push(sign);
}

/// globset's classes have no escapes: `]` must be first, `-` last, `!` and `^` not first, `[` not before `:`.
fn write_class(negated: bool, ranges: &[(char, char)], out: &mut String) {
    let (mut close, mut dash, mut other, mut marks) = (false, false, String::new(), String::new());
    for &(low, high) in ranges {
        for (low, high) in split(low, high) {
            match (low, high) {
                (']', ']') => close = true,
                ('-', '-') => dash = true,
                ('!' | '^' | '[', _) if low == high => marks.push(low),
                _ if low == high => other.push(low),
                _ => {
                    // Writing to a String cannot fail.
                    let _ = write!(other, "{low}-{high}");
                }
            }
        }
    }
    // `[^]` and `[!]` would be negations; alone, such characters need no class.
    if !negated && !close && !dash && other.is_empty() {
        let mut signs: Vec<char> = marks.chars().collect();
        signs.sort_unstable();
        signs.dedup();
        for (at, sign) in signs.iter().enumerate() {
            out.push_str(if at == 0 { "{\\" } else { ",\\" });
            out.push(*sign);
        }
        out.push('}');
        return;
    }
    out.push('[');
    if negated {
        out.push('!');
    }
    if close {
        out.push(']');
    }
    out.push_str(&other);
    // A mark may not be first, but the dash may; it is literal there.
    let dash_first = dash && !close && other.is_empty() && !negated;
    if dash_first {
        out.push('-');
    }
    out.push_str(&marks);
    if dash && !dash_first {
        out.push('-');
    }
    out.push(']');
}

/// A range without the characters that are special in a class, and those characters on their own.
fn split(low: char, high: char) -> Vec<(char, char)> {
    let mut pieces = Vec::new();
    let mut from = u32::from(low);
    let last = u32::from(high);
    for special in ['!', '-', '[', ']', '^'].map(u32::from) {
        if from <= special && special <= last {
            if from < special {
                pieces.push((from, special - 1));
            }
            pieces.push((special, special));
            from = special + 1;
        }
    }
    if from <= last {
        pieces.push((from, last));
    }
    let piece = |(from, to): (u32, u32)| Some((char::from_u32(from)?, char::from_u32(to)?));
    pieces.into_iter().filter_map(piece).collect()
}
