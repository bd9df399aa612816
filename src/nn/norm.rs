//! [`RmsNorm`]: root-mean-square normalization (<https://arxiv.org/abs/1910.07467>).

use crate::mlx::{Array, Dtype, Result};
use crate::weights::{WeightMap, WeightsError};

/// How a norm is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NormSpec {
    /// Added to the mean square.
    pub eps: f32,
    /// Whether the weight is stored minus 1.
    pub plus_one: bool,
}

/// x / rms(x) · w over the last axis.
#[derive(Debug)]
pub(crate) struct RmsNorm {
    weight: Array,
    eps: f32,
}

impl NormSpec {
    /// Takes the weight `<module>.weight` `[width]`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(super) fn weight(
        self,
        weights: &mut WeightMap<'_>,
        module: &str,
        width: usize,
    ) -> Result<Array, WeightsError> {
        let stored = weights.vector(&format!("{module}.weight"), width)?;
        if !self.plus_one {
            return Ok(stored);
        }
        let dtype = stored.dtype();
        let wide = stored.cast(Dtype::Float32).and_then(|wide| wide.add(&Array::scalar(1.0)));
        let weight = wide.and_then(|wide| wide.cast(dtype))?;
        weights.settle(&[&weight], 0)?;
        Ok(weight)
    }
}

impl RmsNorm {
    /// Takes `<module>.weight` `[width]`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        width: usize,
        spec: NormSpec,
    ) -> Result<Self, WeightsError> {
        Ok(Self { weight: spec.weight(weights, module, width)?, eps: spec.eps })
    }

    /// x `[…, width]` → the same shape.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        x.rms_norm(Some(&self.weight), self.eps)
    }
}
