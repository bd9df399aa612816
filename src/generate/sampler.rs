//! [`Sampler`]: one token from a row of logits, on the host, bit for bit the same on every platform.
//!
//! The order is that of transformers, for which `generation_config.json` files are written: repetition penalty,
//! temperature, top-k, top-p, min-p, then one draw. Everything is computed in f64 with `libm`'s exponential, over
//! candidates in a fixed order, so that a seed means the same text everywhere.

use std::cmp::Ordering;

use super::Error;
use super::random::Random;

/// How to choose a token.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it; 0 always takes the likeliest token (the lowest id among equals).
    pub temperature: f32,
    /// Only the k likeliest tokens; 0 is all.
    pub top_k: usize,
    /// Only the likeliest tokens whose probabilities sum to at least p (nucleus sampling: Holtzman et al. 2020,
    /// arXiv:1904.09751); 1 is all.
    pub top_p: f32,
    /// Only tokens at least so many times as likely as the likeliest (Nguyen et al. 2024, arXiv:2407.01082); 0 is all.
    pub min_p: f32,
    /// Logits of tokens seen lately are divided by it where positive and multiplied where negative (CTRL: Keskar et
    /// al. 2019, arXiv:1909.05858); 1 is off.
    pub repetition_penalty: f32,
    /// How many of the last tokens, prompt included, count as seen. 20 as in mlx-lm: a penalty on everything ever
    /// seen would soon forbid the commonest words of the language.
    pub repetition_window: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy.
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

/// Chooses tokens, one row of logits after another.
#[derive(Debug, Clone)]
pub struct Sampler {
    sampling: Sampling,
    random: Random,
    /// The penalized row, kept to reuse its memory.
    row: Vec<f32>,
}

/// A token that may be chosen.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    logit: f32,
    weight: f64,
}

impl Sampler {
    /// A sampler at the beginning of its seed's stream.
    #[must_use]
    pub fn new(sampling: Sampling) -> Self {
        let random = Random::new(sampling.seed);
        Self { sampling, random, row: Vec::new() }
    }

    /// Whether it always takes the likeliest token, so that a device can choose it.
    #[must_use]
    pub fn takes_likeliest(&self) -> bool {
        #[expect(clippy::float_cmp, reason = "exactly 1 and 0 are the words for `off`")]
        let (plain, greedy) = (self.sampling.repetition_penalty == 1.0, self.sampling.temperature == 0.0);
        plain && greedy
    }

    /// Chooses a token from `logits` `[V]`, after `seen` (prompt and answer so far).
    ///
    /// # Errors
    /// When a logit is NaN or +∞, or when all are −∞.
    pub fn sample(&mut self, logits: &[f32], seen: &[u32]) -> Result<u32, Error> {
        let likeliest = likeliest(logits)?;
        let sampling = &self.sampling;
        #[expect(clippy::float_cmp, reason = "exactly 1 and 0 are the words for `off`")]
        let (penalized, greedy) = (sampling.repetition_penalty != 1.0, sampling.temperature == 0.0);
        if !penalized {
            return if greedy { Ok(likeliest) } else { Ok(self.draw(logits)) };
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
        let chosen = likeliest_of(&row).map(|id| if greedy { id } else { self.draw(&row) });
        self.row = row;
        chosen
    }

    /// One draw from the softmax of `logits`, none of which is NaN or +∞ and at least one of which is finite.
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
            // Sums run in a fixed order: selection leaves its own.
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
        // Only rounding leads here; the likeliest token has weight 1, so there is a last one.
        candidates.last().map_or(0, |candidate| candidate.id)
    }
}

/// The id of the highest logit, the lowest id among equals.
fn likeliest(logits: &[f32]) -> Result<u32, Error> {
    if let Some(id) = logits.iter().position(|logit| logit.is_nan() || *logit == f32::INFINITY) {
        return Err(Error::Logits(format!("the model's logits are not finite (token {id}: {})", logits[id])));
    }
    likeliest_of(logits)
}

fn likeliest_of(logits: &[f32]) -> Result<u32, Error> {
    (0u32..)
        .zip(logits)
        .filter(|(_, logit)| **logit != f32::NEG_INFINITY)
        .reduce(|best, next| if next.1 > best.1 { next } else { best })
        .map(|(id, _)| id)
        .ok_or_else(|| Error::Logits("the model's logits leave no token possible".to_owned()))
}

fn penalize(logit: f32, penalty: f32) -> f32 {
    let penalized = if logit > 0.0 { logit / penalty } else { logit * penalty };
    penalized.clamp(f32::NEG_INFINITY, f32::MAX)
}

fn by_likelihood(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.id.cmp(&b.id))
}

/// Keeps the likeliest candidates whose weights sum to at least `p` of all, at least one, and sorts them.
///
/// Sorts ever longer prefixes instead of the whole vocabulary: the nucleus is mostly a few tokens.
fn keep_nucleus(candidates: &mut Vec<Candidate>, p: f64) {
    let wanted = p * candidates.iter().map(|candidate| candidate.weight).sum::<f64>();
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
            if sum >= wanted {
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
