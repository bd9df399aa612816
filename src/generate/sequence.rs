//! [`Sequence`]: one answer being generated, from rows of logits to pieces of text. It runs no model: the caller runs
//! it, for one sequence or for a batch, and passes the logits after the last token.

use std::sync::Arc;

use super::error::Error;
use super::sampler::{Sampler, Sampling};
use super::stop::StopStrings;
use super::tokenizer::{Start, TextStream, Tokenizer};

/// What to generate.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The prompt's tokens, at least one.
    pub prompt: Vec<u32>,
    /// Maximum number of tokens to generate.
    pub max_tokens: usize,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// End-of-text tokens.
    pub eos: Vec<u32>,
    /// Strings to stop before.
    pub stop: Vec<String>,
    /// Decodes tokens to text; without it the answer has no text, and `stop` has no effect.
    pub text: Option<(Arc<Tokenizer>, Start)>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishReason {
    /// An end-of-text token or a stop string.
    Stop,
    /// The maximum number of tokens.
    Length,
}

impl FinishReason {
    /// `stop` or `length`.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// One token and the text that it completes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The token; an end-of-text token has no text.
    pub token: u32,
    /// Text that can be shown now; may be empty, or include text of earlier tokens.
    pub text: String,
    /// Set on the last piece.
    pub finish: Option<FinishReason>,
}

/// An answer being generated.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// Tokens of prompt and answer.
    tokens: Vec<u32>,
    prompt_len: usize,
    max_tokens: usize,
    eos: Vec<u32>,
    sampler: Sampler,
    text: Option<TextStream>,
    stop: StopStrings,
    finish: Option<FinishReason>,
}

impl Sequence {
    /// An answer without tokens.
    #[must_use]
    pub(crate) fn new(request: Request) -> Self {
        let Request { prompt, max_tokens, sampling, eos, stop, text } = request;
        Self {
            prompt_len: prompt.len(),
            tokens: prompt,
            max_tokens,
            eos,
            sampler: Sampler::new(sampling),
            text: text.map(|(tokenizer, start)| TextStream::new(tokenizer, start)),
            stop: StopStrings::new(stop),
            finish: (max_tokens == 0).then_some(FinishReason::Length),
        }
    }

    /// The prompt's tokens.
    #[must_use]
    pub(crate) fn prompt(&self) -> &[u32] {
        &self.tokens[..self.prompt_len]
    }

    /// The answer's tokens so far.
    #[must_use]
    pub(crate) fn answer(&self) -> &[u32] {
        &self.tokens[self.prompt_len..]
    }

    /// Number of tokens that may still follow.
    #[must_use]
    pub(crate) fn room(&self) -> usize {
        if self.finish.is_some() { 0 } else { self.max_tokens.saturating_sub(self.answer().len()) }
    }

    /// Why it ended; `None` while it continues.
    #[must_use]
    pub(crate) fn finish(&self) -> Option<FinishReason> {
        self.finish
    }

    /// Samples the next token from `logits` `[vocabulary]`, which follow the last token. Must not be called after the
    /// end.
    ///
    /// # Errors
    /// When the logits are not finite or rule out every token.
    pub(crate) fn advance(&mut self, logits: &[f32]) -> Result<Piece, Error> {
        let token = self.sampler.sample(logits, &self.tokens)?;
        Ok(self.push(token))
    }

    /// Whether every token is the most likely one, so that the device can pick it for [`push`](Self::push).
    #[must_use]
    pub(crate) fn is_greedy(&self) -> bool {
        self.sampler.is_greedy()
    }

    /// Appends a token that was sampled elsewhere. Must not be called after the end.
    pub(crate) fn push(&mut self, token: u32) -> Piece {
        self.tokens.push(token);
        let mut text = String::new();
        if self.eos.contains(&token) {
            self.finish = Some(FinishReason::Stop);
        } else if let Some(stream) = &mut self.text {
            text = self.stop.push(&stream.push(token));
            if self.stop.stopped() {
                self.finish = Some(FinishReason::Stop);
            }
        }
        if self.finish.is_none() && self.answer().len() >= self.max_tokens {
            self.finish = Some(FinishReason::Length);
        }
        if self.finish.is_some() {
            text.push_str(&self.held());
        }
        Piece { token, text, finish: self.finish }
    }

    /// Ends the answer as an end-of-text token does; returns the text that was held back.
    pub(crate) fn complete(&mut self) -> String {
        self.finish = Some(FinishReason::Stop);
        self.held()
    }

    /// Takes the text that is held back because it may be the beginning of a stop string; for an answer that ends
    /// early.
    pub(crate) fn held(&mut self) -> String {
        self.stop.finish()
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

    fn request(text: bool) -> Request {
        Request {
            prompt: vec![1],
            max_tokens: 100,
            sampling: Sampling::default(),
            eos: vec![0],
            stop: Vec::new(),
            text: text.then(|| (tokenizer(), Start::Continuation)),
        }
    }

    /// Feeds logits that make each of `tokens` the most likely in turn, until the answer ends.
    fn run(request: Request, tokens: &[u32]) -> (String, Vec<u32>, Option<FinishReason>) {
        let mut sequence = Sequence::new(request);
        let mut text = String::new();
        for token in tokens {
            if sequence.finish().is_some() {
                break;
            }
            let mut logits = vec![0.0; 512];
            logits[*token as usize] = 1.0;
            let piece = sequence.advance(&logits).expect("finite logits");
            assert_eq!((piece.token, piece.finish), (*token, sequence.finish()));
            text += &piece.text;
        }
        (text, sequence.answer().to_vec(), sequence.finish())
    }

    #[test]
    fn an_end_of_text_token_ends_the_answer_without_text() {
        let tokens = tokenizer().encode("the cat", false).unwrap();
        let (text, answer, finish) = run(request(true), &[&tokens[..], &[0, 5]].concat());
        assert_eq!((text.as_str(), finish), ("the cat", Some(FinishReason::Stop)));
        assert_eq!(answer, [&tokens[..], &[0]].concat());
    }

    #[test]
    fn the_maximum_number_of_tokens_ends_the_answer() {
        let (text, answer, finish) = run(Request { max_tokens: 3, ..request(false) }, &[7, 8, 9, 10]);
        assert_eq!((text.as_str(), answer, finish), ("", vec![7, 8, 9], Some(FinishReason::Length)));
        assert_eq!(run(Request { max_tokens: 0, ..request(false) }, &[7]).2, Some(FinishReason::Length));
    }

    #[test]
    fn a_stop_string_across_tokens_ends_the_answer() {
        let tokens = tokenizer().encode("she found a lamp in the forest", false).unwrap();
        let stop = vec!["d a l".to_owned()];
        let (text, answer, finish) = run(Request { stop, ..request(true) }, &tokens);
        assert_eq!((text.as_str(), finish), ("she foun", Some(FinishReason::Stop)));
        assert!(tokens.starts_with(&answer) && answer.len() < tokens.len());
    }

    #[test]
    fn held_text_is_returned_at_the_end() {
        let tokens = tokenizer().encode("she found a lamp", false).unwrap();
        let request = Request { stop: vec!["lamps".to_owned()], max_tokens: tokens.len(), ..request(true) };
        assert_eq!(run(request, &tokens).0, "she found a lamp");
    }
}
