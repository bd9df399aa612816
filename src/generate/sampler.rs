//! [`Sampler`]: samples a token from a row of logits, on the host, bit for bit the same on every platform.
//!
//! The order is that of transformers, for which `generation_config.json` files are written: repetition penalty,
//! temperature, top-k, top-p, min-p, then one draw. Everything is computed in f64 with `libm`'s exponential, over
//! candidates in a fixed order, so that a seed gives the same text everywhere.

use std::cmp::Ordering;

use super::error::{Error, LogitsError};
use super::random::Random;

/// Sampling parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sampling {
    /// Divides the logits; 0 always picks the most likely token (the lowest id among equals).
    pub temperature: f32,
    /// Keeps the k most likely tokens; 0 means all.
    pub top_k: usize,
    /// Keeps the most likely tokens whose probabilities sum to at least p (nucleus sampling: Holtzman et al. 2020,
    /// arXiv:1904.09751); 1 means all.
    pub top_p: f32,
    /// Keeps tokens whose probability is at least this fraction of the highest (Nguyen et al. 2024, arXiv:2407.01082);
    /// 0 means all.
    pub min_p: f32,
    /// Divides the positive and multiplies the negative logits of recent tokens (CTRL: Keskar et al. 2019,
    /// arXiv:1909.05858); 1 disables it.
    pub repetition_penalty: f32,
    /// Number of recent tokens, prompt included, that are penalized. The default is 20 as in mlx-lm: a penalty on all
    /// tokens would soon rule out common words.
    pub repetition_window: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy decoding.
    fn default() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            repetition_window: 20,
            seed: 0,
        }
    }
}

/// Samples tokens from one row of logits after another.
#[derive(Debug, Clone)]
pub(super) struct Sampler {
    sampling: Sampling,
    random: Random,
    /// The penalized row, kept to reuse its memory.
    row: Vec<f32>,
}

/// A token that may be drawn.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    logit: f32,
    weight: f64,
}

impl Sampler {
    /// A sampler that has drawn nothing yet.
    #[must_use]
    pub(super) fn new(sampling: Sampling) -> Self {
        let random = Random::new(sampling.seed);
        Self { sampling, random, row: Vec::new() }
    }

    /// Whether it always picks the most likely token of the unmodified logits, so that the device can pick it.
    #[must_use]
    pub(super) fn is_greedy(&self) -> bool {
        #[expect(clippy::float_cmp, reason = "exactly 1 and 0 disable them")]
        let (unpenalized, greedy) =
            (self.sampling.repetition_penalty == 1.0, self.sampling.temperature == 0.0);
        unpenalized && greedy
    }

    /// Samples a token from `logits` `[vocabulary]`, which follow the tokens `seen` (prompt and answer so far).
    ///
    /// # Errors
    /// When a logit is NaN or +∞, or when all are −∞.
    pub(super) fn sample(&mut self, logits: &[f32], seen: &[u32]) -> Result<u32, Error> {
        let most_likely = checked_argmax(logits)?;
        let sampling = &self.sampling;
        #[expect(clippy::float_cmp, reason = "exactly 1 and 0 disable them")]
        let (penalized, greedy) = (sampling.repetition_penalty != 1.0, sampling.temperature == 0.0);
        if !penalized {
            return if greedy { Ok(most_likely) } else { Ok(self.draw(logits)) };
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend_from_slice(logits);
        let window = &seen[seen.len().saturating_sub(sampling.repetition_window)..];
        for (position, &id) in window.iter().enumerate() {
            let repeated = window[..position].contains(&id);
            if let Some(logit) = row.get_mut(id as usize).filter(|_| !repeated) {
                *logit = penalize(*logit, sampling.repetition_penalty);
            }
        }
        let sampled = argmax(&row).map(|id| if greedy { id } else { self.draw(&row) });
        self.row = row;
        sampled
    }

    /// One draw from the softmax of `logits`: none is NaN or +∞, and at least one is finite.
    fn draw(&mut self, logits: &[f32]) -> u32 {
        let sampling = &self.sampling;
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let temperature = f64::from(sampling.temperature);
        let mut candidates: Vec<Candidate> = (0u32..)
            .zip(logits)
            .filter(|(_, logit)| **logit != f32::NEG_INFINITY)
            .map(|(id, &logit)| Candidate { id, logit, weight: 0.0 })
            .collect();
        if (1..candidates.len()).contains(&sampling.top_k) {
            candidates.select_nth_unstable_by(sampling.top_k - 1, by_likelihood);
            candidates.truncate(sampling.top_k);
            // Selection leaves an arbitrary order, and the sums below need a fixed one.
            candidates.sort_unstable_by_key(|candidate| candidate.id);
        }
        for candidate in &mut candidates {
            candidate.weight = libm::exp((f64::from(candidate.logit) - f64::from(max)) / temperature);
        }
        if sampling.top_p < 1.0 {
            keep_nucleus(&mut candidates, f64::from(sampling.top_p));
        }
        let floor = f64::from(sampling.min_p);
        candidates.retain(|candidate| candidate.weight >= floor && candidate.weight > 0.0);
        let total: f64 = candidates.iter().map(|candidate| candidate.weight).sum();
        let mut left = self.random.unit() * total;
        for candidate in &candidates {
            if left < candidate.weight {
                return candidate.id;
            }
            left -= candidate.weight;
        }
        // Rounding may leave a rest; the most likely token has weight 1, so there is a last candidate.
        candidates.last().map_or(0, |candidate| candidate.id)
    }
}

/// The id of the highest logit, the lowest id among equals; an error if a logit is NaN or +∞.
fn checked_argmax(logits: &[f32]) -> Result<u32, Error> {
    if let Some(id) = logits.iter().position(|logit| logit.is_nan() || *logit == f32::INFINITY) {
        return Err(LogitsError::NotFinite { token: id, value: logits[id] }.into());
    }
    argmax(logits)
}

fn argmax(logits: &[f32]) -> Result<u32, Error> {
    (0u32..)
        .zip(logits)
        .filter(|(_, logit)| **logit != f32::NEG_INFINITY)
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(id, _)| id)
        .ok_or_else(|| LogitsError::NoCandidate.into())
}

fn penalize(logit: f32, penalty: f32) -> f32 {
    let penalized = if logit > 0.0 { logit / penalty } else { logit * penalty };
    penalized.clamp(f32::NEG_INFINITY, f32::MAX)
}

fn by_likelihood(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// Keeps the most likely candidates whose weights sum to at least `p` of the total, at least one, in descending order.
///
/// Sorts growing prefixes instead of the whole vocabulary, since the nucleus is usually a few tokens.
fn keep_nucleus(candidates: &mut Vec<Candidate>, p: f64) {
    let target = p * candidates.iter().map(|candidate| candidate.weight).sum::<f64>();
    let mut sum = 0.0;
    let mut sorted = 0;
    let mut length = 64;
    while sorted < candidates.len() {
        let rest = &mut candidates[sorted..];
        let part = length.min(rest.len());
        if part < rest.len() {
            rest.select_nth_unstable_by(part - 1, by_likelihood);
        }
        rest[..part].sort_unstable_by(by_likelihood);
        for position in sorted..sorted + part {
            sum += candidates[position].weight;
            if sum >= target {
                candidates.truncate(position + 1);
                return;
            }
        }
        sorted += part;
        length *= 8;
    }
}

#[cfg(test)]
mod tests;
