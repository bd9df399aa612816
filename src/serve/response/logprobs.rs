//! Log-probabilities as the API represents them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::generate::{Start, TextStream, Tokenizer};
use crate::serve::engine::TokenLogprob;

/// The lowest log-probability in a response: JSON has no infinity.
const MIN_LOGPROB: f64 = -9999.0;

/// `logprobs` of a chat: `{"content": [{token, logprob, bytes, top_logprobs}]}`.
pub(super) fn chat(tokenizer: &Tokenizer, logprobs: &[TokenLogprob]) -> Value {
    let entry = |token: u32, logprob: f64| json!({"token": token_text(tokenizer, token), "logprob": logprob.max(MIN_LOGPROB), "bytes": tokenizer.bytes(token)});
    let content: Vec<Value> = logprobs
        .iter()
        .map(|logprob| {
            let mut object = entry(logprob.token, logprob.logprob);
            object["top_logprobs"] =
                logprob.top.iter().map(|(token, logprob)| entry(*token, *logprob)).collect();
            object
        })
        .collect();
    json!({"content": content, "refusal": null})
}

/// `logprobs` of a completion: `{tokens, token_logprobs, top_logprobs, text_offset}`, each with one entry per token.
pub(super) fn completion(
    tokenizer: &Tokenizer,
    tokens: &[(u32, Option<&TokenLogprob>)],
    offsets: &mut TextOffsets,
) -> Value {
    let top = |logprob: &TokenLogprob| {
        // Reversed, so that of several tokens with the same text the most likely one is kept.
        let pairs = logprob.top.iter().rev();
        let pairs =
            pairs.map(|(token, logprob)| (token_text(tokenizer, *token), logprob.max(MIN_LOGPROB).into()));
        Value::Object(pairs.collect::<Map<String, Value>>())
    };
    let own = |logprob: &TokenLogprob| logprob.logprob.max(MIN_LOGPROB);
    json!({
        "tokens": tokens.iter().map(|(token, _)| token_text(tokenizer, *token)).collect::<Vec<_>>(),
        "token_logprobs": tokens.iter().map(|(_, logprob)| logprob.map(own)).collect::<Vec<_>>(),
        "top_logprobs": tokens.iter().map(|(_, logprob)| logprob.map(top)).collect::<Vec<_>>(),
        "text_offset": tokens.iter().map(|(token, _)| offsets.next(*token)).collect::<Vec<_>>(),
    })
}

/// A token as text; `bytes:\xe6\x97` if its bytes are not UTF-8.
fn token_text(tokenizer: &Tokenizer, token: u32) -> String {
    String::from_utf8(tokenizer.bytes(token)).unwrap_or_else(|error| {
        error.into_bytes().iter().fold("bytes:".to_owned(), |text, byte| format!("{text}\\x{byte:02x}"))
    })
}

/// Offsets of tokens in the text, in characters.
pub(super) struct TextOffsets {
    stream: TextStream,
    offset: usize,
}

impl TextOffsets {
    pub(super) fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        Self { stream: TextStream::new(Arc::clone(tokenizer), Start::Continuation), offset: 0 }
    }

    /// The offset of the next token.
    fn next(&mut self, token: u32) -> usize {
        let offset = self.offset;
        self.offset += self.stream.push(token).chars().count();
        offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn tokenizer() -> Arc<Tokenizer> {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/tiny-tales/base");
        Arc::new(Tokenizer::open(Path::new(dir)).expect("the fixture opens"))
    }

    #[test]
    fn a_partial_character_is_shown_as_bytes() {
        let tokenizer = tokenizer();
        let half = tokenizer.encode("日", false).unwrap()[0];
        assert!(token_text(&tokenizer, half).starts_with("bytes:\\xe6"), "{}", token_text(&tokenizer, half));
    }

    #[test]
    fn chats_and_completions_differ_in_shape() {
        let tokenizer = tokenizer();
        let the = tokenizer.encode("the", false).unwrap();
        let first = the[0];
        let text = String::from_utf8(tokenizer.bytes(first)).unwrap();
        let logprob = TokenLogprob { token: first, logprob: -0.5, top: vec![(first, -0.5)] };
        assert_eq!(
            chat(&tokenizer, std::slice::from_ref(&logprob)),
            json!({"content": [{"token": text, "logprob": -0.5, "bytes": text.as_bytes(), "top_logprobs":
                [{"token": text, "logprob": -0.5, "bytes": text.as_bytes()}]}], "refusal": null})
        );
        let mut offsets = TextOffsets::new(&tokenizer);
        assert_eq!(
            completion(&tokenizer, &[(first, None), (first, Some(&logprob))], &mut offsets),
            json!({"tokens": [text, text], "token_logprobs": [null, -0.5],
                "top_logprobs": [null, {(text.clone()): -0.5}], "text_offset": [0, text.chars().count()]})
        );
    }

    #[test]
    fn an_impossible_token_has_a_finite_logprob() {
        let logprob = TokenLogprob { token: 5, logprob: f64::NEG_INFINITY, top: Vec::new() };
        assert_eq!(chat(&tokenizer(), &[logprob])["content"][0]["logprob"], -9999.0);
    }
}
