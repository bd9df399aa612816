//! Runs a model: prompts in chunks, single steps, scores.
//!
//! ```text
//! prefill(tokens) ─▶ Logits ─ argmax or a sampler ─▶ Tokens ─▶ step ─▶ Logits ─▶ …
//! ```
//!
//! Between two steps only token ids pass through the host, and greedy decoding does not even wait for those: [`step`] takes
//! the tokens of [`Logits::argmax`] before they are computed.

use std::ops::ControlFlow;

use super::Model;
use crate::mlx::{self, Array, Device, Result, async_eval, eval};
use crate::nn::{Batch, Cache};

/// The next token of each sequence of a batch, possibly not computed yet.
#[derive(Debug, Clone)]
pub struct Tokens {
    ids: Array,
    /// The highest id, if the ids came from a caller: it has to be below the vocabulary's size.
    highest: Option<u32>,
    /// The logit of each, if they were chosen by [`Logits::argmax`].
    logits: Option<Array>,
}

/// Scores of every possible next token for each sequence of a batch, possibly not computed yet.
#[derive(Debug, Clone)]
pub struct Logits(Array);

impl Tokens {
    /// One known token for each sequence.
    ///
    /// # Errors
    /// A failure of MLX.
    pub fn new(ids: &[u32]) -> Result<Self> {
        let array = Array::from_u32(ids, &[mlx::int(ids.len())?, 1])?;
        Ok(Self { ids: array, highest: ids.iter().max().copied(), logits: None })
    }

    /// Waits for the ids, one for each sequence.
    ///
    /// # Errors
    /// A failure of MLX.
    pub fn ids(&self) -> Result<Vec<u32>> {
        self.ids.to_u32()
    }

    /// Waits for the logit of each token that was chosen by [`Logits::argmax`]. NaN or an infinity where no logit was
    /// finite.
    ///
    /// # Errors
    /// A failure of MLX.
    pub fn logits(&self) -> Result<Vec<f32>> {
        self.logits.as_ref().map_or(Ok(Vec::new()), Array::to_f32)
    }

    /// Starts computing them.
    ///
    /// # Errors
    /// A failure of MLX.
    pub fn start(&self) -> Result<()> {
        async_eval([&self.ids].into_iter().chain(&self.logits))
    }
}

impl Logits {
    /// The most likely token of each sequence, without waiting for it.
    ///
    /// # Errors
    /// A failure of MLX.
    pub fn argmax(&self) -> Result<Tokens> {
        let batch = self.0.dim(0);
        let ids = self.0.argmax()?.reshape(&[batch, 1])?;
        Ok(Tokens { ids, highest: None, logits: Some(self.0.highest()?) })
    }

    /// Waits for the logits: f32, row-major `[B, vocabulary]`.
    ///
    /// # Errors
    /// A failure of MLX.
    pub fn values(&self) -> Result<Vec<f32>> {
        self.0.to_f32()
    }
}

/// Number of prompt tokens that go through the model at once: enough to fill the device; few enough that a caller can
/// step other sequences in between, and that intermediate results on the CPU stay small compared to the weights.
#[must_use]
pub fn chunk() -> usize {
    match mlx::device() {
        Device::Cpu => 128,
        Device::Gpu => 2048,
    }
}

