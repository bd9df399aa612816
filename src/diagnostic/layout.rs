//! Text within a width: wrapping, columns, sizes.

use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;

use super::{DIM, Look};

/// The columns that a text takes on a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks a text between words so that no line is wider than `width`. A word that is wider is broken behind a `.`, `/`,
/// `,` or `_`, or where it must.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text).map(str::trim).filter(|word| !word.is_empty()) {
        let mut parts = break_word(word, width.max(1)).into_iter();
        match (lines.last_mut(), parts.next()) {
            (Some(line), Some(part)) if columns(line) + 1 + columns(part) <= width => {
                line.push(' ');
                line.push_str(part);
            }
            (_, part) => lines.extend(part.map(str::to_owned)),
        }
        lines.extend(parts.map(str::to_owned));
    }
    lines
}

/// A text's words, each with the spaces behind it. What stands in backticks is one word, unless it is long.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    const LONGEST: usize = 48;
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = rest.find(' ').unwrap_or(rest.len());
        let open = rest[..end].find('`').filter(|at| !rest[at + 1..end].contains('`'));
        if let Some(length) = open.and_then(|at| rest[at + 1..].find('`').map(|close| at + close + 2))
            && length <= LONGEST
        {
            end = rest[length..].find(' ').map_or(rest.len(), |after| length + after);
        }
        end += rest[end..].len() - rest[end..].trim_start_matches(' ').len();
        let (word, left) = rest.split_at(end);
        rest = left;
        (!word.is_empty()).then_some(word)
    })
}

fn break_word(mut word: &str, width: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    while columns(word) > width {
        let (mut end, mut soft) = (0, 0);
        for (at, character) in word.char_indices() {
            let next = at + character.len_utf8();
            if end > 0 && columns(&word[..next]) > width {
                break;
            }
            end = next;
            if matches!(character, '.' | '/' | ',' | '_') {
                soft = next;
            }
        }
        let (part, rest) = word.split_at(if soft > 0 { soft } else { end });
        parts.push(part);
        word = rest;
    }
    if !word.is_empty() {
        parts.push(word);
    }
    parts
}

/// Rows of a name and what is to be said of it, indented: in two columns where there is room, else one under the other.
#[must_use]
pub fn rows(rows: &[(String, String)], indent: usize, look: Look) -> String {
    const GAP: usize = 4;
    let name_width = first_column(rows, look.width.saturating_sub(indent + GAP));
    let second = indent + name_width + GAP;
    let room = look.width.saturating_sub(second);
    // Short names leave room enough for details of several lines.
    let wrapped = second <= look.width / 2;
    let side_by_side =
        |name: &str, detail: &str| columns(name) <= name_width && (columns(detail) <= room || wrapped);
    let mut out = String::new();
    let mut line = |indent: usize, text: &str| {
        out.extend(std::iter::repeat_n(' ', indent));
        out.push_str(text);
        out.push('\n');
    };
    for (name, detail) in rows {
        if side_by_side(name, detail) && !detail.is_empty() {
            let gap = name_width - columns(name) + GAP;
            let parts = if columns(detail) <= room { vec![detail.clone()] } else { wrap(detail, room) };
            for (at, part) in parts.iter().enumerate() {
                let part = look.paint(DIM, part);
                if at == 0 { line(indent, &format!("{name}{:gap$}{part}", "")) } else { line(second, &part) }
            }
        } else {
            for (at, part) in wrap(name, look.width.saturating_sub(indent + 2)).iter().enumerate() {
                line(indent + if at > 0 { 2 } else { 0 }, part);
            }
            for part in wrap(detail, look.width.saturating_sub(indent + 2)) {
                line(indent + 2, &look.paint(DIM, &part));
            }
        }
    }
    out
}

/// How wide names are, without those that are so long that most rows would be broken for their sake.
fn first_column(rows: &[(String, String)], room: usize) -> usize {
    let mut widths: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (name, detail) in rows {
        *widths.entry((columns(name), columns(detail))).or_default() += 1;
    }
    let fit = |width: usize| -> usize {
        let fits = |&(name, detail): &(usize, usize)| name <= width && width + detail <= room;
        widths.iter().filter(|(row, _)| fits(row)).map(|(_, count)| count).sum()
    };
    let best = widths.keys().map(|&(name, _)| (fit(name), name)).max();
    match best {
        // Where nothing fits beside anything, the longest name decides.
        Some((1.., width)) => width,
        _ => widths.keys().next_back().map_or(0, |&(name, _)| name),
    }
}

/// A size in decimal units, three digits or so: `184 kB`, `2.26 GB`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(count: u64) -> String {
    let (mut unit, mut size) = ("B", count as f64);
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if size < 999.5 {
            break;
        }
        (unit, size) = (larger, size / 1000.0);
    }
    match unit {
        "B" => format!("{count} B"),
        _ if size < 9.995 => format!("{} {unit}", trimmed(&format!("{size:.2}"))),
        _ if size < 99.95 => format!("{} {unit}", trimmed(&format!("{size:.1}"))),
        _ => format!("{size:.0} {unit}"),
    }
}

fn trimmed(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words_and_long_words_at_their_dots() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("a model.layers.0.weight b", 10), ["a model.", "layers.0.", "weight b"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("重みの名前", 4), ["重み", "の名", "前"]);
        assert!(wrap("", 10).is_empty());
        let quoted = ["see", "`a b c`,", "d"];
        assert_eq!(wrap("see `a b c`, d", 8), quoted, "what is in backticks stays whole");
        assert_eq!(words(" a  `b c").collect::<Vec<_>>(), [" ", "a  ", "`b ", "c"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(columns("重み"), 4);
    }

    #[test]
    fn rows_stand_in_columns_where_they_fit_and_below_each_other_where_not() {
        let table =
            [("a.weight".to_owned(), "1 tensor".to_owned()), ("b".to_owned(), "2 tensors".to_owned())];
        assert_eq!(rows(&table, 2, Look::PLAIN), "  a.weight    1 tensor\n  b           2 tensors\n");
        let one = [
            ("a.weight".to_owned(), "1 tensor".to_owned()),
            ("a.very.long.name.of.a.weight".to_owned(), "2 tensors".to_owned()),
            ("b".to_owned(), "3 tensors".to_owned()),
        ];
        let less = Look { width: 32, ..Look::PLAIN };
        assert_eq!(
            rows(&one, 2, less),
            "  a.weight    1 tensor\n  a.very.long.name.of.a.weight\n    2 tensors\n  b           3 tensors\n",
            "one long row stands alone on two lines"
        );
        let long = [("a".to_owned(), "four words stand here, and more".to_owned())];
        let less = Look { width: 30, ..Look::PLAIN };
        assert_eq!(rows(&long, 2, less), "  a    four words stand here,\n       and more\n");
        let narrow = Look { width: 12, ..Look::PLAIN };
        assert_eq!(rows(&table, 2, narrow), "  a.weight\n    1 tensor\n  b\n    2\n    tensors\n");
    }

    #[test]
    fn sizes_have_three_digits_or_so() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (183_600, "184 kB"),
            (999_499, "999 kB"),
            (999_500, "1 MB"),
            (23_800_000, "23.8 MB"),
            (2_262_000_000, "2.26 GB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
