//! [`Look`]: what the place that text goes to can show.

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
    /// Files, pipes and tests: 120 columns, no colour, Unicode.
    pub const PLAIN: Self = Self { width: 120, colour: false, unicode: true };

    /// `text`, in the colour that an SGR parameter names (`"1"` bold, `"2"` dim, `"33"` yellow, …).
    #[must_use]
    pub fn paint(self, sgr: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A text with its dashes and other signs in ASCII where nothing else can be shown.
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

/// The SGR parameter of text in the background.
pub const DIM: &str = "2";
/// The SGR parameter of headings.
pub const BOLD: &str = "1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_escapes() {
        assert_eq!(Look::PLAIN.paint("1", "x"), "x");
        assert_eq!(Look { colour: true, ..Look::PLAIN }.paint("1", "x"), "\x1b[1mx\x1b[0m");
    }
}
