//! Text from strangers, safe to print.

use super::Look;

/// The same text in the same number of bytes, without anything that a terminal obeys. Tabs stay.
pub(super) fn sanitize(text: &str) -> String {
    text.chars()
        .map(|character| match (character, character.len_utf8()) {
            ('\t', _) => character,
            (character, 1) if character.is_control() => '?',
            (character, 2) if character.is_control() => '¿',
            // Marks that reverse the direction of text can hide what a line says.
            ('\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}', _) => '\u{FFFD}',
            (character, _) => character,
        })
        .collect()
}

/// A message, path or label in one line, with nothing in it that the output device obeys or cannot show.
pub(super) fn clean(text: &str, look: Look) -> String {
    look.text(&sanitize(&text.replace(['\n', '\t'], " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_replaced_in_as_many_bytes() {
        let text = "a: \x1b[31mred # \u{9b}\u{202e}x";
        assert_eq!(sanitize(text), "a: ?[31mred # ¿\u{FFFD}x");
        assert_eq!(sanitize(text).len(), text.len());
    }
}
