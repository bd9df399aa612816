//! [`TokenBytes`]: how the tokens of a vocabulary encode bytes.

use serde_json::Value;

/// How the tokens of a vocabulary encode bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenBytes {
    /// Each byte is one printable character (GPT-2, Llama 3, Qwen).
    ByteLevel,
    /// Text with a mark for the space, and `<0x0A>` for bytes without a token of their own (`SentencePiece`: Llama 2,
    /// Mistral, Gemma).
    SentencePiece {
        /// The character that marks a space.
        space: char,
        /// Whether the tokenizer puts a space before the first word that is not part of the text.
        leading_space: bool,
    },
    /// Tokens have no bytes of their own: only a whole sequence can be decoded (`WordPiece` and rarer ones).
    SequenceOnly,
}

impl TokenBytes {
    pub(super) fn of(tokenizer: &tokenizers::Tokenizer) -> Self {
        let decoder = serde_json::to_value(tokenizer.get_decoder()).unwrap_or_default();
        Self::of_decoder(&decoder)
    }

    /// Reads the `decoder` of a `tokenizer.json`.
    fn of_decoder(decoder: &Value) -> Self {
        let single = std::slice::from_ref(decoder);
        let steps = decoder.get("decoders").and_then(Value::as_array).map_or(single, Vec::as_slice);
        let kind = |step: &Value| step.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if steps.iter().any(|step| kind(step) == "ByteLevel") {
            return Self::ByteLevel;
        }
        let mut space = None;
        let mut leading_space = false;
        for step in steps {
            match kind(step).as_str() {
                "ByteFallback" | "Fuse" => {}
                "Replace" if step.get("content").and_then(Value::as_str) == Some(" ") => {
                    space = step.pointer("/pattern/String").and_then(Value::as_str).and_then(only_char);
                }
                "Strip" if step.get("content").and_then(Value::as_str) == Some(" ") => {
                    leading_space |= step.get("start").and_then(Value::as_u64).unwrap_or(0) > 0;
                }
                "Metaspace" => {
                    space = step.get("replacement").and_then(Value::as_str).and_then(only_char);
                    leading_space |= step.get("prepend_scheme").and_then(Value::as_str) != Some("never");
                }
                _ => return Self::SequenceOnly,
            }
        }
        space.map_or(Self::SequenceOnly, |space| Self::SentencePiece { space, leading_space })
    }

    /// Whether the tokenizer puts a space before the first word that is not part of the text.
    pub(super) fn has_leading_space(self) -> bool {
        matches!(self, Self::SentencePiece { leading_space: true, .. })
    }

    /// The bytes of a token as spelled in the vocabulary.
    pub(super) fn bytes(self, token: String) -> Vec<u8> {
        match self {
            // A token with a character outside the byte alphabet was added as plain text.
            Self::ByteLevel => {
                token.chars().map(byte_of).collect::<Option<_>>().unwrap_or(token.into_bytes())
            }
            Self::SentencePiece { space, .. } => match fallback_byte(&token) {
                Some(byte) => vec![byte],
                None => token.replace(space, " ").into_bytes(),
            },
            Self::SequenceOnly => token.into_bytes(),
        }
    }
}

/// The byte that `c` represents in GPT-2's alphabet: printable Latin-1 represents itself, the other 68 bytes are
/// numbered from U+0100.
fn byte_of(c: char) -> Option<u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let code = u32::from(c);
    match u8::try_from(code) {
        Ok(byte) => printable(byte).then_some(byte),
        Err(_) => (0..=u8::MAX).filter(|byte| !printable(*byte)).nth(code as usize - 0x100),
    }
}

/// Parses a byte token such as `<0x0A>`.
fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

fn only_char(text: &str) -> Option<char> {
    let mut chars = text.chars();
    chars.next().filter(|_| chars.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_byte_alphabet_has_one_character_per_byte() {
        let bytes: Vec<u8> = (0u32..0x180).filter_map(char::from_u32).filter_map(byte_of).collect();
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('日'), None);
    }

    #[test]
    fn byte_level_tokens_are_decoded_and_added_tokens_are_text() {
        assert_eq!(TokenBytes::ByteLevel.bytes("ĠcafÃ©".to_owned()), " café".as_bytes());
        assert_eq!(TokenBytes::ByteLevel.bytes("<|end of text|>".to_owned()), b"<|end of text|>");
        assert_eq!(TokenBytes::ByteLevel.bytes("  ".to_owned()), b"  ");
    }

    #[test]
    fn sentencepiece_tokens_have_space_marks_and_byte_tokens() {
        let encoding = TokenBytes::of_decoder(&json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}));
        assert_eq!(encoding, TokenBytes::SentencePiece { space: '▁', leading_space: true });
        assert_eq!(encoding.bytes("▁a▁b".to_owned()), b" a b");
        assert_eq!(encoding.bytes("<0xE3>".to_owned()), [0xe3]);
        assert_eq!(encoding.bytes("<0xE3".to_owned()), b"<0xE3");
    }

    #[track_caller]
    fn check(decoder: &Value, expected: TokenBytes) {
        assert_eq!(TokenBytes::of_decoder(decoder), expected);
    }

    #[test]
    fn decoders_are_recognized() {
        check(&json!({"type": "ByteLevel", "add_prefix_space": true}), TokenBytes::ByteLevel);
        check(&json!({"type": "Sequence", "decoders": [{"type": "ByteLevel"}]}), TokenBytes::ByteLevel);
        check(
            &json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}),
            TokenBytes::SentencePiece { space: '▁', leading_space: false },
        );
        check(&json!({"type": "WordPiece", "prefix": "##"}), TokenBytes::SequenceOnly);
        check(&Value::Null, TokenBytes::SequenceOnly);
    }
}
