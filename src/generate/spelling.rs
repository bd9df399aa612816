//! [`Spelling`]: how a tokenizer writes bytes as characters in its vocabulary.

use serde_json::Value;

/// How the tokens of a vocabulary stand for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Every byte is a printable character of its own (GPT-2, Llama 3, Qwen).
    ByteLevel,
    /// Text, with a mark for the space and `<0x0A>` for bytes that no token covers (`SentencePiece`: Llama 2, Mistral,
    /// Gemma).
    Marked {
        /// The mark.
        space: char,
        /// Whether a first word has a space before it that is not part of the text.
        leading: bool,
    },
    /// Tokens mean nothing alone: only a whole sequence can be decoded (`WordPiece` and rarer ones).
    Whole,
}

impl Spelling {
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
        let mut leading = false;
        for step in steps {
            match kind(step).as_str() {
                "ByteFallback" | "Fuse" => {}
                "Replace" if step.get("content").and_then(Value::as_str) == Some(" ") => {
                    space = step.pointer("/pattern/String").and_then(Value::as_str).and_then(only_char);
                }
                "Strip" if step.get("content").and_then(Value::as_str) == Some(" ") => {
                    leading |= step.get("start").and_then(Value::as_u64).unwrap_or(0) > 0;
                }
                "Metaspace" => {
                    space = step.get("replacement").and_then(Value::as_str).and_then(only_char);
                    leading |= step.get("prepend_scheme").and_then(Value::as_str) != Some("never");
                }
                _ => return Self::Whole,
            }
        }
        space.map_or(Self::Whole, |space| Self::Marked { space, leading })
    }

    pub(super) fn leads_with_space(self) -> bool {
        matches!(self, Self::Marked { leading: true, .. })
    }

    /// The bytes of a token.
    pub(super) fn bytes(self, token: String) -> Vec<u8> {
        match self {
            // A token with a character that stands for no byte was added as plain text.
            Self::ByteLevel => {
                token.chars().map(byte_of).collect::<Option<_>>().unwrap_or(token.into_bytes())
            }
            Self::Marked { space, .. } => match fallback_byte(&token) {
                Some(byte) => vec![byte],
                None => token.replace(space, " ").into_bytes(),
            },
            Self::Whole => token.into_bytes(),
        }
    }
}

/// The byte that GPT-2's alphabet writes as `c`: printable Latin-1 as itself, the other 68 bytes in order from U+0100.
fn byte_of(c: char) -> Option<u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let code = u32::from(c);
    match u8::try_from(code) {
        Ok(byte) => printable(byte).then_some(byte),
        Err(_) => (0..=u8::MAX).filter(|byte| !printable(*byte)).nth(code as usize - 0x100),
    }
}

/// `<0x0A>`.
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
    fn every_byte_has_one_character_in_the_byte_alphabet() {
        let bytes: Vec<u8> = (0u32..0x180).filter_map(char::from_u32).filter_map(byte_of).collect();
        let mut sorted = bytes.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('日'), None);
    }

    #[test]
    fn byte_level_tokens_are_their_bytes_and_added_text_is_itself() {
        assert_eq!(Spelling::ByteLevel.bytes("ĠcafÃ©".to_owned()), " café".as_bytes());
        assert_eq!(Spelling::ByteLevel.bytes("<|end of text|>".to_owned()), b"<|end of text|>");
        assert_eq!(Spelling::ByteLevel.bytes("  ".to_owned()), b"  ");
    }

    #[test]
    fn sentencepiece_tokens_have_marks_and_fallback_bytes() {
        let spelling = Spelling::of_decoder(&json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}));
        assert_eq!(spelling, Spelling::Marked { space: '▁', leading: true });
        assert_eq!(spelling.bytes("▁a▁b".to_owned()), b" a b");
        assert_eq!(spelling.bytes("<0xE3>".to_owned()), [0xe3]);
        assert_eq!(spelling.bytes("<0xE3".to_owned()), b"<0xE3");
    }

    #[track_caller]
    fn check(decoder: &Value, expected: Spelling) {
        assert_eq!(Spelling::of_decoder(decoder), expected);
    }

    #[test]
    fn decoders_are_recognized() {
        check(&json!({"type": "ByteLevel", "add_prefix_space": true}), Spelling::ByteLevel);
        check(&json!({"type": "Sequence", "decoders": [{"type": "ByteLevel"}]}), Spelling::ByteLevel);
        check(
            &json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}),
            Spelling::Marked { space: '▁', leading: false },
        );
        check(&json!({"type": "WordPiece", "prefix": "##"}), Spelling::Whole);
        check(&Value::Null, Spelling::Whole);
    }
}
