//! [`BatchPolicy`]: how many sequences may share a decode step without changing each other's logits by a single bit.
//!
//! A matrix product may sum in a different order for a different number of rows, and then a token that is barely the
//! most likely one alone may not be so in a batch. The order depends on the library, the processor and the shapes, but
//! not on the values, so it is measured once, when the model has been loaded.

use crate::generate::Error;
use crate::model::{Model, Tokens, run};
use crate::nn::Cache;

/// How to run the decode step of several sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchPolicy {
    /// Batches of at most this many sequences: every smaller batch gives the same bits.
    UpTo(usize),
    /// Batches of exactly this many sequences, padded with unused ones: every row gives the same bits.
    Padded(usize),
}

/// Number of different tokens in the trial batches.
const TRIAL_TOKENS: usize = 3;

impl BatchPolicy {
    /// Measures the policy of a model for batches of at most `max` sequences.
    pub(super) fn measure(model: &dyn Model, max: usize) -> Result<Self, Error> {
        let mut alone = Vec::with_capacity(TRIAL_TOKENS);
        for number in 0..TRIAL_TOKENS {
            alone.extend(trial(model, &[number])?);
        }
        let mut exact = 1;
        while exact < max {
            let numbers: Vec<usize> = (0..=exact).map(|row| row % TRIAL_TOKENS).collect();
            if trial(model, &numbers)?.iter().zip(&numbers).any(|(row, number)| *row != alone[*number]) {
                break;
            }
            exact += 1;
        }
        if exact > 1 || max == 1 {
            return Ok(Self::UpTo(exact));
        }
        let mut seen: [Option<Vec<u32>>; TRIAL_TOKENS] = [const { None }; TRIAL_TOKENS];
        for shift in 0..TRIAL_TOKENS {
            let numbers: Vec<usize> = (0..max).map(|row| (row + shift) % TRIAL_TOKENS).collect();
            for (row, number) in trial(model, &numbers)?.into_iter().zip(numbers) {
                if seen[number].get_or_insert_with(|| row.clone()) != &row {
                    return Ok(Self::UpTo(1));
                }
            }
        }
        Ok(Self::Padded(max))
    }

    /// Runs one token of each sequence through the model; returns logits `[sequences, vocabulary]`.
    pub(super) fn step(
        self,
        model: &dyn Model,
        tokens: &[u32],
        caches: Vec<&mut Cache>,
    ) -> Result<Vec<f32>, Error> {
        let (Self::UpTo(max) | Self::Padded(max)) = self;
        let mut caches = caches.into_iter();
        let mut logits = Vec::with_capacity(tokens.len() * model.vocabulary());
        for tokens in tokens.chunks(max.max(1)) {
            let padding = if self == Self::Padded(max) { max - tokens.len() } else { 0 };
            let mut unused: Vec<Cache> = (0..padding).map(|_| model.cache()).collect();
            let padded = [tokens, &vec![0; padding]].concat();
            let mut batch: Vec<&mut Cache> = Vec::with_capacity(max);
            for cache in caches.by_ref().take(tokens.len()) {
                batch.push(cache);
            }
            batch.extend(&mut unused);
            let rows = run::step_batch(model, batch, &Tokens::new(&padded)?)?.values()?;
            logits.extend(rows.into_iter().take(tokens.len() * model.vocabulary()));
        }
        Ok(logits)
    }
}

/// The bits of the logits after each of these trial tokens, computed in one batch.
fn trial(model: &dyn Model, numbers: &[usize]) -> Result<Vec<Vec<u32>>, Error> {
    let vocabulary = model.vocabulary().max(1);
    let spread = |number: usize| u32::try_from((number + 1) * vocabulary / (TRIAL_TOKENS + 2)).unwrap_or(0);
    let tokens: Vec<u32> = numbers.iter().map(|number| spread(*number)).collect();
    let mut caches: Vec<Cache> = numbers.iter().map(|_| model.cache()).collect();
    let logits = run::step_batch(model, &mut caches, &Tokens::new(&tokens)?)?.values()?;
    Ok(logits.chunks_exact(vocabulary).map(|row| row.iter().map(|logit| logit.to_bits()).collect()).collect())
}
