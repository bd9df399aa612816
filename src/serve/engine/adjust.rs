//! [`Adjust`]: what a request adds to logits before the sampler sees them.

use std::collections::HashMap;

use llguidance::Matcher;

use super::Failure;

/// What a request adds to logits.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::serve) struct Adjust {
    /// Added to a token's logit.
    pub(in crate::serve) bias: Vec<(u32, f32)>,
    /// Taken from every token that the answer has.
    pub(in crate::serve) presence: f32,
    /// Taken from every token as often as the answer has it.
    pub(in crate::serve) frequency: f32,
}

impl Adjust {
    fn penalizes(&self) -> bool {
        self.presence != 0.0 || self.frequency != 0.0
    }

    /// Whether it has any effect.
    pub(super) fn acts(&self) -> bool {
        self.penalizes() || !self.bias.is_empty()
    }

    /// Changes a row of logits after `answer`.
    pub(super) fn apply(&self, row: &mut [f32], answer: &[u32]) {
        for (token, bias) in &self.bias {
            if let Some(logit) = row.get_mut(*token as usize) {
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
            if let Some(logit) = row.get_mut(token as usize) {
                *logit -= self.presence + self.frequency * count;
            }
        }
    }
}

/// Rules out every token that a guide does not allow. Where it allows the end, any of `eos` may end the answer.
pub(super) fn mask(row: &mut [f32], guide: &mut Matcher, eos: &[u32]) -> Result<(), Failure> {
    let mask = guide.compute_mask_or_eos().map_err(|error| Failure::Broken(broken(&error.to_string())))?;
    let may_end = eos.iter().any(|token| (*token as usize) < mask.len() && mask.is_allowed(*token));
    for (token, logit) in (0u32..).zip(row) {
        let allowed = (token as usize) < mask.len() && mask.is_allowed(token);
        let ends = may_end && eos.contains(&token);
        if !(allowed || ends) {
            *logit = f32::NEG_INFINITY;
        }
    }
    Ok(())
}

/// What a guide says when it gives up, in one line.
pub(super) fn broken(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    format!("the answer cannot be held to its format: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_are_added_and_repeated_tokens_pay() {
        let adjust = Adjust { bias: vec![(0, 2.0), (9, 1.0)], presence: 0.5, frequency: 0.25 };
        let mut row = [1.0, 1.0, 1.0];
        adjust.apply(&mut row, &[1, 1, 2]);
        assert_eq!(row.map(f32::to_bits), [3.0f32, 0.0, 0.25].map(f32::to_bits));
        assert!(adjust.acts() && !Adjust::default().acts());
    }
}
