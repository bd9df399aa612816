//! Text within a width: wrapping and columns.

use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;

use super::{DIM, Look};

/// The columns that a text occupies on a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks a text between words so that no line is wider than `width`. A wider word is broken after a `.`, `/`, `,` or
/// `_`, or else anywhere.
#[must_use]
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    fill(text, width, |word| break_word(word, width.max(1)))
}

/// Breaks a text between words only: a word that is wider than `width` has a line of its own, so that it can be copied.
pub(super) fn wrap_whole(text: &str, width: usize) -> Vec<String> {
    fill(text, width, |word| vec![word])
}

/// Fills lines with words. `parts` breaks a word; a line ends between two parts.
fn fill<'t>(text: &'t str, width: usize, parts: impl Fn(&'t str) -> Vec<&'t str>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(text).map(str::trim).filter(|word| !word.is_empty()) {
        let mut parts = parts(word).into_iter();
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

/// A text's words, each with the spaces behind it. A quotation in backticks is one word, unless it is long.
fn words(text: &str) -> impl Iterator<Item = &str> {
    const MAX_QUOTATION: usize = 48;
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = rest.find(' ').unwrap_or(rest.len());
        let open = rest[..end].find('`').filter(|at| !rest[at + 1..end].contains('`'));
        if let Some(length) = open.and_then(|at| rest[at + 1..].find('`').map(|close| at + close + 2))
            && length <= MAX_QUOTATION
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

/// Rows of a name and its details, indented: side by side where there is room, else the details below the name.
#[must_use]
pub(crate) fn rows(rows: &[(String, String)], indent: usize, look: Look) -> String {
    const GAP: usize = 4;
    let name_width = first_column(rows, look.width.saturating_sub(indent + GAP));
    let second = indent + name_width + GAP;
    let room = look.width.saturating_sub(second);
    // Beside short names there is room enough for details of several lines.
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

/// The width of the column of names. Names that are so long that most details would not fit beside them do not count.
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
        // If no row fits side by side, the longest name decides.
        Some((1.., width)) => width,
        _ => widths.keys().next_back().map_or(0, |&(name, _)| name),
    }
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
        assert_eq!(wrap_whole("a model.layers.0.weight b", 10), ["a", "model.layers.0.weight", "b"]);
        let quoted = ["see", "`a b c`,", "d"];
        assert_eq!(wrap("see `a b c`, d", 8), quoted, "a quotation stays whole");
        assert_eq!(words(" a  `b c").collect::<Vec<_>>(), [" ", "a  ", "`b ", "c"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(columns("重み"), 4);
    }

    #[test]
    fn details_are_beside_names_where_they_fit_and_below_them_where_not() {
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
            "one long row takes two lines"
        );
        let long = [("a".to_owned(), "four words are here, and more".to_owned())];
        let less = Look { width: 30, ..Look::PLAIN };
        assert_eq!(rows(&long, 2, less), "  a    four words are here,\n       and more\n");
        let narrow = Look { width: 12, ..Look::PLAIN };
        assert_eq!(rows(&table, 2, narrow), "  a.weight\n    1 tensor\n  b\n    2\n    tensors\n");
    }
}
