//! [`RmsNorm`]: root-mean-square normalization (<https://arxiv.org/abs/1910.07467>).

use crate::diagnostic::Diagnostic;
use crate::mlx::{Array, Result};
use crate::weights::WeightMap;

/// x / rms(x) · w over the last axis.
#[derive(Debug)]
pub struct RmsNorm {
    weight: Array,
    eps: f32,
}

impl RmsNorm {
    /// Takes `<module>.weight` `[width]`.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        width: usize,
        eps: f32,
    ) -> Result<Self, Diagnostic> {
        Ok(Self { weight: weights.vector(&format!("{module}.weight"), width)?, eps })
    }

    /// x `[…, width]` → the same shape.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        x.rms_norm(&self.weight, self.eps)
    }
}
