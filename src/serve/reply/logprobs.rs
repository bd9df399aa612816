//! Log-probabilities in the shapes of OpenAI.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::generate::{Start, TextStream, Tokenizer};
use crate::serve::engine::Likely;

/// The lowest log-probability that is told: JSON has no infinity.
const LOWEST: f64 = -9999.0;

/// `logprobs` of a chat: `{"content": [{token, logprob, bytes, top_logprobs}]}`.
pub(super) fn chat(tokenizer: &Tokenizer, likely: &[Likely]) -> Value {
    let entry = |token: u32, logprob: f64| json!({"token": name(tokenizer, token), "logprob": logprob.max(LOWEST), "bytes": tokenizer.bytes(token)});
    let content: Vec<Value> = likely
        .iter()
        .map(|likely| {
            let mut object = entry(likely.token, likely.logprob);
            object["top_logprobs"] =
                likely.top.iter().map(|(token, logprob)| entry(*token, *logprob)).collect();
            object
        })
        .collect();
    json!({"content": content, "refusal": null})
}

/// `logprobs` of a completion: `{tokens, token_logprobs, top_logprobs, text_offset}`, one entry a token each.
pub(super) fn completion(
    tokenizer: &Tokenizer,
    tokens: &[(u32, Option<&Likely>)],
    offsets: &mut Offsets,
) -> Value {
    let top = |likely: &Likely| {
        let pairs = likely.top.iter().rev();
        // Of several tokens with one name the likeliest is told.
        let pairs = pairs.map(|(token, logprob)| (name(tokenizer, *token), logprob.max(LOWEST).into()));
        Value::Object(pairs.collect::<Map<String, Value>>())
    };
    json!({
        "tokens": tokens.iter().map(|(token, _)| name(tokenizer, *token)).collect::<Vec<_>>(),
        "token_logprobs":
            tokens.iter().map(|(_, likely)| likely.map(|likely| likely.logprob.max(LOWEST))).collect::<Vec<_>>(),
        "top_logprobs": tokens.iter().map(|(_, likely)| likely.map(top)).collect::<Vec<_>>(),
        "text_offset": tokens.iter().map(|(token, _)| offsets.next(*token)).collect::<Vec<_>>(),
    })
}

/// A token as text; `bytes:\xe6\x97` where its bytes are not whole characters.
fn name(tokenizer: &Tokenizer, token: u32) -> String {
    String::from_utf8(tokenizer.bytes(token)).unwrap_or_else(|error| {
        error.into_bytes().iter().fold("bytes:".to_owned(), |name, byte| format!("{name}\\x{byte:02x}"))
    })
}

/// Where each token's text begins, in characters.
pub(super) struct Offsets {
    text: TextStream,
    at: usize,
}

impl Offsets {
    pub(super) fn new(tokenizer: &Arc<Tokenizer>) -> Self {
        Self { text: TextStream::new(Arc::clone(tokenizer), Start::Continuation), at: 0 }
    }

    fn next(&mut self, token: u32) -> usize {
        let at = self.at;
        self.at += self.text.push(token).chars().count();
        at
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
    fn a_token_that_is_half_a_character_is_told_by_its_bytes() {
        let tokenizer = tokenizer();
        let half = tokenizer.encode("日", false).unwrap()[0];
        assert!(name(&tokenizer, half).starts_with("bytes:\\xe6"), "{}", name(&tokenizer, half));
    }

    #[test]
    fn chats_and_completions_have_their_own_shapes() {
        let tokenizer = tokenizer();
        let the = tokenizer.encode("the", false).unwrap();
        let first = the[0];
        let text = String::from_utf8(tokenizer.bytes(first)).unwrap();
        let likely = Likely { token: first, logprob: -0.5, top: vec![(first, -0.5)] };
        assert_eq!(
            chat(&tokenizer, std::slice::from_ref(&likely)),
            json!({"content": [{"token": text, "logprob": -0.5, "bytes": text.as_bytes(), "top_logprobs":
                [{"token": text, "logprob": -0.5, "bytes": text.as_bytes()}]}], "refusal": null})
        );
        let mut offsets = Offsets::new(&tokenizer);
        assert_eq!(
            completion(&tokenizer, &[(first, None), (first, Some(&likely))], &mut offsets),
            json!({"tokens": [text, text], "token_logprobs": [null, -0.5],
                "top_logprobs": [null, {(text.clone()): -0.5}], "text_offset": [0, text.chars().count()]})
        );
    }

    #[test]
    fn an_impossible_token_has_a_number_too() {
        let likely = Likely { token: 5, logprob: f64::NEG_INFINITY, top: Vec::new() };
        assert_eq!(chat(&tokenizer(), &[likely])["content"][0]["logprob"], -9999.0);
    }
}
