//! [`Linear`]: y = x · Wᵀ + b.

use crate::mlx::{Array, Result};
use crate::weights::{Matrix, WeightMap, WeightsError};

/// A projection, dense or packed; or several projections of the same input, their outputs side by side.
#[derive(Debug)]
pub(crate) struct Linear {
    /// One matrix, or several that could not be stacked.
    weights: Vec<Matrix>,
    bias: Option<Array>,
}

impl Linear {
    /// Takes `<module>.weight` `[out, in]` and, if it has one, `<module>.bias` `[out]`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        out: usize,
        input: usize,
        bias: bool,
    ) -> Result<Self, WeightsError> {
        let matrix = weights.matrix(module, out, input)?;
        let bias = bias.then(|| weights.vector(&format!("{module}.bias"), out)).transpose()?;
        Ok(Self { weights: vec![matrix], bias })
    }

    /// Takes several projections `<parent>.<name>` `[out, in]` of the same input as one, which is faster.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn stacked(
        weights: &mut WeightMap<'_>,
        parent: &str,
        parts: &[(&str, usize)],
        input: usize,
        bias: bool,
    ) -> Result<Self, WeightsError> {
        let modules: Vec<(String, usize)> =
            parts.iter().map(|&(name, out)| (format!("{parent}.{name}"), out)).collect();
        let matrices = weights.stacked(&modules, input)?;
        if !bias {
            return Ok(Self { weights: matrices, bias: None });
        }
        let each = modules.iter().map(|(module, out)| weights.vector(&format!("{module}.bias"), *out));
        let biases = each.collect::<Result<Vec<Array>, WeightsError>>()?;
        let bias = Array::concatenate(&biases.iter().collect::<Vec<_>>(), 0);
        let bias = bias?;
        weights.settle(&[&bias], 0)?;
        Ok(Self { weights: matrices, bias: Some(bias) })
    }

    /// x `[…, in]` → `[…, out]`.
    pub(crate) fn forward(&self, x: &Array) -> Result<Array> {
        let y = match self.weights.as_slice() {
            [one] => one.apply(x)?,
            several => {
                let parts = several.iter().map(|one| one.apply(x)).collect::<Result<Vec<Array>>>()?;
                Array::concatenate(&parts.iter().collect::<Vec<_>>(), -1)?
            }
        };
        match &self.bias {
            Some(bias) => y.add(bias),
            None => Ok(y),
        }
    }
}
