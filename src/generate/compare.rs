//! [`compare`]: compares the predictions of two models on the same text, position by position.

use super::error::Error;
use super::score::log_sum_exp;
use crate::model::{Model, run};

/// The predictions of two models for one position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Position {
    /// The token at this position.
    pub token: u32,
    /// Kullback-Leibler divergence of the second model's prediction from the first's, in nats: Σ p · (ln p − ln q).
    pub divergence: f64,
    /// Whether both models find the same token most likely.
    pub agrees: bool,
}

/// Compares the predictions of two models of one vocabulary for each token of `answer` after `prompt` (at least one
/// token).
///
/// # Errors
/// When MLX fails.
pub(crate) fn compare(
    first: &dyn Model,
    second: &dyn Model,
    prompt: &[u32],
    answer: &[u32],
) -> Result<Vec<Position>, Error> {
    let text = [prompt, answer].concat();
    let vocabulary = first.vocabulary().max(1);
    let mut caches = [first.cache(), second.cache()];
    let mut positions = Vec::with_capacity(answer.len());
    let mut done = 0;
    for cache in &mut caches {
        cache.expect(text.len());
    }
    for piece in text.chunks(run::chunk()) {
        let mut rows = [Vec::new(), Vec::new()];
        for ((model, cache), rows) in [first, second].into_iter().zip(&mut caches).zip(&mut rows) {
            run::score(model, cache, piece, run::chunk(), |_, logits: &[f32]| {
                rows.extend_from_slice(logits);
                Ok::<(), Error>(())
            })?;
        }
        let [of_first, of_second] = rows;
        let pairs = of_first.chunks_exact(vocabulary).zip(of_second.chunks_exact(vocabulary));
        for (row, (p, q)) in pairs.enumerate() {
            let next = done + row + 1;
            if next >= prompt.len()
                && let Some(token) = text.get(next)
            {
                let agrees = argmax(p) == argmax(q);
                positions.push(Position { token: *token, divergence: divergence(p, q), agrees });
            }
        }
        done += piece.len();
    }
    Ok(positions)
}

/// Σ p · (ln p − ln q) over the softmax of two rows of logits, in f64.
fn divergence(first: &[f32], second: &[f32]) -> f64 {
    let (of_first, of_second) = (log_sum_exp(first), log_sum_exp(second));
    let terms = first.iter().zip(second).map(|(p, q)| {
        let (p, q) = (f64::from(*p) - of_first, f64::from(*q) - of_second);
        if p == f64::NEG_INFINITY { 0.0 } else { libm::exp(p) * (p - q) }
    });
    // Rounding can make the sum slightly negative.
    terms.sum::<f64>().max(0.0)
}

fn argmax(row: &[f32]) -> Option<usize> {
    row.iter().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_divergence_matches_its_definition() {
        let row = |probabilities: [f32; 3]| probabilities.map(|p| p.ln() + 7.0);
        let (p, q) = (row([0.5, 0.25, 0.25]), row([0.25, 0.5, 0.25]));
        let expected = 0.5 * 2f64.ln() - 0.25 * 2f64.ln();
        assert!((divergence(&p, &q) - expected).abs() < 1e-6);
        assert!(divergence(&p, &p).abs() < 1e-12);
        assert!(divergence(&p, &[0.0, 0.0, f32::NEG_INFINITY]).is_infinite());
        assert!(divergence(&[0.0, f32::NEG_INFINITY, 0.0], &q).is_finite());
        assert_eq!((argmax(&p), argmax(&q), argmax(&[])), (Some(0), Some(1), None));
    }
}
