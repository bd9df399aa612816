//! [`Look`]: what the output device can show.

use anstyle::Style;

/// What the output device can show. Text for no terminal is plain, so that it can be compared and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Width in columns.
    pub width: usize,
    /// Whether escape sequences colour the text.
    pub colour: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// Secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();

impl Look {
    /// Files, pipes and tests: 120 columns, no colour, Unicode.
    pub const PLAIN: Self = Self { width: 120, colour: false, unicode: true };

    /// `text` in a style, if there is colour.
    #[must_use]
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A text with its dashes and other typographic characters in ASCII where only ASCII can be shown.
    #[must_use]
    pub fn text(self, text: &str) -> String {
        if self.unicode {
            return text.to_owned();
        }
        let signs = [("–", "-"), ("—", "-"), ("…", "..."), ("×", "x"), ("→", "->"), ("·", "*")];
        signs.iter().fold(text.to_owned(), |text, (fancy, ascii)| text.replace(fancy, ascii))
    }

    /// `fancy` where Unicode can be shown, else `ascii`.
    #[must_use]
    pub fn either<'t>(self, fancy: &'t str, ascii: &'t str) -> &'t str {
        if self.unicode { fancy } else { ascii }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_escapes() {
        assert_eq!(Look::PLAIN.paint(BOLD, "x"), "x");
        assert_eq!(Look { colour: true, ..Look::PLAIN }.paint(BOLD, "x"), "\x1b[1mx\x1b[0m");
    }
}
