//! [`Rows`]: how many answers may go through a model together so that each gets, to the last bit, what it would get
//! among any others.
//!
//! A matrix product may add up in another order for another number of rows, and then a token that is barely the
//! likeliest alone may not be so in a batch. How that is depends on the library, the processor and the shapes, and not
//! on the values; so it is found out by trying, once, when the model has been loaded.

use crate::generate::Error;
use crate::model::{Model, Tokens, run};
use crate::nn::Cache;

/// How to step several answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// Up to so many together: each number of rows up to it gives the same.
    UpTo(usize),
    /// Always so many together, filled up: every place gives the same.
    Always(usize),
}

/// Different tokens that are tried.
const TOKENS: usize = 3;

impl Rows {
    /// Finds out for a model that is to answer `most` requests at once.
    pub(super) fn of(model: &dyn Model, most: usize) -> Result<Self, Error> {
        let mut alone = Vec::with_capacity(TOKENS);
        for number in 0..TOKENS {
            alone.extend(trial(model, &[number])?);
        }
        let mut exact = 1;
        while exact < most {
            let numbers: Vec<usize> = (0..=exact).map(|row| row % TOKENS).collect();
            if trial(model, &numbers)?.iter().zip(&numbers).any(|(row, number)| *row != alone[*number]) {
                break;
            }
            exact += 1;
        }
        if exact > 1 || most == 1 {
            return Ok(Self::UpTo(exact));
        }
        let mut seen: [Option<Vec<u32>>; TOKENS] = [const { None }; TOKENS];
        for shift in 0..TOKENS {
            let numbers: Vec<usize> = (0..most).map(|row| (row + shift) % TOKENS).collect();
            for (row, number) in trial(model, &numbers)?.into_iter().zip(numbers) {
                if seen[number].get_or_insert_with(|| row.clone()) != &row {
                    return Ok(Self::UpTo(1));
                }
            }
        }
        Ok(Self::Always(most))
    }

    /// Runs a token of each answer through the model: logits `[answers, vocabulary]`.
    pub(super) fn step(
        self,
        model: &dyn Model,
        tokens: &[u32],
        caches: Vec<&mut Cache>,
    ) -> Result<Vec<f32>, Error> {
        let (Self::UpTo(most) | Self::Always(most)) = self;
        let mut caches = caches.into_iter();
        let mut all = Vec::with_capacity(tokens.len() * model.vocabulary());
        for tokens in tokens.chunks(most.max(1)) {
            let fill = if self == Self::Always(most) { most - tokens.len() } else { 0 };
            let mut fillers: Vec<Cache> = (0..fill).map(|_| model.cache()).collect();
            let filled = [tokens, &vec![0; fill]].concat();
            let mut group: Vec<&mut Cache> = Vec::with_capacity(most);
            for cache in caches.by_ref().take(tokens.len()) {
                group.push(cache);
            }
            group.extend(&mut fillers);
            let logits = run::step_batch(model, group, &Tokens::new(&filled)?)?.values()?;
            all.extend(logits.into_iter().take(tokens.len() * model.vocabulary()));
        }
        Ok(all)
    }
}

/// The bits of the logits after each of these tokens, computed together.
fn trial(model: &dyn Model, numbers: &[usize]) -> Result<Vec<Vec<u32>>, Error> {
    let vocabulary = model.vocabulary().max(1);
    let spread = |number: usize| u32::try_from((number + 1) * vocabulary / (TOKENS + 2)).unwrap_or(0);
    let tokens: Vec<u32> = numbers.iter().map(|number| spread(*number)).collect();
    let mut caches: Vec<Cache> = numbers.iter().map(|_| model.cache()).collect();
    let logits = run::step_batch(model, &mut caches, &Tokens::new(&tokens)?)?.values()?;
    Ok(logits.chunks_exact(vocabulary).map(|row| row.iter().map(|logit| logit.to_bits()).collect()).collect())
}
