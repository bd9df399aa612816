//! Names and lists of names, fit for a message.

use std::fmt::{self, Write as _};

/// A name from a file in backticks: control characters are escaped, the middle of a very long name is left out.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_CHARS: usize = 200;
        /// Characters shown at each end of a longer name.
        const END_CHARS: usize = 80;
        f.write_char('`')?;
        let length = self.0.chars().count();
        let head = if length > MAX_CHARS { END_CHARS } else { length };
        escape(f, self.0.chars().take(head))?;
        if head < length {
            f.write_char('…')?;
            escape(f, self.0.chars().skip(length - END_CHARS))?;
        }
        f.write_char('`')
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: impl Iterator<Item = char>) -> fmt::Result {
    for c in text {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            write!(f, "{}", c.escape_default())?;
        } else {
            f.write_char(c)?;
        }
    }
    Ok(())
}

/// `a`, `b` and 3 more.
pub(super) fn listed(names: &[impl AsRef<str>]) -> String {
    const MAX_NAMES: usize = 3;
    // "and 1 more" would be as long as the name.
    let shown = if names.len() == MAX_NAMES + 1 { MAX_NAMES + 1 } else { MAX_NAMES };
    let mut text = String::new();
    for (place, name) in names.iter().take(shown).enumerate() {
        let last = place + 1 == names.len();
        let before = if place == 0 {
            ""
        } else if last {
            " and "
        } else {
            ", "
        };
        let _ = write!(text, "{before}{}", Quoted(name.as_ref()));
    }
    if names.len() > shown {
        let _ = write!(text, " and {} more", names.len() - shown);
    }
    text
}
