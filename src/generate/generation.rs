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
    next: Next,
    times: Times,
}

/// What the next token comes of.
#[derive(Debug)]
enum Next {
    /// Nothing: the end.
    Ended,
    /// The logits after the last token.
    Logits(Logits),
    /// The likeliest token, being computed.
    Likeliest(Tokens),
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
        let sequence = Sequence::new(request);
        let next = if sequence.takes_likeliest() {
            let tokens = logits.argmax()?;
            tokens.start()?;
            Next::Likeliest(tokens)
        } else {
            Next::Logits(logits)
        };
        Ok(Some(Self { model, cache, sequence, next, times }))
    }

    /// The answer so far.
    #[must_use]
    pub fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    /// Breaks off: gives the text that was held back.
    pub fn break_off(&mut self) -> String {
        self.next = Next::Ended;
        self.sequence.held()
    }

    /// How long it took so far.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times
    }

    fn advance(&mut self, next: &Next) -> Result<Option<Piece>, Error> {
        let begin = Instant::now();
        let piece = match next {
            Next::Ended => return Ok(None),
            Next::Logits(logits) => self.choose(logits)?,
            Next::Likeliest(tokens) => self.take(tokens)?,
        };
        match self.times.first_token {
            None => self.times.first_token = Some(self.times.prefill + begin.elapsed()),
            Some(_) => self.times.decode += begin.elapsed(),
        }
        Ok(Some(piece))
    }

    fn choose(&mut self, logits: &Logits) -> Result<Piece, Error> {
        let piece = self.sequence.advance(&logits.values()?)?;
        if piece.finish.is_none() {
            self.next = Next::Logits(run::step(self.model, &mut self.cache, &Tokens::new(&[piece.token])?)?);
        }
        Ok(piece)
    }

    /// The step after the likeliest token starts before that token is known; if it ends the answer, that step is in
    /// vain.
    fn take(&mut self, tokens: &Tokens) -> Result<Piece, Error> {
        let next = if self.sequence.room() > 1 {
            let next = run::step(self.model, &mut self.cache, tokens)?.argmax()?;
            next.start()?;
            Next::Likeliest(next)
        } else {
            Next::Ended
        };
        let (ids, logits) = (tokens.ids()?, tokens.logits()?);
        let (Some(id), Some(logit)) = (ids.first(), logits.first()) else {
            return Err(Error::Logits("the model gave no token".to_owned()));
        };
        if !logit.is_finite() {
            return Err(Error::Logits(match *logit {
                f32::NEG_INFINITY => "the model's logits leave no token possible".to_owned(),
                other => format!("the model's logits are not finite (the highest is {other})"),
            }));
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
