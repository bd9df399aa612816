//! [`Generation`]: runs a model for one [`Sequence`].

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::error::{Error, LogitsError};
use super::sequence::{Piece, Request, Sequence};
use crate::model::{Logits, Model, Tokens, run};
use crate::nn::Cache;

/// An answer being generated: an iterator over its pieces that ends after the last one or after an error.
#[derive(Debug)]
pub(crate) struct Generation<'m> {
    model: &'m dyn Model,
    cache: Cache,
    sequence: Sequence,
    next: Next,
    times: Times,
}

/// What the next token is taken from.
#[derive(Debug)]
enum Next {
    /// Nothing: the answer has ended.
    Ended,
    /// The logits after the last token.
    Logits(Logits),
    /// The most likely token, being computed.
    Argmax(Tokens),
}

/// Durations of the parts of a generation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    /// Prefill of the prompt.
    pub prefill: Duration,
    /// From the start to the first token.
    pub first_token: Option<Duration>,
    /// From the first token to the last.
    pub decode: Duration,
}

impl<'m> Generation<'m> {
    /// Prefills the prompt. `each` is called with the number of processed tokens after each chunk, and may cancel,
    /// which returns `None`.
    ///
    /// # Errors
    /// When MLX fails.
    pub(crate) fn start(
        model: &'m dyn Model,
        request: Request,
        each: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Self>, Error> {
        let begin = Instant::now();
        let mut cache = model.cache();
        cache.expect(request.prompt.len().saturating_add(request.max_tokens));
        let logits = run::prefill(model, &mut cache, &request.prompt, run::chunk(), each)?;
        let Some(logits) = logits else { return Ok(None) };
        let times = Times { prefill: begin.elapsed(), ..Times::default() };
        let sequence = Sequence::new(request);
        let next = if sequence.is_greedy() {
            let tokens = logits.argmax()?;
            tokens.start()?;
            Next::Argmax(tokens)
        } else {
            Next::Logits(logits)
        };
        Ok(Some(Self { model, cache, sequence, next, times }))
    }

    /// The answer so far.
    #[must_use]
    pub(crate) fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Ends the answer early; returns the text that was held back.
    pub(crate) fn break_off(&mut self) -> String {
        self.next = Next::Ended;
        self.sequence.held()
    }

    /// Durations so far.
    #[must_use]
    pub(crate) fn times(&self) -> Times {
        self.times
    }

    fn advance(&mut self, next: &Next) -> Result<Option<Piece>, Error> {
        let begin = Instant::now();
        let piece = match next {
            Next::Ended => return Ok(None),
            Next::Logits(logits) => self.sample(logits)?,
            Next::Argmax(tokens) => self.take_argmax(tokens)?,
        };
        match self.times.first_token {
            None => self.times.first_token = Some(self.times.prefill + begin.elapsed()),
            Some(_) => self.times.decode += begin.elapsed(),
        }
        Ok(Some(piece))
    }

    fn sample(&mut self, logits: &Logits) -> Result<Piece, Error> {
        let piece = self.sequence.advance(&logits.values()?)?;
        if piece.finish.is_none() {
            self.next = Next::Logits(run::step(self.model, &mut self.cache, &Tokens::new(&[piece.token])?)?);
        }
        Ok(piece)
    }

    /// Starts the step after the most likely token before that token is known on the host. If the token ends the
    /// answer, the result is discarded.
    fn take_argmax(&mut self, tokens: &Tokens) -> Result<Piece, Error> {
        let next = if self.sequence.room() > 1 {
            let next = run::step(self.model, &mut self.cache, tokens)?.argmax()?;
            next.start()?;
            Next::Argmax(next)
        } else {
            Next::Ended
        };
        let (ids, logits) = (tokens.ids()?, tokens.logits()?);
        let (Some(id), Some(logit)) = (ids.first(), logits.first()) else {
            return Err(LogitsError::Missing.into());
        };
        if !logit.is_finite() {
            return Err(match *logit {
                f32::NEG_INFINITY => LogitsError::NoCandidate,
                value => LogitsError::MaximumNotFinite(value),
            }
            .into());
        }
        let piece = self.sequence.push(*id);
        if piece.finish.is_none() {
            self.next = next;
        }
        Ok(piece)
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Piece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.sequence.finish().is_some() {
            return None;
        }
        let next = std::mem::replace(&mut self.next, Next::Ended);
        self.advance(&next).transpose()
    }
}
