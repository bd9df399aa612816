//! [`Sequence`]: one answer in the making, from rows of logits to pieces of text. It computes nothing: whoever runs
//! the model, for one sequence or for a batch of them, gives it the logits after its last token.

use std::sync::Arc;

use super::tokenizer::{Start, TextStream, Tokenizer};
use super::{Error, Sampler, Sampling, StopStrings};

/// What to generate.
#[derive(Debug, Clone)]
pub struct Request {
    /// The prompt's tokens, at least one.
    pub prompt: Vec<u32>,
    /// How many tokens at most.
    pub max_tokens: usize,
    /// How to choose them.
    pub sampling: Sampling,
    /// Tokens that end the answer.
    pub eos: Vec<u32>,
    /// Texts to stop before.
    pub stop: Vec<String>,
    /// What turns tokens into text; without it there is none, and `stop` has no effect.
    pub text: Option<(Arc<Tokenizer>, Start)>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// With a token that ends it, or before a stop string.
    Stop,
    /// At the greatest number of tokens.
    Length,
}

impl FinishReason {
    /// `stop` or `length`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// One token and the text that it completes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The token; one that ends the answer is given too, without text.
    pub token: u32,
    /// Text that can be shown now: maybe none yet, maybe that of earlier tokens too.
    pub text: String,
    /// Set on the last piece.
    pub finish: Option<FinishReason>,
}

/// An answer in the making.
#[derive(Debug)]
pub struct Sequence {
    /// Prompt and answer.
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
    /// An answer at its beginning.
    #[must_use]
    pub fn new(request: Request) -> Self {
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
    pub fn prompt(&self) -> &[u32] {
        &self.tokens[..self.prompt_len]
    }

    /// The answer's tokens so far.
    #[must_use]
    pub fn answer(&self) -> &[u32] {
        &self.tokens[self.prompt_len..]
    }

    /// How many tokens may still follow.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.finish.is_some() { 0 } else { self.max_tokens.saturating_sub(self.answer().len()) }
    }

    /// Why it ended, if it has.
    #[must_use]
    pub fn finish(&self) -> Option<FinishReason> {
        self.finish
    }

    /// Chooses the next token from `logits` `[V]`, those after the last one. Not to be called on an ended answer.
    ///
    /// # Errors
    /// When no token can be chosen.
    pub fn advance(&mut self, logits: &[f32]) -> Result<Piece, Error> {
        let token = self.sampler.sample(logits, &self.tokens)?;
        Ok(self.push(token))
    }

    /// Whether every next token is the likeliest, so that a device can choose it and [`push`](Self::push) take it.
    #[must_use]
    pub fn takes_likeliest(&self) -> bool {
        self.sampler.takes_likeliest()
    }

    /// Takes a token that was chosen elsewhere. Not to be called on an ended answer.
    pub fn push(&mut self, token: u32) -> Piece {
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

    /// Ends the answer as if with a token of the end, and gives the text that was held back.
    pub fn complete(&mut self) -> String {
        self.finish = Some(FinishReason::Stop);
        self.held()
    }

    /// Text that was held back because it might have become a stop string: for an answer that is broken off.
    pub fn held(&mut self) -> String {
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

    /// Feeds logits that make the tokens of `says` the likeliest in turn, as long as it wants any.
    fn run(request: Request, says: &[u32]) -> (String, Vec<u32>, Option<FinishReason>) {
        let mut sequence = Sequence::new(request);
        let mut text = String::new();
        for token in says {
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
    fn a_token_of_the_end_ends_it_and_has_no_text() {
        let says = tokenizer().encode("the cat", false).unwrap();
        let (text, answer, finish) = run(request(true), &[&says[..], &[0, 5]].concat());
        assert_eq!((text.as_str(), finish), ("the cat", Some(FinishReason::Stop)));
        assert_eq!(answer, [&says[..], &[0]].concat());
    }

    #[test]
    fn the_greatest_number_of_tokens_ends_it() {
        let (text, answer, finish) = run(Request { max_tokens: 3, ..request(false) }, &[7, 8, 9, 10]);
        assert_eq!((text.as_str(), answer, finish), ("", vec![7, 8, 9], Some(FinishReason::Length)));
        assert_eq!(run(Request { max_tokens: 0, ..request(false) }, &[7]).2, Some(FinishReason::Length));
    }

    #[test]
    fn a_stop_string_across_tokens_ends_it() {
        let says = tokenizer().encode("she found a lamp in the forest", false).unwrap();
        let stop = vec!["d a l".to_owned()];
        let (text, answer, finish) = run(Request { stop, ..request(true) }, &says);
        assert_eq!((text.as_str(), finish), ("she foun", Some(FinishReason::Stop)));
        assert!(says.starts_with(&answer) && answer.len() < says.len());
    }

    #[test]
    fn text_held_back_for_a_stop_string_is_given_at_the_end() {
        let says = tokenizer().encode("she found a lamp", false).unwrap();
        let request = Request { stop: vec!["lamps".to_owned()], max_tokens: says.len(), ..request(true) };
        assert_eq!(run(request, &says).0, "she found a lamp");
    }
}
