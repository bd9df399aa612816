//! [`Linear`]: y = x · Wᵀ + b.

use crate::diagnostic::Diagnostic;
use crate::mlx::{Array, Result};
use crate::weights::{Matrix, WeightMap};

/// A projection, dense or in affine codes.
#[derive(Debug)]
pub struct Linear {
    weight: Matrix,
    bias: Option<Array>,
}

impl Linear {
    /// Takes `<module>.weight` `[out, in]` and, if it has one, `<module>.bias` `[out]`.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        out: usize,
        input: usize,
        bias: bool,
    ) -> Result<Self, Diagnostic> {
        let weight = weights.matrix(module, out, input)?;
        let bias = bias.then(|| weights.vector(&format!("{module}.bias"), out)).transpose()?;
        Ok(Self { weight, bias })
    }

    /// x `[…, in]` → `[…, out]`.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let y = self.weight.apply(x)?;
        match &self.bias {
            Some(bias) => y.add(bias),
            None => Ok(y),
        }
    }
}
