//! [`Guide`]: the constraint on one answer.

use llguidance::Matcher;

use super::error::{GuideError, first_line};

/// Keeps one answer to a JSON schema, token by token.
pub(in crate::serve) struct Guide(Matcher);

impl Guide {
    pub(super) fn new(matcher: Matcher) -> Self {
        Self(matcher)
    }

    /// A guide at the same place that shares nothing with this one: plain clones share tables behind a lock.
    pub(in crate::serve) fn independent_clone(&self) -> Self {
        Self(self.0.deep_clone())
    }

    /// Sets the logits of all tokens that the schema does not allow to −∞. Where it allows the end, any token of `eos`
    /// may end the answer.
    pub(in crate::serve) fn mask(&mut self, logits: &mut [f32], eos: &[u32]) -> Result<(), GuideError> {
        let mask = self.0.compute_mask_or_eos().map_err(|error| decoding(&error.to_string()))?;
        let allowed = |token: u32| (token as usize) < mask.len() && mask.is_allowed(token);
        let may_end = eos.iter().any(|token| allowed(*token));
        for (token, logit) in (0u32..).zip(logits) {
            if !(allowed(token) || may_end && eos.contains(&token)) {
                *logit = f32::NEG_INFINITY;
            }
        }
        Ok(())
    }

    /// Advances by a token of the answer.
    pub(in crate::serve) fn consume(&mut self, token: u32) -> Result<(), GuideError> {
        self.0.consume_token(token).map_err(|error| decoding(&error.to_string()))
    }

    /// Whether nothing may follow.
    pub(in crate::serve) fn is_complete(&self) -> bool {
        self.0.is_stopped()
    }
}

fn decoding(error: &str) -> GuideError {
    GuideError::Decoding(first_line(error))
}
