//! [`Embedding`]: a vector for each token.

use crate::mlx::{Array, Result};
use crate::weights::{Matrix, WeightMap, WeightsError};

/// The token embedding, dense or packed.
#[derive(Debug)]
pub(crate) struct Embedding {
    weight: Matrix,
}

impl Embedding {
    /// Takes `<module>.weight` `[vocabulary, width]`.
    ///
    /// # Errors
    /// A tensor that is missing or does not fit.
    pub(crate) fn new(
        weights: &mut WeightMap<'_>,
        module: &str,
        vocabulary: usize,
        width: usize,
    ) -> Result<Self, WeightsError> {
        Ok(Self { weight: weights.matrix(module, vocabulary, width)? })
    }

    /// Tokens u32 `[B, T]`, all below the vocabulary's size, → `[B, T, width]`.
    pub(crate) fn forward(&self, tokens: &Array) -> Result<Array> {
        self.weight.rows(tokens)
    }
}
