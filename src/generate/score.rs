//! [`score`]: log-probabilities of a given text.

use super::error::{Error, LogitsError};
use crate::model::{Model, run};

/// Log-probabilities of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Score {
    /// Natural log-probability of each token given those before it; `None` for the first.
    pub logprobs: Vec<Option<f64>>,
}

impl Score {
    /// exp of the mean negative log-probability of all tokens but the first; `None` for a single token.
    #[must_use]
    pub(crate) fn perplexity(&self) -> Option<f64> {
        let known: Vec<f64> = self.logprobs.iter().copied().flatten().collect();
        #[expect(clippy::cast_precision_loss, reason = "no text has 2⁵² tokens")]
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        (!known.is_empty()).then(|| libm::exp(-mean))
    }
}

/// Scores `tokens`. `each` receives the logits of consecutive chunks of the text: f32, row-major `[chunk, vocabulary]`.
///
/// # Errors
/// When MLX or `each` fails, or a log-probability is not a number.
pub(crate) fn score(
    model: &dyn Model,
    tokens: &[u32],
    mut each: impl FnMut(&[f32]) -> Result<(), Error>,
) -> Result<Score, Error> {
    let mut logprobs = vec![None; tokens.len().min(1)];
    let vocabulary = model.vocabulary().max(1);
    run::score(model, &mut model.cache(), tokens, run::chunk(), |first, logits: &[f32]| {
        each(logits)?;
        for (row, token) in logits.chunks_exact(vocabulary).zip(tokens.iter().skip(first + 1)) {
            let logprob = logprob(row, *token);
            if logprob.is_nan() {
                let position = logprobs.len();
                return Err(Error::from(LogitsError::NotFiniteBefore { position }));
            }
            logprobs.push(Some(logprob));
        }
        Ok(())
    })?;
    Ok(Score { logprobs })
}

/// Log-softmax of `row` at `token`, in f64; NaN if the row contains NaN.
fn logprob(row: &[f32], token: u32) -> f64 {
    row.get(token as usize).map_or(f64::NAN, |logit| f64::from(*logit) - log_sum_exp(row))
}

/// Logarithm of the sum of the exponentials of `row`, in f64; NaN if the row contains NaN. Subtracting it from a logit
/// gives the log-probability.
#[must_use]
pub(crate) fn log_sum_exp(row: &[f32]) -> f64 {
    let max = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = row.iter().map(|logit| libm::exp(f64::from(*logit) - max)).sum();
    max + libm::log(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_are_the_log_softmax() {
        let row = [0.1f32, 0.4, 0.2, 0.3].map(f32::ln);
        for (token, expected) in [(0, 0.1f64), (1, 0.4), (3, 0.3)] {
            assert!((logprob(&row, token) - expected.ln()).abs() < 1e-7);
        }
        // Large logits, where f32 would overflow or lose the difference.
        assert!((logprob(&[1000.0, 990.0], 1) - (-10.0 - (1.0 + (-10f64).exp()).ln())).abs() < 1e-12);
        assert!(logprob(&[f32::NAN, 0.0], 1).is_nan());
        assert!(logprob(&[0.0, f32::NEG_INFINITY], 1).is_infinite());
    }

    #[test]
    fn perplexity_excludes_the_first_token() {
        let score = Score { logprobs: vec![None, Some(-1.0), Some(-3.0)] };
        assert!((score.perplexity().unwrap() - 2f64.exp()).abs() < 1e-12);
        assert_eq!(Score { logprobs: vec![None] }.perplexity(), None);
    }
}
