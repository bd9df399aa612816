//! [`LogitAdjustments`]: `logit_bias`, `presence_penalty` and `frequency_penalty` of a request.

use std::collections::HashMap;

/// What a request adds to the logits before the sampler sees them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::serve) struct LogitAdjustments {
    /// Token ids, and what is added to their logits.
    pub(in crate::serve) bias: Vec<(u32, f32)>,
    /// Subtracted once from the logit of every token in the answer.
    pub(in crate::serve) presence_penalty: f32,
    /// Subtracted from the logit of a token for each of its occurrences in the answer.
    pub(in crate::serve) frequency_penalty: f32,
}

impl LogitAdjustments {
    fn penalizes(&self) -> bool {
        self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    /// Whether they change nothing.
    pub(super) fn is_noop(&self) -> bool {
        !self.penalizes() && self.bias.is_empty()
    }

    /// Adjusts a row of logits that follows `answer`.
    pub(super) fn apply(&self, logits: &mut [f32], answer: &[u32]) {
        for (token, bias) in &self.bias {
            if let Some(logit) = logits.get_mut(*token as usize) {
                *logit += bias;
            }
        }
        if !self.penalizes() {
            return;
        }
        let mut counts: HashMap<u32, f32> = HashMap::new();
        for token in answer {
            *counts.entry(*token).or_default() += 1.0;
        }
        for (token, count) in counts {
            if let Some(logit) = logits.get_mut(token as usize) {
                *logit -= self.presence_penalty + self.frequency_penalty * count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_are_added_and_repeated_tokens_penalized() {
        let adjustments = LogitAdjustments {
            bias: vec![(0, 2.0), (9, 1.0)],
            presence_penalty: 0.5,
            frequency_penalty: 0.25,
        };
        let mut row = [1.0, 1.0, 1.0];
        adjustments.apply(&mut row, &[1, 1, 2]);
        assert_eq!(row.map(f32::to_bits), [3.0f32, 0.0, 0.25].map(f32::to_bits));
        assert!(!adjustments.is_noop() && LogitAdjustments::default().is_noop());
    }
}