/// Runs a prompt (at least one token) through the model in chunks of at most `chunk` tokens, and returns the logits after
/// its last token. `each` receives the number of tokens done and may stop it; the result is then `None`.
///
/// # Errors
/// A token outside the vocabulary, or a failure of MLX.
pub fn prefill(
    model: &dyn Model,
    cache: &mut Cache,
    tokens: &[u32],
    chunk: usize,
    mut each: impl FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Logits>> {
    cache.expect(tokens.len());
    let mut done = 0;
    let mut last = None;
    for piece in tokens.chunks(chunk.max(1)) {
        let hidden = forward(model, cache, piece)?;
        eval(cache.arrays())?;
        done += piece.len();
        last = Some((hidden, piece.len()));
        if each(done).is_break() {
            return Ok(None);
        }
    }
    let Some((hidden, len)) = last else { return Ok(None) };
    let (batch, width) = (hidden.dim(0), hidden.dim(2));
    let hidden = hidden.slice(&[0, mlx::int(len)? - 1, 0], &[batch, mlx::int(len)?, width])?;
    Ok(Some(logits_of_one(model, &hidden)?))
}

/// Runs one token through the model.
///
/// # Errors
/// A token outside the vocabulary, or a failure of MLX.
pub fn step(model: &dyn Model, cache: &mut Cache, tokens: &Tokens) -> Result<Logits> {
    step_batch(model, [cache], tokens)
}

/// Runs one token of each of several sequences through the model, reading its weights once. Each sequence continues from
/// its own cache, at its own position; the logits are in the order of the caches.
///
/// # Errors
/// Different numbers of caches and tokens, a token outside the vocabulary, or a failure of MLX.
pub fn step_batch<'c>(
    model: &dyn Model,
    caches: impl IntoIterator<Item = &'c mut Cache>,
    tokens: &Tokens,
) -> Result<Logits> {
    check_known(model, tokens.highest)?;
    let mut batch = Batch::new(&tokens.ids, caches)?;
    let hidden = model.hidden(&tokens.ids, &mut batch)?;
    batch.advance();
    logits_of_one(model, &hidden)
}

/// Runs a whole text through the model in chunks and passes the logits of every position to `each`: the first position of
/// the chunk and f32 row-major `[chunk, vocabulary]`.
///
/// # Errors
/// A token outside the vocabulary, a failure of MLX, or the error of `each`.
pub fn score<E: From<mlx::Error>>(
    model: &dyn Model,
    cache: &mut Cache,
    tokens: &[u32],
    chunk: usize,
    mut each: impl FnMut(usize, &[f32]) -> Result<(), E>,
) -> Result<(), E> {
    cache.expect(tokens.len());
    let mut done = 0;
    for piece in tokens.chunks(chunk.max(1)) {
        let hidden = forward(model, cache, piece)?;
        let logits = model.logits(&hidden)?.to_f32()?;
        eval(cache.arrays())?;
        each(done, &logits)?;
        done += piece.len();
    }
    Ok(())
}

/// Refuses unknown tokens: MLX would read past the embedding.
fn check_known(model: &dyn Model, highest: Option<u32>) -> Result<()> {
    match highest {
        Some(id) if id as usize >= model.vocabulary() => {
            Err(mlx::Error::new(format!("token {id} is beyond the model's {}", model.vocabulary())))
        }
        _ => Ok(()),
    }
}

fn forward(model: &dyn Model, cache: &mut Cache, piece: &[u32]) -> Result<Array> {
    check_known(model, piece.iter().max().copied())?;
    let tokens = Array::from_u32(piece, &[1, mlx::int(piece.len())?])?;
    let mut batch = Batch::new(&tokens, [cache])?;
    let hidden = model.hidden(&tokens, &mut batch)?;
    batch.advance();
    Ok(hidden)
}

/// `[B, 1, hidden]` → logits `[B, vocabulary]`.
fn logits_of_one(model: &dyn Model, hidden: &Array) -> Result<Logits> {
    let logits = model.logits(hidden)?;
    let (batch, vocabulary) = (logits.dim(0), logits.dim(2));
    Ok(Logits(logits.reshape(&[batch, vocabulary])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_token_comes_with_a_logit_that_tells_whether_it_is_one() {
        let rows = [
            [1.0, 3.0, 3.0, -1.0],
            [f32::NEG_INFINITY, -2.0, f32::NEG_INFINITY, -3.0],
            [0.0, f32::NAN, 9.0, 1.0],
            [0.0, 1.0, f32::INFINITY, 1.0],
            [f32::NEG_INFINITY; 4],
        ];
        let tokens = Logits(Array::from_f32(rows.as_flattened(), &[5, 4]).unwrap()).argmax().unwrap();
        tokens.start().unwrap();
        assert_eq!(tokens.ids().unwrap()[..2], [1, 1]);
        let logits = tokens.logits().unwrap();
        assert_eq!(logits[..2], [3.0, -2.0]);
        assert!(logits[2..].iter().all(|logit| !logit.is_finite()), "{logits:?}");
        assert!(Tokens::new(&[5]).unwrap().logits().unwrap().is_empty());
    }
}
