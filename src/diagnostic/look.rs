//! [`Look`]: what the place that text goes to can show.

use unicode_width::UnicodeWidthStr;

/// What the place that text goes to can show. Text made for no terminal is plain, so that it can be compared and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether escape sequences colour the text.
    pub colour: bool,
    /// Whether anything beyond ASCII may be used.
    pub unicode: bool,
}

impl Look {
    /// Files, pipes and tests: 100 columns, no colour, Unicode.
    pub const PLAIN: Self = Self { width: 100, colour: false, unicode: true };

    /// `text`, in the colour that an SGR parameter names (`"1"` bold, `"2"` dim, `"33"` yellow, …).
    #[must_use]
    pub fn paint(self, sgr: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// `fancy` where Unicode can be shown, else `ascii`.
    #[must_use]
    pub fn either<'t>(self, fancy: &'t str, ascii: &'t str) -> &'t str {
        if self.unicode { fancy } else { ascii }
    }
}

/// The columns that a text takes on a terminal.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// Breaks a text between words so that no line is wider than `width`; a word that is wider stands alone.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words_and_long_words_stand_alone() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("a model.layers.0.weight b", 10), ["a", "model.layers.0.weight", "b"]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(columns("重み"), 4);
    }

    #[test]
    fn plain_text_has_no_escapes() {
        assert_eq!(Look::PLAIN.paint("1", "x"), "x");
        assert_eq!(Look { colour: true, ..Look::PLAIN }.paint("1", "x"), "\x1b[1mx\x1b[0m");
    }
}
