//! [`Generation`]: runs a model for one [`Sequence`].

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Error, Piece, Request, Sequence};
use crate::model::{Logits, Model, Tokens, run};
use crate::nn::Cache;

/// An answer being generated: an iterator over its pieces, which ends after the last one or after an error.
#[derive(Debug)]
pub struct Generation<'m> {
    model: &'m dyn Model,
    cache: Cache,
    sequence: Sequence,
    /// Those after the last token; `None` before the prompt has been read and after the end.
    logits: Option<Logits>,
    times: Times,
}

/// How long the parts of a generation took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    /// Reading the prompt.
    pub prefill: Duration,
    /// From the beginning to the first token.
    pub first_token: Option<Duration>,
    /// From the first token to the last.
    pub decode: Duration,
}

impl<'m> Generation<'m> {
    /// Reads the prompt. `each` hears after each part of it how many tokens are done, and may break off, which gives
    /// `None`.
    ///
    /// # Errors
    /// What MLX says.
    pub fn start(
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
        Ok(Some(Self { model, cache, sequence: Sequence::new(request), logits: Some(logits), times }))
    }

    /// The answer so far.
    #[must_use]
    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Breaks off: gives the text that was held back.
    pub fn break_off(&mut self) -> String {
        self.logits = None;
        self.sequence.held()
    }

    /// How long it took so far.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times
    }

    fn advance(&mut self, logits: &Logits) -> Result<Piece, Error> {
        let begin = Instant::now();
        let piece = self.sequence.advance(&logits.values()?)?;
        if piece.finish.is_none() {
            self.logits = Some(run::step(self.model, &mut self.cache, &Tokens::new(&[piece.token])?)?);
        }
        match self.times.first_token {
            None => self.times.first_token = Some(self.times.prefill + begin.elapsed()),
            Some(_) => self.times.decode += begin.elapsed(),
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
        let logits = self.logits.take()?;
        Some(self.advance(&logits))
    }
}
