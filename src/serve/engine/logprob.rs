//! [`TokenLogprob`]: how likely a token was, by the model's own logits.

use crate::generate::log_sum_exp;

/// A token's log-probability and the most likely alternatives.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::serve) struct TokenLogprob {
    /// The token.
    pub(in crate::serve) token: u32,
    /// Its natural log-probability before adjustments and sampling.
    pub(in crate::serve) logprob: f64,
    /// The most likely tokens, in descending order; among equals the lower id comes first.
    pub(in crate::serve) top: Vec<(u32, f64)>,
}

impl TokenLogprob {
    /// The log-probability of `token` in a row of logits, with the `count` most likely tokens.
    pub(super) fn from_logits(logits: &[f32], token: u32, count: usize) -> Self {
        let normalizer = log_sum_exp(logits);
        let logprob =
            |id: u32| logits.get(id as usize).map_or(f64::NAN, |logit| f64::from(*logit) - normalizer);
        let mut ids: Vec<u32> = (0u32..).take(logits.len()).collect();
        let descending =
            |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
        let count = count.min(ids.len());
        if count < ids.len() {
            ids.select_nth_unstable_by(count, descending);
            ids.truncate(count);
        }
        ids.sort_unstable_by(descending);
        Self { token, logprob: logprob(token), top: ids.into_iter().map(|id| (id, logprob(id))).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_tokens_are_sorted_by_probability_and_then_by_id() {
        let row = [0.1f32, 0.3, 0.3, 0.2, 0.1].map(f32::ln);
        let logprob = TokenLogprob::from_logits(&row, 4, 3);
        assert!((logprob.logprob - 0.1f64.ln()).abs() < 1e-6);
        assert_eq!(logprob.top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(TokenLogprob::from_logits(&row, 0, 9).top.len(), 5);
        assert_eq!(TokenLogprob::from_logits(&row, 0, 0).top, []);
    }
}
